package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// check is one thing that doctor has looked at.
type check struct {
	Name   string `json:"check"`
	Status string `json:"status"`
	Said   string `json:"said"`
	Advice string `json:"advice,omitempty"`
}

// The statuses of a check. Only bad ones make doctor fail.
const (
	good = "ok"
	odd  = "warn"
	bad  = "bad"
)

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Look for what keeps operations from being settled",
		Long: "Look for what keeps operations from being settled: a ledger that can't be reached\nor whose settings break promises, workers that don't run, a codec without its\nkeys, cases that nobody looks at, events that nobody is told of. It exits with 1\nwhere something is bad. With SETTLE_OPERATOR_TENANTS it looks at what is theirs.",
		Args: arguments(0),
		RunE: func(c *cobra.Command, _ []string) error {
			var checks []check
			began := a.now()
			err := a.onLedger(c.Context(), reads, func(d *desk) error {
				checks = append(checks, check{"ledger", good, fmt.Sprintf("the %s ledger answers; opened in %v", d.place.kind(), a.now().Sub(began).Round(time.Millisecond)), ""})
				more, err := a.examine(c.Context(), d)
				checks = append(checks, more...)
				return err
			})
			if exit, _ := meaning(err); err != nil && (exit == exitUsage || errors.Is(err, context.Canceled)) {
				return err
			}
			if err != nil {
				checks = append(checks, unwell(err))
			}
			return a.diagnosis(checks)
		}}
}

// unwell is a check that couldn't be made.
func unwell(err error) check {
	c := check{"ledger", bad, said(err), ""}
	var advised nextError
	if errors.As(err, &advised) {
		c.Advice = advised.next
	}
	return c
}

// examine makes all checks of a ledger that answers.
func (a *app) examine(ctx context.Context, d *desk) ([]check, error) {
	settings, err := a.checkSettings(ctx, d)
	if err != nil {
		return nil, err
	}
	checks := append(settings, a.checkOperator())
	asked := a.now()
	ctx = settle.WithOperator(ctx, settle.Operator{Name: "doctor", Tenants: a.tenants()})
	open, err := openOperations(ctx, d)
	switch {
	case is[*settle.MissingKeyError](err):
		return append(checks, check{"codec", bad, said(err), "set SETTLE_KEYS to all of the codec's keys"}), nil
	case err != nil:
		return checks, err
	}
	checks = append(checks, checkCodec(d, open), checkClock(open, asked, a.now()))
	checks = append(checks, a.checkWorkers(open)...)
	cases, err := a.checkQueue(ctx, d)
	if err != nil {
		return checks, err
	}
	outbox, err := a.checkOutbox(ctx, d)
	return append(append(checks, cases...), outbox), err
}

func (a *app) checkSettings(ctx context.Context, d *desk) ([]check, error) {
	found, err := d.Verify(ctx)
	if err != nil {
		return nil, err
	}
	var checks []check
	for _, f := range found {
		checks = append(checks, check{"settings", bad, f.Setting + " = " + f.Value + ": " + f.Problem, f.Advice})
	}
	if len(checks) == 0 {
		checks = append(checks, check{"settings", good, "no setting was found that breaks what settle promises", ""})
	}
	return checks, nil
}

func (a *app) checkOperator() check {
	o, err := a.operator()
	if err != nil {
		return check{"operator", odd, said(err), "set SETTLE_OPERATOR before you work on the queue"}
	}
	text := "you are " + shown(o.Name) + ", for all tenants"
	if o.Tenants != nil {
		text = "you are " + shown(o.Name) + ", for " + countOf(len(o.Tenants), "tenant")
	}
	return check{"operator", good, text, ""}
}

// openOperations reads every operation that isn't settled and that may be seen
// here (R46).
func openOperations(ctx context.Context, d *desk) ([]settle.OperationSummary, error) {
	var all []settle.OperationSummary
	for f := (settle.OperationFilter{States: unsettled(), Limit: 1000}); ; {
		page, err := d.queue.Operations(ctx, f)
		all = append(all, page.Operations...)
		if err != nil || page.Next == "" {
			return all, err
		}
		f.Cursor = page.Next
	}
}

func checkCodec(d *desk, open []settle.OperationSummary) check {
	sealed := 0
	for _, o := range open {
		if strings.HasPrefix(o.Subject, sealedName) {
			sealed++
		}
	}
	switch {
	case sealed > 0:
		return check{"codec", odd, fmt.Sprintf("the values of %s are sealed and can't be read here", countOf(sealed, "operation")), "set SETTLE_KEYS to the codec's keys"}
	case d.keyless:
		return check{"codec", good, "no codec, and nothing sealed among the operations that aren't settled", ""}
	}
	return check{"codec", good, "the keys open the operations that aren't settled", ""}
}

// clockTolerance is how far host and ledger may be apart before times mislead.
const clockTolerance = 2 * time.Second

func checkClock(open []settle.OperationSummary, asked, answered time.Time) check {
	if len(open) == 0 {
		return check{"clock", good, "nothing to compare with", ""}
	}
	at := open[len(open)-1].ReadAt
	var apart time.Duration
	switch {
	case at.Before(asked):
		apart = asked.Sub(at)
	case at.After(answered):
		apart = at.Sub(answered)
	}
	if apart > clockTolerance {
		return check{"clock", odd, fmt.Sprintf("this host and the ledger are %v apart: relative times mislead", apart.Round(time.Second)), "set this host's clock"}
	}
	return check{"clock", good, "this host and the ledger agree", ""}
}

