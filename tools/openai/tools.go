package settleopenai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/turn"
)

// Tools are an executor's tools, and those that the host runs itself, as a loop
// over the SDK needs them. It is safe for concurrent use.
type Tools struct {
	executor *settle.Executor
	guarded  map[string]turn.Guarded
	order    []Guarded
}

// Guarded is a tool that the host runs itself, as it did before. The executor
// claims each of its calls, records how it ends, and answers what must not run.
type Guarded struct {
	// Definition is how the model is shown the tool. The contract is found by its
	// name, among those of [settle.WithGuarded]; without one the tool is Unsafe,
	// and all of its arguments identify a call (R1). Arguments are checked
	// against its parameters before anything is claimed. Where the contract has
	// a schema of its own, that one is shown and checked instead.
	//
	// A definition with nothing but a name isn't shown: the host does that.
	Definition openai.FunctionDefinitionParam
	// Run is entered at most once per attempt, with the exact bytes that the
	// model sent ({} where it sent none), and concurrently for the calls of one
	// turn. Its error means what [settle.NotSent], [settle.Rejected] and
	// [settle.Interrupted] say, otherwise an unknown outcome: the model is told
	// of it, and the loop goes on. A Keyed tool takes its key from
	// [settle.KeyFrom]. The caller's cancellation doesn't reach it, unless the
	// contract is Interruptible (R24).
	Run func(ctx context.Context, args json.RawMessage) (string, error)
}

// New makes the tools of a loop. One that is given as guarded runs that way,
// also where the executor has a tool with its name.
func New(x *settle.Executor, own ...Guarded) (*Tools, error) {
	t := &Tools{executor: x, guarded: map[string]turn.Guarded{}, order: own}
	var problems []error
	for _, g := range own {
		name := g.Definition.Name
		schema, err := schemaOf(g.Definition)
		switch _, twice := t.guarded[name]; {
		case name == "":
			err = errors.New("its definition has no name")
		case twice:
			err = errors.New("it is given twice")
		case g.Run == nil:
			err = errors.New("it has no Run: give it one, or register it with settle.WithTools if the executor runs it")
		case err == nil && !turn.Declared(x, name):
			err = turn.Check(schema)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("settleopenai: guarded tool %q: %w", name, err))
			continue
		}
		t.guarded[name] = turn.Guarded{Run: g.Run, Schema: schema}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return t, nil
}

// schemaOf is the JSON Schema of a definition, nil where it has none.
func schemaOf(d openai.FunctionDefinitionParam) (json.RawMessage, error) {
	if len(d.Parameters) == 0 {
		return nil, nil
	}
	schema, err := json.Marshal(d.Parameters)
	if err != nil {
		return nil, fmt.Errorf("its parameters are no JSON Schema: %w", err)
	}
	return schema, nil
}

// Run runs the calls of one turn at the same time and returns what the model is
// told of each, in their order. It is what the Answer methods do; a host that
// keeps its conversation in a form of its own calls it directly.
//
// An error is the host's mistake, as [settle.Executor.Execute] says, or the
// control flow of a guarded tool, as it came ([settle.Interrupted]); of several
// the first. The calls beside it ran all the same: when the turn is answered
// again, they are replayed and only what was interrupted runs again.
func (t *Tools) Run(ctx context.Context, calls ...settle.Call) ([]string, error) {
	return turn.Run(ctx, t.executor, t.guarded, calls...)
}

// answer runs a turn's calls, unless the turn was cut off: whether its calls are
// complete is not known then, and arguments that end early must be taken neither
// for what is there of them nor, where nothing is, for {}.
func (t *Tools) answer(ctx context.Context, calls []settle.Call, cutOff bool) ([]string, error) {
	if !cutOff {
		return t.Run(ctx, calls...)
	}
	said := make([]string, len(calls))
	for i, call := range calls {
		said[i] = settle.Outcome{
			Status: settle.StatusInvalidArguments, Tool: call.Tool,
			Detail: "the turn was cut off before its calls were complete",
		}.ForModel()
	}
	return said, nil
}

// callOf is a function call of the model. Its id is correlation and nothing
// else (R11): it may be constant, used again, or missing.
func callOf(name, arguments, id string) settle.Call {
	return settle.Call{Tool: name, Args: json.RawMessage(arguments), CallID: id}
}

// definitions are what the model is shown: the executor's tools in their order,
// then the host's own. A contract without a schema is of a tool that somebody
// else shows.
func (t *Tools) definitions() []openai.FunctionDefinitionParam {
	var all []openai.FunctionDefinitionParam
	shown := map[string]bool{}
	for _, d := range t.executor.Tools() {
		if len(d.Schema) == 0 {
			continue
		}
		all, shown[d.Name] = append(all, definition(d)), true
	}
	for _, g := range t.order {
		d := g.Definition
		if !shown[d.Name] && (d.Description.Valid() || len(d.Parameters) > 0) {
			all = append(all, d)
		}
	}
	return all
}

// definition keeps the parameters in the order of their declaration, which a
// map of their values would lose.
func definition(d settle.Declaration) openai.FunctionDefinitionParam {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(d.Schema, &members) // an object: the executor has parsed it
	parameters := openai.FunctionParameters{}
	for name, m := range members {
		parameters[name] = m
	}
	f := openai.FunctionDefinitionParam{Name: d.Name, Parameters: parameters, Strict: openai.Bool(d.Strict)}
	if d.Description != "" {
		f.Description = openai.String(d.Description)
	}
	return f
}
