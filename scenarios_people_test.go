package settle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// What people settle, correct and forget.

// unknownTicket leaves a ticket of which nobody knows whether it was made.
func (p *process) unknownTicket() settle.Outcome {
	p.Helper()
	p.tickets.Writes.Next(farside.CommitThenDrop())
	return p.want(p.call(createTicket("Late", "Where is it?")), settle.StatusUnknown)
}

// becomesACase lets the time for evidence pass.
func (p *process) becomesACase(out settle.Outcome) {
	p.Helper()
	p.age(longUnanswered)
	p.recover()
	p.state(p.row(out), store.Manual)
}

func TestS78NotHappenedWaitsForTheMoment(t *testing.T) {
	onEachLedger(t, func(w *world) {
		tool := newDesk(w.sides).createTicket(func(c *settle.Contract) {
			c.NoLookup, c.VisibilityDelay = false, 10*time.Minute
		})
		tool.Lookup = func(_ context.Context, q settle.Query[opened], _ ticketArgs) (settle.Evidence, error) {
			return q.Several("two tickets look alike"), nil
		}
		p := w.start(tool)
		w.tickets.Writes.Next(farside.CommitThenDrop())
		out := w.want(p.call(createTicket("Late", "Where is it?")), settle.StatusManual)
		ann := p.person("ann")
		ann.refused(ann.decision(out.Operation, settle.DecideFail), "may still take effect")
		ann.refused(ann.decision(out.Operation, settle.DecideRunOnce), "may still take effect")
		w.age(11 * time.Minute)
		ann.decides(out.Operation, settle.DecideFail)
		w.state(w.row(out), store.Failed)
	})
}

func TestS78ALateSuccessReopensWhatAPersonFailed(t *testing.T) {
	onEachLedger(t, func(w *world) {
		release := make(chan struct{})
		tool := newDesk(w.sides).createTicket(timeout(quick))
		tool.Do = func(context.Context, settle.Op, ticketArgs) (opened, error) {
			<-release // deaf to its context
			return opened{"tk_1"}, nil
		}
		p := w.start(tool)
		out := w.want(p.call(createTicket("Late", "Where is it?")), settle.StatusUnknown)
		p.becomesACase(out)
		ann := p.person("ann")
		ann.decides(out.Operation, settle.DecideFail)
		close(release)
		w.settles("create_ticket", store.Manual)
		c := ann.sees(out.Operation)
		equal(w, "the reason", c.Reason, "late_success")
		d := ann.decision(out.Operation, settle.DecideHappened)
		d.Resource = "tk_1"
		if _, err := p.x.Queue().Decide(ann.ctx, d); err != nil {
			w.Fatal(err)
		}
		w.state(w.row(out), store.Completed)
	})
}

func TestR40WhatAPersonDecides(t *testing.T) {
	for _, c := range []struct {
		kind    settle.DecisionKind
		status  settle.Status
		effects int
	}{
		{settle.DecideHappened, settle.StatusCompleted, 1},
		{settle.DecideRunOnce, settle.StatusCompleted, 2},
		{settle.DecideFail, settle.StatusFailed, 1},
		{settle.DecideAbandon, settle.StatusAbandoned, 1},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				p := w.start()
				out := p.unknownTicket()
				p.becomesACase(out)
				ann := p.person("ann")
				d := ann.decision(out.Operation, c.kind)
				d.Resource = "tk_9"
				if _, err := p.x.Queue().Decide(ann.ctx, d); err != nil {
					w.Fatal(err)
				}
				if _, err := p.x.Queue().Decide(ann.ctx, d); err != nil {
					w.Errorf("the same decision again: %v", err)
				}
				p.recover()
				settled, err := p.x.Wait(p.ctx, out.Operation)
				if err != nil {
					w.Fatal(err)
				}
				equal(w, "the status", settled.Status, c.status)
				w.wantReplay(p.call(createTicket("Late", "Where is it?")), c.status)
				w.effects(w.tickets.Server, c.effects)
			})
		})
	}
}

