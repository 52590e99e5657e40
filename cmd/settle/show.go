package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// file reads a case with what lies beside it.
func (a *app) file(ctx context.Context, d *desk, reference string) (file, error) {
	c, err := d.queue.Get(ctx, reference)
	if err != nil {
		return file{}, a.advise(ctx, d, reference, err)
	}
	f := file{Case: c}
	record, err := d.ledger.Declared(ctx, c.Tool)
	if err != nil {
		return f, err
	}
	f.declared = record.Tool != ""
	if c.State == store.AwaitingApproval.String() {
		o, err := d.queue.Operation(ctx, reference)
		if err != nil {
			return f, err
		}
		f.until = o.DueAt
	}
	return f, nil
}

// show prints all that a decision needs (R39).
func (a *app) show(ctx context.Context, d *desk, reference string) error {
	f, err := a.file(ctx, d, reference)
	if err != nil {
		return err
	}
	if a.json {
		a.encode(a.out, a.caseView(f))
		return nil
	}
	p := a.page()
	a.showHead(p, f)
	a.showWhat(p, f.Case)
	a.showAttempts(p, f.Case)
	showRelated(p, "Related: the same side effect, in other tasks", f.Related)
	if f.Guidance != "" {
		p.heading("What the tool's author advises")
		p.words(2, f.Guidance)
	}
	a.showJournal(p, f.Events)
	a.showProposal(p, f)
	a.showDecisions(p, f)
	return nil
}

// showHead says what waits for whom.
func (a *app) showHead(p page, f file) {
	c := f.Case
	p.line("Case of operation %s", c.Operation)
	p.field("tool", shown(c.Tool)+" ("+c.Class+")")
	p.field("state", stateOf(c.CaseSummary))
	p.field("because", because(c.Reason))
	p.field("version", fmt.Sprint(c.Version))
	p.field("opened", a.when(c.OpenedAt))
	switch {
	case !c.ClosedAt.IsZero():
		p.field("closed", a.when(c.ClosedAt))
	case c.Owner != "":
		p.field("taken by", shown(c.Owner))
		if c.Owner != a.env("SETTLE_OPERATOR") {
			p.field("", "where they can't go on with it:")
			p.command(a.command("queue", "take", c.Operation, "--from", quote(c.Owner)))
		}
	default:
		p.field("taken by", "nobody")
		p.command(a.command("queue", "take", c.Operation))
	}
	if !f.until.IsZero() {
		p.field("approval", "counts as denied at "+a.when(f.until))
	}
	if f.Deciders > 1 {
		p.field("decided by", fmt.Sprintf("%d persons: one proposes, another one confirms", f.Deciders))
	}
	if !f.declared {
		p.field("note", "no worker has declared this tool to the ledger: its author's advice, the form of its result and whether two persons decide aren't known here")
	}
}

func (a *app) showWhat(p page, c settle.Case) {
	p.heading("What, and for whom")
	p.field("tenant", shown(c.Tenant))
	p.field("subject", shown(c.Subject))
	p.field("task", shown(c.Task))
	p.field("goal", shown(c.Goal))
	p.field("call", fmt.Sprintf("occurrence %d, number %d", c.Occurrence, c.Number))
	p.field("accepted", a.when(c.CreatedAt))
	if c.Resource != "" {
		p.field("resource", shown(c.Resource))
	}
	if c.Held > 0 {
		p.field("held", countOf(c.Held, "call")+" refused because of it so far")
	}
	showFields(p, c.Fields)
	if len(c.Fields) > 0 {
		p.field("", "values are hidden; this shows them, and is journaled:")
		p.command(a.command("queue", "reveal", c.Operation))
	}
}

func showFields(p page, fields []settle.CaseField) {
	for i, f := range fields {
		p.field(ifElse(i == 0, "arguments", ""), shown(f.Name)+": "+shown(f.Value))
	}
}

func (a *app) showAttempts(p page, c settle.Case) {
	p.heading("How far it got")
	made := countOf(c.Attempts, "attempt")
	if c.Doubts > 0 {
		made += fmt.Sprintf(", the end of %d unknown", c.Doubts)
	}
	p.field("attempts", made)
	if !c.FirstSent.IsZero() {
		p.field("first", a.when(c.FirstSent))
	}
	if !c.Moment.IsZero() && (c.Doubts > 0 || c.State == store.Running.String()) {
		p.field("moment", a.when(c.Moment)+ifElse(c.MomentPassed, ": no attempt can still take effect", ": an attempt may still take effect until then"))
	}
	looked := "nobody has asked the far side"
	if c.Checks > 0 {
		looked = countOf(c.Checks, "look") + "; the last: " + shown(firstOf(c.Verdict, "no answer"))
	}
	p.field("evidence", looked)
}

func showRelated(p page, title string, related []settle.Related) {
	if len(related) == 0 {
		return
	}
	p.heading(title)
	for _, r := range related {
		p.line("  %s", strings.Join(slices.DeleteFunc([]string{r.Operation, shown(r.Tool), r.State, shown(r.Resource)},
			func(part string) bool { return part == "" }), "  "))
	}
}

func (a *app) showJournal(p page, events []settle.CaseEvent) {
	p.heading("Journal")
	for _, e := range events {
		move := e.To
		if e.From != e.To && e.From != "" {
			move = e.From + " > " + e.To
		}
		line := shown(e.Kind) + ", " + move
		if e.Reason != "" {
			line += " (" + shown(e.Reason) + ")"
		}
		p.hang("  "+stamp(e.At)+"  ", line+", by "+shown(e.Actor))
		if e.Text != "" {
			p.quoted(24, e.Text)
		}
	}
}

func (a *app) showProposal(p page, f file) {
	prop := f.Proposal
	if prop == nil {
		return
	}
	p.heading("Proposed, and to be confirmed by a second person")
	p.field("decision", string(prop.Kind))
	p.field("by", shown(prop.Operator)+", "+a.when(prop.At))
	p.quoted(label+3, prop.Reason)
	if prop.Resource != "" {
		p.field("resource", shown(prop.Resource))
	}
	if prop.HasResult {
		p.field("result", "is given with it, and hidden; this shows it, and is journaled:")
		p.command(a.command("queue", "reveal", f.Operation))
	}
	p.command(a.confirmCommand(f.Case))
}

func (a *app) showDecisions(p page, f file) {
	if len(f.Decisions) == 0 {
		p.heading("There is nothing to decide.")
		return
	}
	p.heading(ifElse(f.Proposal == nil, "Decisions", "Other decisions, which take the place of the proposal"))
	for _, d := range f.Decisions {
		p.field(string(d.Kind), d.Effect)
		if d.Refused != "" {
			p.text(4, "not now: "+said(fmt.Errorf("%s", d.Refused)))
			continue
		}
		p.command(a.decideCommand(f.Case, d.Kind))
	}
}

// decideCommand is a decision as it is typed.
func (a *app) decideCommand(c settle.Case, kind settle.DecisionKind) string {
	words := []string{"queue", "decide", c.Operation, string(kind), "--version", fmt.Sprint(c.Version)}
	if kind == settle.DecideHappened {
		words = append(words, "--resource", "ID")
	}
	return a.command(append(words, "--reason", `"…"`)...)
}

func (a *app) confirmCommand(c settle.Case) string {
	return a.command("queue", "confirm", c.Operation, "--version", fmt.Sprint(c.Version), "--reason", `"…"`)
}
