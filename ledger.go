package settle

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/settle-go/settle/store"
)

// The executor's way to its ledger: how long a call of it may take, when it is
// made again, and how an answer that was lost is recognised.

// ledgerTimeout bounds one write of the executor. Writes don't end with the
// caller's context: one that was cut off halfway would leave a claim behind
// that nobody works on.
const ledgerTimeout = 10 * time.Second

// intentOf finds or creates the intent of a principal and task (R7).
func (x *Executor) intentOf(ctx context.Context, p Principal, t Task) (store.Intent, error) {
	named := intentName{p, t}
	if known, ok := x.intents.get(named); ok && elapsed(known.read) < rereadIntent {
		return known.Intent, nil
	}
	var intent store.Intent
	read := time.Now()
	err := x.persist(ctx, func(ctx context.Context) (err error) {
		intent, err = x.ledger.Intent(ctx, newIntent(p, t))
		return err
	})
	if err == nil {
		x.intents.set(named, knownIntent{intent, read})
	}
	return intent, err
}

// persist makes a ledger call again where its answer was lost or the ledger
// asks for it, a few times. The call must be one that the ledger recognises.
func (x *Executor) persist(ctx context.Context, call func(context.Context) error) error {
	pause := 10 * time.Millisecond
	for try := 1; ; try++ {
		err := call(ctx)
		if err == nil || try == 4 || ctx.Err() != nil || !repeatable(err) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		pause *= 4
	}
}

// repeatable says whether the same ledger call may bring something else at once.
func repeatable(err error) bool {
	var unwritten *store.UnwrittenError
	if errors.As(err, &unwritten) {
		return unwritten.Again
	}
	return !store.Unwritten(err)
}

// apply makes a guarded move. An answer that was lost is recognised by the hash
// of the change's own event (R57), and the start of an attempt by its owner as
// well: callers that resume an operation at the same time write equal events,
// and only one of them may execute (R19).
func (x *Executor) apply(ctx context.Context, c store.Change) (store.Operation, error) {
	var row store.Operation
	err := x.applyTo(ctx, &c, &row)
	return row, err
}

// applyTo is apply on the way that every call takes. Rows and changes are large,
// and a new goroutine's stack would have to grow for each copy of one.
func (x *Executor) applyTo(ctx context.Context, c *store.Change, row *store.Operation) error {
	x.announce(c)
	if b := x.byKey[c.Of.Tool]; b != nil && b.contract.Deciders > 1 {
		// The process that claimed it may have been of a version that asks for one.
		c.Flags |= store.FlagTwoPersons
	}
	err := x.persist(detached(ctx), func(ctx context.Context) error {
		err := x.timed(ctx, "apply", func(ctx context.Context) (err error) {
			*row, err = x.ledger.Apply(ctx, *c)
			return err
		})
		if err != nil && x.applied(err, c, row) {
			return nil
		}
		return err
	})
	if err == nil {
		x.signals.moved(row.Tool, c.Of.State, row.State)
		x.sent(c.Announce)
	}
	return err
}

// applied recognises the change's own event in a row that has moved on.
func (x *Executor) applied(err error, c *store.Change, row *store.Operation) bool {
	var stale *store.StaleError
	if !errors.As(err, &stale) || stale.Current.Tail != store.NextEvent(*c).Hash || c.Start != nil && stale.Current.Owner != c.Start.Owner {
		return false
	}
	*row = stale.Current
	return true
}

// audit writes a plain row on what changed nothing (R57). A ledger that doesn't
// take it loses a line of the audit and nothing else.
func (x *Executor) audit(ctx context.Context, a store.Audit) {
	if err := x.ledger.Audit(ctx, a); err != nil {
		x.log.Warn("settle: an audit row could not be written", "operation", a.Operation.String(), "kind", a.Kind, "error", err)
	}
}

// timed measures a ledger call and bounds it. It doesn't end with the caller.
func (x *Executor) timed(ctx context.Context, what string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(detached(ctx), ledgerTimeout)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	record(ctx, x.signals.ledgerDuration, time.Since(began), x.signals.ledger, attribute.String("settle.ledger.operation", what))
	return err
}
