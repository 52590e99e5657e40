package storetest

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// closed: what becomes of the operations of a closed intent.
func closed(s suite) {
	s.test("R52TombstonesGoWithTheirJournalsWhenTheGraceIsOver", func(w *world) {
		i, other := w.intentOf("acme", "t-1"), w.intentOf("acme", "t-2")
		all := w.settled(i)
		kept := w.standing(other, store.Completed, On(all[0], 1))
		w.close(i)
		w.age(store.ClosedGrace - time.Minute)
		want(w, "operations that were removed within the grace", w.purgeAll(), 0)
		for _, o := range all {
			w.wantTombstone(w.read(o))
		}
		w.age(time.Minute)
		kept = w.read(kept)
		want(w, "operations that were removed", w.purgeAll(), len(all))
		for _, o := range all {
			w.wantGone(o)
		}
		want(w, "operations of the intent", len(w.inIntent(i)), 0)
		want(w, "operations that were removed again", w.purgeAll(), 0)
		w.unchanged(kept)
		w.verify(kept)
	})
	s.test("R52RetentionEndsNoGraceAndKeepsNothing", func(w *world) {
		i := w.intent()
		short, long := w.standing(i, store.Completed, keeps(time.Minute)), w.standing(i, store.Completed, keeps(0))
		w.close(i)
		w.age(store.ClosedGrace / 2)
		want(w, "operations that were removed within the grace", w.purgeAll(), 0)
		w.age(store.ClosedGrace / 2)
		want(w, "operations that were removed", w.purgeAll(), 2)
		w.wantGone(short)
		w.wantGone(long)
	})
	s.test("R52AnOpenIntentKeepsItsTombstonesForEver", func(w *world) {
		o := w.purged(w.intent(), store.Completed)
		w.age(1000 * store.ClosedGrace)
		want(w, "operations that were removed", w.purgeAll(), 0)
		w.wantTombstone(w.read(o))
	})
	s.test("R52WhoStillKnowsTheIntentMeetsItsTombstones", func(w *world) {
		i := w.intent()
		o := w.standing(i, store.Failed)
		w.close(i)
		w.age(store.ClosedGrace - time.Minute)
		w.purgeAll()
		row := w.read(o)
		w.wantRecorded(w.claim(Claim(Operation(i, On(o, 1)))), row)
		late := w.won(Claim(Operation(i, On(o, 2)), After(row)))
		w.age(time.Minute)
		want(w, "operations that were removed", w.purgeAll(), 1)
		w.wantGone(o)
		late = w.apply(Completion(w.read(late), "r-1"))
		want(w, "operations that were removed", w.purgeAll(), 1)
		w.wantGone(late)
	})
	s.test("R52DeletingWorksInPages", func(w *world) {
		i := w.intent()
		var all []store.Operation
		for range 7 {
			all = append(all, w.standing(i, store.Completed))
		}
		w.depart(i)
		var p store.Purge
		for n := 0; n < len(all); n += 3 {
			p.Limit = 3
			done := w.purge(p)
			want(w, "operations that were seen", done.Seen, min(3, len(all)-n))
			want(w, "operations that were removed", done.Removed, done.Seen)
			for k, o := range all {
				want(w, "gone", w.gone(o), k < n+done.Seen)
			}
			p.After = done.Next
		}
		want(w, "where it goes on", p.After, uuid.Nil)
	})
	s.test("R52SeveralPurgesAtOnceDeleteEachOperationOnce", func(w *world) {
		i := w.intent()
		var all []store.Operation
		for range 20 {
			all = append(all, w.standing(i, store.Completed))
		}
		w.depart(i)
		w.wantPurgedOnce(len(all))
		for _, o := range all {
			w.wantGone(o)
		}
	})
	s.test("R52ErasureDeletesNothing", func(w *world) {
		i := w.intent()
		o := w.standing(i, store.Completed)
		w.depart(i)
		o = w.read(o)
		want(w, "payloads that were removed", w.erase(i), 0)
		w.unchanged(o)
		want(w, "operations that were removed", w.purgeAll(), 1)
	})
}

