package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

func (a *app) queueCommands() *cobra.Command {
	return a.group("queue", "Settle cases: what the machine can't know, and what needs an approval",
		a.queueList(), a.queueShow(), a.queueReveal(), a.queueTake(), a.queueRelease(), a.queueNote(), a.queueLook(),
		a.queueDecide(), a.queueConfirm())
}

func (a *app) queueList() *cobra.Command {
	var f settle.QueueFilter
	var mine bool
	older := age{}
	c := &cobra.Command{Use: "list", Short: "List open cases, the oldest first", Args: arguments(0)}
	flags := c.Flags()
	flags.StringSliceVar(&f.States, "state", nil, "only cases of operations in this state; may be repeated")
	flags.StringVar(&f.Tool, "tool", "", "only cases of this tool")
	flags.StringVar(&f.Tenant, "tenant", "", "only cases of this tenant")
	flags.StringVar(&f.Reason, "reason", "", "only cases with this reason")
	flags.StringVar(&f.Owner, "owner", "", "only cases that this operator has taken")
	flags.BoolVar(&mine, "mine", false, "only cases that you have taken")
	flags.BoolVar(&f.Free, "free", false, "only cases that nobody has taken")
	flags.Var(&older, "older-than", "only cases that are open for as long: 30m, 2h, 3d")
	flags.BoolVar(&f.Closed, "closed", false, "closed cases as well")
	flags.IntVar(&f.Limit, "limit", 100, "at most as many, up to 1000")
	flags.StringVar(&f.Cursor, "cursor", "", "go on behind an earlier list")
	c.MarkFlagsMutuallyExclusive("owner", "mine", "free")
	completeStates(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkStates(f.States); err != nil {
			return err
		}
		f.OlderThan = older.Duration
		return a.onQueue(c.Context(), reads, func(ctx context.Context, d *desk) error {
			if mine {
				f.Owner = a.env("SETTLE_OPERATOR")
			}
			page, err := d.queue.List(ctx, f)
			if err != nil {
				return err
			}
			a.showCases(page, f.Closed)
			return nil
		})
	}
	return c
}

func (a *app) showCases(page settle.QueuePage, closed bool) {
	if a.json {
		list := struct {
			Cases []caseLine `json:"cases"`
			Next  string     `json:"next,omitempty"`
		}{Cases: []caseLine{}, Next: page.Next}
		for _, c := range page.Cases {
			list.Cases = append(list.Cases, newCaseLine(c))
		}
		a.encode(a.out, list)
		return
	}
	t := table{columns: []column{{title: "OPERATION", whole: true}, {title: "TOOL", last: 1}, {title: "STATE"}, {title: "REASON", last: 2},
		{title: "OPEN", whole: true, last: 3}, {title: "OWNER", last: 4}, {title: "OPENED", whole: true, last: extra},
		{title: "TENANT", last: extra + 1}, {title: "VERSION", last: extra + 2}}}
	if closed {
		t.columns = append(t.columns, column{title: "CLOSED", whole: true, last: extra + 3})
	}
	for _, c := range page.Cases {
		row := []string{c.Operation, shown(c.Tool), stateOf(c), shown(c.Reason), a.openFor(c), ownerOf(c), a.stamped(c.OpenedAt),
			shown(c.Tenant), fmt.Sprint(c.Version)}
		if closed {
			row = append(row, a.stamped(c.ClosedAt))
		}
		t.rows = append(t.rows, row)
	}
	if len(t.rows) == 0 && a.out.terminal() {
		fmt.Fprintln(a.out, "No cases.")
		return
	}
	t.write(a.out, a.bold)
	a.more(page.Next)
}

// more says how to see the next page, on standard error.
func (a *app) more(cursor string) {
	if cursor != "" {
		fmt.Fprintf(a.err, "There is more: the same command with --cursor %s\n", cursor)
	}
}

// stamped is an instant for people on a terminal, for programs in a pipe.
func (a *app) stamped(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case a.out.terminal():
		return stamp(t)
	}
	return t.UTC().Format(time.RFC3339)
}

func (a *app) openFor(c settle.CaseSummary) string {
	end := c.ClosedAt
	if end.IsZero() {
		end = a.now()
	}
	return span(max(end.Sub(c.OpenedAt), 0))
}

func stateOf(c settle.CaseSummary) string {
	switch {
	case c.Incident:
		return c.State + ", incident"
	case c.Proposed:
		return c.State + ", proposed"
	}
	return c.State
}

func ownerOf(c settle.CaseSummary) string {
	if c.Owner == "" {
		return "-"
	}
	return shown(c.Owner)
}

