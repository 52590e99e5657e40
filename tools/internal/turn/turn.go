// Package turn runs the calls of one model turn for the adapters of raw loops:
// some through the executor's own tools, some through tools that the host runs.
package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/schema"
)

// Guarded is a tool of the host with the schema that comes with its calls.
type Guarded struct {
	Run    func(ctx context.Context, args json.RawMessage) (string, error)
	Schema json.RawMessage
}

// Check says whether arguments can be checked against a schema that comes with
// the calls of a tool.
func Check(given json.RawMessage) error {
	if len(given) == 0 {
		return nil
	}
	if _, err := schema.ParseForeign(given); err != nil {
		return fmt.Errorf("its parameters are no JSON Schema that arguments can be checked against: %w", err)
	}
	return nil
}

// Declared says whether the executor's contract of a tool has a schema of its
// own, against which arguments are checked instead.
func Declared(x *settle.Executor, tool string) bool {
	return slices.ContainsFunc(x.Tools(), func(d settle.Declaration) bool { return d.Name == tool && len(d.Schema) > 0 })
}

// Run runs the calls at the same time and returns what the model is told of
// each, in their order. A call whose name is in own runs as the host's.
//
// An error is the host's mistake, as [settle.Executor.Execute] says, or the
// control flow of a guarded tool, as it came ([settle.Interrupted]); of several
// the first. The calls beside it ran all the same: when the turn is answered
// again, they are replayed and only what was interrupted runs again.
func Run(ctx context.Context, x *settle.Executor, own map[string]Guarded, calls ...settle.Call) ([]string, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	said := make([]string, len(calls))
	errs := make([]error, len(calls))
	var together []settle.Call
	var places []int
	var group sync.WaitGroup
	for i, call := range calls {
		if g, ok := own[call.Tool]; ok {
			group.Go(func() { said[i], errs[i] = around(ctx, x, g, call) })
			continue
		}
		together, places = append(together, call), append(places, i)
	}
	outs, err := x.ExecuteAll(ctx, together...)
	group.Wait()
	for _, err := range append(errs, err) {
		if err != nil {
			return nil, err
		}
	}
	for i, out := range outs {
		said[places[i]] = out.ForModel()
	}
	return said, nil
}

// around runs a call of a tool that the host runs. Its own words reach the model
// as they are where it ran for this call, and with what is known beside them
// where it didn't (R48).
func around(ctx context.Context, x *settle.Executor, g Guarded, call settle.Call) (string, error) {
	call.Schema = g.Schema
	said, out, err := settle.Around(ctx, x, call, func(ctx context.Context) (string, error) {
		args, _ := settle.ArgumentsFrom(ctx)
		return g.Run(ctx, args)
	})
	switch {
	case err != nil:
		return "", err
	case out.Status == settle.StatusCompleted && !out.Replayed && said != "":
		return said, nil
	}
	return out.ForModel(), nil
}
