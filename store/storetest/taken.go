package storetest

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle/store"
)

// takes gives the operation's case to an operator, or back to the queue where
// there is no name.
func takes(name string) func(*store.Change) {
	return func(c *store.Change) { c.Take = &name }
}

func takenCases(s suite) {
	s.test("R40ACaseIsTakenAndReleased", func(w *world) {
		for _, state := range []store.State{store.Manual, store.AwaitingApproval} {
			o := w.standing(w.intent(), state)
			for _, name := range []string{"ann", "", "operator é '1'", "bob", "ann"} {
				before := w.read(o)
				o = w.apply(Change(o, state, takes(name)))
				want(w, "who has the operation", o.Taken, name)
				want(w, "who has the operation as read", w.read(o).Taken, name)
				c := w.openCase(o).Case
				want(w, "the holder", c.Holder, name)
				if name != "" {
					w.wantWithin("HeldAt", c.HeldAt, before.Read, w.read(o).Read)
				}
			}
			w.verify(o)
		}
	})
	s.test("R40ACaseStaysTakenUntilItIsReleased", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Manual), store.Manual, takes("ann")))
		held := w.openCase(o).Case
		o = w.apply(Change(o, store.Manual, because("noted")))
		want(w, "who has the operation", o.Taken, "ann")
		w.wantCase(w.openCase(o).Case, held)
	})
	s.test("R25WhoHasTheCaseLosesItWithTheState", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Manual), store.Manual, takes("ann")))
		o = w.apply(Change(o, store.Unknown))
		want(w, "who has the operation", w.read(o).Taken, "")
		o = w.apply(Change(o, store.Manual))
		want(w, "who has the operation", w.read(o).Taken, "")
		c := w.openCase(o).Case
		want(w, "the holder of the new case", c.Holder, "")
		w.wantInstant("HeldAt", c.HeldAt, time.Time{})
		want(w, "cases that ann had", len(w.cases(store.CaseFilter{Operation: o.ID, Holder: "ann", Closed: true})), 1)
	})
	s.test("R40AnIncidentIsTaken", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Completed), store.Completed, incident("second_effect")))
		o = w.apply(Change(o, store.Completed, takes("ann")))
		want(w, "who has the operation", o.Taken, "ann")
		want(w, "the holder", w.openCase(o).Case.Holder, "ann")
	})
	s.test("R40TakingLeavesClosedCasesAlone", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Manual), store.Manual, takes("ann")))
		o = w.apply(Change(w.apply(Change(o, store.Failed)), store.Manual))
		o = w.apply(Change(o, store.Manual, takes("bob")))
		want(w, "cases of ann", len(w.cases(store.CaseFilter{Operation: o.ID, Holder: "ann", Closed: true})), 1)
		want(w, "cases of bob", len(w.cases(store.CaseFilter{Operation: o.ID, Holder: "bob", Closed: true})), 1)
	})
	s.test("R40WhatIsTakenWithAMoveIsTheCaseFromBefore", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Failed), store.Failed, incident("late_success")))
		o = w.apply(Change(o, store.Manual, takes("ann"), proposes([]byte("first"))))
		want(w, "who has the operation", o.Taken, "ann")
		w.wantHolders(o, "late_success ann first", "because  ")
		o = w.apply(Change(o, store.Failed, takes("bob"), proposes([]byte("second"))))
		want(w, "who has the operation", o.Taken, "bob")
		w.wantHolders(o, "late_success bob second", "because bob second")
		o = w.apply(Change(o, store.Failed, takes(""), proposes(nil), resolves))
		w.wantHolders(o, "late_success  ", "because bob second")
		w.wantCases(o, "closed late_success incident", "closed because")
	})
	s.test("R40TakingIsOfItsOwnOperation", func(w *world) {
		i := w.intent()
		other := w.standing(i, store.Manual)
		w.apply(Change(w.standing(i, store.Manual), store.Manual, takes("ann")))
		want(w, "the holder", w.openCase(other).Case.Holder, "")
		w.unchanged(other)
	})
	s.test("R41OneOfSeveralAtOnceTakesTheCase", func(w *world) {
		for range 4 {
			caseRace(w)
		}
	})
}

