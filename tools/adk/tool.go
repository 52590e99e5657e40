package settleadk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync/atomic"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/toolutils"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/exact"
	"github.com/settle-go/settle/tools/internal/given"
)

// function and streaming are adk's own interfaces of tools that it can run.
type function interface {
	tool.Tool
	Declaration() *genai.FunctionDeclaration
	Run(ctx agent.Context, args any) (map[string]any, error)
}

type streaming interface {
	tool.Tool
	Declaration() *genai.FunctionDeclaration
	RunStream(ctx agent.Context, args any) iter.Seq2[string, error]
}

// shown is a tool of this package: the plugin leaves it alone.
type shown interface{ tellsModel() bool }

// Tool puts the executor before one tool: for the tool nodes of a workflow and
// for streaming tools, both of which plugins don't see. An agent may have it
// beside the plugin, or without one.
//
// In a node a replayed result is the first one as it was, since the node may
// check it against a schema. An agent's model is told beside it that it is a
// replay (R48).
func Tool(x *settle.Executor, t tool.Tool, options ...Option) (tool.Tool, error) {
	g := newGuard(x, options)
	f, runs := t.(function)
	s, streams := t.(streaming)
	if !runs && !streams {
		return nil, fmt.Errorf("settleadk: tool %q can't be run: it has neither Run nor RunStream", t.Name())
	}
	var declared interface {
		Declaration() *genai.FunctionDeclaration
	} = f
	if !runs {
		declared = s
	}
	if _, err := schemaOf(declared.Declaration()); err != nil {
		return nil, fmt.Errorf("settleadk: tool %q: %w", t.Name(), err)
	}
	switch {
	case !streams:
		return &guarded{function: f, guard: g}, nil
	case !runs:
		return &guardedStream{streaming: s, guard: g}, nil
	}
	return &guardedBoth{guarded: &guarded{function: f, guard: g}, stream: s}, nil
}

// guarded is a tool with the executor before it.
type guarded struct {
	function
	guard *guard
	// tells says that a model reads the results.
	tells bool
}

func (t *guarded) tellsModel() bool { return t.tells }

// ProcessRequest shows the tool to a model.
func (t *guarded) ProcessRequest(_ agent.Context, req *model.LLMRequest) error {
	return toolutils.PackTool(req, &guarded{t.function, t.guard, true})
}

// Run runs the tool through the executor. A call that somebody has confirmed is
// an agent's.
func (t *guarded) Run(ctx agent.Context, args any) (map[string]any, error) {
	return t.guard.run(ctx, t.function, args, t.tells || ctx.ToolConfirmation() != nil)
}

// insideKey marks the context of a tool that runs under the guard already: a
// toolset may have wrapped a guarded tool.
type insideKey struct{}

// answer is how an attempt's run returned.
type answer struct {
	actions *session.EventActions
	fine    bool
}

// run claims the call, runs the tool and records how it ended.
func (g *guard) run(ctx agent.Context, t function, args any, tells bool) (map[string]any, error) {
	if ctx.Value(insideKey{}) == t.Name() {
		return t.Run(ctx, args)
	}
	call, err := callOf(ctx, t.Name(), t.Declaration(), args)
	if err != nil {
		return nil, err
	}
	scoped, err := g.scope(ctx)
	if err != nil {
		return nil, err
	}
	before := copyOf(ctx.Actions())
	var last atomic.Pointer[answer]
	result, out, err := settle.Around(scoped, g.executor, call, func(in context.Context) (map[string]any, error) {
		actions := copyOf(before)
		result, err := t.Run(within(ctx, in, t.Name(), actions), given.Members(in, call.Args, args))
		last.Store(&answer{actions, err == nil})
		return result, controlFlow(ctx, result, err, actions)
	})
	returned := last.Load()
	if returned != nil {
		*ctx.Actions() = *returned.actions
	}
	var pause *paused
	switch {
	case errors.As(err, &pause):
		return pause.result, nil
	case err != nil:
		return nil, err
	case out.Status == settle.StatusCompleted && !out.Replayed && returned != nil && returned.fine:
		return result, nil
	}
	if object, err := exact.Value(out.Result); err == nil {
		result, _ = object.(map[string]any)
	}
	return told(out, result, tells), nil
}

// within is the tool's context: the executor's, so that it has the key, and the
// caller's cancellation only where the contract says so (R24). Its actions are
// its own, since the framework goes on with the event's when the caller goes.
func within(ctx agent.Context, in context.Context, name string, actions *session.EventActions) agent.Context {
	in = context.WithValue(in, insideKey{}, name)
	inner := ctx.WithDelta(&agent.CommonContextDelta{InvocationContextDelta: &agent.InvocationContextDelta{Context: &in}})
	return agent.NewToolContext(inner, ctx.FunctionCallID(), actions, ctx.ToolConfirmation())
}

func copyOf(a *session.EventActions) *session.EventActions {
	own := *a
	own.StateDelta, own.ArtifactDelta = maps.Clone(a.StateDelta), maps.Clone(a.ArtifactDelta)
	own.RequestedToolConfirmations = maps.Clone(a.RequestedToolConfirmations)
	return &own
}

// paused is the answer of a tool that has asked for a confirmation and returned
// without an error.
type paused struct{ result map[string]any }

func (*paused) Error() string { return "settleadk: the tool waits for a confirmation" }

// controlFlow marks what the framework means by an answer: that the tool has
// done nothing yet, or won't.
func controlFlow(ctx agent.Context, result map[string]any, err error, actions *session.EventActions) error {
	_, asked := actions.RequestedToolConfirmations[ctx.FunctionCallID()]
	switch {
	case errors.Is(err, tool.ErrConfirmationRequired), errors.Is(err, tool.ErrConfirmationRejected), err != nil && asked:
		return settle.Interrupted(err)
	case err == nil && asked:
		return settle.Interrupted(&paused{result})
	}
	return err
}

// callOf is a call as the executor takes it. Its numbers are float64 already.
func callOf(ctx agent.Context, name string, declared *genai.FunctionDeclaration, args any) (settle.Call, error) {
	schema, err := schemaOf(declared)
	if err != nil {
		return settle.Call{}, fmt.Errorf("settleadk: tool %q: %w", name, err)
	}
	raw := []byte("{}")
	if m, ok := args.(map[string]any); !ok || len(m) > 0 {
		if raw, err = json.Marshal(args); err != nil {
			return settle.Call{}, fmt.Errorf("settleadk: the arguments of tool %q can't be written as JSON: %w", name, err)
		}
	}
	return settle.Call{Tool: name, Args: raw, CallID: ctx.FunctionCallID(), Schema: schema, Rounded: true}, nil
}

// told is the answer where the tool didn't give one for this call.
func told(out settle.Outcome, result map[string]any, tells bool) map[string]any {
	if out.Status != settle.StatusCompleted || result == nil {
		return map[string]any{"status": string(out.Status), "operation": out.Operation, "message": out.ForModel()}
	}
	if !tells {
		return result
	}
	out.Result = nil // the map has it
	result = maps.Clone(result)
	result["settle_note"] = out.ForModel()
	return result
}