func (a *app) queueShow() *cobra.Command {
	return &cobra.Command{Use: "show OPERATION", Short: "Show all that a decision needs, and the commands that decide",
		Long: "Show all that a decision needs: what, for whom, how far the attempts got, the\nevidence, and each decision as the command to type. Values of arguments are\nhidden; \"settle queue reveal\" shows them.",
		Args: arguments(1, "OPERATION"), ValidArgsFunction: a.completeCases,
		RunE: func(c *cobra.Command, args []string) error {
			return a.onQueue(c.Context(), reads, func(ctx context.Context, d *desk) error {
				return a.show(ctx, d, args[0])
			})
		}}
}

// act is a command on one case: it does something, and says how the case then stands.
func (a *app) act(use, short, long, done string, do func(context.Context, *desk, string) error) *cobra.Command {
	return &cobra.Command{Use: use + " OPERATION", Short: short, Long: long, Args: arguments(1, "OPERATION"), ValidArgsFunction: a.completeCases,
		RunE: func(c *cobra.Command, args []string) error {
			return a.onQueue(c.Context(), writes, func(ctx context.Context, d *desk) error {
				if err := unmoved(func() error { return do(ctx, d, args[0]) }); err != nil {
					return a.advise(ctx, d, args[0], err)
				}
				return a.standing(ctx, d, args[0], done)
			})
		}}
}

// moves is how often a case may move under a change that names no version.
const moves = 5

// unmoved makes a change again where the case has moved between its reading and
// its writing. That is for changes which hold whatever the version; a decision
// names the one that its person saw.
func unmoved(change func() error) error {
	var err error
	for range moves {
		if err = change(); !is[*settle.StaleVersionError](err) {
			break
		}
	}
	return err
}

// standing says how a case stands after a change, which has moved its version.
func (a *app) standing(ctx context.Context, d *desk, reference, done string) error {
	c, err := d.queue.Get(ctx, reference)
	if err != nil {
		return err
	}
	if a.json {
		a.encode(a.out, newCaseLine(c.CaseSummary))
		return nil
	}
	fmt.Fprintf(a.out, "%s The operation is %s, at version %d.\n", done, stateOf(c.CaseSummary), c.Version)
	return nil
}

func (a *app) queueTake() *cobra.Command {
	var from string
	c := a.act("take", "Take a case, so that others see whose it is",
		"Take a case, so that others see whose it is. Where one person decides, nobody\nelse can decide it until it is released. A case of somebody who can't go on with\nit is taken over with --from; the journal tells of that.",
		"The case is yours.", func(ctx context.Context, d *desk, reference string) error {
			if from != "" {
				return d.queue.TakeOver(ctx, reference, from)
			}
			return d.queue.Take(ctx, reference)
		})
	c.Flags().StringVar(&from, "from", "", "take it over from this operator, who has it")
	return c
}

func (a *app) queueRelease() *cobra.Command {
	return a.act("release", "Give a case back to the queue", "",
		"The case is free.", func(ctx context.Context, d *desk, reference string) error { return d.queue.Release(ctx, reference) })
}

func (a *app) queueNote() *cobra.Command {
	return &cobra.Command{Use: "note OPERATION TEXT", Short: "Add a note to a case (TEXT of - is read from standard input)",
		Args: arguments(2, "OPERATION", "TEXT"), ValidArgsFunction: a.completeCases,
		RunE: func(c *cobra.Command, args []string) error {
			text, err := a.textOf(args[1])
			if err != nil {
				return err
			}
			if strings.TrimSpace(text) == "" {
				return usage("the note has no text")
			}
			return a.onQueue(c.Context(), writes, func(ctx context.Context, d *desk) error {
				if err := unmoved(func() error { return d.queue.Note(ctx, args[0], text) }); err != nil {
					return a.advise(ctx, d, args[0], err)
				}
				return a.standing(ctx, d, args[0], "Noted.")
			})
		}}
}

// maxInput bounds what is read from standard input.
const maxInput = 16 << 20

// textOf is an argument, or standard input for "-".
func (a *app) textOf(argument string) (string, error) {
	if argument != "-" {
		return argument, nil
	}
	text, err := io.ReadAll(io.LimitReader(a.in, maxInput))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return strings.TrimRight(string(text), "\n"), nil
}