func TestR41RefusalsChangeNothing(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		out := p.unknownTicket()
		p.becomesACase(out)
		ann := p.person("ann")
		d := ann.decision(out.Operation, settle.DecideFail)

		stale := d
		stale.Version--
		ann.refused(stale, "version")
		blank := d
		blank.Reason = " "
		ann.refused(blank, "reason")
		nameless := d
		nameless.ID = ""
		ann.refused(nameless, "id")
		wrong := d
		wrong.Kind = settle.DecideApprove
		ann.refused(wrong, "no open case")
		unheard := d
		unheard.Kind = "maybe"
		ann.refused(unheard, "no such decision")
		broken := d
		broken.Kind, broken.Result = settle.DecideHappened, []byte(`{"number":7}`)
		ann.refused(broken, "schema")

		if _, err := p.x.Queue().Decide(p.person("bob", "globex").ctx, d); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("a foreign operator: %v, want not found", err)
		}
		if _, err := p.x.Queue().Decide(context.Background(), d); !errors.Is(err, settle.ErrNoOperator) {
			w.Errorf("nobody: %v, want ErrNoOperator", err)
		}
		unknown := d
		unknown.Operation = "01a22947-0000-7000-8000-000000000000"
		if _, err := p.x.Queue().Decide(ann.ctx, unknown); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("an unknown reference: %v, want not found", err)
		}
		ann.decides(out.Operation, settle.DecideFail)
		settled := ann.decision(out.Operation, settle.DecideAbandon)
		ann.refused(settled, "no open case")
	})
}

func TestR41TwoPersons(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).createTicket(func(c *settle.Contract) { c.Deciders = 2 }))
		out := p.unknownTicket()
		p.becomesACase(out)
		ann, bob := p.person("ann"), p.person("bob")
		c := ann.decides(out.Operation, settle.DecideFail)
		equal(w, "the state after a proposal", c.State, "manual")
		if c.Proposal == nil || c.Proposal.Operator != "ann" {
			w.Fatalf("the proposal is %+v", c.Proposal)
		}
		id := ann.decision(out.Operation, settle.DecideFail).ID
		if _, err := p.x.Queue().Confirm(ann.ctx, out.Operation, c.Version, id, "me too"); !errors.Is(err, settle.ErrSamePerson) {
			w.Errorf("the proposer confirms: %v, want ErrSamePerson", err)
		}
		// A note is no evidence, but it moves the case: the proposal is void.
		if err := p.x.Queue().Note(bob.ctx, out.Operation, "their desk says otherwise"); err != nil {
			w.Fatal(err)
		}
		if _, err := p.x.Queue().Confirm(bob.ctx, out.Operation, bob.sees(out.Operation).Version, id, "yes"); !errors.Is(err, settle.ErrNoProposal) {
			w.Errorf("a void proposal: %v, want ErrNoProposal", err)
		}
		page, err := p.x.Queue().List(bob.ctx, settle.QueueFilter{})
		if err != nil || len(page.Cases) != 1 || page.Cases[0].Proposed {
			w.Errorf("the queue lists a void proposal as one that waits: %+v, %v", page.Cases, err)
		}
		ann.decides(out.Operation, settle.DecideFail)
		if _, err := p.x.Queue().Confirm(bob.ctx, out.Operation, bob.sees(out.Operation).Version, id, "asked them"); err != nil {
			w.Fatal(err)
		}
		w.state(w.row(out), store.Failed)
	})
}

func TestR42NothingIsSentForACase(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		out := p.unknownTicket()
		p.becomesACase(out)
		for range 3 {
			w.age(longUnanswered)
			p.recover()
			w.want(p.call(createTicket("Late", "Where is it?")), settle.StatusManual)
		}
		w.effects(w.tickets.Server, 1)
		w.state(w.row(out), store.Manual)
	})
}

