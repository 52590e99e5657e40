package settle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// What may not be decided any more, and what is told of what was decided before.

// An attempt that reports success late is believed, also where it reopens what was
// closed: whoever decides then must not have the effect made once more, and the
// machine must not either, whatever the far side shows by then.
func TestR40AfterALateSuccessNothingIsRunAgain(t *testing.T) {
	for name, before := range map[string]func(*person, string){
		"taken":     func(o *person, operation string) { o.takes(operation) },
		"failed":    func(o *person, operation string) { o.decides(operation, settle.DecideFail) },
		"abandoned": func(o *person, operation string) { o.decides(operation, settle.DecideAbandon) },
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				release := make(chan struct{})
				tool := lost(settle.Contract{EscalateAfter: time.Hour, Timeout: quick, VisibilityDelay: settle.Immediately})
				tool.Do = func(context.Context, settle.Op, partArgs) (part, error) {
					<-release // deaf to its context
					return part{"r-1"}, nil
				}
				tool.Lookup = func(_ context.Context, q settle.Query[part], _ partArgs) (settle.Evidence, error) {
					return q.Inconclusive("closed"), nil
				}
				p := w.start(tool)
				operation := w.want(p.call(partCall("lost", "x")), settle.StatusUnknown).Operation
				w.age(2 * time.Hour)
				p.recover()
				ann := p.person("ann")
				before(ann, operation)
				close(release)
				w.comes("the late success", func() bool {
					return w.only("lost").State == store.Manual && slices.ContainsFunc(w.events(w.only("lost").ID), func(e store.Event) bool { return e.Kind == "late_success" })
				})
				for _, kind := range []settle.DecisionKind{settle.DecideFail, settle.DecideRunOnce, settle.DecideHandBack} {
					ann.refused(ann.decision(operation, kind), "has reported success")
					for _, d := range ann.sees(operation).Decisions {
						if d.Kind == kind && d.Refused == "" {
							w.Errorf("%s is offered", kind)
						}
					}
				}
				ann.decides(operation, settle.DecideHappened)
				w.state(w.only("lost"), store.Completed)
			})
		})
	}
}

func (o *person) takes(operation string) {
	o.Helper()
	if err := o.x.Queue().Take(o.ctx, operation); err != nil {
		o.Fatal(err)
	}
}

// Whoever sends a decision again has to hear what became of it, and not that of
// another one, or of a proposal that came to nothing.
func TestR41AnIDIsToldWhatBecameOfIt(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(lostForTwo())
		operation, queue := p.waitsForTwo(), p.x.Queue()
		ann, bob := p.person("ann"), p.person("bob")
		d := ann.decision(operation, settle.DecideHappened)
		d.Resource = "r-1"
		again := func() error { _, err := queue.Decide(ann.ctx, d); return err }
		if err := errors.Join(again(), queue.Take(bob.ctx, operation), again()); err != nil {
			w.Fatal(err)
		}
		other := d
		other.Resource = "r-2"
		ann.refused(other, "another decision")
		if err := queue.Note(bob.ctx, operation, "their desk says otherwise"); err != nil {
			w.Fatal(err)
		}
		ann.refused(d, "is void")
		ann.decides(operation, settle.DecideFail)
		ann.refused(d, "is void")

		d = ann.decision(operation, settle.DecideHappened)
		d.Resource = "r-1"
		if err := again(); err != nil {
			w.Fatal(err)
		}
		if _, err := queue.Reveal(bob.ctx, operation); err != nil {
			w.Fatal(err)
		}
		if _, err := bob.confirms(operation, uuid.NewString()); err != nil {
			w.Fatal(err)
		}
		if err := again(); err != nil {
			w.Errorf("a proposal that was confirmed: %v", err)
		}
		w.state(w.only("lost"), store.Completed)
	})
}

