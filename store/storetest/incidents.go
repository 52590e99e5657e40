package storetest

import (
	"github.com/settle-go/settle/store"
)

func incidents(s suite) {
	s.test("R25AnIncidentIsACaseOfItsOwn", func(w *world) {
		o := w.standing(w.intent(), store.Completed)
		w.wantCases(o)
		o = w.apply(Change(o, store.Completed, incident("second_effect")))
		w.wantCases(o, "open second_effect incident")
		o = w.apply(Change(o, store.Completed, incident("third_effect")))
		w.wantCases(o, "open second_effect incident", "open third_effect incident")
		w.verify(o)
	})
	s.test("R25AnIncidentStaysOpenWhenTheStatesCaseIsClosed", func(w *world) {
		o := w.standing(w.intent(), store.Failed)
		o = w.apply(Change(o, store.Failed, incident("late_success")))
		o = w.apply(Change(o, store.Manual))
		w.wantCases(o, "open late_success incident", "open because")
		o = w.apply(Change(o, store.Completed))
		w.wantCases(o, "open late_success incident", "closed because")
	})
	s.test("R39AnIncidentMayBeOpenOnEverySettledState", func(w *world) {
		i := w.intent()
		for _, state := range store.States() {
			if !state.Settled() {
				continue
			}
			before := w.standing(i, state)
			after := w.apply(Change(before, state, incident("late_success")))
			want(w, "the state", after.State, state)
			w.wantInstant("SettledAt", after.SettledAt, before.SettledAt)
			e := nth(w, "incidents", w.cases(store.CaseFilter{Operation: after.ID, Reason: "late_success"}), 0)
			want(w, "an incident", e.Case.Incident, true)
			w.wantWithin("OpenedAt", e.Case.OpenedAt, before.Read, w.read(after).Read)
		}
	})
	s.test("R40ResolvingClosesEveryOpenIncident", func(w *world) {
		o := w.standing(w.intent(), store.Completed)
		o = w.apply(Change(o, store.Completed, incident("second_effect")))
		o = w.apply(Change(o, store.Completed, incident("third_effect")))
		resolved := w.apply(Change(o, store.Completed, resolves))
		w.wantCases(resolved, "closed second_effect incident", "closed third_effect incident")
		for _, e := range w.casesOf(resolved) {
			w.wantWithin("ClosedAt", e.Case.ClosedAt, o.Read, w.read(resolved).Read)
		}
		again := w.apply(Change(resolved, store.Completed, incident("fourth_effect")))
		w.wantCases(again, "closed second_effect incident", "closed third_effect incident", "open fourth_effect incident")
		w.verify(again)
	})
	s.test("R39ResolvingLeavesTheStatesCaseOpen", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Failed), store.Failed, incident("late_success")))
		o = w.apply(Change(o, store.Manual))
		o = w.apply(Change(o, store.Manual, resolves))
		w.wantCases(o, "closed late_success incident", "open because")
	})
	s.test("R40ResolvingNothingIsANote", func(w *world) {
		i := w.intent()
		settled := w.apply(Change(w.standing(i, store.Completed), store.Completed, resolves))
		w.wantCases(settled)
		waiting := w.apply(Change(w.standing(i, store.Manual), store.Manual, resolves))
		w.wantCases(waiting, "open because")
	})
	s.test("R40AnAttemptLeavesCasesAlone", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Failed), store.Failed, incident("late_success")))
		o = w.apply(Change(o, store.Failed, takes("ann"), proposes([]byte("first"))))
		o = w.apply(Change(w.apply(Change(o, store.Manual)), store.Retryable))
		before := w.openCase(o).Case
		o = w.applyAsNext(Attempt(o, takes("bob"), proposes([]byte("second")), resolves, incident("second_effect")))
		w.wantCases(o, "open late_success incident", "closed because")
		w.wantCase(w.openCase(o).Case, before)
	})
	s.test("R40ResolvingIsOfItsOwnOperation", func(w *world) {
		i := w.intent()
		other := w.apply(Change(w.standing(i, store.Completed), store.Completed, incident("second_effect")))
		w.apply(Change(w.standing(i, store.Completed), store.Completed, resolves))
		w.wantCases(other, "open second_effect incident")
	})
	s.test("R41WhatIsRefusedResolvesNothing", func(w *world) {
		seen := w.apply(Change(w.standing(w.intent(), store.Completed), store.Completed, incident("second_effect")))
		w.apply(Change(seen, store.Completed))
		refused[*store.StaleError](w, Change(seen, store.Completed, resolves, incident("third_effect")))
		w.wantCases(seen, "open second_effect incident")
	})
}

func incident(reason string) func(*store.Change) {
	return func(c *store.Change) { c.Incident = reason }
}

func resolves(c *store.Change) { c.Resolve = true }
