package settlegenkit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/given"
)

// Option changes where the principal comes from, or what an open outcome does.
type Option func(*Guard)

// PrincipalFromAuth takes the principal from what a flow's context provider
// found in the request, where the context has none: of gives it for the value
// under "auth" in [core.FromContext], and false where it names nobody. It is
// right where that provider checks a token (R6).
func PrincipalFromAuth(of func(auth map[string]any) (settle.Principal, bool)) Option {
	return func(g *Guard) { g.principal = of }
}

// InterruptWhileOpen makes an outcome that is still to come an interrupt of
// Generate: one that isn't known, that is in progress, or that waits for a
// person. The interrupt's metadata are "status", "operation" and "message".
// Restart the call when it has settled: it is answered from the record.
func InterruptWhileOpen() Option { return func(g *Guard) { g.interrupts = true } }

// Guard is an executor before the tools of a Generate. It is a middleware, for
// [ai.WithUse], and safe for concurrent use.
type Guard struct {
	executor   *settle.Executor
	principal  func(map[string]any) (settle.Principal, bool)
	interrupts bool

	mu sync.Mutex
	// own names the tools that the executor runs.
	own map[string]bool
}

// New makes a guard. The contract of a tool is found by its name, among those of
// [settle.WithGuarded]; without one it is Unsafe, and all of its arguments
// identify a call (R1). Where other middleware retries tools, give this one
// behind it, so that each retry meets the ledger.
func New(x *settle.Executor, options ...Option) *Guard {
	g := &Guard{executor: x, own: map[string]bool{}}
	for _, o := range options {
		o(g)
	}
	return g
}

// Name implements [ai.Middleware].
func (g *Guard) Name() string { return "settle/guard" }

// New implements [ai.Middleware]: genkit calls it for each Generate.
func (g *Guard) New(context.Context) (*ai.Hooks, error) {
	var once sync.Once
	var brief string
	var failed error
	return &ai.Hooks{
		WrapTool: g.wrapTool,
		WrapModel: func(ctx context.Context, params *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
			once.Do(func() { brief, failed = g.executor.Brief(g.scope(ctx)) })
			if failed != nil {
				return nil, failed
			}
			return withBrief(ctx, brief, params, next)
		},
	}, nil
}

// withBrief tells the model, behind its instructions, what the task has done and
// what is open (R60). The history that the caller gets doesn't have it: the next
// Generate begins with another.
func withBrief(ctx context.Context, brief string, params *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
	if brief == "" {
		return next(ctx, params)
	}
	request := *params.Request
	request.Messages = slices.Clone(request.Messages)
	at := slices.IndexFunc(request.Messages, func(m *ai.Message) bool { return m.Role == ai.RoleSystem })
	if at < 0 {
		request.Messages = slices.Insert(request.Messages, 0, ai.NewSystemTextMessage(brief))
	} else {
		system := *request.Messages[at]
		system.Content = append(slices.Clone(system.Content), ai.NewTextPart("\n\n"+brief))
		request.Messages[at] = &system
	}
	response, err := next(ctx, &ai.ModelParams{Request: &request, Callback: params.Callback})
	if response != nil && response.Request == &request {
		response.Request = params.Request
	}
	return response, err
}

// scope names the principal where the context doesn't.
func (g *Guard) scope(ctx context.Context) context.Context {
	if _, ok := settle.PrincipalFrom(ctx); ok || g.principal == nil {
		return ctx
	}
	auth, _ := core.FromContext(ctx)["auth"].(map[string]any)
	if p, ok := g.principal(auth); ok {
		return settle.WithPrincipal(ctx, p)
	}
	return ctx
}

// wrapTool claims a call, runs the tool and records how it ended.
func (g *Guard) wrapTool(ctx context.Context, params *ai.ToolParams, next ai.ToolNext) (*ai.MultipartToolResponse, error) {
	name := params.Tool.Name()
	call, err := callOf(name, params.Request.Ref, params.Request.Input)
	if err != nil {
		return nil, err
	}
	if g.runs(name) {
		return g.execute(ctx, call)
	}
	definition := params.Tool.Definition()
	if call.Schema, err = schemaOf(definition); err != nil {
		return nil, fmt.Errorf("settlegenkit: the input schema of tool %q is no JSON Schema: %w", name, err)
	}
	whole, _ := definition.Metadata["multipart"].(bool)
	first, out, err := settle.Around(g.scope(ctx), g.executor, call, func(ctx context.Context) (*result, error) {
		request := *params.Request
		request.Input = given.Members(ctx, call.Args, request.Input)
		response, err := next(ctx, &ai.ToolParams{Request: &request, Tool: params.Tool})
		if is, _ := ai.IsToolInterruptError(err); is {
			return nil, settle.Interrupted(err)
		}
		if err == nil && response == nil {
			response = &ai.MultipartToolResponse{}
		}
		return &result{response, whole}, err
	})
	switch {
	case err != nil:
		return nil, err
	case out.Status == settle.StatusCompleted && !out.Replayed && first != nil && first.response != nil:
		return first.response, nil
	}
	return g.told(out, whole)
}

// callOf is a call as the executor takes it. Its numbers are float64 already.
func callOf(name, ref string, input any) (settle.Call, error) {
	args := []byte("{}")
	if input != nil {
		var err error
		if args, err = json.Marshal(input); err != nil {
			return settle.Call{}, fmt.Errorf("settlegenkit: the input of tool %q can't be written as JSON: %w", name, err)
		}
	}
	return settle.Call{Tool: name, Args: args, CallID: ref, Rounded: true}, nil
}

func schemaOf(d *ai.ToolDefinition) (json.RawMessage, error) {
	if len(d.InputSchema) == 0 {
		return nil, nil
	}
	return json.Marshal(d.InputSchema)
}
