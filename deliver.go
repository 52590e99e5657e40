package settle

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// errCalledOff leaves an event of the batch to the next relay: nobody refused it.
var errCalledOff = errors.New("settle: the relay ended before this event's turn")

// errHangs stands for the answer of a sink that gives none.
var errHangs = errors.New("settle: the sink hasn't answered within its time")

// answered is what a sink answered.
type answered struct {
	sink int
	err  error
}

// deliver offers an event to every sink, unless the relay is to end. A sink that
// doesn't take it, or hangs, keeps it from none of the others, though all of them
// get it again. A sink that ignores its context is left behind: it holds up neither
// the batch nor Shutdown.
func (x *Executor) deliver(ctx context.Context, o *store.Outgoing) error {
	if ctx.Err() != nil || x.isClosing() {
		return errCalledOff
	}
	ctx, cancel := context.WithTimeout(ctx, x.settings.delivery)
	defer cancel()
	d := Delivery{ID: o.ID.String(), Type: o.Type, Operation: o.Operation.String(), Tenant: o.Of.TenantName, Subject: o.Of.Subject,
		Task: o.Of.Task, Goal: o.Of.Goal, At: o.At, Number: o.Deliveries, Data: o.Data}
	sinks := x.settings.sinks
	errs := slices.Repeat([]error{errHangs}, len(sinks))
	answers, open := make(chan answered, len(sinks)), 0
	for n, sink := range sinks {
		of := offered{n, o.ID}
		if !x.offers.begin(of) {
			continue
		}
		open++
		each := d
		each.Data = bytes.Clone(d.Data) // they run at the same time, and may write in it
		go func() {
			a := answered{n, errGone} // of a sink that ends its goroutine
			defer func() {
				x.offers.end(of)
				answers <- a
			}()
			a.err = offer(ctx, sink, each)
		}()
	}
	patience := time.NewTimer(x.settings.delivery + deliveryGrace)
	defer patience.Stop()
	for open > 0 {
		select {
		case a := <-answers:
			errs[a.sink] = a.err
			open--
		case <-patience.C:
			if x.offers.leave(o.ID, len(sinks)) {
				x.log.Warn("settle: a sink ignores that its time is over; the event comes again when it has returned", "operation", o.Operation.String(), "deliveries", o.Deliveries)
			}
			open = 0
		}
	}
	return untaken(errs)
}

// maxHanging is how many deliveries of a sink may hang before it is offered no
// more: each holds a goroutine.
const maxHanging = relayWorkers

// offered is an event at a sink.
type offered struct {
	sink  int
	event uuid.UUID
}

// offers are the deliveries that sinks of this process haven't answered. An event
// isn't offered to a sink again while it still has it.
type offers struct {
	mu sync.Mutex
	// open has true for those that were left behind.
	open    map[offered]bool
	hanging map[int]int // how many of them, by sink
}

func newOffers() *offers { return &offers{open: map[offered]bool{}, hanging: map[int]int{}} }

// begin is false where the sink still has the event, or too many hang there.
func (s *offers) begin(of offered) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, still := s.open[of]; still || s.hanging[of.sink] >= maxHanging {
		return false
	}
	s.open[of] = false
	return true
}

func (s *offers) end(of offered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of] {
		s.hanging[of.sink]--
	}
	delete(s.open, of)
}

// leave leaves an event behind at the sinks that still have it. It says whether
// there are any that weren't left before.
func (s *offers) leave(event uuid.UUID, sinks int) (some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range sinks {
		if left, open := s.open[offered{n, event}]; open && !left {
			s.open[offered{n, event}] = true
			s.hanging[n]++
			some = true
		}
	}
	return some
}

// offer takes a sink that panics for one that didn't take the event.
func offer(ctx context.Context, sink Sink, d Delivery) error {
	return contained(func() error { return sink.Deliver(ctx, d) })
}

// untaken makes one error of what several sinks answered, nil where all took the
// event. It is given up where nobody is left who may still take it, and it comes
// again no sooner than any of them asked.
func untaken(errs []error) error {
	joined := errors.Join(errs...)
	if joined == nil {
		return nil
	}
	all := &knownError{err: joined, effect: effectRejected}
	for _, err := range errs {
		var known *knownError
		if errors.As(err, &known) {
			all.wait = max(all.wait, known.wait)
		}
		if err != nil && (known == nil || known.effect != effectRejected) {
			all.effect = effectNotSent
		}
	}
	return all
}
