package settle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/settle-go/settle"
)

// Sinks that ignore their context, and what can be seen of events (R54).

// deaf is a sink that keeps what it refuses to let go until it is released.
type deaf struct {
	inbox
	hangs    func(d settle.Delivery) bool
	release  chan struct{}
	at, most atomic.Int32 // how many deliveries are at it, and how many were at once
	entered  chan struct{}
	returned chan struct{}
}

// soon is how long sinks have here.
const soon = 2 * time.Second

func newDeaf() *deaf {
	return &deaf{release: make(chan struct{}), entered: make(chan struct{}, 100), returned: make(chan struct{}, 100)}
}

func (s *deaf) Deliver(ctx context.Context, d settle.Delivery) error {
	if !s.hangs(d) {
		return s.inbox.Deliver(ctx, d)
	}
	s.most.Store(max(s.most.Load(), s.at.Add(1)))
	defer func() {
		s.at.Add(-1)
		s.returned <- struct{}{}
	}()
	s.entered <- struct{}{}
	<-s.release
	return errors.New("too late")
}

// relay makes one pass, which has to end.
func (p *process) relay() settle.RelayReport {
	p.Helper()
	ended := make(chan settle.RelayReport, 1)
	go func() {
		report, err := p.x.Relay(p.ctx)
		if err != nil {
			p.Error(err)
		}
		ended <- report
	}()
	// Twice the time that a sink has, where many hang, and what a busy machine takes.
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	select {
	case report := <-ended:
		return report
	case <-deadline.C:
		p.Fatal("a sink holds the relay up")
	}
	panic("unreachable")
}

func TestR54ASinkThatIgnoresItsContextHoldsNobodyUp(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var beside inbox
		s := newDeaf()
		chair := make(map[string]bool)
		s.hangs = func(d settle.Delivery) bool { return chair[d.Operation] }
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(s, &beside), settle.WithDeliveryTimeout(soon))
		chair[p.call(reserving("chair", "ann")).Operation] = true
		p.call(reserving("table", "ann"))
		if r := p.relay(); r.Delivered != 1 || r.Failed != 1 {
			w.Errorf("while a sink hangs with one of two events the pass says %+v", r)
		}
		w.age(time.Hour)
		if r := p.relay(); r.Delivered != 1 || r.Failed != 1 {
			w.Errorf("the pass after it says %+v", r)
		}
		equal(w, "deliveries of the event at the sink that has it", s.most.Load(), 1)
		if got := beside.types(); len(got) != 4 {
			w.Errorf("the sink beside it got %v, want the chair's event twice and two of the table's", got)
		}
		// Nor does it hold up the end of the process.
		other := w.startWith(settle.WithOutbox(s), settle.WithDeliveryTimeout(soon))
		w.age(time.Hour)
		relaying := make(chan settle.RelayReport, 1)
		go func() {
			report, err := other.x.Relay(other.ctx)
			if err != nil {
				w.Error(err)
			}
			relaying <- report
		}()
		received(w, s.entered) // by the first process
		received(w, s.entered)
		down := make(chan error, 1)
		go func() { down <- other.x.Shutdown(context.Background()) }()
		if err := received(w, down); err != nil {
			w.Error(err)
		}
		received(w, relaying)

		close(s.release)
		received(w, s.returned)
		received(w, s.returned)
		clear(chair)
		w.age(time.Hour)
		p.relays()
		if got := s.types(); len(got) != 6 {
			w.Errorf("once it has returned the sink got %v", got)
		}
	})
}

func TestR54ASinkWithTooManyThatHangIsOfferedNothing(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newDeaf()
		s.hangs = func(settle.Delivery) bool { return true }
		defer close(s.release)
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(s), settle.WithDeliveryTimeout(soon))
		for n := range 40 {
			p.call(reserving(string(rune('A'+n)), "ann"))
		}
		equal(w, "events that come again", p.relay().Failed, 40)
		hanging := s.at.Load() // with those that were on their way when the 16th had hung for too long
		if hanging < 16 || hanging == 40 {
			w.Errorf("%d deliveries hang", hanging)
		}
		w.age(time.Hour)
		equal(w, "events that come again", p.relay().Failed, 40)
		equal(w, "deliveries that hang", s.at.Load(), hanging)
	})
}

func TestR54TheAgeOfEventsIsMeasured(t *testing.T) {
	onEachLedger(t, func(w *world) {
		o := observe(&rig{T: w.T})
		down := errors.New("down")
		var answer error
		in := inbox{refuse: func(settle.Delivery) error { return answer }}
		p := w.startWith(settle.WithTools(publishing(func() error { return nil })), settle.WithOutbox(&in), settle.WithMeterProvider(o.meters))
		p.call(reserving("chair", "ann"))
		for _, answer = range []error{down, nil, settle.Rejected(down)} {
			if _, err := p.x.Relay(p.ctx); err != nil {
				w.Fatal(err)
			}
			w.age(time.Hour)
		}
		got := map[string]metricdata.HistogramDataPoint[float64]{}
		for _, point := range o.metrics()["settle.event.age"].(metricdata.Histogram[float64]).DataPoints {
			kind, _ := point.Attributes.Value("settle.delivery")
			if got[kind.AsString()] = point; point.Attributes.Len() != 1 {
				w.Errorf("the attributes are %v", point.Attributes.ToSlice())
			}
		}
		for kind, least := range map[string]time.Duration{"failed": 0, "delivered": time.Hour, "dead": 2 * time.Hour} {
			if p := got[kind]; p.Count != 1 || p.Sum < least.Seconds() || p.Sum > (least+time.Hour).Seconds() {
				w.Errorf("%s: %d events, %v s old in all, want one of %v", kind, p.Count, p.Sum, least)
			}
		}
	})
}
