package settle_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/settle-go/settle"
)

// What is equal, and what isn't, under the canonical form.

// noteTool is raw: it opens a ticket with its arguments as they are.
func (d *desk) noteTool(schema string) settle.RawTool {
	return settle.RawTool{
		Name: "note", Schema: json.RawMessage(schema),
		Contract: contract(settle.Contract{WholeArguments: true, NoLookup: true}, nil),
		Do: func(ctx context.Context, op settle.Op, in json.RawMessage) (json.RawMessage, error) {
			k, err := d.tickets.Open(ctx, op.Reference(), string(in))
			return args(opened{k.ID}), known(err)
		},
	}
}

func note(raw string) settle.Call { return settle.Call{Tool: "note", Args: json.RawMessage(raw)} }

func TestS57WhatIsEqualAndWhatIsNot(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).noteTool(`{"type":"object"}`))
		// Each line is one call, written in different ways.
		effects := 0
		for _, same := range [][]string{
			{`{"n":1}`, `{"n":1.0}`, `{"n":1e0}`, `{"n":10e-1}`, `{ "n" : 1 }`},
			{`{"n":9007199254740992}`, `{"n":9007199254740992.0}`},
			{`{"n":9007199254740993}`},
			{`{"n":0}`, `{"n":-0}`, `{"n":-0.0}`, `{"n":0e9}`},
			{`{"n":0.1}`, `{"n":1e-1}`},
			{`{"n":0.1000000000000000055511151231257827}`},
			{`{"n":"1"}`},
			{`{"n":"é"}`, `{"n":"\u00e9"}`},
			{`{"n":"e\u0301"}`},
			{`{"n":"\ud83d\ude00"}`, `{"n":"😀"}`},
			{`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`},
			{`{"a":[1,2]}`},
			{`{"a":[2,1]}`},
		} {
			first := w.want(p.call(note(same[0])), settle.StatusCompleted)
			effects++
			for _, other := range same[1:] {
				out := w.wantReplay(p.call(note(other)), settle.StatusCompleted)
				equal(w, "the operation of "+other, out.Operation, first.Operation)
			}
			w.effects(w.tickets.Server, effects)
		}
		for _, refused := range []string{
			`{"n":"\udc00\ud800"}`, `{"n":"\ud800"}`, "{\"n\":\"\xff\"}", "{\"n\":\"\xed\xa0\x80\"}",
			`{"a":1,"\u0061":1}`, `{"n":{"a":1,"a":2}}`, `{"n":01}`, `{"n":1e999999999}`, `{"n":1`, `[1]`, `{"n":1} {}`,
		} {
			w.want(p.call(note(refused)), settle.StatusInvalidArguments)
		}
		w.effects(w.tickets.Server, effects)
		equal(w, "operations", len(w.rows()), effects)
	})
}

func TestS84RawToolsTellNullFromAbsent(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).noteTool(`{"type":"object","required":["amount"],"properties":{
			"amount":{"type":"string","format":"decimal"},"note":{"type":["string","null"]}}}`))
		w.want(p.call(note(`{"amount":"42.1","note":null}`)), settle.StatusCompleted)
		w.want(p.call(note(`{"amount":"42.1"}`)), settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)
		w.wantReplay(p.call(note(`{"amount":"42.10"}`)), settle.StatusCompleted)
		w.wantReplay(p.call(note(`{"note":null,"amount":"42.100"}`)), settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)
		w.want(p.call(note(`{"amount":"42.11"}`)), settle.StatusCompleted)
		w.effects(w.tickets.Server, 3)
	})
}
