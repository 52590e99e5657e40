package settle_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// Several sinks of one outbox (R54).

func TestR54ASinkThatDoesntTakeAnEventKeepsItFromNoOther(t *testing.T) {
	for name, bad := range map[string]settle.SinkFunc{
		"fails":   func(context.Context, settle.Delivery) error { return errors.New("down") },
		"refuses": func(context.Context, settle.Delivery) error { return settle.Rejected(errors.New("never")) },
		"panics":  func(context.Context, settle.Delivery) error { panic("a sink") },
		"hangs": func(ctx context.Context, _ settle.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				var before, after inbox
				p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(&before, bad, &after))
				p.call(reserving("chair", "ann"))
				if _, err := p.x.Relay(p.ctx); err != nil {
					w.Fatal(err)
				}
				for _, good := range []*inbox{&before, &after} {
					if got := good.types(); len(got) != 1 || got[0] != "item.reserved" {
						w.Errorf("beside a sink that %s the other sinks got %v", name, got)
					}
				}
			})
		})
	}
}

func TestR54ASinkThatEndsItsGoroutineHasntTakenTheEvent(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var good inbox
		gone := settle.SinkFunc(func(context.Context, settle.Delivery) error { runtime.Goexit(); return nil })
		for _, sinks := range [][]settle.Sink{{gone}, {gone, &good}} {
			p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(sinks...))
			p.call(reserving("chair", "ann"))
			p.relays()
			events, err := p.x.Queue().Undelivered(p.person("ann", "acme").ctx, settle.OutgoingEventFilter{})
			if err != nil || len(events) == 0 || events[0].Type != "item.reserved" {
				w.Errorf("with %d sinks there wait %+v, error %v", len(sinks), events, err)
			}
			w.age(2 * time.Hour)
		}
	})
}

func TestR54SinksDontShareWhatTheyAreGiven(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var turn sync.Mutex
		var given []string
		spoils := settle.SinkFunc(func(_ context.Context, d settle.Delivery) error {
			turn.Lock()
			defer turn.Unlock()
			given = append(given, string(d.Data))
			clear(d.Data)
			return nil
		})
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(spoils, spoils))
		p.call(reserving("chair", "ann"))
		p.relays()
		if len(given) < 2 || given[0] != given[1] {
			w.Errorf("two sinks were given %q", given)
		}
	})
}

// An event is given up where nobody is left who may still take it.
func TestR54AnEventIsDeadOnceWhoDidntTakeItNeverWill(t *testing.T) {
	onEachLedger(t, func(w *world) {
		down := true
		refuses := settle.SinkFunc(func(context.Context, settle.Delivery) error { return settle.Rejected(errors.New("never")) })
		back := inbox{refuse: func(settle.Delivery) error {
			if down {
				return settle.NotSent(errors.New("down"), settle.RetryAfter(time.Hour))
			}
			return nil
		}}
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(refuses, &back))
		p.call(reserving("chair", "ann"))
		ann := p.person("ann", "acme")
		waiting := func() settle.OutgoingEvent {
			w.Helper()
			events, err := p.x.Queue().Undelivered(ann.ctx, settle.OutgoingEventFilter{})
			if err != nil || len(events) != 3 {
				w.Fatalf("waiting: %+v, error %v", events, err)
			}
			return events[0]
		}
		p.relays()
		if e := waiting(); e.Dead || time.Until(e.NextAt) < 50*time.Minute {
			w.Errorf("while one of two sinks asks for an hour the event is %+v", e)
		}
		down = false
		w.age(2 * time.Hour)
		p.relays()
		if e := waiting(); !e.Dead {
			w.Errorf("once one sink has it and the other never will the event is %+v", e)
		}
		equal(w, "events at the sink that was down", len(back.types()), 1)
	})
}

func TestR28NoWaitIsTooLongToBeCounted(t *testing.T) {
	onEachLedger(t, func(w *world) {
		for _, class := range []settle.Class{settle.Idempotent, settle.Read, settle.Unsafe} {
			tool := settle.Tool[reserveArgs, reserved]{Name: "reserve " + class.String(), Contract: settle.Contract{Class: class, NoLookup: true},
				Do: func(context.Context, settle.Op, reserveArgs) (reserved, error) {
					return reserved{}, settle.NotSent(errors.New("closed"), settle.RetryAfter(1<<63-1))
				}}
			p := w.start(tool)
			call := reserving("chair", "ann")
			call.Tool = tool.Name
			out := w.want(p.call(call), settle.StatusNotDone)
			if wait := time.Until(out.NotBefore); wait < 9*365*24*time.Hour {
				w.Errorf("%s: told to wait until %v", class, out.NotBefore)
			}
		}
	})
}
