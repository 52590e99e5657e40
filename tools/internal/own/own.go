// Package own finds the tools that an executor runs itself, for adapters that
// offer them to a framework as its own kind.
package own

import (
	"errors"
	"fmt"
	"slices"

	"github.com/settle-go/settle"
)

// Tools are those with the given names, or all for none, in the order of their
// registration; missing are the names of which the executor has none.
func Tools(x *settle.Executor, names []string) (found []settle.Declaration, missing []string) {
	missing = slices.Clone(names)
	for _, d := range x.Tools() {
		if d.Guarded || len(names) > 0 && !slices.Contains(names, d.Name) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == d.Name })
		found = append(found, d)
	}
	return found, missing
}

// Runs says whether the executor runs a tool of that name itself. same compares
// two names as the framework does.
func Runs(x *settle.Executor, name string, same func(a, b string) bool) bool {
	return slices.ContainsFunc(x.Tools(), func(d settle.Declaration) bool { return !d.Guarded && same(d.Name, name) })
}

// ErrRuns is the refusal to guard such a tool: the framework would find one of
// the two, and nobody could say which.
var ErrRuns = errors.New("the executor runs a tool of this name itself: offer that one with Tools alone, or register its contract with settle.WithGuarded")

// Missing is the adapter's error for names of which the executor has no tool, nil
// for none.
func Missing(adapter string, names []string) error {
	var problems []error
	for _, name := range names {
		problems = append(problems, fmt.Errorf("%s: tool %q: the executor has none with this name: register it with settle.WithTools", adapter, name))
	}
	return errors.Join(problems...)
}
