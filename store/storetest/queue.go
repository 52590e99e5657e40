package storetest

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func queue(s suite) {
	s.test("R39ACaseComesWithItsOperation", func(w *world) {
		i := w.intent()
		before := w.record(i)
		o := w.apply(Change(before, store.Manual, because("exhausted")))
		e := w.openCase(o)
		want(w, "the operation", e.Case.Operation, o.ID)
		want(w, "the tenant", e.Case.Tenant, i.Tenant)
		want(w, "the tool", e.Case.Tool, "refund")
		want(w, "the reason", e.Case.Reason, "exhausted")
		want(w, "an incident", e.Case.Incident, false)
		want(w, "the holder", e.Case.Holder, "")
		want(w, "the proposal", len(e.Case.Proposal), 0)
		w.wantWithin("OpenedAt", e.Case.OpenedAt, before.Read, w.read(o).Read)
		w.wantInstant("ClosedAt", e.Case.ClosedAt, time.Time{})
		w.wantInstant("HeldAt", e.Case.HeldAt, time.Time{})
		w.wantRow(e.Entry.Operation, o)
		w.wantIntent(e.Entry.Of, i)
	})
	s.test("R39AClosedCaseKeepsWhatItSaid", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Manual, func(o *store.Operation) { o.Reason = "exhausted" }), store.Manual, takes("ann")))
		open := w.openCase(o).Case
		after := w.apply(Change(o, store.Failed))
		want(w, "open cases", len(w.cases(store.CaseFilter{Operation: o.ID})), 0)
		e := nth(w, "cases", w.casesOf(o), 0)
		w.wantWithin("ClosedAt", e.Case.ClosedAt, o.Read, w.read(after).Read)
		open.ClosedAt = e.Case.ClosedAt
		w.wantCase(e.Case, open)
		w.wantRow(e.Entry.Operation, after)
		want(w, "who has the operation", after.Taken, "")
	})
	s.test("R39WhatDoesntWaitForAPersonHasNoCase", func(w *world) {
		i := w.intent()
		for _, state := range store.States() {
			if o := w.standing(i, state); state != store.Abandoned {
				want(w, "cases of "+state.String(), len(w.casesOf(o)) > 0, state.NeedsCase())
			}
		}
		want(w, "cases of nothing", len(w.casesOf(Operation(i))), 0)
	})
	s.test("R39EveryFieldOfACaseFilterSelects", everyCaseFilter)
	s.test("R39TheQueueIsInTheOrderOfOpening", func(w *world) {
		i := w.intent()
		first, second, third := w.record(i), w.record(i), w.standing(i, store.AwaitingApproval)
		second = w.apply(Change(second, store.Manual))
		first = w.apply(Change(first, store.Manual))
		w.wantOrder(w.cases(store.CaseFilter{}), third, second, first)
	})
	s.test("R39ACaseIsOpenedOnceByACallThatIsRepeated", func(w *world) {
		c := Claim(Operation(w.intent(), In(store.AwaitingApproval)))
		for range 3 {
			w.won(c)
		}
		want(w, "cases", len(w.casesOf(c.Operation)), 1)
	})
}

func queuePages(s suite) {
	s.test("R39TheQueueIsReadPageByPage", func(w *world) {
		i := w.intent()
		var claims []store.Claim
		for range 7 { // of one call, so that several may be opened at one instant
			claims = append(claims, Claim(Operation(i, In(store.AwaitingApproval))))
		}
		w.claimAll(claims...)
		w.standing(i, store.Manual)
		all := w.cases(store.CaseFilter{})
		want(w, "cases", len(all), 8)
		f := store.CaseFilter{Limit: 3}
		for _, page := range [][]store.CaseEntry{all[:3], all[3:6], all[6:], nil} {
			got := w.cases(f)
			want(w, "cases of the page", len(got), len(page))
			for n := range page {
				w.wantCase(got[n].Case, page[n].Case)
				f.After = cursorOf(got[n])
			}
		}
	})
	s.test("R39WhatIsOpenedOrClosedMeanwhileMovesNoOther", func(w *world) {
		i := w.intent()
		var all []store.Operation
		for range 6 {
			all = append(all, w.standing(i, store.Manual))
		}
		f := store.CaseFilter{Limit: 2}
		page := w.cases(f)
		w.wantOrder(page, all[0], all[1])
		w.apply(Change(all[0], store.Failed))
		w.apply(Change(all[1], store.Failed)) // the cursor's own case
		w.apply(Change(all[3], store.Failed))
		last := w.standing(i, store.Manual)
		f.After = cursorOf(page[1])
		page = w.cases(f)
		w.wantOrder(page, all[2], all[4])
		f.After = cursorOf(page[1])
		page = w.cases(f)
		w.wantOrder(page, all[5], last)
	})
	s.test("R39WithoutALimitAPageHasAHundred", func(w *world) {
		i := w.intent()
		var claims []store.Claim
		for range 110 {
			claims = append(claims, Claim(Operation(i, In(store.AwaitingApproval))))
		}
		w.claimAll(claims...)
		want(w, "cases", len(w.cases(store.CaseFilter{})), 100)
		want(w, "cases with a higher limit", len(w.cases(store.CaseFilter{Limit: 105})), 105)
	})
	s.test("R39TheQueueIsThatOfEveryProcess", func(w *world) {
		o := w.standing(w.intent(), store.Manual)
		for _, l := range w.handles() {
			entries, err := l.Cases(w.ctx, store.CaseFilter{})
			w.must(err, "Cases")
			w.wantOrder(entries, o)
		}
	})
}

