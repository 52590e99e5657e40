package mcpwire

import (
	"maps"

	"github.com/settle-go/settle"
)

// The keys in a message's _meta. MCP wants the prefix in reverse DNS notation.
const (
	TaskKey    = "io.github.settle-go/task"
	OutcomeKey = "io.github.settle-go/outcome"
	// OfferedKey is a tool's own: the server runs it through an executor.
	OfferedKey = "io.github.settle-go/offered"
)

// NoTask is what a client is told whose call names no task.
const NoTask = "nothing was done: the call names no task; send {\"id\": …, \"goal\": …} in its _meta under " + TaskKey

// NoPrincipal is what a client is told that the server doesn't know.
const NoPrincipal = "nothing was done: the server doesn't know for whom the call is made; authenticate"

// WithTask returns meta with the task in it. The map that is given stays as it
// was. The principal never travels: a server learns it from its authentication.
func WithTask(meta map[string]any, t settle.Task) map[string]any {
	return with(meta, TaskKey, map[string]any{"id": t.ID, "goal": t.Goal})
}

// WithKey returns meta with an operation's key under the server's own name for it.
func WithKey(meta map[string]any, name, key string) map[string]any { return with(meta, name, key) }

func with(meta map[string]any, key string, value any) map[string]any {
	own := make(map[string]any, len(meta)+1)
	maps.Copy(own, meta)
	own[key] = value
	return own
}

// TaskOf reads the task that a client sent. Whether its names are fit for a
// ledger is the executor's to say.
func TaskOf(meta map[string]any) (settle.Task, bool) {
	sent, _ := meta[TaskKey].(map[string]any)
	id, ok := sent["id"].(string)
	goal, also := sent["goal"].(string)
	return settle.Task{ID: id, Goal: goal}, ok && also
}
