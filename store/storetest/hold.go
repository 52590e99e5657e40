package storetest

import (
	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func hold(s suite) {
	s.test("R30EveryUnsettledOperationHolds", func(w *world) {
		for _, state := range store.States() {
			i := w.intent()
			other := w.standing(i, state, Whole)
			if other.State.Settled() {
				continue
			}
			held := Claim(Operation(i, Whole), UnderHold())
			w.wantRefused(w.claim(held), store.RefusedHold, other)
			w.absent(held.Operation)
			w.unchanged(other)
		}
	})
}

func runs(s suite) {
	s.test("R30UnderOneRunOnlyUnsettledOnesHold", func(w *world) {
		for _, state := range store.States() {
			if !state.Settled() {
				continue
			}
			i, run := w.intent(), uuid.New()
			inRun := func(o *store.Operation) { o.Run = run }
			w.standing(i, state, Whole, inRun)
			w.won(Claim(Operation(i, Whole, inRun), UnderHold()))
		}
	})
	s.test("R30ACompletedOneOfAnotherRunHoldsUntilItWasTold", func(w *world) {
		i := w.intent()
		first, second := w.standing(i, store.Completed, Whole), w.standing(i, store.Completed, Whole)
		c := Claim(Operation(i, Whole))
		c.Hold = &store.Hold{Told: []uuid.UUID{uuid.New()}}
		w.wantRefused(w.claim(c), store.RefusedHold, first, second)
		c.Hold = &store.Hold{Told: []uuid.UUID{second.ID}}
		w.wantRefused(w.claim(c), store.RefusedHold, first)
		c.Hold = &store.Hold{Told: []uuid.UUID{first.ID, second.ID}}
		w.won(c)
	})
	s.test("R30ToldOnesHoldWhileTheyAreUnsettled", func(w *world) {
		i := w.intent()
		other := w.standing(i, store.Unknown, Whole)
		w.wantRefused(w.claim(Claim(Operation(i, Whole), UnderHold(other.ID))), store.RefusedHold, other)
	})
	s.test("R30OtherSettledStatesOfAnotherRunDontHold", func(w *world) {
		for _, state := range []store.State{store.Failed, store.Superseded, store.Abandoned} {
			i := w.intent()
			w.standing(i, state, Whole)
			w.won(Claim(Operation(i, Whole), UnderHold()))
		}
	})
	s.test("R30TheRunThatCountsIsThatOfTheLastAttempt", func(w *world) {
		i := w.intent()
		row := w.apply(Change(w.record(i, Whole), store.Retryable))
		started := w.apply(Attempt(row))
		w.apply(Completion(started, "r-1"))
		w.won(Claim(Operation(i, Whole, func(o *store.Operation) { o.Run = started.Run }), UnderHold()))
	})
}

func heldBatches(s suite) {
	s.test("R30CallsOfOneBatchDontHoldOneAnother", func(w *world) {
		i, batch := w.intent(), uuid.New()
		inBatch := func(o *store.Operation) { o.Batch = batch }
		w.won(Claim(Operation(i, Whole, inBatch), UnderHold()))
		w.won(Claim(Operation(i, Whole, inBatch), UnderHold()))
		for _, a := range w.claimAll(
			Claim(Operation(i, Whole, inBatch), UnderHold()),
			Claim(Operation(i, Whole, inBatch), UnderHold())) {
			w.wantWon(a)
		}
		w.wantRefused(w.claim(Claim(Operation(i, Whole), UnderHold())), store.RefusedHold, w.inIntent(i)...)
	})
	s.test("R30NoBatchIsNobodysBatch", func(w *world) {
		i := w.intent()
		alone := func(o *store.Operation) { o.Batch = uuid.Nil }
		first := w.won(Claim(Operation(i, Whole, alone), UnderHold()))
		w.wantRefused(w.claim(Claim(Operation(i, Whole, alone), UnderHold())), store.RefusedHold, first)
	})
	s.test("R30ManyMayHaveBeenTold", func(w *world) {
		i := w.intent()
		other := w.standing(i, store.Completed, Whole)
		var told []uuid.UUID
		for range 400 {
			told = append(told, uuid.New())
		}
		w.wantRefused(w.claim(Claim(Operation(i, Whole), UnderHold(told...))), store.RefusedHold, other)
		w.won(Claim(Operation(i, Whole), UnderHold(append(told, other.ID)...)))
	})
}

func notHeld(s suite) {
	s.test("R30OtherToolsAndIntentsDontHold", func(w *world) {
		i := w.intent()
		w.record(i, Whole, Tool("mail"))
		w.record(w.intent(), Whole)
		w.won(Claim(Operation(i, Whole), UnderHold()))
	})
	s.test("R30NumbersOfTheSameSlotDontHold", func(w *world) {
		i := w.intent()
		first := w.standing(i, store.Retryable, Whole)
		w.won(Claim(Operation(i, On(first, 2)), After(first), UnderHold()))
	})
	s.test("R30WithoutAHoldNothingHolds", func(w *world) {
		i := w.intent()
		w.record(i, Whole)
		w.won(Claim(Operation(i, Whole)))
	})
	s.test("R18WhatIsRecordedAnswersThoughOthersHold", func(w *world) {
		i := w.intent()
		first, _ := w.record(i, Whole), w.record(i, Whole)
		w.wantRecorded(w.claim(Claim(Operation(i, On(first, 1)), UnderHold())), first)
		mine := Claim(Operation(i, On(first, 1)), UnderHold())
		mine.Operation.Owner = first.Owner
		w.wantWon(w.claim(mine))
	})
	s.test("R30HoldAndClaimAreDecidedTogether", func(w *world) {
		for range 8 {
			holdRace(w)
		}
	})
}

// holdRace lets different calls of one whole-arguments tool meet: one is
// admitted, since it holds all others.
func holdRace(w *world) {
	i := w.intent()
	answers := make([]store.Claimed, 8)
	w.race(len(answers), func(n int, l store.Ledger) (err error) {
		answers[n], err = w.claimBy(l, Claim(Operation(i, Whole), UnderHold()))
		return err
	})
	won := 0
	for _, a := range answers {
		if a.Won {
			won++
		} else if a.Refused != store.RefusedHold || len(a.Others) != 1 {
			w.Errorf("a claim was refused with %d by %d others", a.Refused, len(a.Others))
		}
	}
	want(w, "claims that were won", won, 1)
}
