package storetest

import (
	"fmt"

	"github.com/settle-go/settle/store"
)

func declaredTools(s suite) {
	s.test("R40WhatIsDeclaredOfAToolIsKept", func(w *world) {
		for _, t := range []store.ToolRecord{
			{Tool: "refund", Deciders: 2, Guidance: "look at the ledger of 東京 'first'\n", ResultSchema: []byte(`{"type":"object", "a":1,"a":2}`)},
			{Tool: "mail", Deciders: 1},
			{Tool: "Refund"},
		} {
			w.must(w.Ledger.Declare(w.ctx, t), "Declare")
			for _, l := range w.handles() {
				w.wantTool(l, t)
			}
		}
	})
	s.test("R40TheLatestWordCounts", func(w *world) {
		first := store.ToolRecord{Tool: "refund", Deciders: 2, Guidance: "ask", ResultSchema: []byte("{}")}
		for _, t := range []store.ToolRecord{first, {Tool: "refund"}, first, {Tool: "refund", Deciders: 3, Guidance: "look"}} {
			w.must(w.Ledger.Declare(w.ctx, t), "Declare")
			w.wantTool(w.Ledger, t)
		}
	})
	s.test("R40SeveralAreDeclaredAtOnce", func(w *world) {
		mail := store.ToolRecord{Tool: "mail", Deciders: 1, Guidance: "look into the outbox"}
		last := store.ToolRecord{Tool: "refund", Deciders: 2}
		w.must(w.Ledger.Declare(w.ctx, store.ToolRecord{Tool: "refund", Deciders: 9, Guidance: "ask"}, mail, last), "Declare")
		w.wantTool(w.Ledger, mail)
		w.wantTool(w.Ledger, last)
		w.must(w.Ledger.Declare(w.ctx), "Declare")
		w.wantTool(w.Ledger, last)
	})
	s.test("R40AnUnknownToolHasAZeroRecord", func(w *world) {
		w.must(w.Ledger.Declare(w.ctx, store.ToolRecord{Tool: "mail", Deciders: 2}), "Declare")
		got, err := w.Ledger.Declared(w.ctx, "refund")
		w.must(err, "Declared")
		for _, d := range toolDifferences(got, store.ToolRecord{}) {
			w.Errorf("an unknown tool: %s", d)
		}
	})
	s.test("R40TheLedgerKeepsBytesOfItsOwn", func(w *world) {
		schema := []byte(`{"type":"object"}`)
		t := store.ToolRecord{Tool: "refund", ResultSchema: append([]byte(nil), schema...)}
		w.must(w.Ledger.Declare(w.ctx, t), "Declare")
		copy(t.ResultSchema, "other")
		got, err := w.Ledger.Declared(w.ctx, "refund")
		w.must(err, "Declared")
		want(w, "the schema", string(got.ResultSchema), string(schema))
		copy(got.ResultSchema, "other")
		t.ResultSchema = schema
		w.wantTool(w.Ledger, t)
	})
	s.test("R40ProcessesDeclareTheirToolsAtOnce", func(w *world) {
		tools := make([]store.ToolRecord, 20)
		for n := range tools {
			tools[n] = store.ToolRecord{Tool: fmt.Sprint("tool-", n), Deciders: n, Guidance: "ask"}
		}
		w.race(6, func(n int, l store.Ledger) error {
			own := append([]store.ToolRecord(nil), tools...)
			for a, b := 0, len(own)-1; n%2 == 1 && a < b; a, b = a+1, b-1 {
				own[a], own[b] = own[b], own[a]
			}
			return l.Declare(w.ctx, own...)
		})
		for _, t := range tools {
			w.wantTool(w.Ledger, t)
		}
	})
}

func (w *world) wantTool(l store.Ledger, wanted store.ToolRecord) {
	w.Helper()
	got, err := l.Declared(w.ctx, wanted.Tool)
	w.must(err, "Declared")
	for _, d := range toolDifferences(got, wanted) {
		w.Errorf("tool %s: %s", wanted.Tool, d)
	}
}
