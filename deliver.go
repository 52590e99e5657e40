package settle

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// errCalledOff leaves an event of the batch to the next relay: nobody refused it.
var errCalledOff = errors.New("settle: the relay ended before this event's turn")

// errHangs stands for the answer of a sink that gives none.
var errHangs = errors.New("settle: the sink hasn't answered within its time")

// deliveries are a batch on its way.
type deliveries struct {
	batch   []store.Outgoing
	next    atomic.Int64
	left    atomic.Int64  // how many have no result
	results chan relayed  // closed when all of them are there
	done    chan struct{} // closed then, too
}

// relayed is an event with what became of it.
type relayed struct {
	*store.Outgoing
	err error
}

// deliverAll offers a batch to the sinks.
func (x *Executor) deliverAll(ctx context.Context, batch []store.Outgoing) *deliveries {
	d := &deliveries{batch: batch, results: make(chan relayed, len(batch)), done: make(chan struct{})}
	d.left.Store(int64(len(batch)))
	for range min(relayWorkers, len(batch)) {
		go x.deliverNext(ctx, d)
	}
	return d
}

// settle takes the one result of an event.
func (d *deliveries) settle(o *store.Outgoing, err error) {
	d.results <- relayed{o, err}
	if d.left.Add(-1) == 0 {
		close(d.results)
		close(d.done)
	}
}

// deliverNext offers one event of a batch after the other. Where a sink ignores
// that its time is over the event is left behind with it, and where a sink ends the
// goroutine it is not delivered: another goroutine goes on.
func (x *Executor) deliverNext(ctx context.Context, d *deliveries) {
	for n := d.next.Add(1) - 1; n < int64(len(d.batch)); n = d.next.Add(1) - 1 {
		if !x.deliverOne(ctx, d, &d.batch[n]) {
			return
		}
	}
}

// deliverOne is false where another goroutine goes on.
func (x *Executor) deliverOne(ctx context.Context, d *deliveries, o *store.Outgoing) (here bool) {
	goOn := func(err error) {
		d.settle(o, err)
		x.deliverNext(ctx, d)
	}
	patience := time.AfterFunc(x.settings.delivery+deliveryGrace, func() {
		if x.offers.leave(o.ID, len(x.settings.sinks)) {
			x.log.Warn("settle: a sink ignores that its time is over; the event comes again when it has returned", "operation", o.Operation.String(), "deliveries", o.Deliveries)
		}
		goOn(errHangs)
	})
	returned := false
	defer func() {
		if !returned && patience.Stop() {
			go goOn(errGone)
		}
	}()
	err := x.deliver(ctx, o)
	returned = true
	if !patience.Stop() {
		return false
	}
	d.settle(o, err)
	return true
}

// deliver offers an event to every sink, unless the relay is to end. A sink that
// doesn't take it, or hangs, keeps it from none of the others, though all of them
// get it again.
func (x *Executor) deliver(ctx context.Context, o *store.Outgoing) error {
	if ctx.Err() != nil || x.isClosing() {
		return errCalledOff
	}
	ctx, cancel := context.WithTimeout(ctx, x.settings.delivery)
	defer cancel()
	d := Delivery{ID: o.ID.String(), Type: o.Type, Operation: o.Operation.String(), Tenant: o.Of.TenantName, Subject: o.Of.Subject,
		Task: o.Of.Task, Goal: o.Of.Goal, At: o.At, Number: o.Deliveries, Data: o.Data}
	if len(x.settings.sinks) == 1 {
		return x.offer(ctx, offered{0, o.ID}, d)
	}
	errs := slices.Repeat([]error{errGone}, len(x.settings.sinks))
	var group sync.WaitGroup
	for n := range errs {
		each := d
		each.Data = bytes.Clone(d.Data) // they run at the same time, and may write in it
		group.Go(func() { errs[n] = x.offer(ctx, offered{n, o.ID}, each) })
	}
	group.Wait()
	return untaken(errs)
}

// offer takes a sink that panics for one that didn't take the event.
func (x *Executor) offer(ctx context.Context, of offered, d Delivery) error {
	if !x.offers.begin(of) {
		return errHangs
	}
	defer x.offers.end(of)
	return contained(func() error { return x.settings.sinks[of.sink].Deliver(ctx, d) })
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
