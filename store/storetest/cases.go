package storetest

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func cases(s suite) {
	s.test("R39OneCaseIsOpenWhileAPersonIsNeeded", oneOpenCase)
	s.test("R39WhatIsRefusedOpensNoCase", func(w *world) {
		seen := w.record(w.intent())
		w.apply(Change(seen, store.Unknown))
		refused[*store.StaleError](w, Change(seen, store.Manual))
		w.wantCases(seen)
	})
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
	s.test("R39APersonMayBeNeededAgainAndAgain", func(w *world) {
		o := w.record(w.intent(), In(store.AwaitingApproval))
		for _, to := range []store.State{store.Retryable, store.AwaitingApproval, store.AwaitingApproval,
			store.Retryable, store.AwaitingApproval, store.Retryable, store.Manual, store.Manual, store.Unknown, store.Manual, store.Failed, store.Manual,
			store.Abandoned, store.Manual, store.Completed} {
			o = w.apply(Change(o, to))
		}
		w.verify(o)
	})
}

func decisions(s suite) {
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
	s.test("R41ADecisionThatIsSentTwiceAtOnceIsTakenOnce", func(w *world) {
		for range 4 {
			decisionRace(w)
		}
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

// decisionRace sends one decision several times at once.
func decisionRace(w *world) {
	seen := w.standing(w.intent(), store.Manual)
	c := Change(seen, store.Failed, func(c *store.Change) { c.Decision = uuid.New() })
	var taken atomic.Int32
	w.race(6, func(_ int, l store.Ledger) error {
		_, err := l.Apply(w.ctx, c)
		var stale *store.StaleError
		switch {
		case err == nil:
			taken.Add(1)
		case errors.As(err, &stale):
			want(w, "repeated", stale.Repeated, true)
			want(w, "the version", stale.Current.Version, seen.Version+1)
			return nil
		}
		return err
	})
	want(w, "decisions that were taken", taken.Load(), 1)
	w.verify(seen)
}

func oneOpenCase(w *world) {
	reason := func(r string) func(*store.Change) { return func(c *store.Change) { c.Reason = r } }
	o := w.record(w.intent(), In(store.AwaitingApproval), func(o *store.Operation) { o.Reason = "needs_approval" })
	w.wantCases(o, "open needs_approval")
	o = w.apply(Change(o, store.AwaitingApproval, reason("noted")))
	w.wantCases(o, "open needs_approval")
	o = w.apply(Change(o, store.Retryable))
	w.wantCases(o, "closed needs_approval")
	o = w.apply(Change(o, store.Manual, reason("exhausted")))
	w.wantCases(o, "closed needs_approval", "open exhausted")
	o = w.apply(Change(o, store.Manual, reason("noted")))
	w.wantCases(o, "closed needs_approval", "open exhausted")
	o = w.apply(Change(o, store.Failed))
	w.wantCases(o, "closed needs_approval", "closed exhausted")
	o = w.apply(Change(o, store.Manual, reason("late_success")))
	w.wantCases(o, "closed needs_approval", "closed exhausted", "open late_success")
	w.verify(o)
}

// wantCases compares what an operation's cases are about, in any order: several
// may be opened at one instant.
func (w *world) wantCases(o store.Operation, wanted ...string) {
	w.Helper()
	var got []string
	ids := map[uuid.UUID]bool{}
	for _, e := range w.casesOf(o) {
		c := e.Case
		text := "open " + c.Reason
		if !c.ClosedAt.IsZero() {
			text = "closed " + c.Reason
		}
		if c.Incident {
			text += " incident"
		}
		got = append(got, text)
		ids[c.ID] = true
		if c.Operation != o.ID || c.Tenant != o.Tenant || c.Tool != o.Tool || c.OpenedAt.IsZero() || c.ID == uuid.Nil {
			w.Errorf("a case doesn't say of what it is: %+v", c)
		}
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) || len(ids) != len(got) {
		w.Fatalf("the cases are %v, want %v", got, wanted)
	}
}
