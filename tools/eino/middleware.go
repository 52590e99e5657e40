package settleeino

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	einoschema "github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/schema"
)

// Middleware returns what stands before each call of a tools node's tools, of
// all four kinds. It belongs at the end of config.ToolCallMiddlewares, next to
// the tools: whatever repeats a call has to be before it, so that each repeat
// meets the ledger.
//
// A tool's contract is found by its name, among those of [settle.WithGuarded];
// without one the tool is Unsafe, and all of its arguments identify a call (R1).
// An alias of config.ToolAliases is its tool. Arguments are checked against the
// schema that the tool has in config before anything is claimed; a tool that
// comes to the node later, by a call option or from an ADK handler, is guarded
// without that check. A name that the node doesn't know never gets here:
// [NoSuchTool].
//
// What a tool returns passes through untouched where it ran for this call. Its
// error means what [settle.NotSent] and [settle.Rejected] say, otherwise an
// unknown outcome, and becomes text. Its interrupt stays one. A Keyed tool takes
// its key from [settle.KeyFrom]. The caller's cancellation doesn't reach a tool
// unless its contract is Interruptible (R24).
//
// Tools of [Tools] pass, since the executor runs them, and so do the ADK's own
// transfer_to_agent and exit, which change nothing but the run.
func Middleware(ctx context.Context, x *settle.Executor, config compose.ToolsNodeConfig, options ...Option) (compose.ToolMiddleware, error) {
	g := &guard{executor: x, settings: apply(options), tools: map[string]guarded{
		adk.TransferToAgentToolName: {passes: true}, exitName: {passes: true},
	}}
	if err := g.learn(ctx, config); err != nil {
		return compose.ToolMiddleware{}, err
	}
	return compose.ToolMiddleware{
		Invokable: func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
			return func(ctx context.Context, in *compose.ToolInput) (*compose.ToolOutput, error) {
				result, err := around(ctx, g, text, in, func(ctx context.Context, in *compose.ToolInput) (string, error) {
					out, err := next(ctx, in)
					if err != nil {
						return "", err
					}
					return out.Result, nil
				})
				return &compose.ToolOutput{Result: result}, err
			}
		},
		Streamable: func(next compose.StreamableToolEndpoint) compose.StreamableToolEndpoint {
			return func(ctx context.Context, in *compose.ToolInput) (*compose.StreamToolOutput, error) {
				result, err := stream(ctx, g, text, in, func(ctx context.Context, in *compose.ToolInput) (*einoschema.StreamReader[string], error) {
					out, err := next(ctx, in)
					if err != nil {
						return nil, err
					}
					return out.Result, nil
				})
				return &compose.StreamToolOutput{Result: result}, err
			}
		},
		EnhancedInvokable: func(next compose.EnhancedInvokableToolEndpoint) compose.EnhancedInvokableToolEndpoint {
			return func(ctx context.Context, in *compose.ToolInput) (*compose.EnhancedInvokableToolOutput, error) {
				result, err := around(ctx, g, parts, in, func(ctx context.Context, in *compose.ToolInput) (*einoschema.ToolResult, error) {
					out, err := next(ctx, in)
					if err != nil {
						return nil, err
					}
					return out.Result, nil
				})
				return &compose.EnhancedInvokableToolOutput{Result: result}, err
			}
		},
		EnhancedStreamable: func(next compose.EnhancedStreamableToolEndpoint) compose.EnhancedStreamableToolEndpoint {
			return func(ctx context.Context, in *compose.ToolInput) (*compose.EnhancedStreamableToolOutput, error) {
				result, err := stream(ctx, g, parts, in, func(ctx context.Context, in *compose.ToolInput) (*einoschema.StreamReader[*einoschema.ToolResult], error) {
					out, err := next(ctx, in)
					if err != nil {
						return nil, err
					}
					return out.Result, nil
				})
				return &compose.EnhancedStreamableToolOutput{Result: result}, err
			}
		},
	}, nil
}

// exitName is that of [adk.ExitTool].
const exitName = "exit"

// guard is the executor before the tools of one node.
type guard struct {
	executor *settle.Executor
	settings settings
	// tools are those that the node was made with, by name and alias.
	tools map[string]guarded
}

// guarded is what is known of a tool.
type guarded struct {
	name   string
	schema json.RawMessage
	passes bool
}