// closedKeeps: what hangs on something open stays, as in an open intent.
func closedKeeps(s suite) {
	s.test("R51WhatWasReopenedIsNotDeleted", func(w *world) {
		i := w.intent()
		o := w.standing(i, store.Failed)
		w.close(i)
		o = w.apply(Change(w.read(o), store.Manual, because("late_success")))
		w.age(2 * store.ClosedGrace)
		o = w.read(o)
		want(w, "operations that were removed", w.purgeAll(), 0)
		w.unchanged(o)
		w.wantCases(o, "open late_success")
		o = w.apply(Change(o, store.Abandoned))
		want(w, "operations that were removed", w.purgeAll(), 1)
		w.wantGone(o)
	})
	s.test("R51WhatHangsOnSomethingReopenedIsNotDeleted", func(w *world) {
		i := w.intent()
		parent := w.standing(i, store.Failed, Tool("trip"))
		step := w.standing(i, store.Failed, Within(parent))
		undo := w.standing(i, store.Completed, Tool("undo"), Within(step))
		w.close(i)
		step = w.apply(Change(w.read(step), store.Manual))
		w.age(store.ClosedGrace)
		want(w, "operations that were removed", w.purgeAll(), 0)
		for _, o := range []store.Operation{parent, step, undo} {
			want(w, "gone", w.gone(o), false)
		}
		w.apply(Change(w.read(step), store.Failed))
		want(w, "operations that were removed", w.purgeAll(), 3)
	})
	s.test("R51AnOpenIncidentKeepsTheOperation", func(w *world) {
		i := w.intent()
		o := w.standing(i, store.Completed)
		w.close(i)
		o = w.apply(Change(w.read(o), store.Completed, incident("second_effect")))
		w.age(store.ClosedGrace)
		want(w, "operations that were removed", w.purgeAll(), 0)
		w.wantCases(o, "open second_effect incident")
		o = w.apply(Change(w.read(o), store.Completed, resolves))
		want(w, "operations that were removed", w.purgeAll(), 1)
		w.wantGone(o)
	})
	s.test("R52ADeletionAndAReopeningMeet", func(w *world) {
		for range 16 {
			deletionRace(w, store.Failed, func(of store.Operation) store.Change { return Change(of, store.Manual) })
		}
	})
	s.test("R52ADeletionAndAnIncidentMeet", func(w *world) {
		for range 16 {
			deletionRace(w, store.Completed, func(of store.Operation) store.Change {
				return Change(of, store.Completed, incident("second_effect"))
			})
		}
	})
}

// deletionRace lets an operation need a person while it is being deleted: it is
// gone as a whole, or there as a whole.
func deletionRace(w *world, in store.State, needs func(of store.Operation) store.Change) {
	i := w.intent()
	o := w.standing(i, in)
	w.depart(i)
	c := needs(w.read(o))
	var late bool
	w.race(2, func(n int, l store.Ledger) error {
		if n == 0 {
			_, err := w.purgeBy(l, store.Purge{})
			return err
		}
		_, err := l.Apply(w.ctx, c)
		if late = errors.Is(err, store.ErrNotFound); late {
			return nil
		}
		return err
	})
	if late {
		w.wantGone(o)
		return
	}
	after := w.read(o)
	wanted, _ := store.Next(c.Of, c, after.TailAt)
	w.wantRow(after, wanted)
	w.verify(after)
	want(w, "open cases", len(w.cases(store.CaseFilter{Operation: o.ID})), 1)
	// So that no later purge meets it open.
	settled := after.State
	if !settled.Settled() {
		settled = store.Failed
	}
	w.apply(Change(after, settled, resolves))
}

