package storetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/settle-go/settle/store"
)

func payloads(s suite) {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	bodies := map[string][]byte{
		"every byte": all,
		"NUL":        []byte("{\"a\":\"\\u0000\",\"b\":\"\x00\"}"),
		"broken":     []byte("\xff\xfe{\"a\":1,\"a\":2}"),
		"spaces":     []byte(" { \"b\" : 1.0 , \"a\" : 1e0 } \n"),
		"megabyte":   bytes.Repeat([]byte("settle\x00é"), 1<<20/9),
		"empty":      {},
	}
	s.test("R47ResultsComeBackByteForByte", func(w *world) {
		i := w.intent()
		for name, body := range bodies {
			o := w.apply(Completion(w.record(i), "r-"+name, func(c *store.Change) { c.Result = body }))
			if !bytes.Equal(o.Result, body) || !bytes.Equal(w.read(o).Result, body) {
				w.Errorf("the result %q came back changed", name)
			}
			w.verify(o)
		}
	})
	s.test("R29ArgumentsComeBackByteForByte", func(w *world) {
		i := w.intent()
		for name, body := range bodies {
			o := w.record(i, func(o *store.Operation) { o.Arguments, o.Fields = body, body })
			if got := w.read(o); !bytes.Equal(got.Arguments, body) || !bytes.Equal(got.Fields, body) {
				w.Errorf("the arguments %q came back changed", name)
			}
		}
	})
	s.test("R57BodiesOfEventsComeBackByteForByte", func(w *world) {
		o := w.standing(w.intent(), store.Manual)
		for name, body := range bodies {
			o = w.apply(Change(o, store.Manual, func(c *store.Change) { c.Body = body }))
			if e := w.event(o, o.Version); !bytes.Equal(e.Body, body) {
				w.Errorf("the body %q came back changed", name)
			}
		}
		w.verify(o)
	})
}

func texts(s suite) {
	s.test("R12TextsComeBackExactly", func(w *world) {
		i := w.intent()
		for _, text := range []string{"", " ", "null", "NULL", `\N`, `'"\`, "$1 ?1 :a", "é e\u0301", "東京", "\u202etxt", strings.Repeat("長", 700)} {
			o := w.record(i, func(o *store.Operation) { o.CallID = text })
			o = w.apply(Completion(o, text, func(c *store.Change) {
				c.ResourceDigest, c.Reason, c.Kind, c.Actor = SomeDigest(), text, text, text
				c.Checked, c.Verdict = true, text
			}))
			got := w.read(o)
			for name, field := range map[string]string{"CallID": got.CallID, "Resource": got.Resource, "Reason": got.Reason, "Verdict": got.Verdict} {
				want(w, name, field, text)
			}
			e := w.event(o, 2)
			want(w, "the event's texts", [3]string{e.Reason, e.Kind, e.Actor}, [3]string{text, text, text})
			w.verify(o)
		}
	})
	s.test("R12ToolNamesAreComparedExactly", exactTools)
	s.test("R21LongSpansComeBackExactly", func(w *world) {
		const year = 365 * 24 * time.Hour
		c := Claim(Operation(w.intent(), func(o *store.Operation) { o.Visibility, o.Escalate = 10*year, 100*year }))
		c.KeyWindow = 200 * year
		o := w.read(w.won(c))
		want(w, "the visibility", o.Visibility, 10*year)
		want(w, "the escalation", o.Escalate, 100*year)
		w.wantInstant("KeyUntil", o.KeyUntil, o.CreatedAt.Add(200*year))
		w.wantInstant("Moment", o.Moment, o.LeaseUntil.Add(10*year))
	})
	s.test("R47WhatACallerWritesLaterChangesNothing", callersKeepTheirBytes)
}

// exactTools claims under names that differ by little.
func exactTools(w *world) {
	i := w.intent()
	names := []string{"mail", "Mail", "mail ", "m%", "mai_", `'mail"`, `m\ail`, "mäil", "ma\u0308il", "東京"}
	for _, name := range names {
		o := w.won(Claim(Operation(i, Whole, Tool(name)), UnderHold()))
		entries, err := w.Ledger.List(w.ctx, store.Filter{Tool: name})
		w.must(err, "List")
		w.wantIDs(entries, o)
		want(w, "the tool", entries[0].Tool, name)
	}
	w.age(2 * Lease)
	taken := w.take(func(t *store.Take) { t.Except = names[1:] })
	want(w, "the only tool that isn't left out", nth(w, "rows", taken, 0).Tool, names[0])
	want(w, "rows that were taken", len(taken), 1)
}

// callersKeepTheirBytes writes into what it gave and into what it got.
func callersKeepTheirBytes(w *world) {
	i := w.intent()
	c := Claim(Operation(i))
	wantedArguments, wantedFields := string(c.Operation.Arguments), string(c.Operation.Fields)
	o := w.won(c)
	clear(c.Operation.Arguments)
	clear(o.Fields)
	want(w, "the arguments", string(w.read(o).Arguments), wantedArguments)
	want(w, "the fields", string(w.read(o).Fields), wantedFields)

	change := Completion(o, "r-1")
	o = w.apply(change)
	wanted := w.read(o)
	wanted.Arguments, wanted.Fields = bytes.Clone(wanted.Arguments), bytes.Clone(wanted.Fields)
	wanted.Trace, wanted.Result = bytes.Clone(wanted.Trace), bytes.Clone(wanted.Result)

	got := w.read(o)
	event := w.event(o, 2)
	for _, b := range [][]byte{
		c.Operation.Arguments, c.Operation.Fields, c.Operation.Trace, change.Result, change.Body,
		o.Arguments, o.Fields, o.Trace, o.Result, got.Arguments, got.Fields, got.Trace, got.Result, event.Body,
	} {
		clear(b)
	}
	w.wantRow(w.read(o), wanted)
	w.verify(o)

	proposed := NewIntent()
	first := w.propose(proposed)
	key := string(first.Key)
	clear(proposed.Key)
	clear(first.Key)
	again := w.propose(proposed)
	want(w, "the intent's key", string(again.Key), key)
}
