package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Decisions, and what a second person makes of them.

// waitsForTwo is a case that takes two persons.
func (p *process) waitsForTwo() string {
	p.Helper()
	return p.want(p.call(partCall("lost", "x")), settle.StatusManual).Operation
}

func lostForTwo() settle.Tool[partArgs, part] {
	return lost(settle.Contract{NoLookup: true, Deciders: 2})
}

func (o *person) confirms(operation, id string) (settle.Case, error) {
	o.Helper()
	return o.x.Queue().Confirm(o.ctx, operation, o.sees(operation).Version, id, "asked them")
}

// An id that is sent again with something else is no repetition: whoever was
// told that it was taken would believe the wrong thing.
func TestR41AnIDStandsForOneDecision(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(lostForTwo())
		operation := p.waitsForTwo()
		ann, bob := p.person("ann"), p.person("bob")
		d := ann.decision(operation, settle.DecideFail)
		for range 2 { // the second time is no change
			c, err := p.x.Queue().Decide(ann.ctx, d)
			if err != nil || !c.Proposed {
				w.Fatal(c.Proposed, err)
			}
		}
		other := d
		other.Kind = settle.DecideHappened
		ann.refused(other, "another decision")
		if _, err := bob.confirms(operation, d.ID); !errors.Is(err, settle.ErrOtherDecision) {
			w.Errorf("the proposal's id as the confirmation's: %v, want ErrOtherDecision", err)
		}
		id := uuid.NewString()
		for range 2 {
			if c, err := bob.confirms(operation, id); err != nil || c.State != "failed" {
				w.Fatal(c.State, err)
			}
		}
		ann.refused(other, "another decision")
	})
}

func TestR41TwoPersonsSayThatItHappened(t *testing.T) {
	for name, result := range map[string]string{"with a result": `{"id":"r-1"}`, "without a result": ""} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				p := w.start(lostForTwo())
				operation := p.waitsForTwo()
				ann, bob := p.person("ann"), p.person("bob")
				d := ann.decision(operation, settle.DecideHappened)
				d.Resource, d.Result = "r-1", json.RawMessage(result)
				if _, err := p.x.Queue().Decide(ann.ctx, d); err != nil {
					w.Fatal(err)
				}
				if _, err := bob.confirms(operation, uuid.NewString()); err != nil {
					w.Fatal(err)
				}
				row := w.only("lost")
				w.state(row, store.Completed)
				equal(w, "the resource", row.Resource, "r-1")
				equal(w, "the result", string(row.Result), result)
			})
		})
	}
}

// The command line knows of two persons what the ledger knows. A host that only
// executes never calls Run, which tells it.
func TestR41TwoPersonsAreAskedForByTheFirstCall(t *testing.T) {
	onEachLedger(t, func(w *world) {
		tool := lost(settle.Contract{NoLookup: true, Deciders: 2, Approval: true})
		p := w.start(tool)
		out := w.want(p.call(partCall("lost", "x")), settle.StatusAwaitingApproval)
		ann := w.startWith().person("ann")
		if c := ann.decides(out.Operation, settle.DecideApprove); !c.Proposed {
			w.Errorf("one person approved it: %s", c.State)
		}
	})
}

// A process of the version that asks for one may be the last to start.
func TestR03OfTwoContractsTheOneThatAsksForTwoPersonsHolds(t *testing.T) {
	onEachLedger(t, func(w *world) {
		older, newer := w.start(lost(settle.Contract{NoLookup: true})), w.start(lostForTwo())
		desk := w.startWith() // without the tool's code, as the command line
		declare := func(order ...*process) {
			w.Helper()
			for _, p := range order {
				if err := p.x.Declare(p.ctx); err != nil {
					w.Fatal(err)
				}
			}
		}
		asksForTwo := func(operation string, at ...*process) {
			w.Helper()
			for n, p := range at {
				ann := p.person("ann")
				equal(w, fmt.Sprint("how many decide at process ", n), ann.sees(operation).Deciders, 2)
				if c := ann.decides(operation, settle.DecideFail); !c.Proposed {
					w.Errorf("one person decided at process %d: %s", n, c.State)
				}
				if err := p.x.Queue().Note(ann.ctx, operation, "voids it"); err != nil {
					w.Fatal(err)
				}
			}
		}
		// Claimed under the contract that asks for two.
		claimed := newer.waitsForTwo()
		declare(newer, older)
		asksForTwo(claimed, desk, older, newer)
		// Claimed under the one that asks for one, while the ledger's last word is two.
		out := w.want(older.call(settle.Call{Tool: "lost", Args: args(partArgs{"B-2", "x"})}), settle.StatusManual)
		declare(older, newer)
		asksForTwo(out.Operation, older, desk)
		// And once a process of that version has written on it, for good.
		asksForTwo(out.Operation, newer)
		declare(older)
		asksForTwo(out.Operation, desk, older)
	})
}

