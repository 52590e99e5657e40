package storetest

import (
	"errors"

	"github.com/settle-go/settle/store"
)

func evidence(s suite) {
	byAttribute := func(c *store.Change) { c.ByAttribute = true }

	s.test("R34AResourceSettlesOneOperationByAttribute", func(w *world) {
		first := w.standing(w.intent(), store.Unknown)
		second := w.standing(w.intentOf("umbrella", "t"), store.Unknown)
		settled := w.apply(Completion(first, "r-1", byAttribute))
		want(w, "by attribute", settled.ByAttribute, true)
		refused[*store.ResourceTakenError](w, Completion(second, "r-1", byAttribute))
		w.apply(Completion(second, "r-2", byAttribute))
	})
	s.test("R34AResourceOfAnyCompletedOperationIsTaken", func(w *world) {
		first, second := w.standing(w.intent(), store.Unknown), w.standing(w.intent(), store.Unknown)
		w.apply(Completion(first, "r-1"))
		refused[*store.ResourceTakenError](w, Completion(second, "r-1", byAttribute))
		w.apply(Change(second, store.Manual))
	})
	s.test("R34TheResourceOfAnotherToolIsFree", func(w *world) {
		i := w.intent()
		w.apply(Completion(w.standing(i, store.Unknown, Tool("mail")), "r-1", byAttribute))
		w.apply(Completion(w.standing(i, store.Unknown), "r-1", byAttribute))
	})
	s.test("R34OnlyACompletionTakesAResource", func(w *world) {
		i := w.intent()
		w.apply(Completion(w.record(i), "r-1", byAttribute))
		o := w.standing(i, store.Unknown)
		for _, to := range []store.State{store.Unknown, store.Manual} {
			o = w.apply(Completion(o, "r-1", byAttribute, func(c *store.Change) { c.To = to }))
			want(w, "by attribute", o.ByAttribute, false)
		}
	})
	s.test("R25TheSameResourceTwiceIsNoDuplicate", func(w *world) {
		i := w.intent()
		w.apply(Completion(w.record(i), "r-1"))
		w.apply(Completion(w.record(i), "r-1"))
		w.apply(Completion(w.standing(i, store.Unknown), "r-2", byAttribute))
		w.apply(Completion(w.record(i), "r-2"))
	})
	s.test("R34OneOfSeveralAtOnceIsSettled", func(w *world) {
		for range 4 {
			evidenceRace(w)
		}
	})
}

func evidenceRace(w *world) {
	i := w.intent()
	resource := SomeDigest()
	open := make([]store.Operation, 8)
	for n := range open {
		open[n] = w.standing(i, store.Unknown)
	}
	errs := make([]error, len(open))
	w.race(len(open), func(n int, l store.Ledger) error {
		_, err := l.Apply(w.ctx, Completion(open[n], "r-1", func(c *store.Change) {
			c.ByAttribute, c.ResourceDigest = true, resource
		}))
		var taken *store.ResourceTakenError
		if errors.As(err, &taken) {
			errs[n], err = err, nil
		}
		return err
	})
	settled := 0
	for n, o := range open {
		if errs[n] == nil {
			settled++
			continue
		}
		w.unchanged(o)
	}
	want(w, "operations that one resource settles", settled, 1)
}
