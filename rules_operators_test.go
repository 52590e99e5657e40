package settle_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Operators: what they may see and do, and of which operation.

// The nil UUID is what a variable holds that nobody has set. It is no operation's
// reference, and must not stand for whichever case is the oldest.
func TestR46TheNilReferenceIsNobodys(t *testing.T) {
	onEachLedger(t, func(w *world) {
		asks := partOf("ask", new(corrections))
		asks.Contract.Approval = true
		p := w.start(lost(settle.Contract{NoLookup: true}), asks)
		p.waitsForTwo()
		w.want(p.call(partCall("ask", "x")), settle.StatusAwaitingApproval)
		ann, queue, before := p.person("ann"), p.x.Queue(), w.dump()
		nobodys := uuid.Nil.String()
		for name, do := range map[string]func() error{
			"Get":       func() error { _, err := queue.Get(ann.ctx, nobodys); return err },
			"Reveal":    func() error { _, err := queue.Reveal(ann.ctx, nobodys); return err },
			"Take":      func() error { return queue.Take(ann.ctx, nobodys) },
			"TakeOver":  func() error { return queue.TakeOver(ann.ctx, nobodys, "bob") },
			"Release":   func() error { return queue.Release(ann.ctx, nobodys) },
			"Note":      func() error { return queue.Note(ann.ctx, nobodys, "seen") },
			"Look":      func() error { _, err := queue.Look(ann.ctx, nobodys); return err },
			"Confirm":   func() error { _, err := queue.Confirm(ann.ctx, nobodys, 3, uuid.NewString(), "seen"); return err },
			"Operation": func() error { _, err := queue.Operation(ann.ctx, nobodys); return err },
			"Brief":     func() error { _, err := queue.Brief(ann.ctx, nobodys); return err },
			"Decide": func() error {
				_, err := queue.Decide(ann.ctx, settle.Decision{Operation: nobodys, Version: 3, ID: uuid.NewString(), Kind: settle.DecideFail, Reason: "seen"})
				return err
			},
			"Redeliver":   func() error { return queue.Redeliver(ann.ctx, "acme", nobodys) },
			"Discard":     func() error { return queue.Discard(ann.ctx, "acme", nobodys) },
			"VerifyChain": func() error { _, err := p.x.VerifyChain(ann.ctx, nobodys); return err },
			"Wait":        func() error { _, err := p.x.Wait(p.ctx, nobodys); return err },
			"Compensate":  func() error { _, err := p.x.Compensate(p.ctx, nobodys); return err },
		} {
			if err := do(); !errors.Is(err, store.ErrNotFound) {
				w.Errorf("%s of the nil reference: %v, want ErrNotFound", name, err)
			}
		}
		if w.dump() != before {
			w.Error("the ledger has changed")
		}
	})
}

// Whoever looks before they confirm, or sees to it that nobody else does, has said
// nothing about what happened. What they make sure of must not be void by that.
func TestR41LookingAtAProposalDoesNotVoidIt(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(lostForTwo())
		operation, queue := p.waitsForTwo(), p.x.Queue()
		ann, bob := p.person("ann"), p.person("bob")
		d := ann.decision(operation, settle.DecideHappened)
		d.Resource, d.Result = "r-1", json.RawMessage(`{"id":"r-1"}`)
		if _, err := queue.Decide(ann.ctx, d); err != nil {
			w.Fatal(err)
		}
		for _, err := range []error{
			queue.Take(ann.ctx, operation), queue.TakeOver(bob.ctx, operation, "ann"), queue.Release(bob.ctx, operation), queue.Take(bob.ctx, operation),
		} {
			if err != nil {
				w.Fatal(err)
			}
		}
		if _, err := queue.Reveal(bob.ctx, operation); err != nil {
			w.Fatal(err)
		}
		c := bob.sees(operation)
		if c.Proposal == nil || c.Proposal.Operator != "ann" || c.Proposal.Resource != "r-1" {
			w.Fatalf("after a look at it the proposal is %+v", c.Proposal)
		}
		// It is for the version that was seen, all the same.
		stale := new(settle.StaleVersionError)
		if _, err := queue.Confirm(bob.ctx, operation, c.Version-1, uuid.NewString(), "asked them"); !errors.As(err, &stale) {
			w.Errorf("an older version: %v, want a StaleVersionError", err)
		}
		if _, err := bob.confirms(operation, uuid.NewString()); err != nil {
			w.Fatal(err)
		}
		row := w.only("lost")
		w.state(row, store.Completed)
		equal(w, "the result", string(row.Result), `{"id":"r-1"}`)
	})
}
