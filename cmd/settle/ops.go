package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

func (a *app) opsCommands() *cobra.Command {
	return a.group("ops", "See operations", a.opsList(), a.opsShow(), a.opsBrief(), a.opsWait())
}

func (a *app) opsList() *cobra.Command {
	var f settle.OperationFilter
	var all bool
	since := instant{now: a.now}
	c := &cobra.Command{Use: "list", Short: "List the operations that aren't settled, or others, the oldest first",
		Long: "List the operations that aren't settled, the oldest first; with --all or --state\nothers as well. --subject, --task and --goal aren't indexed: a long ledger is\nread through, so name a tenant, or --since, too.",
		Args: arguments(0)}
	flags := c.Flags()
	flags.StringSliceVar(&f.States, "state", nil, "only operations in this state; may be repeated (default those that aren't settled)")
	flags.BoolVar(&all, "all", false, "operations in every state")
	flags.StringVar(&f.Tool, "tool", "", "only operations of this tool")
	flags.StringVar(&f.Tenant, "tenant", "", "only operations of this tenant")
	flags.StringVar(&f.Subject, "subject", "", "only operations of this subject")
	flags.StringVar(&f.Task, "task", "", "only operations of this task")
	flags.StringVar(&f.Goal, "goal", "", "only operations with this goal")
	flags.Var(&since, "since", "only operations accepted since: 30m, 2h, 3d, or an instant")
	flags.IntVar(&f.Limit, "limit", 100, "at most as many, up to 1000")
	flags.StringVar(&f.Cursor, "cursor", "", "go on behind an earlier list")
	c.MarkFlagsMutuallyExclusive("all", "state")
	completeStates(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkStates(f.States); err != nil {
			return err
		}
		if len(f.States) == 0 && !all {
			f.States = unsettled()
		}
		f.Since = since.Time
		return a.onQueue(c.Context(), reads, func(ctx context.Context, d *desk) error {
			page, err := d.queue.Operations(ctx, f)
			if err != nil {
				return err
			}
			a.showOperations(page)
			return nil
		})
	}
	return c
}

func (a *app) showOperations(page settle.OperationPage) {
	if a.json {
		list := struct {
			Operations []operationLine `json:"operations"`
			Next       string          `json:"next,omitempty"`
		}{Operations: []operationLine{}, Next: page.Next}
		for _, o := range page.Operations {
			list.Operations = append(list.Operations, newOperationLine(o))
		}
		a.encode(a.out, list)
		return
	}
	t := table{columns: []column{{title: "OPERATION", whole: true}, {title: "TOOL", last: 1}, {title: "STATE"}, {title: "REASON", last: 2},
		{title: "AGE", whole: true, last: 3}, {title: "DUE", whole: true, last: 4}, {title: "ATTEMPTS", last: extra + 2},
		{title: "ACCEPTED", whole: true, last: extra}, {title: "TENANT", last: extra + 1}, {title: "TASK", last: extra + 3}}}
	for _, o := range page.Operations {
		t.rows = append(t.rows, []string{o.Operation, shown(o.Tool), o.State, shown(o.Reason), span(max(a.now().Sub(o.CreatedAt), 0)),
			a.due(o), fmt.Sprint(o.Attempts), a.stamped(o.CreatedAt), shown(o.Tenant), shown(o.Task)})
	}
	if len(t.rows) == 0 && a.out.terminal() {
		fmt.Fprintln(a.out, "No operations.")
		return
	}
	t.write(a.out, a.bold)
	a.more(page.Next)
}

// due is when the machine looks at an operation next.
func (a *app) due(o settle.OperationSummary) string {
	switch {
	case o.DueAt.IsZero():
		return ""
	case a.out.terminal():
		return a.relative(o.DueAt)
	}
	return a.stamped(o.DueAt)
}

func (a *app) opsShow() *cobra.Command {
	return &cobra.Command{Use: "show OPERATION", Short: "Show an operation with its journal", Args: arguments(1, "OPERATION"), ValidArgsFunction: a.completeUnsettled,
		RunE: func(c *cobra.Command, args []string) error {
			return a.onQueue(c.Context(), reads, func(ctx context.Context, d *desk) error {
				o, err := d.queue.Operation(ctx, args[0])
				if err != nil {
					return a.noOperation(err)
				}
				a.showOperation(o)
				return nil
			})
		}}
}