// learn takes names and schemas from the node's tools.
func (g *guard) learn(ctx context.Context, config compose.ToolsNodeConfig) error {
	var problems []error
	seen := map[string]bool{}
	for i, t := range config.Tools {
		info, err := t.Info(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("settleeino: the tool at index %d doesn't say what it is: %w", i, err))
			continue
		}
		if seen[info.Name] {
			problems = append(problems, fmt.Errorf("settleeino: tool %q: its name is given twice, and eino would run the last one only", info.Name))
			continue
		}
		seen[info.Name] = true
		parameters, err := schemaOf(info)
		if err != nil {
			problems = append(problems, fmt.Errorf("settleeino: tool %q: its parameters are no JSON Schema that arguments can be checked against: %w", info.Name, err))
			continue
		}
		_, own := t.(*executorTool)
		g.tools[info.Name] = guarded{name: info.Name, schema: parameters, passes: own}
	}
	for _, name := range g.settings.unguarded {
		g.tools[name] = guarded{name: name, passes: true}
	}
	for name, alias := range config.ToolAliases {
		for _, other := range alias.NameAliases {
			if t, ok := g.tools[name]; ok {
				g.tools[other] = t
			}
		}
	}
	return errors.Join(problems...)
}

// schemaOf is the JSON Schema of a tool's arguments, nil where it has none.
func schemaOf(info *einoschema.ToolInfo) (json.RawMessage, error) {
	parameters, err := info.ToJSONSchema()
	if err != nil || parameters == nil {
		return nil, err
	}
	raw, err := json.Marshal(parameters)
	if err != nil {
		return nil, err
	}
	_, err = schema.ParseForeign(raw)
	return raw, err
}

// begin reads a call: what it is for the executor, and the context with principal
// and task.
func (g *guard) begin(ctx context.Context, in *compose.ToolInput) (context.Context, settle.Call, error) {
	t, ok := g.tools[in.Name]
	if !ok {
		t.name = in.Name
	}
	ctx, err := scoped(ctx)
	// The call's id is correlation and nothing else (R11): it may be constant,
	// used again, or missing.
	return context.WithValue(ctx, guardedKey{}, t.name),
		settle.Call{Tool: t.name, Args: json.RawMessage(in.Arguments), CallID: in.CallID, Schema: t.schema}, err
}

// given is the tool's input in the context of an attempt.
func given(ctx context.Context, in *compose.ToolInput) *compose.ToolInput {
	own := *in
	args, _ := settle.ArgumentsFrom(ctx)
	own.Arguments = string(args)
	return &own
}

// guardedKey is where a context names the tool that the middleware is running.
type guardedKey struct{}

// around runs a call that is answered in one piece.
func around[T any](ctx context.Context, g *guard, in form[T], input *compose.ToolInput, run func(context.Context, *compose.ToolInput) (T, error)) (T, error) {
	var none T
	if g.tools[input.Name].passes {
		return run(ctx, input)
	}
	under, call, err := g.begin(ctx, input)
	if err != nil {
		return none, err
	}
	result, out, err := settle.Around(under, g.executor, call, func(ctx context.Context) (T, error) {
		result, err := run(ctx, given(ctx, input))
		return result, controlFlow(err)
	})
	if err != nil {
		return none, err
	}
	if err := g.settings.parked(ctx, out); err != nil {
		return none, err
	}
	return in.answer(result, out), nil
}

// controlFlow marks eino's interrupts, which are errors too.
func controlFlow(err error) error {
	if _, ok := compose.IsInterruptRerunError(err); ok {
		return settle.Interrupted(err)
	}
	return err
}

// Option changes how a middleware or a tool behaves.
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

type settings struct {
	parks     bool
	unguarded []string
}

func apply(options []Option) settings {
	var s settings
	for _, o := range options {
		o.apply(&s)
	}
	return s
}

// Unguarded names tools that have no effect outside the run: an agent that is
// offered as a tool, for one, whose own tools are guarded where they are. Their
// calls pass as if there were no middleware.
func Unguarded(names ...string) Option {
	return optionFunc(func(s *settings) { s.unguarded = append(s.unguarded, names...) })
}

// Parking interrupts the graph where an operation isn't settled: unknown, with a
// person, awaiting approval, or still in progress. The model is told nothing
// until the graph is resumed, which asks the ledger again: by then it is settled
// and the result goes on, or the graph parks once more. Without this option the
// model is told how it stands, and goes on with something else.
//
// The interrupt's info is the text that the model would have been told, its
// state the operation's reference. A call that is held is told to the model all
// the same: it may mean what was done under other words.
func Parking() Option { return optionFunc(func(s *settings) { s.parks = true }) }

// parked is the interrupt of an outcome that isn't settled, if it is wanted.
func (s settings) parked(ctx context.Context, out settle.Outcome) error {
	switch out.Status {
	case settle.StatusUnknown, settle.StatusManual, settle.StatusAwaitingApproval, settle.StatusInProgress:
		if s.parks {
			return tool.StatefulInterrupt(ctx, out.ForModel(), out.Operation)
		}
	}
	return nil
}
