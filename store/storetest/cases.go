package storetest

import (
	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// The interface shows cases by the states that need one; the ledgers' own tests
// look into their tables.
func cases(s suite) {
	s.test("R39WhatAPersonSettlesIsListedByState", func(w *world) {
		i := w.intent()
		all := map[store.State]store.Operation{}
		for _, state := range store.States() {
			all[state] = w.standing(i, state)
		}
		entries, err := w.Ledger.List(w.ctx, store.Filter{Tenant: i.TenantName, States: []store.State{store.Manual, store.AwaitingApproval}})
		w.must(err, "List")
		w.wantIDs(entries, all[store.AwaitingApproval], all[store.Manual])
	})
	s.test("R39ACaseMayBeOpenedAndClosedAgainAndAgain", func(w *world) {
		o := w.record(w.intent(), In(store.AwaitingApproval))
		for _, to := range []store.State{store.Retryable, store.AwaitingApproval, store.AwaitingApproval,
			store.Retryable, store.Manual, store.Manual, store.Unknown, store.Manual, store.Failed, store.Manual,
			store.Abandoned, store.Manual, store.Completed} {
			o = w.apply(Change(o, to))
		}
		w.verify(o)
	})
	s.test("R25IncidentsOpenOnWhatStaysSettled", func(w *world) {
		o := w.standing(w.intent(), store.Completed)
		for range 2 {
			o = w.apply(Change(o, store.Completed, func(c *store.Change) { c.Incident = "late_success" }))
			want(w, "the state", o.State, store.Completed)
		}
		w.verify(o)
	})
	s.test("R41ADecisionIsTakenOnce", func(w *world) {
		seen := w.standing(w.intent(), store.Manual)
		decision := uuid.New()
		decide := func(of store.Operation, to store.State) store.Change {
			return Change(of, to, func(c *store.Change) { c.Decision = decision })
		}
		decided := w.apply(decide(seen, store.Abandoned))
		stale := refused[*store.StaleError](w, decide(seen, store.Abandoned))
		want(w, "repeated", stale.Repeated, true)
		w.wantRow(stale.Current, decided)
		stale = refused[*store.StaleError](w, decide(decided, store.Manual))
		want(w, "repeated", stale.Repeated, true)
		w.wantRow(stale.Current, decided)
	})
	s.test("R41AnotherDecisionOnAnOldVersionIsStale", func(w *world) {
		seen := w.standing(w.intent(), store.Manual)
		decide := func() store.Change {
			return Change(seen, store.Failed, func(c *store.Change) { c.Decision = uuid.New() })
		}
		w.apply(decide())
		want(w, "repeated", refused[*store.StaleError](w, decide()).Repeated, false)
	})
	s.test("R41ADecisionIsOneOfItsOperation", func(w *world) {
		i, decision := w.intent(), uuid.New()
		for range 2 {
			w.apply(Change(w.standing(i, store.Manual), store.Failed, func(c *store.Change) { c.Decision = decision }))
		}
	})
	s.test("R41NoDecisionIsRecordedAgainAndAgain", func(w *world) {
		o := w.standing(w.intent(), store.Manual)
		for range 3 {
			o = w.apply(Change(o, store.Manual))
			want(w, "the decision", w.event(o, o.Version).Decision, uuid.Nil)
		}
	})
}