// closedStands: what stands in the way of others does so for ever.
func closedStands(s suite) {
	s.test("R14UniquenessOutlivesItsIntent", func(w *world) {
		for _, state := range store.States() {
			if !state.Settled() {
				continue
			}
			only, i := uniquely(), w.intent()
			o := w.standing(i, state, only)
			w.depart(i)
			w.purgeAll()
			if state == store.Failed {
				w.wantGone(o)
				w.record(w.intent(), only)
				continue
			}
			row := w.wantTombstone(w.read(o))
			a := w.claim(Claim(Operation(w.intent(), only)))
			w.wantRefused(a, store.RefusedUnique, row)
			want(w, "the intent's task", a.Others[0].Of.Task, "")
		}
	})
	s.test("R31WhatOvertookAnOlderWriteStillDoes", func(w *world) {
		for _, state := range []store.State{store.Completed, store.Superseded, store.Abandoned} {
			resource, i := SomeDigest(), w.intent()
			older := w.standing(w.intent(), store.Retryable, Writes(resource))
			newer := w.standing(i, state, Writes(resource))
			w.depart(i)
			w.purgeAll()
			row := w.wantTombstone(w.read(newer))
			want(w, "overtaken", refused[*store.BlockedError](w, Attempt(w.read(older))).Overtaken, true)
			look := w.claim(Claim(Operation(w.intent(), Writes(resource)), Look))
			if look.Newest == nil {
				w.Fatal("a look isn't shown the newest write")
			}
			w.wantRow(look.Newest.Operation, row)
		}
	})
	s.test("R31AWriteInDoubtStillBlocks", func(w *world) {
		resource := SomeDigest()
		lower := w.doubtful(store.Completed, Writes(resource))
		w.must(w.Ledger.CloseIntent(w.ctx, w.tenantOf(lower), lower.Intent), "CloseIntent")
		a := w.claim(Claim(Operation(w.intent(), Writes(resource))))
		want(w, "the state", a.Operation.State, store.Retryable)
		w.wantOthers(a.Others, w.wantTombstone(lower))
	})
	s.test("R31AFailedWriteGoes", func(w *world) {
		resource, i := SomeDigest(), w.intent()
		older := w.standing(w.intent(), store.Retryable, Writes(resource))
		failed := w.standing(i, store.Failed, Writes(resource))
		w.depart(i)
		want(w, "operations that were removed", w.purgeAll(), 1)
		w.wantGone(failed)
		w.apply(Attempt(w.read(older)))
	})
	s.test("R34WhatCompletedAnOperationStaysTaken", func(w *world) {
		byAttribute := func(c *store.Change) { c.ByAttribute = true }
		waiting, i := w.standing(w.intent(), store.Unknown), w.intent()
		all := []store.Operation{
			w.apply(Completion(w.record(i), "r-1")),
			w.apply(Completion(w.record(i), "r-1")),
			w.apply(Completion(w.record(i), "r-2", byAttribute)),
			w.standing(i, store.Failed),
		}
		w.depart(i)
		want(w, "operations that were removed", w.purgeAll(), len(all))
		for _, o := range all {
			w.wantGone(o)
		}
		waiting = w.read(waiting)
		refused[*store.ResourceTakenError](w, Completion(waiting, "r-1", byAttribute))
		refused[*store.ResourceTakenError](w, Completion(waiting, "r-2", byAttribute))
		w.apply(Completion(w.record(w.intent()), "r-1")) // R25: twice is no duplicate
		w.apply(Completion(w.standing(w.intent(), store.Unknown, Tool("mail")), "r-1", byAttribute))
		w.apply(Completion(waiting, "r-3", byAttribute))
	})
}

// depart closes an intent and lets its grace pass.
func (w *world) depart(i store.Intent) {
	w.Helper()
	w.close(i)
	w.age(store.ClosedGrace)
}

// wantGone requires that nothing is left of an operation.
func (w *world) wantGone(o store.Operation) {
	w.Helper()
	want(w, "gone", w.gone(o), true)
	want(w, "events that are left", len(w.journal(o)), 0)
	want(w, "cases that are left", len(w.casesOf(o)), 0)
	i := store.Intent{ID: o.Intent, Tenant: o.Tenant}
	for _, row := range w.claim(Claim(Operation(i, On(o, o.Number)), Look)).Slot {
		if row.ID == o.ID {
			w.Errorf("operation %s is still in its slot", o.ID)
		}
	}
}
