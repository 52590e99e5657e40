package storetest

import (
	"github.com/settle-go/settle/store"
)

func audits(s suite) {
	s.test("R57WhatChangedNothingIsAudited", func(w *world) {
		o := w.record(w.intent())
		w.must(w.Ledger.Audit(w.ctx), "Audit")
		given := []store.Audit{
			{Operation: o.ID, Kind: "conflict", Actor: "executor", Detail: "order"},
			{Operation: o.ID, Kind: "conflict", Actor: "executor", Detail: "order"},
			{Operation: o.ID, Kind: "decision_refused", Actor: "operator é '1'", Detail: ""},
		}
		w.must(w.Ledger.Audit(w.ctx, append(given, store.Audit{Kind: "refused", Actor: "executor"})...), "Audit")
		w.unchanged(o)
		w.wantAudits(o, given...)
		for _, a := range w.audits(o) {
			w.wantWithin("At", a.At, o.Read, w.read(o).Read)
		}
	})
	s.test("R57AuditsComeOldestFirst", func(w *world) {
		o := w.record(w.intent())
		var given []store.Audit
		for _, kind := range []string{"reveal", "conflict", "held", "conflict"} {
			a := store.Audit{Operation: o.ID, Kind: kind, Actor: "executor"}
			w.must(w.Ledger.Audit(w.ctx, a), "Audit")
			given = append(given, a)
		}
		w.wantAudits(o, given...)
		all := w.audits(o)
		for n := 1; n < len(all); n++ {
			if all[n].At.Before(all[n-1].At) {
				w.Error("a row is dated before the one before it")
			}
		}
	})
	s.test("R57AuditsAreOfTheirOperation", func(w *world) {
		i := w.intent()
		first, second := w.record(i), w.record(i)
		a := store.Audit{Operation: first.ID, Kind: "conflict", Actor: "executor"}
		w.must(w.Ledger.Audit(w.ctx, a), "Audit")
		w.wantAudits(first, a)
		w.wantAudits(second)
		w.wantAudits(Operation(i))
	})
	s.test("R57WhatWasDoneToNoOneOperationIsListed", func(w *world) {
		o := w.record(w.intent())
		given := []store.Audit{{Kind: "erase", Actor: "operator:ann"}, {Kind: "erased", Actor: "operator:ann", Detail: "removed from 2 operations"}}
		w.must(w.Ledger.Audit(w.ctx, given[0], store.Audit{Operation: o.ID, Kind: "conflict", Actor: "caller"}), "Audit")
		w.must(w.Ledger.Audit(w.ctx, given[1]), "Audit")
		w.wantAudits(store.Operation{}, given...)
	})
	s.test("R57TheLedgerDatesARow", func(w *world) {
		o := w.record(w.intent())
		w.must(w.Ledger.Audit(w.ctx, store.Audit{Operation: o.ID, Kind: "reveal", At: o.CreatedAt.AddDate(-9, 0, 0)}), "Audit")
		w.wantWithin("At", nth(w, "audit rows", w.audits(o), 0).At, o.Read, w.read(o).Read)
	})
}

func (w *world) audits(o store.Operation) []store.Audit {
	w.Helper()
	rows, err := w.Ledger.Audits(w.ctx, o.ID)
	w.must(err, "Audits")
	return rows
}

// wantAudits compares the rows on an operation but for their instants.
func (w *world) wantAudits(o store.Operation, wanted ...store.Audit) {
	w.Helper()
	got := w.audits(o)
	if len(got) != len(wanted) {
		w.Fatalf("got %d audit rows, want %d", len(got), len(wanted))
	}
	for n, a := range wanted {
		a.At = got[n].At
		want(w, "the audit row", got[n], a)
	}
}