// wantHolders compares reasons, holders and proposals of an operation's cases.
func (w *world) wantHolders(o store.Operation, wanted ...string) {
	w.Helper()
	var got []string
	for _, e := range w.casesOf(o) {
		got = append(got, e.Case.Reason+" "+e.Case.Holder+" "+string(e.Case.Proposal))
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		w.Fatalf("the cases are %q, want %q", got, wanted)
	}
}

// caseRace lets operators take one case at once.
func caseRace(w *world) {
	o := w.standing(w.intent(), store.Manual)
	names := []string{"ann", "bob", "cem", "dee"}
	var taken atomic.Int32
	w.race(len(names), func(n int, l store.Ledger) error {
		row, err := l.Apply(w.ctx, Change(o, store.Manual, takes(names[n])))
		var stale *store.StaleError
		if errors.As(err, &stale) {
			return nil
		}
		if err == nil {
			taken.Add(1)
			want(w, "who has the operation", row.Taken, names[n])
		}
		return err
	})
	want(w, "operators who took the case", taken.Load(), 1)
	want(w, "the holder", w.openCase(o).Case.Holder, w.read(o).Taken)
}

func proposes(body []byte) func(*store.Change) {
	return func(c *store.Change) { c.Proposal = &body }
}

func proposals(s suite) {
	s.test("R41AProposalIsKeptWithTheOpenCase", func(w *world) {
		for _, state := range []store.State{store.Manual, store.AwaitingApproval} {
			before := w.standing(w.intent(), state)
			body := []byte("{\"kind\":\"fail\"}\x00\xff")
			o := w.apply(Change(before, state, proposes(body)))
			want(w, "the proposal", string(w.openCase(o).Case.Proposal), string(body))
			o = w.apply(Change(o, state)) // a note leaves it; its version says what it covered
			want(w, "the proposal", string(w.openCase(o).Case.Proposal), string(body))
			want(w, "who has the operation", o.Taken, "")
			w.verify(o)
		}
	})
	s.test("R41AProposalReplacesTheOneBefore", func(w *world) {
		o := w.standing(w.intent(), store.Manual)
		for _, body := range []string{"first", "second", ""} {
			o = w.apply(Change(o, store.Manual, proposes([]byte(body))))
			want(w, "the proposal", string(w.openCase(o).Case.Proposal), body)
		}
	})
	s.test("R41AProposalEndsWithItsCase", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Manual), store.Manual, proposes([]byte("fail"))))
		o = w.apply(Change(w.apply(Change(o, store.Unknown)), store.Manual))
		want(w, "the proposal of the new case", string(w.openCase(o).Case.Proposal), "")
	})
	s.test("R41WhatIsRefusedProposesNothing", func(w *world) {
		seen := w.standing(w.intent(), store.Manual)
		w.apply(Change(seen, store.Manual, proposes([]byte("first")), takes("ann")))
		refused[*store.StaleError](w, Change(seen, store.Manual, proposes([]byte("second")), takes("bob")))
		c := w.openCase(seen).Case
		want(w, "the proposal", string(c.Proposal), "first")
		want(w, "the holder", c.Holder, "ann")
	})
	s.test("R41TheLedgerKeepsBytesOfItsOwn", func(w *world) {
		body := []byte("first")
		o := w.apply(Change(w.standing(w.intent(), store.Manual), store.Manual, proposes(body)))
		copy(body, "other")
		shown := w.openCase(o).Case.Proposal
		want(w, "the proposal", string(shown), "first")
		copy(shown, "other")
		want(w, "the proposal", string(w.openCase(o).Case.Proposal), "first")
	})
}
