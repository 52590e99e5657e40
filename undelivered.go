package settle

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// What operators see of the outbox (R54).

// OutgoingEvent is an event that hasn't been delivered, without its data.
type OutgoingEvent struct {
	// ID is the event's own, which Redeliver and Discard take.
	ID        string
	Type      string
	Operation string
	Tenant    string
	At        time.Time
	// Deliveries counts those so far. NextAt is when the next one may be; zero for a
	// dead one, which waits for Redeliver or Discard, and for its operation's later
	// events, which wait behind it.
	Deliveries int
	NextAt     time.Time
	Dead       bool
}

// OutgoingEventFilter selects undelivered events. Empty fields select everything.
type OutgoingEventFilter struct {
	Tenant string
	// Dead selects those that were given up.
	Dead bool
	// Limit bounds the answer (default 100, at most 1,000).
	Limit int
}

// Undelivered lists the events of the operator's tenants that wait in the outbox,
// oldest first.
func (q *Queue) Undelivered(ctx context.Context, f OutgoingEventFilter) ([]OutgoingEvent, error) {
	o, outbox, err := q.outbox(ctx, "list", f.Tenant)
	if err != nil {
		return nil, err
	}
	limit := min(f.Limit, maxPage)
	if limit <= 0 {
		limit = 100
	}
	var events []OutgoingEvent
	filter := store.OutgoingFilter{Tenant: f.Tenant, Dead: f.Dead, Limit: limit}
	for {
		page, err := outbox.Waiting(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if filter.After = e.Seq; o.sees(e.Of.TenantName) && len(events) < limit {
				events = append(events, OutgoingEvent{ID: e.ID.String(), Type: e.Type, Operation: e.Operation.String(), Tenant: e.Of.TenantName,
					At: e.At, Deliveries: e.Deliveries, NextAt: nextAt(e), Dead: e.Dead()})
			}
		}
		if len(page) < limit || len(events) == limit {
			return events, nil
		}
	}
}

// nextAt is when an event may go out, where that is known.
func nextAt(e store.Outgoing) time.Time {
	if e.DueAt.Sub(e.At) > store.BehindDead/2 {
		return time.Time{} // behind a dead one
	}
	return e.DueAt
}

// Redeliver lets an event of the tenant go out at once, a dead one too.
func (q *Queue) Redeliver(ctx context.Context, tenant, id string) error {
	return q.onEvent(ctx, "redeliver", tenant, id, store.Outbox.Redeliver)
}

// Discard deletes an event of the tenant without delivering it, so that what
// waits behind it can go. Nobody is told of it any more.
func (q *Queue) Discard(ctx context.Context, tenant, id string) error {
	return q.onEvent(ctx, "discard", tenant, id, store.Outbox.Discard)
}

func (q *Queue) onEvent(ctx context.Context, action, tenant, id string, do func(store.Outbox, context.Context, string, uuid.UUID) error) error {
	o, outbox, err := q.outbox(ctx, action, tenant)
	if err != nil {
		return err
	}
	event, err := uuid.Parse(id)
	if err != nil || !o.sees(tenant) {
		return store.ErrNotFound
	}
	if err := do(outbox, ctx, tenant, event); err != nil {
		return err
	}
	q.x.audit(ctx, store.Audit{Kind: "event_" + action, Actor: "operator:" + o.Name, Detail: event.String()})
	return nil
}

// outbox is the ledger's, for an operator whom the host's policy allows this.
func (q *Queue) outbox(ctx context.Context, action, tenant string) (Operator, store.Outbox, error) {
	o, err := operatorFrom(ctx)
	if err != nil {
		return o, nil, err
	}
	if _, ok := q.x.watched.(store.Outbox); !ok {
		return o, nil, errors.New("settle: this ledger has no outbox")
	}
	return o, q.x.ledger.(store.Outbox), q.x.allowed(ctx, OperatorAction{Operator: o, Action: action, Tenant: tenant})
}