// overdueAfter is how long due work may lie before nobody seems to do it. Who
// takes it moves it a minute on.
const overdueAfter = 2 * time.Minute

// checkWorkers looks for work that is due and that nobody takes (R38).
func (a *app) checkWorkers(open []settle.OperationSummary) []check {
	count, overdue, longest := map[string]int{}, map[string]int{}, map[string]time.Duration{}
	for _, o := range open {
		count[o.State]++
		if late := o.ReadAt.Sub(o.DueAt); !o.DueAt.IsZero() && late > overdueAfter {
			overdue[o.Tool]++
			longest[o.Tool] = max(longest[o.Tool], late)
		}
	}
	checks := []check{{"operations", good, "not settled: " + states(count), ""}}
	for _, tool := range slices.Sorted(maps.Keys(overdue)) {
		checks = append(checks, check{"workers", bad,
			fmt.Sprintf("%s of %s: due for up to %s and nobody takes it", countOf(overdue[tool], "operation"), shown(tool), span(longest[tool])),
			"see that a process with Executor.Run works on this ledger"})
	}
	if len(overdue) == 0 {
		checks = append(checks, check{"workers", good, "nothing is overdue", ""})
	}
	return checks
}

// waitsTooLong is how long a case may be open before doctor speaks of it.
const waitsTooLong = 24 * time.Hour

func (a *app) checkQueue(ctx context.Context, d *desk) ([]check, error) {
	var open, free, proposed int
	var oldest time.Time
	undeclared := map[string]bool{}
	err := a.eachCase(ctx, d, func(c store.CaseEntry) {
		open++
		free += ifElse(c.Case.Holder == "", 1, 0)
		proposed += ifElse(c.Proposed(), 1, 0)
		if oldest.IsZero() || c.Case.OpenedAt.Before(oldest) {
			oldest = c.Case.OpenedAt
		}
		undeclared[c.Case.Tool] = true
	})
	if err != nil {
		return nil, err
	}
	queue := check{"queue", good, "no open cases", ""}
	if open > 0 {
		queue.Said = fmt.Sprintf("%s, %d of them free, %d proposed; the oldest is open for %s", countOf(open, "open case"), free, proposed, span(max(a.now().Sub(oldest), 0)))
		queue.Advice = a.command("queue", "list")
		if a.now().Sub(oldest) > waitsTooLong {
			queue.Status = odd
		}
	}
	declared, err := checkDeclared(ctx, d, undeclared)
	return append([]check{queue}, declared...), err
}

// eachCase calls with every open case that may be seen here. The ledger is read as
// it is, so that a key that is missing hides none.
func (a *app) eachCase(ctx context.Context, d *desk, call func(store.CaseEntry)) error {
	tenants := a.tenants()
	if tenants == nil {
		tenants = []string{""} // the filter's word for all
	}
	for _, tenant := range tenants {
		for f := (store.CaseFilter{Tenant: tenant, Limit: 1000}); ; {
			cases, err := d.ledger.Cases(ctx, f)
			if err != nil {
				return err
			}
			for _, c := range cases {
				call(c)
				f.After = store.CaseCursor{OpenedAt: c.Case.OpenedAt, ID: c.Case.ID}
			}
			if len(cases) < f.Limit {
				break
			}
		}
	}
	return nil
}

// checkOutbox looks for events that nobody is told of: those that were given up,
// and those that are due and that no process delivers (R54).
func (a *app) checkOutbox(ctx context.Context, d *desk) (check, error) {
	const limit = 1000 // of the oldest
	events, err := d.queue.Undelivered(ctx, settle.OutgoingEventFilter{Limit: limit})
	if err != nil {
		return check{}, err
	}
	dead, late, held := 0, 0, map[string]bool{} // operations whose events stand behind a dead one
	for _, e := range events {
		switch {
		case e.Dead:
			dead, held[e.Operation] = dead+1, true
		case !held[e.Operation] && a.now().Sub(e.NextAt) > overdueAfter:
			late++
		}
	}
	switch {
	case dead > 0:
		return check{"outbox", odd, countOf(dead, "event") + " given up: nobody was told", a.command("outbox", "list", "--dead")}, nil
	case late > 0:
		return check{"outbox", odd, countOf(late, "event") + " due, and no process delivers",
			"see that a process with WithOutbox and a sink runs Executor.Run on this ledger"}, nil
	}
	return check{"outbox", good, "no event was given up, and none is overdue", ""}, nil
}

// checkDeclared looks for tools with cases that no worker has told the ledger of.
func checkDeclared(ctx context.Context, d *desk, tools map[string]bool) ([]check, error) {
	var checks []check
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		record, err := d.ledger.Declared(ctx, tool)
		if err != nil {
			return nil, err
		}
		if record.Tool == "" {
			checks = append(checks, check{"declared", odd, "no worker has declared the tool " + shown(tool) + ": whether two persons decide isn't known here",
				"run a process with Executor.Run, or call Executor.Declare, where the tool is registered"})
		}
	}
	return checks, nil
}

// diagnosis reports the checks.
func (a *app) diagnosis(checks []check) error {
	ill := slices.ContainsFunc(checks, func(c check) bool { return c.Status == bad })
	if a.json {
		a.encode(a.out, map[string]any{"healthy": !ill, "checks": checks})
	} else {
		p := a.page()
		for _, c := range checks {
			p.hang(fmt.Sprintf("%-5s %-10s ", c.Status, c.Name), c.Said)
			if c.Advice != "" {
				p.text(17, "do: "+c.Advice)
			}
		}
	}
	if ill {
		return errFindings
	}
	return nil
}