// noOperation says what may be wrong with a reference that isn't found.
func (a *app) noOperation(err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return next(fmt.Errorf("there is no such operation, it is another tenant's, or its task was closed: %w", err), a.command("ops", "list", "--all", "--since", "1d"))
}

func (a *app) showOperation(o settle.OperationDetail) {
	if a.json {
		a.encode(a.out, newOperationView(o))
		return
	}
	p := a.page()
	p.line("Operation %s", o.Operation)
	p.field("tool", shown(o.Tool)+" ("+o.Class+")")
	p.field("state", o.State+ifElse(o.Reason != "", ", because: "+shown(o.Reason), "")+ifElse(o.Purged, "; purged, a tombstone stays", ""))
	p.field("version", fmt.Sprint(o.Version))
	p.field("resource", shown(o.Resource))
	if !o.SettledAt.IsZero() {
		p.field("settled", a.when(o.SettledAt))
	}
	a.showNext(p, o)
	a.showWhat(p, whatOf(o))
	a.showAttempts(p, whatOf(o))
	if o.Parent != "" {
		showRelated(p, "Part of, or corrects", []settle.Related{{Operation: o.Parent}})
	}
	showRelated(p, "Steps, or corrections", o.Children)
	a.showJournal(p, o.Events)
	if len(o.Notices) > 0 {
		p.heading("What changed nothing")
	}
	for _, n := range o.Notices {
		p.hang("  "+stamp(n.At)+"  ", shown(n.Kind)+ifElse(n.Detail != "", " ("+shown(n.Detail)+")", "")+", by "+shown(n.Actor))
	}
}

// whatOf is the part of a case that every operation has.
func whatOf(o settle.OperationDetail) settle.Case {
	return settle.Case{CaseSummary: settle.CaseSummary{Operation: o.Operation, Tenant: o.Tenant, State: o.State}, Subject: o.Subject, Task: o.Task, Goal: o.Goal,
		Occurrence: o.Occurrence, Number: o.Number, CreatedAt: o.CreatedAt, FirstSent: o.FirstSent, Moment: o.Moment,
		MomentPassed: !o.ReadAt.Before(o.Moment), Attempts: o.Attempts, Doubts: o.Doubts, Checks: o.Checks, Verdict: o.Verdict, Fields: o.Fields}
}

// showNext says who does what next.
func (a *app) showNext(p page, o settle.OperationDetail) {
	if o.State == store.Running.String() {
		p.field("lease", "until "+a.when(o.LeaseUntil))
	}
	if !o.DueAt.IsZero() {
		p.field("due", "the machine looks at it "+a.when(o.DueAt))
	}
	for _, c := range o.Cases {
		if c.ClosedAt.IsZero() {
			p.field("case", "open")
			p.command(a.command("queue", "show", o.Operation))
		}
	}
}

func (a *app) opsBrief() *cobra.Command {
	var n names
	c := &cobra.Command{Use: "brief [OPERATION]", Short: "Show what a task has done and must not repeat, as its model is told",
		Long: "Show what a task has done, what is open and what it must not repeat, in the words\nthat its model gets after a restart (R60). The task is named by one of its\noperations, or by its own names; a long ledger is read through for those.",
		Args: arguments(0, "OPERATION"), ValidArgsFunction: a.completeUnsettled}
	n.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := n.check(args); err != nil {
			return err
		}
		return a.onQueue(c.Context(), reads, func(ctx context.Context, d *desk) error {
			o, err := a.operationOf(ctx, d, args, n)
			if err != nil {
				return err
			}
			text, err := d.queue.Brief(ctx, o.Operation)
			if err != nil {
				return err
			}
			if a.json {
				a.encode(a.out, map[string]string{"tenant": o.Tenant, "subject": shown(o.Subject), "task": shown(o.Task), "goal": shown(o.Goal), "brief": text})
				return nil
			}
			page{out: stream{Writer: a.out}}.words(0, text)
			return nil
		})
	}
	return c
}

