package settleanthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/turn"
)

// Tools are an executor's tools, and those that the host runs itself, as a loop
// over the SDK or its tool runner needs them. It is safe for concurrent use.
type Tools struct {
	executor *settle.Executor
	guarded  map[string]turn.Guarded
	order    []Guarded
}

// Guarded is a tool that the host runs itself, as it did before. The executor
// claims each of its calls, records how it ends, and answers what must not run.
// A tool that is an [anthropic.BetaTool] already takes [Guard] instead.
type Guarded struct {
	// Definition is how the model is shown the tool. The contract is found by its
	// name, among those of [settle.WithGuarded]; without one the tool is Unsafe,
	// and all of its arguments identify a call (R1). Arguments are checked
	// against its input schema before anything is claimed. Where the contract has
	// a schema of its own, that one is shown and checked instead.
	//
	// A definition with nothing but a name isn't shown: the host does that, as
	// with the tools that Anthropic defines and the host executes (bash, …).
	Definition anthropic.ToolParam
	// Run is entered at most once per attempt, with the exact bytes that the
	// model sent (in the tool runner: with what the SDK left of them), and
	// concurrently for the calls of one turn. Its error means what
	// [settle.NotSent], [settle.Rejected] and [settle.Interrupted] say, otherwise
	// an unknown outcome: the model is told of it, and the loop goes on. A Keyed
	// tool takes its key from [settle.KeyFrom]. The caller's cancellation doesn't
	// reach it, unless the contract is Interruptible (R24).
	Run func(ctx context.Context, args json.RawMessage) (string, error)
}

// New makes the tools of a loop. One that is given as guarded runs that way,
// also where the executor has a tool with its name.
func New(x *settle.Executor, own ...Guarded) (*Tools, error) {
	t := &Tools{executor: x, guarded: map[string]turn.Guarded{}, order: own}
	var problems []error
	for _, g := range own {
		name := g.Definition.Name
		schema, err := json.Marshal(g.Definition.InputSchema)
		switch _, twice := t.guarded[name]; {
		case name == "":
			err = errors.New("its definition has no name")
		case twice:
			err = errors.New("it is given twice")
		case g.Run == nil:
			err = errors.New("it has no Run: give it one, or register it with settle.WithTools if the executor runs it")
		case err != nil:
			err = fmt.Errorf("its input schema is no JSON Schema: %w", err)
		case !turn.Declared(x, name):
			err = turn.Check(schema)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("settleanthropic: guarded tool %q: %w", name, err))
			continue
		}
		t.guarded[name] = turn.Guarded{Run: g.Run, Schema: schema}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return t, nil
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

// definitions are what the model is shown: the executor's tools in their order,
// then the host's own. A contract without a schema is of a tool that somebody
// else shows.
func (t *Tools) definitions() []anthropic.ToolParam {
	var all []anthropic.ToolParam
	shown := map[string]bool{}
	for _, d := range t.executor.Tools() {
		if len(d.Schema) == 0 {
			continue
		}
		all, shown[d.Name] = append(all, definition(d)), true
	}
	for _, g := range t.order {
		d := g.Definition
		if !shown[d.Name] && (d.Description.Valid() || !param.IsOmitted(d.InputSchema)) {
			all = append(all, d)
		}
	}
	return all
}

// definition shows the schema to the byte. Taken apart into the SDK's fields it
// would lose the order of its properties, and be written in another one each
// time, which spoils the provider's cache.
func definition(d settle.Declaration) anthropic.ToolParam {
	p := anthropic.ToolParam{Name: d.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](d.Schema)}
	if d.Description != "" {
		p.Description = anthropic.String(d.Description)
	}
	if d.Strict {
		p.Strict = anthropic.Bool(true)
	}
	return p
}