// Half a resource is another one, and the end of a reason may be what counts.
func TestR40NothingOfADecisionIsCut(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(lostForTwo())
		operation, queue := p.waitsForTwo(), p.x.Queue()
		ann, bob := p.person("ann"), p.person("bob")
		long := func(n int) string { return strings.Repeat("a", n-1) + "z" }
		d := ann.decision(operation, settle.DecideHappened)
		d.Resource, d.Reason = long(1024), long(4097)
		ann.refused(d, "at most")
		d.Resource, d.Reason = long(1025), long(4096)
		ann.refused(d, "at most")
		if err := queue.Note(ann.ctx, operation, long(4097)); !errors.Is(err, settle.ErrTooLong) {
			w.Errorf("a long note: %v, want ErrTooLong", err)
		}
		d.Resource = long(1024)
		if _, err := queue.Decide(ann.ctx, d); err != nil {
			w.Fatal(err)
		}
		if _, err := queue.Confirm(bob.ctx, operation, bob.sees(operation).Version, uuid.NewString(), long(4097)); !errors.Is(err, settle.ErrTooLong) {
			w.Errorf("a long reason to confirm: %v, want ErrTooLong", err)
		}
		if _, err := queue.Confirm(bob.ctx, operation, bob.sees(operation).Version, uuid.NewString(), long(4096)); err != nil {
			w.Fatal(err)
		}
		equal(w, "the resource", w.only("lost").Resource, long(1024))
		events := bob.sees(operation).Events
		if text := events[len(events)-1].Text; !strings.HasSuffix(text, long(4096)+" / "+long(4096)) {
			w.Errorf("of both reasons %d bytes are kept", len(text))
		}
	})
}

// An approval that came too late isn't offered. It counts as denied, so whoever
// denies it says nothing new: the case must not have to wait for a worker (R43).
func TestR43AnExpiredApprovalCanOnlyBeDenied(t *testing.T) {
	onEachLedger(t, func(w *world) {
		asks := partOf("ask", new(corrections))
		asks.Contract.Approval = true
		p := w.start(asks)
		operation := w.want(p.call(partCall("ask", "x")), settle.StatusAwaitingApproval).Operation
		w.age(25 * time.Hour)
		ann := p.person("ann")
		ann.refused(ann.decision(operation, settle.DecideApprove), "has expired")
		for _, d := range ann.sees(operation).Decisions {
			equal(w, string(d.Kind)+" is refused", d.Refused != "", d.Kind == settle.DecideApprove)
		}
		ann.decides(operation, settle.DecideDeny)
		w.state(w.only("ask"), store.Failed)
		w.wantReplay(p.call(partCall("ask", "x")), settle.StatusDenied)
	})
}

// An approval may be asked for what an earlier attempt turns out to have done: its
// contract got the approval in between. It isn't given then, and the effect is told
// of, whatever is said to the approval.
func TestR43WhatHasHappenedIsNotApproved(t *testing.T) {
	onEachLedger(t, func(w *world) {
		release := make(chan struct{})
		tool := lost(settle.Contract{EscalateAfter: time.Hour, Timeout: quick, StaleAfter: 24 * time.Hour})
		tool.Lookup = func(_ context.Context, q settle.Query[part], _ partArgs) (settle.Evidence, error) {
			return q.NotHappened(), nil
		}
		asks := tool
		asks.Contract.Approval = true
		tool.Do = func(context.Context, settle.Op, partArgs) (part, error) {
			<-release // deaf to its context
			return part{"r-1"}, nil
		}
		p := w.start(tool)
		operation := w.want(p.call(partCall("lost", "x")), settle.StatusUnknown).Operation
		w.age(longEnough)
		p.recover()
		w.state(w.only("lost"), store.Retryable)
		q := w.start(asks)
		w.want(q.call(partCall("lost", "x")), settle.StatusAwaitingApproval)
		close(release)
		ann := q.person("ann")
		w.comes("the late success", func() bool {
			return slices.ContainsFunc(w.events(w.only("lost").ID), func(e store.Event) bool { return e.Kind == "late_success" })
		})
		ann.refused(ann.decision(operation, settle.DecideApprove), "has reported success")
		equal(w, "why approve is refused", ann.sees(operation).Decisions[0].Refused != "", true)
		ann.decides(operation, settle.DecideDeny)
		c := ann.sees(operation)
		if !c.Incident || c.Reason != "late_success" {
			w.Errorf("after the approval is denied the case is %+v", c.CaseSummary)
		}
		ann.decides(operation, settle.DecideAcknowledge)
	})
}
