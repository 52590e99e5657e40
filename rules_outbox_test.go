package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store/memory"
)

// Events that leave through the outbox (R54).

// inbox is a sink that remembers what it was given.
type inbox struct {
	mu       sync.Mutex
	received []settle.Delivery
	// refuse answers a delivery; nil takes it.
	refuse func(d settle.Delivery) error
}

func (i *inbox) Deliver(_ context.Context, d settle.Delivery) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refuse != nil {
		if err := i.refuse(d); err != nil {
			return err
		}
	}
	i.received = append(i.received, d)
	return nil
}

func (i *inbox) types() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var types []string
	for _, d := range i.received {
		types = append(types, d.Type)
	}
	return types
}

// relays makes passes of the relay until nothing is due.
func (p *process) relays() {
	p.Helper()
	for {
		report, err := p.x.Relay(p.ctx)
		if err != nil {
			p.Fatal(err)
		}
		if report.Fetched == 0 {
			return
		}
	}
}

func dataOf(t testing.TB, d settle.Delivery) (data settle.EventData) {
	t.Helper()
	if err := json.Unmarshal(d.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data
}

// publishing is a tool that publishes before it returns.
func publishing(result func() error) settle.AnyTool {
	return settle.Tool[reserveArgs, reserved]{Name: "reserve", Contract: settle.Contract{NoLookup: true},
		Do: func(_ context.Context, op settle.Op, in reserveArgs) (reserved, error) {
			for _, kind := range []string{"item.reserved", "customer.told"} {
				if err := op.Publish(settle.Event{Type: kind, Data: map[string]string{"item": in.Item}}); err != nil {
					return reserved{}, err
				}
			}
			return reserved{ID: in.Item}, result()
		}}
}

func TestR54WhatAHandlerPublishesGoesWithItsRecordedReturn(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want []string
	}{
		"completed": {nil, []string{"item.reserved", "customer.told", settle.EventSettled}},
		"refused":   {settle.Rejected(errors.New("sold")), []string{"item.reserved", "customer.told", settle.EventSettled}},
		"not sent":  {settle.NotSent(errors.New("no route")), nil},
		"unknown":   {errors.New("reset"), []string{settle.EventCaseOpened}},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				var in inbox
				p := w.startWith(settle.WithTools(publishing(func() error { return tc.err })), settle.WithOutbox(&in))
				out := p.call(reserving("chair", "ann"))
				if name == "unknown" {
					w.age(longUnanswered)
					if _, err := p.x.Recover(p.ctx); err != nil {
						w.Fatal(err)
					}
				}
				p.relays()
				if got := in.types(); !slices.Equal(got, tc.want) {
					w.Errorf("got the events %v, want %v", got, tc.want)
				}
				for n, d := range in.received {
					if d.Operation != out.Operation || d.Tenant != "acme" || d.Task != "case-42" || d.Number != 1 || d.At.IsZero() {
						w.Errorf("event %d is %+v", n, d)
					}
				}
				p.call(reserving("chair", "ann")) // a replay publishes nothing
				p.relays()
				equal(w, "events", len(in.received), len(tc.want))
			})
		})
	}
}

// Consumers that must not miss an outcome take this one.
func TestR54EveryWayOfSettlingPublishesSettled(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var in inbox
		d := newDesk(w.sides)
		p := w.startWith(settle.WithTools(d.tools()...), settle.WithOutbox(&in))
		w.payments.Writes.Next(farside.CommitThenDrop())
		p.call(refund("A", "1")) // by its lookup or its second attempt
		w.tickets.Writes.Next(farside.CommitThenDrop())
		unknown := p.call(createTicket("late", "the parcel"))
		w.age(longUnanswered)
		// The person decides at a process that has neither tools nor outbox.
		desk := w.startWith()
		if _, err := desk.x.Recover(p.ctx); err != nil {
			w.Fatal(err)
		}
		if c := desk.person("ann").sees(unknown.Operation); c.State == "manual" {
			desk.person("ann").decides(unknown.Operation, settle.DecideAbandon)
		}
		p.relays()
		settled := map[string]bool{}
		for _, d := range in.received {
			if data := dataOf(w, d); d.Type == settle.EventSettled {
				settled[data.Operation] = true
				if data.Status == "" || data.Tool == "" || data.Class == "" {
					w.Errorf("the event says %+v", data)
				}
			}
		}
		for _, e := range w.rows() {
			if e.State.Settled() != settled[e.ID.String()] {
				w.Errorf("operation of %s is %s and was announced as settled: %v", e.Tool, e.State, settled[e.ID.String()])
			}
		}
		equal(w, "operations", len(w.rows()), 2)
	})
}

func TestR54CasesAndDecisionsArePublished(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var in inbox
		p := w.startWith(settle.WithTools(newDesk(w.sides).gated()...), settle.WithOutbox(&in))
		pending := w.want(p.call(refund("B", "5")), settle.StatusAwaitingApproval)
		p.person("ann").decides(pending.Operation, settle.DecideApprove)
		w.want(p.call(refund("B", "5")), settle.StatusCompleted)
		p.relays()
		want := []string{settle.EventCaseOpened, settle.EventCaseDecided, settle.EventSettled}
		if got := in.types(); !slices.Equal(got, want) {
			w.Errorf("got the events %v, want %v", got, want)
		}
	})
}