func TestR03AnApprovalThatTakesTwoPersonsKeepsTakingTwo(t *testing.T) {
	onEachLedger(t, func(w *world) {
		newer := w.start(lost(settle.Contract{NoLookup: true, Deciders: 2, Approval: true}))
		out := w.want(newer.call(partCall("lost", "x")), settle.StatusAwaitingApproval)
		older := w.start(lost(settle.Contract{NoLookup: true, Approval: true}))
		if err := older.x.Declare(older.ctx); err != nil {
			w.Fatal(err)
		}
		if c := w.startWith().person("ann").decides(out.Operation, settle.DecideApprove); !c.Proposed {
			w.Errorf("one person approved it: %s", c.State)
		}
	})
}

// With no word on how many decide, nothing is opened that somebody may decide
// alone.
func TestR41ALedgerThatCantBeToldOfTwoPersonsRefuses(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, Deciders: 2}}
	x := g.executor(p.tool())
	g.ledger.next("declare", times(6, down)...)
	g.want(x, payCall("A-1", 5), settle.StatusUnavailable)
	g.did(p, 0)
}

// A result that is given where the tool's code isn't is one of the version whose
// schema it was held against.
func TestR47AResultOfAPersonIsOfTheDeclaredVersion(t *testing.T) {
	for _, version := range []int{0, 3} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				tool := lost(settle.Contract{NoLookup: true})
				tool.ResultVersion = version
				p := w.start(tool)
				if err := p.x.Declare(p.ctx); err != nil {
					w.Fatal(err)
				}
				out := w.want(p.call(partCall("lost", "x")), settle.StatusManual)
				ann := w.startWith().person("ann")
				d := ann.decision(out.Operation, settle.DecideHappened)
				d.Resource, d.Result = "r-1", json.RawMessage(`{"id":7}`)
				ann.refused(d, "doesn't fit the tool's schema")
				d.Result = json.RawMessage(`{"id":"r-1"}`)
				if _, err := ann.x.Queue().Decide(ann.ctx, d); err != nil {
					w.Fatal(err)
				}
				done := w.wantReplay(p.call(partCall("lost", "x")), settle.StatusCompleted)
				equal(w, "the result", string(done.Result), `{"id":"r-1"}`)
			})
		})
	}
}

func TestR56AProposalsResultIsSealed(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/settle.db"
	keys := map[string][]byte{"a": newKey()}
	x, l := sealedWorld(t, path, codec(t, "a", keys), lostForTwo())
	out, err := x.Execute(sealedScope(), partCall("lost", "plaintext-text"))
	if err != nil || out.Status != settle.StatusManual {
		t.Fatal(out.ForModel(), err)
	}
	as := func(name string) context.Context {
		return settle.WithOperator(context.Background(), settle.Operator{Name: name})
	}
	version := func() int {
		c, err := x.Queue().Get(as("ann"), out.Operation)
		if err != nil {
			t.Fatal(err)
		}
		return c.Version
	}
	_, err = x.Queue().Decide(as("ann"), settle.Decision{Operation: out.Operation, Version: version(), ID: uuid.NewString(),
		Kind: settle.DecideHappened, Reason: "seen", Resource: "r-1", Result: json.RawMessage(`{"id":"plaintext-id"}`)})
	if err != nil {
		t.Fatal(err)
	}
	keyless, err := settle.New(l)
	if err != nil {
		t.Fatal(err)
	}
	var missing *settle.MissingKeyError
	if _, err := keyless.Queue().Confirm(as("bob"), out.Operation, version(), uuid.NewString(), "seen too"); !errors.As(err, &missing) || missing.KeyID != "a" {
		t.Errorf("confirmed without the key: %v, want a MissingKeyError that names it", err)
	}
	if _, err := keyless.Queue().Reveal(as("bob"), out.Operation); !errors.As(err, &missing) {
		t.Errorf("revealed without the key: %v, want a MissingKeyError", err)
	}
	if r, err := x.Queue().Reveal(as("bob"), out.Operation); err != nil || string(r.Proposed) != `{"id":"plaintext-id"}` {
		t.Errorf("what is proposed is revealed as %s, %v", r.Proposed, err)
	}
	if _, err := x.Queue().Confirm(as("bob"), out.Operation, version(), uuid.NewString(), "seen too"); err != nil {
		t.Fatal(err)
	}
	done, err := x.Get(sealedScope(), out.Operation)
	if err != nil || string(done.Result) != `{"id":"plaintext-id"}` {
		t.Errorf("what was confirmed: %s, %v", done.ForModel(), err)
	}
	nothingReadable(t, path, l)
}