func everyCaseFilter(w *world) {
	acme, other := w.intentOf("acme", "t"), w.intentOf("umbrella", "t")
	old := w.standing(acme, store.Manual)
	w.age(2 * time.Hour)
	old = w.apply(Change(w.read(old), store.Manual, takes("ann")))
	approval := w.record(acme, Tool("mail"), In(store.AwaitingApproval), func(o *store.Operation) { o.Reason = "needs_approval" })
	incident := w.apply(Change(w.standing(acme, store.Completed), store.Completed, incident("second_effect")))
	foreign := w.apply(Change(w.standing(other, store.Manual), store.Manual, takes("bob")))
	done := w.apply(Change(w.standing(other, store.Manual), store.Failed))
	for name, c := range map[string]struct {
		filter store.CaseFilter
		rows   []store.Operation
	}{
		"all":            {store.CaseFilter{}, []store.Operation{old, approval, incident, foreign}},
		"tenant":         {store.CaseFilter{Tenant: "acme"}, []store.Operation{old, approval, incident}},
		"unknown tenant": {store.CaseFilter{Tenant: "Acme"}, nil},
		"operation":      {store.CaseFilter{Operation: approval.ID}, []store.Operation{approval}},
		"state":          {store.CaseFilter{States: []store.State{store.Manual}}, []store.Operation{old, foreign}},
		"states":         {store.CaseFilter{States: []store.State{store.Completed, store.AwaitingApproval}}, []store.Operation{approval, incident}},
		"tool":           {store.CaseFilter{Tool: "mail"}, []store.Operation{approval}},
		"reason":         {store.CaseFilter{Reason: "second_effect"}, []store.Operation{incident}},
		"holder":         {store.CaseFilter{Holder: "ann"}, []store.Operation{old}},
		"free":           {store.CaseFilter{Free: true}, []store.Operation{approval, incident}},
		"held and free":  {store.CaseFilter{Holder: "ann", Free: true}, nil},
		"age":            {store.CaseFilter{OlderThan: 2 * time.Hour}, []store.Operation{old}},
		"greater age":    {store.CaseFilter{OlderThan: 3 * time.Hour}, nil},
		"closed":         {store.CaseFilter{Closed: true}, []store.Operation{old, approval, incident, foreign, done}},
		"closed ones of": {store.CaseFilter{Closed: true, Tenant: "umbrella", States: []store.State{store.Failed}}, []store.Operation{done}},
		"limit":          {store.CaseFilter{Limit: 2}, []store.Operation{old, approval}},
		"together": {store.CaseFilter{Tenant: "acme", States: []store.State{store.Manual}, Tool: "refund", Holder: "ann", OlderThan: time.Hour, Limit: 5},
			[]store.Operation{old}},
	} {
		entries, err := w.Ledger.Cases(w.ctx, c.filter)
		w.must(err, "Cases by "+name)
		w.wantOrder(entries, c.rows...)
		for n, e := range entries {
			w.wantRow(e.Entry.Operation, w.read(c.rows[n]))
		}
	}
}

func because(reason string) func(*store.Change) {
	return func(c *store.Change) { c.Reason = reason }
}

func cursorOf(e store.CaseEntry) store.CaseCursor {
	return store.CaseCursor{OpenedAt: e.Case.OpenedAt, ID: e.Case.ID}
}

// cases selects cases and requires them to be in the order of the queue.
func (w *world) cases(f store.CaseFilter) []store.CaseEntry {
	w.Helper()
	entries, err := w.Ledger.Cases(w.ctx, f)
	w.must(err, "Cases")
	if !slices.IsSortedFunc(entries, func(a, b store.CaseEntry) int {
		return cmp.Or(a.Case.OpenedAt.Compare(b.Case.OpenedAt), bytes.Compare(a.Case.ID[:], b.Case.ID[:]))
	}) {
		w.Error("the cases aren't in the order of their opening, then id")
	}
	return entries
}

// casesOf gets an operation's cases, closed ones as well.
func (w *world) casesOf(o store.Operation) []store.CaseEntry {
	w.Helper()
	return w.cases(store.CaseFilter{Operation: o.ID, Closed: true, Limit: 1000})
}

// openCase gets the one open case of the operation.
func (w *world) openCase(o store.Operation) store.CaseEntry {
	w.Helper()
	open := w.cases(store.CaseFilter{Operation: o.ID})
	want(w, "open cases", len(open), 1)
	return nth(w, "open cases", open, 0)
}

func (w *world) wantCase(got, wanted store.Case) {
	w.Helper()
	for _, d := range caseDifferences(got, wanted) {
		w.Errorf("case %s: %s", got.ID, d)
	}
}

// wantOrder compares the operations of cases, in order.
func (w *world) wantOrder(got []store.CaseEntry, wanted ...store.Operation) {
	w.Helper()
	var entries []store.Entry
	for _, e := range got {
		if e.Entry.ID != e.Case.Operation || e.Case.ID == uuid.Nil {
			w.Error("a case comes with another operation than its own")
		}
		entries = append(entries, e.Entry)
	}
	w.wantIDs(entries, wanted...)
}

// wantWithin requires an instant of the ledger to lie between two others.
func (w *world) wantWithin(name string, got, early, late time.Time) {
	w.Helper()
	if got.Before(early) || got.After(late) {
		w.Errorf("%s is %v, want it between %v and %v", name, got, early, late)
	}
}