func TestR53EventsCommitWithTheTransaction(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		var in inbox
		fail := errors.New("not yet")
		tool := settle.Tool[reserveArgs, reserved]{Name: "reserve", Contract: settle.Contract{Class: settle.Transactional},
			Do: func(ctx context.Context, op settle.Op, in reserveArgs) (reserved, error) {
				if err := errors.Join(s.write(ctx, in), op.Publish(settle.Event{Type: "item.reserved", Data: in})); err != nil {
					return reserved{}, err
				}
				return reserved{ID: in.Item}, fail
			}}
		p := w.startWith(settle.WithTools(tool), settle.WithOutbox(&in))
		p.call(reserving("chair", "ann"))
		p.relays()
		equal(w, "events of a transaction that was rolled back", len(in.received), 0)
		fail = nil
		p.call(reserving("chair", "ann"))
		p.relays()
		if got := strings.Join(in.types(), " "); got != "item.reserved settle.settled" {
			w.Errorf("got %q", got)
		}
	})
}

func TestR54ACorrectionIsPublished(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var in inbox
		undo := &settle.Compensation[reserveArgs, reserved]{Contract: settle.Contract{NoLookup: true},
			Do: func(context.Context, settle.Op, settle.Original[reserveArgs, reserved]) error { return nil }}
		tool := settle.Tool[reserveArgs, reserved]{Name: "reserve", Contract: settle.Contract{NoLookup: true}, Compensation: undo,
			Do: func(_ context.Context, _ settle.Op, in reserveArgs) (reserved, error) {
				return reserved{ID: in.Item}, nil
			}}
		p := w.startWith(settle.WithTools(tool), settle.WithOutbox(&in))
		out := w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		if _, err := p.x.Compensate(p.ctx, out.Operation); err != nil {
			w.Fatal(err)
		}
		p.relays()
		last := in.received[len(in.received)-1]
		if data := dataOf(w, last); last.Type != settle.EventCompensated || data.Corrects != out.Operation {
			w.Errorf("the last event is %s: %+v", last.Type, data)
		}
	})
}

func TestR54WhatCannotBePublished(t *testing.T) {
	var errs []error
	tool := settle.Tool[reserveArgs, reserved]{Name: "reserve", Contract: settle.Contract{NoLookup: true},
		Do: func(_ context.Context, op settle.Op, in reserveArgs) (reserved, error) {
			for _, e := range []settle.Event{
				{Type: ""}, {Type: "settle.settled"}, {Type: strings.Repeat("x", 300)}, {Type: "ok", Data: func() {}},
				{Type: "ok", Data: strings.Repeat("x", 100_000)},
			} {
				errs = append(errs, op.Publish(e))
			}
			return reserved{}, nil
		}}
	for _, on := range []bool{true, false} {
		options := []settle.Option{settle.Volatile(), settle.WithTools(tool)}
		if on {
			options = append(options, settle.WithOutbox())
		}
		x, err := settle.New(memory.New(), options...)
		if err != nil {
			t.Fatal(err)
		}
		errs = nil
		if _, err := x.Execute(scope(t.Context()), reserving("chair", "ann")); err != nil {
			t.Fatal(err)
		}
		for n, err := range errs {
			if err == nil || errors.Is(err, settle.ErrNoOutbox) == on {
				t.Errorf("with an outbox %v, event %d: error %v", on, n, err)
			}
		}
		equalCount(t, len(errs), 5)
	}
}

func equalCount(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestR56EventsAreSealedInTheOutbox(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var in inbox
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(&in),
			settle.WithCodec(codec(t, "k1", map[string][]byte{"k1": newKey()})))
		p.call(reserving("plaintext-chair", "ann"))
		if strings.Contains(w.dump(), "plaintext-chair\"}") {
			w.Error("an event's data stands in the ledger as it is")
		}
		p.relays()
		if len(in.received) != 3 || !strings.Contains(string(in.received[0].Data), "plaintext-chair") || in.received[0].Task != "case-42" {
			w.Errorf("got %+v", in.received)
		}
	})
}

func TestR54WhatIsGivenUpForWantOfAttemptsPublishesNoneOfItsHandlersEvents(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var in inbox
		tool := settle.Tool[reserveArgs, reserved]{Name: "reserve",
			Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true, Attempts: 1},
			Do: func(_ context.Context, op settle.Op, in reserveArgs) (reserved, error) {
				_ = op.Key()
				return reserved{}, errors.Join(op.Publish(settle.Event{Type: "item.reserved", Data: in}), settle.NotSent(errors.New("no route")))
			}}
		p := w.startWith(settle.WithTools(tool), settle.WithOutbox(&in))
		w.want(p.call(reserving("chair", "ann")), settle.StatusNotDone)
		p.relays()
		if got := in.types(); !slices.Equal(got, []string{settle.EventSettled}) {
			w.Errorf("got the events %v", got)
		}
	})
}

func TestR54AHandlerThatReturnedCannotPublish(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var in inbox
		var kept settle.Op
		tool := settle.Tool[reserveArgs, reserved]{Name: "reserve", Contract: settle.Contract{NoLookup: true},
			Do: func(_ context.Context, op settle.Op, in reserveArgs) (reserved, error) {
				kept = op
				var errs []error
				for range 3 { // so that there is room behind them
					errs = append(errs, op.Publish(settle.Event{Type: "item.reserved", Data: in}))
				}
				return reserved{ID: in.Item}, errors.Join(errs...)
			}}
		p := w.startWith(settle.WithTools(tool), settle.WithOutbox(&in))
		w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		if kept.Publish(settle.Event{Type: "too.late"}) == nil {
			w.Error("what was published after the return is taken, and lost")
		}
		p.relays()
		equal(w, "events", len(in.received), 4)
	})
}