func TestR39ACaseShowsWhatIsNeededAndHidesTheRest(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).createTicket(func(c *settle.Contract) { c.Guidance = "Ask the carrier." }))
		done := w.want(p.inTask("case-41").call(createTicket("Late", "Where is it?")), settle.StatusCompleted)
		out := p.unknownTicket()
		p.becomesACase(out)
		w.want(p.call(createTicket("Late", "Now in other words")), settle.StatusHeld)
		ann := p.person("ann")
		c := ann.sees(out.Operation)
		equal(w, "the guidance", c.Guidance, "Ask the carrier.")
		equal(w, "the task", c.Task, "case-42")
		equal(w, "calls held", c.Held, 1)
		equal(w, "related operations", len(c.Related), 1)
		equal(w, "the related operation", c.Related[0].Operation, done.Operation)
		equal(w, "the number of decisions", len(c.Decisions), 5)
		for _, f := range c.Fields {
			w.hides(f.Value, "Late", "Where")
		}
		shown, err := p.x.Queue().Reveal(ann.ctx, out.Operation)
		if err != nil {
			w.Fatal(err)
		}
		w.says(string(shown.Arguments), "Where is it?")
		kinds := w.kinds(w.row(out))
		equal(w, "the reveal's event", kinds[len(kinds)-1], "revealed")
	})
}

func TestS72ATombstoneAnswersExpired(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		out := w.want(p.call(refund("A", "1")), settle.StatusCompleted)
		open := p.unknownTicket()
		w.age(60 * 24 * time.Hour)
		done, err := p.x.Purge(p.ctx, "", nil)
		if err != nil {
			w.Fatal(err)
		}
		equal(w, "operations purged", done.Removed, 1)
		q := w.start()
		expired := w.wantReplay(q.call(refund("A", "1")), settle.StatusExpired)
		equal(w, "the operation", expired.Operation, out.Operation)
		w.wantReplay(q.call(refund("A", "2")), settle.StatusExpired)
		w.effects(w.payments.Server, 1)
		if w.row(open).Arguments == nil {
			w.Error("an unsettled operation lost its arguments")
		}
	})
}

func TestR52AClosedTaskAnswersExpired(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.want(p.call(refund("A", "1")), settle.StatusCompleted)
		other := w.start() // knows the intent from before
		w.wantReplay(other.call(refund("A", "1")), settle.StatusCompleted)
		open := p.inTask("case-43")
		out := open.unknownTicket()
		if err := open.x.CloseTask(open.ctx); !errors.Is(err, store.ErrUnsettled) {
			w.Errorf("closing an unsettled task: %v, want ErrUnsettled", err)
		}
		w.state(w.row(out), store.Unknown)
		if err := p.x.CloseTask(p.ctx); err != nil {
			w.Fatal(err)
		}
		w.want(p.call(refund("A", "1")), settle.StatusExpired)
		w.want(p.call(refund("B", "1")), settle.StatusExpired)
		w.wantReplay(other.call(refund("A", "1")), settle.StatusExpired)
		w.effects(w.payments.Server, 1)
	})
}

func TestS82ACorrectedOperationSaysSo(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		tool := d.createTicket()
		tool.Compensation = &settle.Compensation[ticketArgs, opened]{
			Contract: settle.Contract{NoLookup: true},
			Do: func(ctx context.Context, _ settle.Op, o settle.Original[ticketArgs, opened]) error {
				_, err := d.tickets.CloseTicket(ctx, o.Resource)
				return err
			},
		}
		p := w.start(tool)
		out := w.want(p.call(createTicket("Late", "Where?")), settle.StatusCompleted)
		undo := w.want(p.compensates(out.Operation), settle.StatusCompleted)
		w.wantReplay(p.compensates(out.Operation), settle.StatusCompleted)
		replay := w.wantReplay(p.call(createTicket("Late", "Where?")), settle.StatusCompleted)
		equal(w, "what corrected it", replay.CorrectedBy, undo.Operation)
		w.says(replay.ForModel(), "corrected")
	})
}
