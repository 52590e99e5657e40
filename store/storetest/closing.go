package storetest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle/store"
)

func closing(s suite) {
	s.test("R52AClosedIntentKeepsItsDigestWithoutItsNames", func(w *world) {
		i := w.propose(IntentOf("acme", "agent", "task-1", "refund"))
		w.standing(i, store.Completed)
		before := w.record(w.intent()).Read
		w.close(i)
		for _, l := range w.handles() {
			got, err := l.Intent(w.ctx, IntentOf("acme", "agent", "task-1", "refund"))
			w.must(err, "Intent")
			w.wantWithin("ClosedAt", got.ClosedAt, before, w.record(w.intent()).Read)
			wanted := i
			wanted.Subject, wanted.Task, wanted.Goal, wanted.ClosedAt = "", "", "", got.ClosedAt
			w.wantIntent(got, wanted)
		}
	})
	s.test("R52AClosedIntentsOperationsAreTombstones", func(w *world) {
		i, other := w.intentOf("acme", "t-1"), w.intentOf("acme", "t-2")
		all := w.settled(i)
		kept := w.standing(other, store.Completed, On(all[0], 1))
		w.close(i)
		for _, o := range all {
			row := w.wantTombstone(o)
			w.wantRecorded(w.claim(Claim(Operation(i, On(o, 1)))), row)
		}
		want(w, "operations of the intent", len(w.inIntent(i)), len(all))
		w.unchanged(kept)
	})
	s.test("R52ClosingLeavesTombstonesAsTheyAre", func(w *world) {
		i := w.intent()
		row := w.wantTombstone(w.purged(i, store.Completed))
		w.close(i)
		w.unchanged(row)
	})
	s.test("R52AClosedIntentsCasesLoseTheirProposals", func(w *world) {
		i := w.intent()
		o := w.apply(Change(w.standing(i, store.Manual), store.Manual, proposes([]byte(`{"result":{"id":"r-1"}}`))))
		o = w.apply(Change(o, store.Abandoned))
		w.close(i)
		w.wantCases(o, "closed because")
		want(w, "the proposal", string(w.casesOf(o)[0].Case.Proposal), "")
	})
	s.test("R52AnIntentThatDidNothingIsClosed", func(w *world) {
		i := w.intent()
		w.close(i)
		if got := w.proposeAgain(i); got.ClosedAt.IsZero() {
			w.Error("the intent isn't closed")
		}
	})
	s.test("R52ClosingAgainIsNoChange", func(w *world) {
		i := w.intent()
		w.close(i)
		first := w.proposeAgain(i)
		w.close(i)
		w.wantIntent(w.proposeAgain(i), first)
	})
	s.test("R52ClosingSeveralTimesAtOnceClosesOnce", func(w *world) {
		i := w.intent()
		o := w.standing(i, store.Completed)
		w.race(6, func(_ int, l store.Ledger) error { return l.CloseIntent(w.ctx, i.TenantName, i.ID) })
		w.wantTombstone(o)
	})
}

func closingRefused(s suite) {
	s.test("R52AnIntentWithUnsettledOperationsStaysOpen", func(w *world) {
		for _, state := range store.States() {
			if state.Settled() {
				continue
			}
			i := w.intent()
			settled, unsettled := w.standing(i, store.Completed), w.standing(i, state)
			w.wantUnclosed(i)
			w.unchanged(settled)
			w.unchanged(unsettled)
		}
	})
	s.test("R51AnIntentWithAnOpenIncidentStaysOpen", func(w *world) {
		i := w.intent()
		o := w.apply(Change(w.standing(i, store.Completed), store.Completed, incident("second_effect")))
		w.wantUnclosed(i)
		w.unchanged(o)
		w.wantCases(o, "open second_effect incident")
		o = w.apply(Change(o, store.Completed, resolves))
		w.close(i)
		w.wantTombstone(o)
	})
	s.test("R46AnotherTenantsIntentIsNotFound", func(w *world) {
		i := w.intentOf("acme", "t")
		w.intentOf("umbrella", "t")
		o := w.standing(i, store.Completed)
		for _, name := range []string{"umbrella", "nobody", "", "Acme", "%"} {
			err := w.Ledger.CloseIntent(w.ctx, name, i.ID)
			if !errors.Is(err, store.ErrNotFound) || !store.Unwritten(err) {
				w.Errorf("closing as tenant %q gave the error %v, want ErrNotFound", name, err)
			}
		}
		if err := w.Ledger.CloseIntent(w.ctx, "acme", ID()); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("closing an unknown intent gave the error %v, want ErrNotFound", err)
		}
		w.wantIntent(w.propose(IntentOf("acme", "agent", "t", "refund")), i)
		w.unchanged(o)
		w.close(i)
		if err := w.Ledger.CloseIntent(w.ctx, "umbrella", i.ID); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("closing another tenant's closed intent gave the error %v, want ErrNotFound", err)
		}
	})
	s.test("R52ClosingAndReopeningAreDecidedTogether", func(w *world) {
		for range 16 {
			closingRace(w)
			incidentRace(w)
		}
	})
}

