package storetest

import (
	"errors"

	"github.com/settle-go/settle/store"
)

func unique(s suite) {
	s.test("R14ASecondOneIsRefusedOverIntents", func(w *world) {
		for _, state := range store.States() {
			only := uniquely()
			first := w.standing(w.intent(), state, only)
			if state == store.Failed {
				continue
			}
			second := Claim(Operation(w.intent(), only))
			w.wantRefused(w.claim(second), store.RefusedUnique, first)
			w.absent(second.Operation)
			w.unchanged(first)
		}
	})
	s.test("R14FailedOnesDontCount", func(w *world) {
		only := uniquely()
		for range 3 {
			w.standing(w.intent(), store.Failed, only)
		}
		last := w.record(w.intent(), only)
		w.wantRefused(w.claim(Claim(Operation(w.intent(), only))), store.RefusedUnique, last)
	})
	s.test("R14NoDigestNoLimit", func(w *world) {
		i := w.intent()
		w.record(i)
		w.record(i)
	})
	s.test("R14WhatIsRecordedAnswersFirst", func(w *world) {
		i, only := w.intent(), uniquely()
		c := Claim(Operation(i, only))
		first := w.won(c)
		w.wantWon(w.claim(c))
		w.wantRecorded(w.claim(Claim(Operation(i, On(first, 1)))), first)
	})
	s.test("R14AFailedOneCantComeBackWhenTheDigestIsTaken", func(w *world) {
		only := uniquely()
		first := w.standing(w.intent(), store.Failed, only)
		w.apply(Change(first, store.Failed))
		first = w.read(first)
		second := w.record(w.intent(), only)
		refused[*store.ResourceTakenError](w, Change(first, store.Manual))
		w.apply(Change(first, store.Failed)) // a note is no return

		w.apply(Change(second, store.Failed))
		back := w.apply(Change(w.read(first), store.Manual))
		w.wantRefused(w.claim(Claim(Operation(w.intent(), only))), store.RefusedUnique, back)
	})
	s.test("R14OneOfSeveralAtOnceIsAdmitted", func(w *world) {
		for range 4 {
			uniqueRace(w)
		}
	})
	s.test("R14AReturnAndAClaimAreDecidedTogether", func(w *world) {
		for range 8 {
			returnRace(w)
		}
	})
}

// uniquely gives operations one digest of their tool and identity.
func uniquely() func(*store.Operation) {
	d := SomeDigest()
	return func(o *store.Operation) { o.Unique = d }
}

// returnRace lets a failed operation come back while another one is claimed.
func returnRace(w *world) {
	only, next := uniquely(), w.intent()
	failed := w.standing(w.intent(), store.Failed, only)
	var answer store.Claimed
	var taken *store.ResourceTakenError
	w.race(2, func(n int, l store.Ledger) (err error) {
		if n == 0 {
			answer, err = w.claimBy(l, Claim(Operation(next, only)))
			return err
		}
		if _, err = l.Apply(w.ctx, Change(failed, store.Manual)); errors.As(err, &taken) {
			return nil
		}
		return err
	})
	if back := taken == nil; back == answer.Won {
		w.Errorf("the failed operation came back: %v, and the new one was admitted: %v", back, answer.Won)
	}
}

func uniqueRace(w *world) {
	only := uniquely()
	intents := make([]store.Intent, 8)
	for n := range intents {
		intents[n] = w.intent()
	}
	answers := make([]store.Claimed, len(intents))
	w.race(len(answers), func(n int, l store.Ledger) (err error) {
		answers[n], err = w.claimBy(l, Claim(Operation(intents[n], only)))
		return err
	})
	var winner store.Operation
	for _, a := range answers {
		if a.Won && winner.Version > 0 {
			w.Error("two operations hold one unique digest")
		}
		if a.Won {
			winner = a.Operation
		}
	}
	for _, a := range answers {
		if !a.Won {
			w.wantRefused(a, store.RefusedUnique, winner)
		}
	}
}