// Whoever has a case may not be there any more. It is taken over by name, so that
// two who do that at once don't take it from one another.
func TestR40ACaseIsTakenOverFromWhoHasIt(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(lost(settle.Contract{NoLookup: true}))
		operation := p.waitsForTwo()
		ann, bob, carol := p.person("ann"), p.person("bob"), p.person("carol")
		queue := p.x.Queue()
		for _, from := range []string{"", "bob"} {
			if err := queue.TakeOver(ann.ctx, operation, from); !errors.Is(err, settle.ErrTaken) {
				w.Errorf("a case that nobody has, taken over from %q: %v", from, err)
			}
		}
		if err := queue.Take(bob.ctx, operation); err != nil {
			w.Fatal(err)
		}
		if err := queue.TakeOver(ann.ctx, operation, "bob"); err != nil {
			w.Fatal(err)
		}
		if err := queue.TakeOver(carol.ctx, operation, "bob"); !errors.Is(err, settle.ErrTaken) {
			w.Errorf("a case that was taken over meanwhile: %v, want ErrTaken", err)
		}
		c := ann.sees(operation)
		equal(w, "who has it", c.Owner, "ann")
		last := c.Events[len(c.Events)-1]
		equal(w, "the journal", last.Kind+" by "+last.Actor+": "+last.Text, "taken_over by operator:ann: from bob")
	})
}

// Whoever lets an operation run whose arguments are gone is told that it can't,
// and not found out by the next worker.
func TestR52WhatIsErasedIsNotAllowedToRun(t *testing.T) {
	onEachLedger(t, func(w *world) {
		asks := partOf("ask", new(corrections))
		asks.Contract.Approval = true
		p := w.start(lost(settle.Contract{NoLookup: true}), asks)
		waits := w.want(p.call(partCall("ask", "x")), settle.StatusAwaitingApproval).Operation
		operation := p.waitsForTwo()
		if _, err := p.x.Erase(p.ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"}, nil); err != nil {
			w.Fatal(err)
		}
		ann := p.person("ann")
		for reference, kind := range map[string]settle.DecisionKind{operation: settle.DecideRunOnce, waits: settle.DecideApprove} {
			ann.refused(ann.decision(reference, kind), "erased")
			for _, d := range ann.sees(reference).Decisions {
				equal(w, string(d.Kind)+" is refused", d.Refused != "", d.Kind == kind)
			}
		}
		ann.decides(operation, settle.DecideFail)
		ann.decides(waits, settle.DecideDeny)
	})
}

// The limit of results holds wherever one comes from.
func TestR47AResultThatIsFoundOrGivenHasTheSameLimit(t *testing.T) {
	g := onFile(t)
	large := part{ID: strings.Repeat("x", 200)}
	finds := lost(settle.Contract{})
	finds.Lookup = func(_ context.Context, q settle.Query[part], _ partArgs) (settle.Evidence, error) {
		return q.Happened("r-1", large), nil
	}
	given := lost(settle.Contract{NoLookup: true})
	given.Name = "given"
	x := g.executorWith(settle.WithResultLimit(100), settle.WithTools(finds, given))
	found := g.want(x, partCall("lost", "x"), settle.StatusCompleted)

	waits := g.want(x, partCall("given", "x"), settle.StatusManual)
	ann := settle.WithOperator(context.Background(), settle.Operator{Name: "ann"})
	c, err := x.Queue().Get(ann, waits.Operation)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Queue().Decide(ann, settle.Decision{Operation: waits.Operation, Version: c.Version, ID: uuid.NewString(),
		Kind: settle.DecideHappened, Reason: "seen", Resource: "r-1", Result: args(large)})
	if err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]settle.Outcome{"found": found, "given": g.want(x, partCall("given", "x"), settle.StatusCompleted)} {
		if row := g.row(out); len(row.Result) > 0 || row.Flags&store.FlagOversize == 0 || out.Reason != "result_too_large" || out.Resource != "r-1" {
			t.Errorf("a large result that was %s: %d bytes are stored, and told is %s", name, len(row.Result), out.ForModel())
		}
	}
}

// A decision that was taken must not look refused.
func TestR41WhoMayDecideAndNotLookIsTold(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.startWith(settle.WithTools(lost(settle.Contract{NoLookup: true})),
			settle.WithOperatorPolicy(func(_ context.Context, a settle.OperatorAction) error {
				if a.Action == "show" {
					return errors.New("not theirs to look at")
				}
				return nil
			}))
		operation := p.waitsForTwo()
		ann := p.person("ann")
		if _, err := p.x.Queue().Get(ann.ctx, operation); !errors.Is(err, settle.ErrNotAllowed) {
			w.Errorf("looking at it: %v, want ErrNotAllowed", err)
		}
		c, err := p.x.Queue().Decide(ann.ctx, settle.Decision{Operation: operation, Version: w.only("lost").Version, ID: uuid.NewString(),
			Kind: settle.DecideFail, Reason: "asked them"})
		if err != nil || c.State != "failed" || c.Task != "" || len(c.Events) > 0 {
			w.Errorf("deciding it: %+v, %v", c, err)
		}
	})
}
