package settlemcpgo

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/mcpwire"
)

// Options say who calls a server's tools, and for what.
type Options struct {
	// Principal names the authority that a call acts for. Default: the context's
	// principal, where the host's authentication has put it. A call for which it
	// returns an error is not made, and the error isn't shown.
	Principal func(ctx context.Context, req mcp.CallToolRequest) (settle.Principal, error)
	// Task names the task of a call. Default: the one that the client sent
	// ([TaskOf]), or the context's. For clients that know nothing of tasks, give
	// an id of your own data here. A call for which it returns an error is not made.
	Task func(ctx context.Context, req mcp.CallToolRequest) (settle.Task, error)
}

// Guard stands before the tools of MCP servers. It is safe for concurrent use.
type Guard struct {
	executor *settle.Executor
	options  Options
	classes  map[string]settle.Class
	// offered marks the tools of Offer: the middleware lets them pass. It never
	// changes, and its address is what counts.
	offered *mcp.Meta
}

// New makes a guard.
func New(x *settle.Executor, options Options) *Guard {
	g := &Guard{executor: x, options: options, classes: map[string]settle.Class{},
		offered: mcp.NewMetaFromMap(map[string]any{mcpwire.OfferedKey: true})}
	for _, d := range x.Tools() {
		g.classes[d.Name] = d.Class
	}
	return g
}

// TaskOf returns the task that a client sent in the call's _meta.
func TaskOf(req mcp.CallToolRequest) (settle.Task, bool) {
	if req.Params.Meta == nil {
		return settle.Task{}, false
	}
	return mcpwire.TaskOf(req.Params.Meta.AdditionalFields)
}

// SendTask returns a client's call with the context's task in its _meta, for a
// guarded server. The principal isn't sent.
func SendTask(ctx context.Context, req mcp.CallToolRequest) mcp.CallToolRequest {
	task, ok := settle.TaskFrom(ctx)
	if !ok {
		return req
	}
	meta := &mcp.Meta{}
	if req.Params.Meta != nil {
		*meta = *req.Params.Meta
	}
	meta.AdditionalFields = mcpwire.WithTask(meta.AdditionalFields, task)
	req.Params.Meta = meta
	return req
}

// Refusals of calls by the client's host. Nothing was done.
var (
	errNoPrincipal = errors.New(mcpwire.NoPrincipal)
	errNoTask      = errors.New(mcpwire.NoTask)
)

// scope is the context of a call with its principal and task.
func (g *Guard) scope(ctx context.Context, req mcp.CallToolRequest) (context.Context, error) {
	principal, known := settle.PrincipalFrom(ctx)
	if g.options.Principal != nil {
		p, err := g.options.Principal(ctx, req)
		principal, known = p, err == nil
	}
	if !known {
		return nil, errNoPrincipal
	}
	task, named := TaskOf(req)
	if !named {
		task, named = settle.TaskFrom(ctx)
	}
	if g.options.Task != nil {
		t, err := g.options.Task(ctx, req)
		task, named = t, err == nil
	}
	if !named {
		return nil, errNoTask
	}
	return settle.WithTask(settle.WithPrincipal(ctx, principal), task), nil
}
