package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

func TestR54EventsThatWereGivenUpAreAnOperators(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		var told []string
		refuse := errors.New("no such endpoint")
		sink := settle.SinkFunc(func(_ context.Context, d settle.Delivery) error {
			if refuse != nil {
				return settle.Rejected(refuse)
			}
			told = append(told, d.Operation)
			return nil
		})
		x, err := settle.New(w.ledger, settle.WithTools(w.tool("pay", settle.Contract{NoLookup: true})), settle.WithOutbox(sink), settle.Volatile())
		if err != nil {
			t.Fatal(err)
		}
		w.host = x
		first := w.call(inTask(t.Context(), "case-42"), "pay", "o-1", settle.StatusCompleted)
		second := w.call(inTask(t.Context(), "case-43"), "pay", "o-2", settle.StatusCompleted)
		relay := func() {
			if _, err := x.Relay(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		relay()
		type list struct{ Events []eventLine }
		dead := read[list](w, 0, "outbox", "list", "--dead").Events
		if len(dead) != 2 || dead[0].Operation != first || !dead[0].Dead || dead[0].Deliveries != 1 || dead[0].NextAt != nil {
			t.Fatalf("dead events: %+v", dead)
		}
		contains(t, w.run(0, "outbox", "list").out, dead[1].Event)
		if c := w.doctor().of(t, "outbox", odd); c.Said != "2 events given up: nobody was told" || c.Advice == "" {
			t.Errorf("doctor: %+v", c)
		}
		w.run(2, "outbox", "discard", dead[0].Event, "--tenant", "acme")
		w.run(2, "outbox", "retry", dead[0].Event)
		if f := failed(w, exitFailed, "outbox", "retry", dead[0].Event, "--tenant", "globex"); f.Code != "not_found" || !strings.Contains(f.Message, "no such event") {
			t.Errorf("another tenant's event: %+v", f)
		}
		w.run(0, "outbox", "discard", dead[0].Event, "--tenant", "acme", "--yes")
		w.run(0, "outbox", "retry", dead[1].Event, "--tenant", "acme")
		refuse = nil
		w.doctor().of(t, "outbox", good)
		w.age(time.Hour)
		if c := w.doctor().of(t, "outbox", odd); c.Said != "1 event due, and no process delivers" {
			t.Errorf("doctor: %+v", c)
		}
		relay()
		w.doctor().of(t, "outbox", good)
		if len(told) != 1 || told[0] != second {
			t.Errorf("told of %v, want %s", told, second)
		}
		if left := read[list](w, 0, "outbox", "list").Events; len(left) != 0 {
			t.Errorf("the outbox still has %+v", left)
		}
	})
}
