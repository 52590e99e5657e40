package settle

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/settle-go/settle/store"
)

// The relay's bounds. A lease covers a whole batch: relayBatch/relayWorkers
// rounds of deliveryTimeout and deliveryGrace.
const (
	relayBatch      = 128
	relayWorkers    = 16
	deliveryTimeout = 10 * time.Second
	// deliveryGrace is how long a sink has to notice that its time is over.
	deliveryGrace = time.Second
	relayLease    = 2 * time.Minute
	// relayPasses are how many Run makes at a time: one fetches while another one
	// delivers, or waits for slow receivers.
	relayPasses = 2
	// acknowledgePause is how long an acknowledgement waits for others: one write
	// for a batch that went fast costs a fraction of several.
	acknowledgePause = time.Millisecond
	// relayPause is how long the relay sleeps where nothing was due and this process
	// wrote nothing.
	relayPause = time.Second
	// The pauses between deliveries of one event double from first to longest; after
	// deliveriesAtMost, about a day, it is dead.
	firstRedelivery   = time.Second
	longestRedelivery = 10 * time.Minute
	deliveriesAtMost  = 155
)

// RelayReport says what one pass of the relay did.
type RelayReport struct {
	// Fetched events were due; of them Delivered were taken by every sink, Failed
	// come again, and Dead wait for an operator.
	Fetched, Delivered, Failed, Dead int
}

// Relay delivers what is due in the outbox, one batch of at most 128 events, and
// returns when the sinks have answered. [Executor.Run] does this in two loops. It
// returns an error where there is no outbox or no sink, or the ledger can't be
// read.
func (x *Executor) Relay(ctx context.Context) (report RelayReport, err error) {
	outbox, ok := x.ledger.(store.Outbox)
	if !ok || len(x.settings.sinks) == 0 {
		return report, ErrNoOutbox
	}
	if err := x.enter(); err != nil {
		return report, err
	}
	defer x.work.Done()
	var fetched []store.Outgoing
	err = x.timed(ctx, "fetch", func(ctx context.Context) (err error) {
		fetched, err = outbox.Fetch(ctx, relayBatch, relayLease)
		return err
	})
	report.Fetched = len(fetched)
	if err != nil || len(fetched) == 0 {
		return report, err
	}
	err = x.acknowledge(ctx, outbox, x.deliverAll(ctx, fetched), &report)
	return report, err
}

// acknowledge writes down what became of a batch, as much at once as there is
// within a moment: a slow receiver holds nobody else up.
func (x *Executor) acknowledge(ctx context.Context, outbox store.Outbox, d *deliveries, report *RelayReport) error {
	var errs []error
	for r := range d.results {
		pause := time.NewTimer(acknowledgePause)
		select {
		case <-d.done:
		case <-pause.C:
		}
		pause.Stop()
		received := make([]store.Outgoing, 0, 1+len(d.results))
		for more := true; more; {
			if r.err == nil {
				received = append(received, *r.Outgoing)
				x.signals.delivery(ctx, r.Outgoing, "delivered")
			} else {
				errs = append(errs, x.undelivered(ctx, outbox, r, report))
			}
			select {
			case r, more = <-d.results:
			default:
				more = false
			}
		}
		report.Delivered += len(received)
		if len(received) > 0 {
			// What was received stays received though the relay is called off.
			errs = append(errs, x.timed(ctx, "delivered", func(ctx context.Context) error { return outbox.Delivered(ctx, received...) }))
		}
	}
	return errors.Join(errs...)
}

// undelivered plans the next delivery of an event, or gives it up.
func (x *Executor) undelivered(ctx context.Context, outbox store.Outbox, r relayed, report *RelayReport) error {
	var known *knownError
	wait := redelivery(r.Deliveries)
	dead := r.Deliveries >= deliveriesAtMost
	if errors.As(r.err, &known) {
		wait, dead = max(wait, known.wait), dead || known.effect == effectRejected
	}
	if errors.Is(r.err, errCalledOff) {
		wait, dead = 0, false
	}
	switch {
	case dead:
		report.Dead++
		x.signals.delivery(ctx, r.Outgoing, "dead")
		x.log.Warn("settle: an event was given up and waits for an operator, and its operation's later events behind it",
			"operation", r.Operation.String(), "deliveries", r.Deliveries)
	case errors.Is(r.err, errCalledOff):
		report.Failed++
	default:
		report.Failed++
		x.signals.delivery(ctx, r.Outgoing, "failed")
	}
	return x.timed(ctx, "undelivered", func(ctx context.Context) error { return outbox.Undelivered(ctx, *r.Outgoing, wait, dead) })
}

// redelivery is the pause after so many deliveries, with jitter of a quarter.
func redelivery(deliveries int) time.Duration {
	pause := longestRedelivery
	if deliveries < 10 {
		pause = firstRedelivery << max(deliveries-1, 0)
	}
	return pause - rand.N(pause/4)
}

// runRelay relays until the context ends or the executor shuts down.
func (x *Executor) runRelay(ctx context.Context) {
	for {
		report, err := x.Relay(ctx)
		if errors.Is(err, ErrShutdown) {
			return
		}
		if err != nil && ctx.Err() == nil {
			x.log.Warn("settle: the outbox could not be relayed", "error", err)
		}
		if err == nil && (report.Fetched == relayBatch || report.Delivered > 0) {
			continue // there may be more, behind what was delivered at least
		}
		if !x.sleepUntil(ctx, relayPause, x.announced) {
			return
		}
	}
}

// sent tells this process's relay of what was announced.
func (x *Executor) sent(events []store.Announcement) {
	if len(events) == 0 {
		return
	}
	select {
	case x.announced <- struct{}{}:
	default:
	}
}
