package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// age is a flag that takes a duration, in days too.
type age struct{ time.Duration }

func (s *age) Type() string { return "duration" }
func (s *age) String() string {
	if s.Duration == 0 {
		return ""
	}
	return s.Duration.String()
}

func (s *age) Set(text string) error {
	days := time.Duration(1)
	if n, ok := strings.CutSuffix(text, "d"); ok {
		text, days = n+"h", 24
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("a duration is a number with a unit: 90s, 30m, 2h, 3d")
	}
	s.Duration = d * days
	return nil
}

func stateNames() []string {
	var names []string
	for _, s := range store.States() {
		names = append(names, s.String())
	}
	return names
}

func checkStates(names []string) error {
	for _, n := range names {
		if _, err := store.ParseState(n); err != nil {
			return usage("%q is no state; the states are %s", n, strings.Join(stateNames(), ", "))
		}
	}
	return nil
}

func completeStates(c *cobra.Command) {
	if err := c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag isn't there: a mistake in this program
	}
}

// completionTime bounds what a shell waits for.
const completionTime = 2 * time.Second

// completeCases offers the open cases' references. Where the ledger can't be
// read there is nothing to offer.
func (a *app) completeCases(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var found []string
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	err := a.onQueue(ctx, reads, func(ctx context.Context, d *desk) error {
		page, err := d.queue.List(ctx, settle.QueueFilter{})
		for _, c := range page.Cases {
			found = append(found, cobra.CompletionWithDesc(c.Operation, fmt.Sprintf("%s %s, %s, open for %s", shown(c.Tool), stateOf(c), shown(c.Reason), a.openFor(c))))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeUnsettled offers the references of operations that aren't settled.
func (a *app) completeUnsettled(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var found []string
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	err := a.onQueue(ctx, reads, func(ctx context.Context, d *desk) error {
		page, err := d.queue.Operations(ctx, settle.OperationFilter{States: unsettled()})
		for _, o := range page.Operations {
			found = append(found, cobra.CompletionWithDesc(o.Operation, shown(o.Tool)+" "+o.State))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

func unsettled() []string {
	var names []string
	for _, s := range store.States() {
		if !s.Settled() {
			names = append(names, s.String())
		}
	}
	return names
}

// instant is a flag that takes an instant, or how long ago it was.
type instant struct {
	time.Time
	now func() time.Time
}

func (i *instant) Type() string { return "time" }
func (i *instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Format(time.RFC3339)
}

func (i *instant) Set(text string) error {
	var ago age
	if ago.Set(text) == nil {
		i.Time = i.now().Add(-ago.Duration)
		return nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			i.Time = t
			return nil
		}
	}
	return fmt.Errorf("give how long ago (30m, 2h, 3d) or an instant (2006-01-02T15:04:05Z)")
}

// version is a flag that takes the version of a case that was seen.
type seenVersion struct{ n int }

func (v *seenVersion) Type() string { return "number" }
func (v *seenVersion) String() string {
	if v.n == 0 {
		return ""
	}
	return strconv.Itoa(v.n)
}

func (v *seenVersion) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("a version is the number that \"settle queue show\" prints")
	}
	v.n = n
	return nil
}
