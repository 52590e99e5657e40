package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
)

// wanted are the far sides on which the user's request has one effect each.
var wanted = []string{"payments", "tickets", "mail"}

// report is what came of one run.
type report struct {
	guarded    bool
	effects    []effect
	operations []operation
}

// operation is a row of the ledger, with its journal.
type operation struct {
	store.Entry
	journal []store.Event
}

// readLedger fetches the operations of a ledger, oldest first.
func readLedger(ctx context.Context, path string) (all []operation, err error) {
	ledger, err := sqlite.Open(ctx, path, sqlite.ReadOnly())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	entries, err := ledger.List(ctx, store.Filter{Tenant: principal.Tenant})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		events, err := ledger.Events(ctx, e.ID, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, operation{e, events})
	}
	return all, nil
}

func (r report) duplicates() (n int) {
	for _, e := range r.effects {
		if e.duplicate {
			n++
		}
	}
	return n
}

// lost counts the wanted effects that never happened.
func (r report) lost() (n int) {
	happened := map[string]bool{}
	for _, e := range r.effects {
		happened[e.at] = true
	}
	for _, at := range wanted {
		if !happened[at] {
			n++
		}
	}
	return n
}

func (r report) waiting() (waiting []operation) {
	for _, o := range r.operations {
		if o.State == store.Manual {
			waiting = append(waiting, o)
		}
	}
	return waiting
}

// verdict is the error of a run that did too much or too little.
func (r report) verdict() error {
	if r.duplicates() == 0 && r.lost() == 0 {
		return nil
	}
	return fmt.Errorf("%s: expected no duplicate and no loss, got %d duplicates and %d losses",
		r.name(), r.duplicates(), r.lost())
}

func (r report) name() string {
	if r.guarded {
		return "with settle"
	}
	return "without settle"
}

// summary is the run in one line.
func (r report) summary() string {
	return fmt.Sprintf("%s: %d effects, %d duplicates, %d waiting for a person",
		r.name(), len(r.effects), r.duplicates(), len(r.waiting()))
}

func (r report) write(out io.Writer) {
	fmt.Fprintln(out, "\nWhat truly happened, counted at the far sides")
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, e := range r.effects {
		mark := ""
		if e.duplicate {
			mark = "duplicate"
		}
		row(table, e.at, e.resource, e.what, mark)
	}
	table.Flush()

	fmt.Fprintln(out, "\nWhat the ledger says")
	if len(r.operations) == 0 {
		fmt.Fprintln(out, "  nothing: without settle nobody wrote down what was asked for and what came of it")
		return
	}
	for _, o := range r.operations {
		row(table, o.Tool, shortened(o.ID.String()), o.State.String(), o.settledBy())
	}
	table.Flush()
	for _, o := range r.waiting() {
		o.writeCase(out)
	}
}

// row writes the cells of a row, without spaces behind the last one.
func row(table io.Writer, cells ...string) {
	fmt.Fprintln(table, strings.TrimRight("  "+strings.Join(cells, "\t"), "\t"))
}

// settledBy says in words what the end of the operation's journal says in codes.
func (o operation) settledBy() string {
	last := o.journal[len(o.journal)-1]
	switch {
	case o.State == store.Manual:
		return "not settled: it waits for a person"
	case last.Kind == "lookup" && o.ByAttribute:
		return "by evidence: a search found " + o.Resource
	case last.Kind == "lookup":
		return "by evidence: its key found " + o.Resource
	case last.Kind == "attempt_ended":
		return "by its own answer"
	}
	return last.Kind
}

// writeCase shows a case as the person needs it who settles it.
func (o operation) writeCase(out io.Writer) {
	fmt.Fprintf(out, "\nWaits for a person: %s, operation %s\n", o.Tool, shortened(o.ID.String()))
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	row(table, "asked for", string(o.Arguments))
	row(table, "for", o.Of.Task+", "+o.Of.Goal+", by "+o.Of.Subject)
	row(table, "attempts", fmt.Sprintf("%d made, %d with an unknown end", o.Attempt, o.Doubts))
	row(table, "why", strings.ReplaceAll(o.Reason, "_", " "))
	row(table, "advice", guidance(o.Tool))
	table.Flush()
}

// guidance is what a tool's author advises the person who settles its cases.
func guidance(tool string) string {
	if mail := NewSendMail(nil); mail.Name == tool {
		return mail.Contract.Guidance
	}
	return "none"
}
