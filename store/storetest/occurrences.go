package storetest

import (
	"github.com/settle-go/settle/store"
)

func occurrences(s suite) {
	s.test("R10TheNextNumberFollowsTheOneBefore", func(w *world) {
		i := w.intent()
		first := w.standing(i, store.Failed)
		second := w.won(Claim(Operation(i, On(first, 2)), After(first)))
		want(w, "the number", second.Number, 2)
		w.unchanged(first)
	})
	s.test("R10AGuardThatMovedOnRefusesAndShowsTheSlot", func(w *world) {
		i := w.intent()
		seen := w.standing(i, store.Failed)
		now := w.apply(Change(seen, store.Failed))
		c := Claim(Operation(i, On(seen, 2)), After(seen))
		a := w.claim(c)
		w.wantRefused(a, store.RefusedGuard)
		w.wantSlot(a, now)
		w.absent(c.Operation)
	})
	s.test("R9AGuardMayStandOnAnotherSlot", func(w *world) {
		i := w.intent()
		before := w.standing(i, store.Completed)
		other := w.standing(i, store.Completed, Tool("mail"))
		next := func(o *store.Operation) { o.Occurrence = 2 }
		w.won(Claim(Operation(i, next), After(before, other)))

		w.apply(Change(other, store.Completed))
		a := w.claim(Claim(Operation(i, next), After(before, other)))
		w.wantRefused(a, store.RefusedGuard)
		w.wantSlot(a)
	})
	s.test("R9AGuardOnAnOperationThatIsNotThereRefuses", func(w *world) {
		i := w.intent()
		unmade := Operation(i)
		for version := range 2 {
			unmade.Version = version
			w.wantRefused(w.claim(Claim(Operation(i), After(unmade))), store.RefusedGuard)
		}
	})
	s.test("R10WhatIsRecordedAnswersThoughGuardsMovedOn", func(w *world) {
		i := w.intent()
		first := w.standing(i, store.Failed)
		c := Claim(Operation(i, On(first, 2)), After(first))
		second := w.won(c)
		moved := w.apply(Change(first, store.Manual))
		w.wantWon(w.claim(c))
		w.wantRecorded(w.claim(Claim(Operation(i, On(first, 2)), After(first))), moved, second)
	})
	s.test("R10ALeaseThatIsRenewedBreaksNoGuard", func(w *world) {
		i := w.intent()
		seen := w.record(i)
		w.renew(2*Lease, held(seen))
		w.won(Claim(Operation(i), After(seen)))
	})
	s.test("R10GuardsAndClaimAreDecidedTogether", func(w *world) {
		for range 16 {
			guardRace(w)
		}
	})
}

// guardRace lets a claim meet a move of the row that it is guarded by. Who has
// moved the guard and then finds no claim can rely on it that none is made.
func guardRace(w *world) {
	i := w.intent()
	first := w.standing(i, store.Failed)
	var answer, look store.Claimed
	w.race(2, func(n int, l store.Ledger) (err error) {
		if n == 0 {
			if _, err := l.Apply(w.ctx, Change(first, store.Manual)); err != nil {
				return err
			}
			look, err = w.claimBy(l, Claim(Operation(i, On(first, 2)), Look))
			return err
		}
		answer, err = w.claimBy(l, Claim(Operation(i, On(first, 2)), After(first)))
		return err
	})
	want(w, "the state of the guard", w.read(first).State, store.Manual)
	if !answer.Won {
		w.wantRefused(answer, store.RefusedGuard)
	} else if len(look.Slot) < 2 {
		w.Error("a claim was made after its guard was seen to have moved on")
	}
}
