package settle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

func TestR54AnEventComesAgainUntilItIsTaken(t *testing.T) {
	onEachLedger(t, func(w *world) {
		in := inbox{refuse: func(d settle.Delivery) error {
			if d.Number < 3 {
				return errors.New("down")
			}
			return nil
		}}
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(&in))
		p.call(reserving("chair", "ann"))
		for range 3 {
			p.relays()
			w.age(time.Hour)
		}
		ids := map[string]bool{}
		for range 6 {
			p.relays()
			w.age(time.Hour)
		}
		for _, d := range in.received {
			ids[d.ID] = true
		}
		if got := strings.Join(in.types(), " "); got != "item.reserved customer.told settle.settled" || len(ids) != 3 {
			w.Errorf("got %q with %d ids", got, len(ids))
		}
	})
}

func TestR54WhatIsGivenUpWaitsForAnOperator(t *testing.T) {
	onEachLedger(t, func(w *world) {
		gone := true
		in := inbox{refuse: func(d settle.Delivery) error {
			if d.Type == "item.reserved" && gone {
				return settle.Rejected(errors.New("no such endpoint"))
			}
			return nil
		}}
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(&in))
		p.call(reserving("chair", "ann"))
		p.call(reserving("table", "ann"))
		p.relays()
		equal(w, "events delivered though an earlier one is dead", len(in.received), 0)
		ann := p.person("ann", "acme")
		dead, err := p.x.Queue().Undelivered(ann.ctx, settle.OutgoingEventFilter{Dead: true})
		if err != nil || len(dead) != 2 || dead[0].Type != "item.reserved" {
			w.Fatalf("dead events %+v, error %v", dead, err)
		}
		other := p.person("eve", "globex")
		if seen, err := p.x.Queue().Undelivered(other.ctx, settle.OutgoingEventFilter{}); err != nil || len(seen) != 0 {
			w.Errorf("another tenant's operator sees %+v, error %v", seen, err)
		}
		if err := p.x.Queue().Discard(other.ctx, "acme", dead[0].ID); err == nil {
			w.Error("another tenant's operator discards it")
		}
		gone = false
		if err := errors.Join(p.x.Queue().Redeliver(ann.ctx, "acme", dead[0].ID), p.x.Queue().Discard(ann.ctx, "acme", dead[1].ID)); err != nil {
			w.Fatal(err)
		}
		p.relays()
		if got := len(in.received); got != 3+2 {
			w.Errorf("%d events were delivered, want 3 and 2: %v", got, in.types())
		}
	})
}

func TestR54SeveralRelaysDeliverEachEvent(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var in inbox
		tools := settle.WithTools(publishing(func() error { return nil }))
		p := w.startWith(tools, settle.WithOutbox())
		for _, item := range []string{"a", "b", "c", "d", "e", "f"} {
			p.call(reserving(item, "ann"))
		}
		relays := []*process{w.startWith(tools, settle.WithOutbox(&in)), w.startWith(tools, settle.WithOutbox(&in))}
		var group sync.WaitGroup
		for _, r := range relays {
			group.Go(r.relays)
		}
		group.Wait()
		relays[0].relays() // what the other one had when this one ended
		of := map[string][]string{}
		for _, d := range in.received {
			of[d.Operation] = append(of[d.Operation], d.Type)
		}
		equal(w, "operations", len(of), 6)
		for _, types := range of {
			if got := strings.Join(types, " "); got != "item.reserved customer.told settle.settled" {
				w.Errorf("an operation's events came as %q", got)
			}
		}
	})
}

func TestR54RunDeliversAsSoonAsItIsPublished(t *testing.T) {
	onEachLedger(t, func(w *world) {
		events := make(chan settle.Delivery)
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(settle.ChannelSink(events)))
		ctx, stop := context.WithCancel(p.ctx)
		ended := make(chan error, 1)
		go func() { ended <- p.x.Run(ctx) }()
		p.call(reserving("chair", "ann"))
		for _, want := range []string{"item.reserved", "customer.told", settle.EventSettled} {
			if d := received(w, events); d.Type != want {
				w.Errorf("got %s, want %s", d.Type, want)
			}
		}
		stop()
		if err := received(w, ended); err != nil {
			w.Error(err)
		}
	})
}

func TestR54ARelayThatIsCalledOffBeginsNoMoreDeliveries(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox())
		for n := range 40 { // more than the relay delivers at the same time
			p.call(reserving(fmt.Sprint("chair ", n), "ann"))
		}
		ctx, stop := context.WithCancel(p.ctx)
		var offered atomic.Int32
		deaf := settle.SinkFunc(func(context.Context, settle.Delivery) error { // to its context
			offered.Add(1)
			stop()
			return nil
		})
		relay := w.startWith(settle.WithOutbox(deaf))
		if _, err := relay.x.Relay(ctx); err != nil {
			w.Fatal(err)
		}
		if n := offered.Load(); n > 32 {
			w.Errorf("%d events were offered, all but the first after the relay was called off", n)
		}
		// What wasn't offered is due at once.
		var in inbox
		w.startWith(settle.WithOutbox(&in)).relays()
		equal(w, "events", int(offered.Load())+len(in.received), 3*40)
	})
}
