package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
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
		r, err := queue.Reveal(bob.ctx, operation)
		if err != nil {
			w.Fatal(err)
		}
		equal(w, "the result that is proposed", string(r.Proposed), `{"id":"r-1"}`)
		c := bob.sees(operation)
		if c.Proposal == nil || c.Proposal.Operator != "ann" || c.Proposal.Resource != "r-1" || !c.Proposal.HasResult {
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

// An abandoned operation is corrected at a person's word: of one who may.
func TestR49OnlyWhoMayOrdersTheCorrectionOfAnAbandonedOne(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var corrected corrections
		var asked []settle.OperatorAction
		p := w.startWith(settle.WithTools(partOf("file", &corrected)), settle.WithOperatorPolicy(func(_ context.Context, a settle.OperatorAction) error {
			asked = append(asked, a)
			if a.Action == "compensate" && a.Operator.Name == "eve" {
				return errors.New("she may not")
			}
			return nil
		}))
		operation := w.want(p.call(partCall("file", "lost")), settle.StatusManual).Operation
		p.person("ann").decides(operation, settle.DecideAbandon)
		for reason, o := range map[string]settle.Operator{
			"operator_required":    {Name: "bob", Tenants: []string{"globex"}},
			"operator_not_allowed": {Name: "eve"},
		} {
			out, err := p.x.Compensate(settle.WithOperator(p.ctx, o), operation)
			if err != nil {
				w.Fatal(err)
			}
			w.wantReason(w.want(out, settle.StatusDenied), reason)
		}
		equal(w, "corrections made", len(corrected), 0)
		out, err := p.x.Compensate(settle.WithOperator(p.ctx, settle.Operator{Name: "ann", Tenants: []string{"acme"}}), operation)
		if err != nil {
			w.Fatal(err)
		}
		w.want(out, settle.StatusCompleted)
		equal(w, "corrections made", len(corrected), 1)
		last := asked[len(asked)-1]
		equal(w, "what the policy is asked", last.Action+" "+last.Tenant+" "+last.Tool+" "+last.Operation, "compensate acme file "+operation)
	})
}

// A policy that lets people confirm some decisions and not others has to be told
// which one it is.
func TestR46APolicyIsToldWhatIsConfirmed(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var asked []settle.OperatorAction
		p := w.startWith(settle.WithTools(lostForTwo()), settle.WithOperatorPolicy(func(_ context.Context, a settle.OperatorAction) error {
			asked = append(asked, a)
			if a.Operator.Name == "bob" && a.Decision == settle.DecideHappened {
				return errors.New("not theirs to say")
			}
			return nil
		}))
		operation := p.waitsForTwo()
		ann, bob := p.person("ann"), p.person("bob")
		for _, kind := range []settle.DecisionKind{settle.DecideHappened, settle.DecideFail} {
			ann.decides(operation, kind)
			_, err := bob.confirms(operation, uuid.NewString())
			if refused := errors.Is(err, settle.ErrNotAllowed); refused != (kind == settle.DecideHappened) {
				w.Errorf("bob confirms %s: %v", kind, err)
			}
		}
		for _, a := range asked {
			switch a.Action {
			case "confirm":
				if a.Decision != settle.DecideHappened && a.Decision != settle.DecideFail {
					w.Errorf("to confirm %q was asked for", a.Decision)
				}
			case "happened", "fail":
				equal(w, "what is decided", string(a.Decision), a.Action)
			default:
				equal(w, "what is decided with "+a.Action, a.Decision, "")
			}
		}
		audits, err := w.ledger.Audits(context.Background(), w.only("lost").ID)
		if err != nil || len(audits) != 1 || audits[0].Kind != "decision_refused" || audits[0].Actor != "operator:bob" {
			w.Errorf("the audit of what was not allowed: %+v, %v", audits, err)
		}
		// However a reference is written, it is one operation to the policy.
		if _, err := p.x.Queue().Get(ann.ctx, "urn:uuid:"+strings.ToUpper(operation)); err != nil {
			w.Fatal(err)
		}
		equal(w, "the operation", asked[len(asked)-1].Operation, operation)
	})
}

// Operators know a tool by today's name, and its cases are keyed by the first.
func TestR39CasesAreFoundByTodaysName(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(lost(settle.Contract{NoLookup: true}))
		operation := p.waitsForTwo()
		renamed := lost(settle.Contract{NoLookup: true})
		renamed.Name, renamed.Formerly = "mislaid", []string{"lost"}
		var asked []string
		q := w.startWith(settle.WithTools(renamed), settle.WithOperatorPolicy(func(_ context.Context, a settle.OperatorAction) error {
			asked = append(asked, a.Tool)
			return nil
		}))
		ann := q.person("ann")
		for _, name := range []string{"mislaid", "lost"} {
			cases, err := q.x.Queue().List(ann.ctx, settle.QueueFilter{Tool: name})
			if err != nil || len(cases.Cases) != 1 || cases.Cases[0].Operation != operation || cases.Cases[0].Tool != "mislaid" {
				w.Errorf("the cases of %s: %+v, %v", name, cases.Cases, err)
			}
			all, err := q.x.Queue().Operations(ann.ctx, settle.OperationFilter{Tool: name})
			if err != nil || len(all.Operations) != 1 || all.Operations[0].Operation != operation {
				w.Errorf("the operations of %s: %+v, %v", name, all.Operations, err)
			}
		}
		equal(w, "the tool that the policy is asked for", strings.Join(asked, " "), "mislaid mislaid mislaid mislaid")
	})
}

// The steps that a failed composite has done stay done, and nobody finds them
// unless they are told.
func TestR49AFailedCompositeNamesTheStepsThatCanBeCorrected(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var corrected corrections
		p := w.start(ticketWithFile(&corrected, false))
		failed := w.want(p.call(partCall("report", "too large")), settle.StatusFailed)
		out := w.want(p.compensates(failed.Operation), settle.StatusNotDone)
		w.wantReason(out, "nothing_to_correct")
		if len(out.Related) != 2 || out.Related[0].Operation != failed.Operation || out.Related[1].Tool != "ticket" {
			w.Fatalf("the answer names %+v, want the composite and its ticket", out.Related)
		}
		if text := out.ForModel(); !strings.Contains(text, out.Related[1].Operation) {
			w.Errorf("the model is told %q", text)
		}
		w.want(p.compensates(out.Related[1].Operation), settle.StatusCompleted)
		equal(w, "what is corrected", strings.Join(corrected.resources(), ", "), "ticket opened")
	})
}