func (a *app) queueReveal() *cobra.Command {
	return &cobra.Command{Use: "reveal OPERATION", Short: "Show the arguments and the result; that is journaled",
		Long: "Show the arguments, the result, and the one that a proposal gives. That is an\nevent in the operation's journal and moves its version (R39); a proposal stands.\nSecret fields that no codec sealed were never stored.",
		Args: arguments(1, "OPERATION"), ValidArgsFunction: a.completeCases,
		RunE: func(c *cobra.Command, args []string) error {
			return a.onQueue(c.Context(), writes, func(ctx context.Context, d *desk) error {
				if err := a.readable(ctx, d, args[0]); err != nil {
					return err
				}
				var r settle.Revealed
				err := unmoved(func() (err error) { r, err = d.queue.Reveal(ctx, args[0]); return err })
				if err != nil {
					return a.advise(ctx, d, args[0], err)
				}
				return a.showRevealed(args[0], r)
			})
		}}
}

func (a *app) showRevealed(reference string, r settle.Revealed) error {
	for _, value := range []*json.RawMessage{&r.Arguments, &r.Result, &r.Proposed} {
		if len(*value) == 0 {
			*value = json.RawMessage("null")
		}
		if !json.Valid(*value) {
			return errKeyless
		}
	}
	a.encode(a.out, struct {
		Operation string          `json:"operation"`
		Arguments json.RawMessage `json:"arguments"`
		Result    json.RawMessage `json:"result"`
		// Proposed is the result of a decision that waits for a second person.
		Proposed json.RawMessage `json:"proposed_result"`
	}{reference, r.Arguments, r.Result, r.Proposed})
	return nil
}

// readable refuses to go on without keys where the case's values are sealed: a
// reveal would show nothing and be journaled, a result would be stored in the clear.
func (a *app) readable(ctx context.Context, d *desk, reference string) error {
	c, err := d.queue.Get(ctx, reference)
	if err != nil {
		return a.advise(ctx, d, reference, err)
	}
	if d.keyless && strings.HasPrefix(c.Subject, sealedName) {
		return errKeyless
	}
	return nil
}

func (a *app) queueLook() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{Use: "look OPERATION", Short: "Have the far side asked for evidence now",
		Long: "Have the far side asked for evidence now. This program has no tools: a worker\nthat has the operation's tool looks, and what it finds is in the case. It\ndecides nothing (R42).",
		Args: arguments(1, "OPERATION"), ValidArgsFunction: a.completeCases}
	c.Flags().DurationVar(&wait, "wait", 0, "wait for the answer as long (30s)")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.onQueue(c.Context(), writes, func(ctx context.Context, d *desk) error {
			// Read before the request, since a worker may answer at once.
			seen, err := d.queue.Get(ctx, args[0])
			if err == nil {
				err = unmoved(func() error { _, err := d.queue.Look(ctx, args[0]); return err })
			}
			if err != nil {
				return a.advise(ctx, d, args[0], err)
			}
			if wait == 0 {
				return a.standing(ctx, d, args[0], "A worker that has the tool looks; \"queue show\" shows what it finds.")
			}
			return a.awaitLook(ctx, d, seen, wait)
		})
	}
	return c
}

// lookPause is the time between two reads of a case that is looked for.
const lookPause = 250 * time.Millisecond

// awaitLook waits until a worker has counted another look.
func (a *app) awaitLook(ctx context.Context, d *desk, seen settle.Case, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for {
		now, err := d.queue.Get(ctx, seen.Operation)
		switch {
		case ctx.Err() != nil:
			return next(fmt.Errorf("no worker has looked yet: %w", ctx.Err()), a.command("doctor"))
		case err != nil:
			return err
		case now.Checks > seen.Checks || now.State != seen.State:
			return a.standing(ctx, d, seen.Operation, fmt.Sprintf("Looked: %s.", shown(firstOf(now.Verdict, "no worker that can look has the tool"))))
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// advise says what to do about a refusal.
func (a *app) advise(ctx context.Context, d *desk, reference string, err error) error {
	show := a.command("queue", "show", reference)
	var moment *settle.MomentError
	switch {
	case errors.Is(err, store.ErrNotFound):
		return next(fmt.Errorf("there is no case of this operation, or it is another tenant's: %w", err), a.command("ops", "show", quote(reference)))
	case errors.Is(err, settle.ErrTaken):
		c, failed := d.queue.Get(ctx, reference)
		switch {
		case failed == nil && c.Owner == "":
			return next(errFree, a.command("queue", "take", reference))
		case failed == nil:
			err = fmt.Errorf("%w (it is %s's)", err, shown(c.Owner))
		}
		return next(err, show)
	case errors.As(err, &moment):
		return next(fmt.Errorf("%w: %s", err, a.relative(moment.Until)), show)
	}
	if exit, _ := meaning(err); exit == exitStale || exit == exitSecond || exit == exitRefused {
		return next(err, show)
	}
	return err
}
