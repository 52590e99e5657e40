package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/settle-go/settle/store"
)

var _ store.Outbox = (*Ledger)(nil)

// queueAnnounce writes the events of a claim or change behind it, if it has any:
// the row ends with the event of that hash only where it was made (R54).
func (l *Ledger) queueAnnounce(b *pgx.Batch, operation uuid.UUID, version int, tail []byte, events []store.Announcement) {
	if len(events) == 0 {
		return
	}
	ids, types, data := uuids(len(events)), make([]string, len(events)), blobs(len(events))
	for i := range events {
		ids[i], types[i], data[i] = some(events[i].ID), events[i].Type, events[i].Data
	}
	b.Queue(l.sql.announce, some(operation), version, tail, ids, types, data, l.held != nil)
}

// scanOutgoing reads the columns of the statements' piece "outgoing".
func scanOutgoing(row pgx.CollectableRow) (o store.Outgoing, err error) {
	err = row.Scan(&o.Seq, (*key)(&o.ID), (*key)(&o.Operation), (*instant)(&o.At), (*instant)(&o.DueAt), &o.Deliveries, &o.Type, &o.Data,
		(*key)(&o.Of.ID), (*key)(&o.Of.Tenant), &o.Of.TenantName, &o.Of.Subject, &o.Of.Task, &o.Of.Goal)
	return o, err
}

// Fetch implements [store.Outbox], in one round trip.
func (l *Ledger) Fetch(ctx context.Context, limit int, lease time.Duration) ([]store.Outgoing, error) {
	fetched, err := queryInto(ctx, l, make([]store.Outgoing, 0, limit), scanOutgoing, l.sql.fetch, limit, span(lease))
	return fetched, asWrite(err)
}

// Delivered implements [store.Outbox].
func (l *Ledger) Delivered(ctx context.Context, received ...store.Outgoing) error {
	var b pgx.Batch
	seqs, late := make([]int64, len(received)), uuids(0)
	for i := range received {
		if seqs[i] = received[i].Seq; received[i].Deliveries > 1 {
			late = append(late, some(received[i].Operation))
		}
	}
	b.Queue(l.sql.delivered, seqs)
	if len(late) > 0 {
		b.Queue(l.sql.promote, late)
	}
	return asWrite(l.send(ctx, &b))
}

// Undelivered implements [store.Outbox].
func (l *Ledger) Undelivered(ctx context.Context, o store.Outgoing, wait time.Duration, dead bool) error {
	return l.exec(ctx, l.sql.undelivered, o.Seq, o.Deliveries, span(wait), dead)
}

// Waiting implements [store.Outbox].
func (l *Ledger) Waiting(ctx context.Context, f store.OutgoingFilter) ([]store.Outgoing, error) {
	waiting, err := query(ctx, l, scanOutgoing, l.sql.waiting, f.After, f.Tenant, f.Dead, cmp.Or(f.Limit, 100))
	return waiting, asRead(err)
}

// Redeliver implements [store.Outbox].
func (l *Ledger) Redeliver(ctx context.Context, tenant string, id uuid.UUID) error {
	return l.ofOutbox(ctx, l.sql.redeliver, tenant, id)
}

// Discard implements [store.Outbox].
func (l *Ledger) Discard(ctx context.Context, tenant string, id uuid.UUID) error {
	return l.ofOutbox(ctx, l.sql.discard, tenant, id)
}

// ofOutbox does something to an event, after which what was put off behind it is due.
func (l *Ledger) ofOutbox(ctx context.Context, sql, tenant string, id uuid.UUID) error {
	var operation pgtype.UUID
	var b pgx.Batch
	b.Queue(sql, tenant, some(id)).QueryRow(func(row pgx.Row) error { return row.Scan(&operation) })
	err := l.send(ctx, &b)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return store.ErrNotFound
	case err != nil:
		return asWrite(err)
	}
	return l.exec(ctx, l.sql.promote, []pgtype.UUID{operation})
}
