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
	s.test("R52AClosedIntentsOperationsAreGoneWithTheirJournals", func(w *world) {
		i, other := w.intentOf("acme", "t-1"), w.intentOf("acme", "t-2")
		var all []store.Operation
		for _, state := range store.States() {
			if state.Settled() {
				all = append(all, w.standing(i, state))
			}
		}
		kept := w.standing(other, store.Completed, On(all[0], 1))
		w.close(i)
		for _, o := range all {
			w.absent(o)
			want(w, "cases", len(w.casesOf(o)), 0)
			w.wantRecorded(w.claim(Claim(Operation(i, On(o, 1)), Look)))
		}
		want(w, "operations of the intent", len(w.inIntent(i)), 0)
		w.unchanged(kept)
		w.verify(kept)
	})
	s.test("R52TombstonesGoWithTheirIntent", func(w *world) {
		i := w.intent()
		o := w.purged(i, store.Completed)
		w.close(i)
		w.absent(o)
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
		w.absent(o)
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
		w.apply(Change(o, store.Completed, resolves))
		w.close(i)
		w.absent(o)
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
		}
	})
}

// closingKeeps: what stands in the way of others for ever stays as a tombstone.
func closingKeeps(s suite) {
	s.test("R14UniquenessOutlivesItsIntent", func(w *world) {
		for _, state := range store.States() {
			if !state.Settled() {
				continue
			}
			only, i := uniquely(), w.intent()
			o := w.standing(i, state, only)
			w.close(i)
			if state == store.Failed {
				w.absent(o)
				w.record(w.intent(), only)
				continue
			}
			row := w.wantTombstone(o)
			a := w.claim(Claim(Operation(w.intent(), only)))
			w.wantRefused(a, store.RefusedUnique, row)
			want(w, "the intent's task", a.Others[0].Of.Task, "")
		}
	})
	s.test("R31WhatOvertookAnOlderWriteStillDoes", func(w *world) {
		resource, i := SomeDigest(), w.intent()
		older := w.standing(w.intent(), store.Retryable, Writes(resource))
		newer := w.standing(i, store.Completed, Writes(resource))
		w.close(i)
		row := w.wantTombstone(newer)
		want(w, "overtaken", refused[*store.BlockedError](w, Attempt(older)).Overtaken, true)
		look := w.claim(Claim(Operation(w.intent(), Writes(resource)), Look))
		if look.Newest == nil {
			w.Fatal("a look isn't shown the newest write")
		}
		w.wantRow(look.Newest.Operation, row)
	})
	s.test("R31AWriteInDoubtStillBlocks", func(w *world) {
		resource := SomeDigest()
		lower := w.doubtful(store.Completed, Writes(resource))
		w.must(w.Ledger.CloseIntent(w.ctx, w.tenantOf(lower), lower.Intent), "CloseIntent")
		a := w.claim(Claim(Operation(w.intent(), Writes(resource))))
		want(w, "the state", a.Operation.State, store.Retryable)
		w.wantOthers(a.Others, w.wantTombstone(lower))
	})
	s.test("R31AFailedWriteGoesWithItsIntent", func(w *world) {
		resource, i := SomeDigest(), w.intent()
		older := w.standing(w.intent(), store.Retryable, Writes(resource))
		failed := w.standing(i, store.Failed, Writes(resource))
		w.close(i)
		w.absent(failed)
		w.apply(Attempt(older))
	})
}

// closingRace lets a person reopen an operation of an intent that is being closed.
func closingRace(w *world) {
	i := w.intent()
	o := w.standing(i, store.Failed)
	var reopened, closed atomic.Bool
	w.race(2, func(n int, l store.Ledger) error {
		if n == 0 {
			err := l.CloseIntent(w.ctx, i.TenantName, i.ID)
			closed.Store(err == nil)
			if errors.Is(err, store.ErrUnsettled) {
				return nil
			}
			return err
		}
		_, err := l.Apply(w.ctx, Change(o, store.Manual))
		reopened.Store(err == nil)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	if reopened.Load() == closed.Load() || closed.Load() != w.gone(o) {
		w.Errorf("the intent was closed: %v, its operation was reopened: %v and is gone: %v", closed.Load(), reopened.Load(), w.gone(o))
	}
}

// close closes an intent, which must be possible.
func (w *world) close(i store.Intent) {
	w.Helper()
	w.must(w.Ledger.CloseIntent(w.ctx, i.TenantName, i.ID), "CloseIntent")
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
