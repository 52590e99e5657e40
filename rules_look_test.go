package settle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// A look that an operator asks for.

// lost is a tool whose answers are lost, and whose far side says nothing.
func lost(contract settle.Contract) settle.Tool[partArgs, part] {
	contract.VisibilityDelay = settle.Immediately
	tool := settle.Tool[partArgs, part]{Name: "lost", Contract: contract,
		Do: func(context.Context, settle.Op, partArgs) (part, error) {
			return part{}, errors.New("the answer was lost")
		}}
	if !contract.NoLookup {
		tool.Lookup = func(context.Context, settle.Query[part], partArgs) (settle.Evidence, error) {
			return settle.Evidence{}, errors.New("the search is down")
		}
	}
	return tool
}

// looks asks for a look from a process without the tool, as the command line
// does, and has a worker answer it. It returns how many events that took.
func (p *process) looks(operation string) (settle.Case, int) {
	p.Helper()
	ann := p.startWith().person("ann")
	if _, err := ann.x.Queue().Look(ann.ctx, operation); err != nil {
		p.Fatal(err)
	}
	before := ann.sees(operation)
	for range 4 {
		p.recover()
		p.age(longEnough)
	}
	after := ann.sees(operation)
	return after, len(after.Events) - len(before.Events)
}

// What nobody can read isn't looked for again and again (R38).
func TestR42ALookWithoutArgumentsIsAnswered(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(lost(settle.Contract{}))
		out := w.want(p.call(partCall("lost", "x")), settle.StatusUnknown)
		if _, err := p.x.Erase(p.ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"}, nil); err != nil {
			w.Fatal(err)
		}
		w.age(longUnanswered)
		p.recover()
		ann := p.person("ann")
		w.state(w.row(out), store.Manual)
		c, err := p.x.Queue().Look(ann.ctx, out.Operation)
		if err != nil || c.Verdict != "lookup_failed" {
			w.Errorf("looking here: verdict %q, error %v", c.Verdict, err)
		}
		c, events := p.looks(out.Operation)
		if last := c.Events[len(c.Events)-1]; events != 1 || last.Kind != "lookup" {
			w.Errorf("a look that was asked for took %d events, the last %+v", events, last)
		}
		w.says(c.Events[len(c.Events)-1].Text, "arguments are gone")
	})
}

// A case whose version moves by itself can't be decided by two persons.
func TestR42ALookThatNobodyCanTakeMovesTheCaseOnce(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(lost(settle.Contract{NoLookup: true}))
		out := w.want(p.call(partCall("lost", "x")), settle.StatusManual)
		c, events := p.looks(out.Operation)
		if events != 1 || c.Verdict != "inconclusive" {
			w.Errorf("a tool that can't look: %d events, want 1, and the verdict is %q", events, c.Verdict)
		}
		w.says(c.Events[len(c.Events)-1].Text, "can't ask its far side")
		if _, events := w.startWith().looks(out.Operation); events > 1 {
			w.Errorf("a worker without the tool: %d events, want at most one", events)
		}
	})
}
