package settleadk

import (
	"encoding/json"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/toolutils"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/exact"
	"github.com/settle-go/settle/tools/internal/own"
)

// Tools offers the executor's own tools to agents and workflows: those of
// [settle.WithTools], in their order; with names, only those. They need no
// plugin, and one leaves them alone. In an agent the plugin is still what sends
// the brief.
func Tools(x *settle.Executor, names []string, options ...Option) ([]tool.Tool, error) {
	g := newGuard(x, options)
	var all []tool.Tool
	found, missing := own.Tools(x, names)
	if err := own.Missing("settleadk", missing); err != nil {
		return nil, err
	}
	for _, d := range found {
		all = append(all, &ownTool{declared: d, guard: g})
	}
	return all, nil
}

// ownTool is a tool of the executor.
type ownTool struct {
	declared settle.Declaration
	guard    *guard
	tells    bool
}

func (t *ownTool) tellsModel() bool    { return t.tells }
func (t *ownTool) Name() string        { return t.declared.Name }
func (t *ownTool) Description() string { return t.declared.Description }
func (t *ownTool) IsLongRunning() bool { return false }

// ownSchema is the schema of an executor's tool. Its type shows whose the tool
// is, also through what a toolset wraps around it.
type ownSchema json.RawMessage

// MarshalJSON writes the schema to the byte.
func (s ownSchema) MarshalJSON() ([]byte, error) { return s, nil }

func isOwn(t function) bool {
	d := t.Declaration()
	if d == nil {
		return false
	}
	_, ok := d.ParametersJsonSchema.(ownSchema)
	return ok
}

// Declaration is what the model is shown.
func (t *ownTool) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: t.declared.Name, Description: t.declared.Description, ParametersJsonSchema: ownSchema(t.declared.Schema)}
}

// ProcessRequest shows the tool to a model.
func (t *ownTool) ProcessRequest(_ agent.Context, req *model.LLMRequest) error {
	return toolutils.PackTool(req, &ownTool{t.declared, t.guard, true})
}

// Run executes a call.
func (t *ownTool) Run(ctx agent.Context, args any) (map[string]any, error) {
	call, err := callOf(ctx, t.declared.Name, nil, args)
	if err != nil {
		return nil, err
	}
	scoped, err := t.guard.scope(ctx)
	if err != nil {
		return nil, err
	}
	out, err := t.guard.executor.Execute(scoped, call)
	if err != nil {
		return nil, err
	}
	result := resultOf(out)
	if out.Status == settle.StatusCompleted && !out.Replayed && result != nil {
		return result, nil
	}
	return told(out, result, t.tells || ctx.ToolConfirmation() != nil), nil
}

// resultOf is a recorded result as adk's map: as adk itself does, what is no
// object is put into one. It is nil where there is no result.
func resultOf(out settle.Outcome) map[string]any {
	value, err := exact.Value(out.Result)
	if err != nil || value == nil {
		return nil
	}
	if object, ok := value.(map[string]any); ok {
		return object
	}
	return map[string]any{"result": value}
}