// names are those of a task and whom it belongs to, as flags.
type names struct{ tenant, subject, task, goal string }

func (n *names) add(c *cobra.Command) {
	c.Flags().StringVar(&n.tenant, "tenant", "", "the task's tenant")
	c.Flags().StringVar(&n.subject, "subject", "", "the task's subject")
	c.Flags().StringVar(&n.task, "task", "", "the task's id")
	c.Flags().StringVar(&n.goal, "goal", "", "the task's goal")
}

func (n *names) check(args []string) error {
	switch {
	case len(args) == 1 && *n != names{}:
		return usage("give an operation, or the task's names, but not both")
	case len(args) == 0 && (n.tenant == "" || n.task == ""):
		return usage("give one of the task's operations, or at least --tenant and --task")
	}
	return nil
}

// operationOf is an operation of the task that was named. Names that fit several
// tasks are refused, not guessed.
func (a *app) operationOf(ctx context.Context, d *desk, args []string, n names) (settle.OperationSummary, error) {
	if len(args) == 1 {
		o, err := d.queue.Operation(ctx, args[0])
		return o.OperationSummary, a.noOperation(err)
	}
	var first settle.OperationSummary
	f := settle.OperationFilter{Tenant: n.tenant, Subject: n.subject, Task: n.task, Goal: n.goal, Limit: 1000}
	for {
		page, err := d.queue.Operations(ctx, f)
		if err != nil {
			return first, err
		}
		for _, o := range page.Operations {
			switch {
			case first.Operation == "":
				first = o
			case o.Subject != first.Subject || o.Goal != first.Goal:
				return first, usage("several tasks have these names, of the subjects and goals %q, %q and %q, %q: say --subject and --goal too",
					shown(first.Subject), shown(first.Goal), shown(o.Subject), shown(o.Goal))
			}
		}
		if f.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	if first.Operation == "" {
		return first, a.noOperation(fmt.Errorf("no operation belongs to that task: %w", store.ErrNotFound))
	}
	return first, nil
}

func (a *app) opsWait() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{Use: "wait OPERATION", Short: "Wait until an operation is settled, by the machine or by a person",
		Args: arguments(1, "OPERATION"), ValidArgsFunction: a.completeUnsettled}
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after (default never)")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.onQueue(c.Context(), reads, func(ctx context.Context, d *desk) error {
			o, err := d.queue.Operation(ctx, args[0])
			if err != nil {
				return a.noOperation(err)
			}
			if err := a.await(ctx, d, o, timeout); err != nil {
				return err
			}
			if o, err = d.queue.Operation(ctx, args[0]); err != nil {
				return a.noOperation(err)
			}
			a.showSettled(o)
			return nil
		})
	}
	return c
}

func (a *app) await(ctx context.Context, d *desk, o settle.OperationDetail, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if state, err := store.ParseState(o.State); err == nil && !state.Settled() && a.err.terminal() {
		fmt.Fprintf(a.err, "The operation is %s; waiting until it is settled.\n", o.State)
	}
	// A wait needs the tenant; without tools the subject counts for nothing.
	_, err := d.Wait(settle.WithPrincipal(ctx, settle.Principal{Tenant: o.Tenant, Subject: o.Subject}), o.Operation)
	if err != nil && ctx.Err() != nil {
		return next(fmt.Errorf("the operation is not settled yet: %w", ctx.Err()), a.command("ops", "show", o.Operation))
	}
	return err
}

func (a *app) showSettled(o settle.OperationDetail) {
	if a.json {
		a.encode(a.out, newOperationLine(o.OperationSummary))
		return
	}
	line := []string{o.State}
	if o.Reason != "" {
		line = append(line, "because: "+shown(o.Reason))
	}
	if o.Resource != "" {
		line = append(line, "resource "+shown(o.Resource))
	}
	fmt.Fprintf(a.out, "The operation is %s, at version %d.\n", strings.Join(line, ", "), o.Version)
}
