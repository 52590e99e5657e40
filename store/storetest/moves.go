package storetest

import (
	"errors"

	"github.com/settle-go/settle/store"
)

func moves(s suite) {
	s.test("R20TheLedgerMakesEveryMoveOfTheTableAndNoOther", everyMove)
	s.test("R20ARowThatMovedOnIsLeftAlone", func(w *world) {
		seen := w.record(w.intent())
		now := w.apply(Change(seen, store.Unknown))
		for _, to := range []store.State{store.Completed, store.Unknown, store.Retryable, store.Running} {
			stale := refused[*store.StaleError](w, Change(seen, to))
			w.wantRow(stale.Current, now)
			want(w, "repeated", stale.Repeated, false)
		}
		w.verify(seen)
	})
	s.test("R20AVersionOfTheFutureIsStale", func(w *world) {
		o := w.record(w.intent())
		ahead := o
		ahead.Version++
		w.wantRow(refused[*store.StaleError](w, Change(ahead, store.Unknown)).Current, o)
	})
	s.test("R20StateAndTailGuardTheWrite", func(w *world) {
		o := w.standing(w.intent(), store.Completed)
		wrong := o
		wrong.State = store.Unknown
		refused[*store.StaleError](w, Change(wrong, store.Running))
		wrong = o
		wrong.Tail[0]++
		refused[*store.StaleError](w, Change(wrong, store.Completed))
	})
	s.test("R20WhatIsNotThereCantMove", func(w *world) {
		i := w.intent()
		_, err := w.Ledger.Apply(w.ctx, Change(Operation(i), store.Unknown))
		if !errors.Is(err, store.ErrNotFound) {
			w.Errorf("got the error %v, want ErrNotFound", err)
		}
	})
	s.test("R20OneOfSeveralMovesAtOnceIsMade", func(w *world) {
		for range 4 {
			moveRace(w)
		}
	})
}

// everyMove tries all pairs of states.
func everyMove(w *world) {
	i := w.intent()
	for _, from := range store.States() {
		for _, to := range store.States() {
			o := w.standing(i, from)
			move := store.Move{From: from, To: to}
			if !move.Allowed() {
				want(w, "the move", refused[*store.MoveError](w, Change(o, to)).Move, move)
				continue
			}
			after := w.apply(Change(o, to))
			want(w, "the state", after.State, to)
			want(w, "the version", after.Version, o.Version+1)
			w.wantRow(w.read(o), after)
			w.verify(o)
		}
	}
}

// moveRace lets several moves of one row meet.
func moveRace(w *world) {
	seen := w.record(w.intent())
	errs := make([]error, 8)
	w.race(len(errs), func(n int, l store.Ledger) error {
		_, err := l.Apply(w.ctx, Change(seen, []store.State{store.Completed, store.Unknown}[n%2]))
		var stale *store.StaleError
		if errors.As(err, &stale) {
			errs[n], err = err, nil
		}
		return err
	})
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		}
	}
	want(w, "moves that were made", made, 1)
	want(w, "the version", w.read(seen).Version, 2)
	w.verify(seen)
}