// closingRace lets a person reopen an operation of an intent that is being
// closed: either the intent stays open for it, or it is reopened as a tombstone.
func closingRace(w *world) {
	i := w.intent()
	o := w.standing(i, store.Failed)
	c := Change(o, store.Manual)
	var closed atomic.Bool
	w.race(2, func(n int, l store.Ledger) error {
		if n == 0 {
			err := l.CloseIntent(w.ctx, i.TenantName, i.ID)
			closed.Store(err == nil)
			if errors.Is(err, store.ErrUnsettled) {
				return nil
			}
			return err
		}
		_, err := l.Apply(w.ctx, c)
		return err
	})
	after := w.read(o)
	if closed.Load() {
		o = tombstone(o)
	}
	wanted, _ := store.Next(o, c, after.TailAt)
	w.wantRow(after, wanted)
	w.verify(after)
	want(w, "the intent is closed", !w.proposeAgain(i).ClosedAt.IsZero(), closed.Load())
}

// incidentRace lets an incident be opened on an operation of an intent that is
// being closed.
func incidentRace(w *world) {
	i := w.intent()
	o := w.standing(i, store.Completed)
	var closed atomic.Bool
	w.race(2, func(n int, l store.Ledger) error {
		if n == 0 {
			err := l.CloseIntent(w.ctx, i.TenantName, i.ID)
			closed.Store(err == nil)
			if errors.Is(err, store.ErrUnsettled) {
				return nil
			}
			return err
		}
		_, err := l.Apply(w.ctx, Change(o, store.Completed, incident("second_effect")))
		return err
	})
	w.wantCases(o, "open second_effect incident")
	want(w, "a tombstone", w.read(o).Flags&store.FlagPurged != 0, closed.Load())
}

// close closes an intent, which must be possible.
func (w *world) close(i store.Intent) {
	w.Helper()
	w.must(w.Ledger.CloseIntent(w.ctx, i.TenantName, i.ID), "CloseIntent")
}

// settled makes an operation of the intent in each settled state.
func (w *world) settled(i store.Intent) []store.Operation {
	w.Helper()
	var all []store.Operation
	for _, state := range store.States() {
		if state.Settled() {
			all = append(all, w.standing(i, state))
		}
	}
	return all
}

// proposeAgain reads an intent by the names that it was proposed with.
func (w *world) proposeAgain(i store.Intent) store.Intent {
	w.Helper()
	proposed := IntentOf(i.TenantName, i.Subject, i.Task, i.Goal)
	got, err := w.Ledger.Intent(w.ctx, proposed)
	w.must(err, "Intent")
	want(w, "the intent", got.ID, i.ID)
	return got
}

// wantUnclosed requires that an intent can't be closed, and that nothing of it
// was changed.
func (w *world) wantUnclosed(i store.Intent) {
	w.Helper()
	err := w.Ledger.CloseIntent(w.ctx, i.TenantName, i.ID)
	if !errors.Is(err, store.ErrUnsettled) || !store.Unwritten(err) {
		w.Errorf("got the error %v, want ErrUnsettled", err)
	}
	got := w.proposeAgain(i)
	w.wantInstant("ClosedAt", got.ClosedAt, time.Time{})
	w.wantIntent(got, i)
}
