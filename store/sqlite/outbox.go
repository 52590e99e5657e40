package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

var _ store.Outbox = (*Ledger)(nil)

const (
	announce = `INSERT INTO settle_outbox (event, operation, intent, at, due_at, type, data)
		VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6) ON CONFLICT (event) DO NOTHING`
	// isDue is true of the first of an operation's, once its time has come.
	isDue = `due_at <= ?
		AND NOT EXISTS (SELECT 1 FROM settle_outbox e WHERE e.operation = x.operation AND e.seq < x.seq)`
	dueOutgoing    = `SELECT seq FROM settle_outbox x WHERE ` + isDue + ` ORDER BY due_at, seq LIMIT ?`
	anyOutgoing    = `SELECT 1 FROM settle_outbox x WHERE ` + isDue + ` LIMIT 1`
	lendOutgoing   = `UPDATE settle_outbox SET deliveries = deliveries + 1, due_at = ? WHERE seq = ?`
	deleteOutgoing = `DELETE FROM settle_outbox WHERE seq = ?`
	returnOutgoing = `UPDATE settle_outbox SET due_at = ? WHERE seq = ? AND deliveries = ?`
	// What waits behind one that is put off is put off with it: a backlog costs
	// nothing while it waits.
	putOffBehind = `UPDATE settle_outbox SET due_at = ? WHERE operation = ? AND seq > ? AND due_at IS NOT NULL`
	promote      = `UPDATE settle_outbox SET due_at = ?1 WHERE operation = ?2 AND due_at > ?1`
	findOutgoing = `SELECT x.seq, x.operation FROM settle_outbox x JOIN settle_intent i ON i.id = x.intent JOIN settle_tenant t ON t.id = i.tenant
		WHERE x.event = ? AND t.name = ?`
	resendOutgoing = `UPDATE settle_outbox SET due_at = ? WHERE seq = ?`
)

// outgoingColumns are those of the outbox alone.
var outgoingColumns = []column[store.Outgoing]{
	{"x.seq", func(o *store.Outgoing) any { return &o.Seq }},
	{"x.event", func(o *store.Outgoing) any { return &o.ID }},
	{"x.operation", func(o *store.Outgoing) any { return &o.Operation }},
	{"x.at", func(o *store.Outgoing) any { return &o.At }},
	{"x.due_at", func(o *store.Outgoing) any { return &o.DueAt }},
	{"x.deliveries", func(o *store.Outgoing) any { return &o.Deliveries }},
	{"x.type", func(o *store.Outgoing) any { return &o.Type }},
	{"x.data", func(o *store.Outgoing) any { return &o.Data }},
}

var selectOutgoing = "SELECT " + names("", outgoingColumns) + ", " + names("", intentColumns) +
	" FROM settle_outbox x JOIN settle_intent i ON i.id = x.intent JOIN settle_tenant t ON t.id = i.tenant "

// announce writes the events of a row's last change (R54).
func (w *write) announce(row *store.Operation, events []store.Announcement) error {
	for i := range events {
		e := &events[i]
		if _, err := w.exec(announce, e.ID[:], row.ID[:], row.Intent[:], w.now.UnixMicro(), e.Type, encode(&e.Data)); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) outgoing(where string, args ...driver.Value) (all []store.Outgoing, err error) {
	err = v.query(context.Background(), func(values []driver.Value) (err error) {
		var o store.Outgoing
		if values, err = decoded(values, outgoingColumns, &o); err != nil {
			return err
		}
		if _, err = decoded(values, intentColumns, &o.Of); err == nil {
			all = append(all, o)
		}
		return err
	}, selectOutgoing+where, args...)
	return all, err
}

// Fetch implements [store.Outbox]. Where nothing is due, or all that is waits behind
// an earlier one, it costs the writers nothing.
func (l *Ledger) Fetch(ctx context.Context, limit int, lease time.Duration) ([]store.Outgoing, error) {
	var some bool
	err := l.read(ctx, func(v *view) (err error) {
		some, err = v.has(anyOutgoing, v.now.UnixMicro())
		return err
	})
	if err != nil || !some {
		return nil, err
	}
	return written(ctx, l, func(w *write) (fetched []store.Outgoing, err error) {
		var due []int64
		err = w.query(ctx, func(values []driver.Value) error {
			var seq int64
			err := decodeAll([]any{&seq}, values)
			due = append(due, seq)
			return err
		}, dueOutgoing, w.now.UnixMicro(), int64(limit))
		if err != nil {
			return nil, err
		}
		slices.Sort(due)
		for _, seq := range due {
			if _, err := w.exec(lendOutgoing, w.now.Add(lease).UnixMicro(), seq); err != nil {
				return nil, err
			}
			o, err := w.outgoing("WHERE x.seq = ?", seq)
			if err != nil {
				return nil, err
			}
			fetched = append(fetched, o...)
		}
		return fetched, nil
	})
}

// Delivered implements [store.Outbox].
func (l *Ledger) Delivered(ctx context.Context, received ...store.Outgoing) error {
	received = slices.Clone(received)
	return l.write(ctx, func(w *write) error {
		for i := range received {
			o := &received[i]
			if _, err := w.exec(deleteOutgoing, o.Seq); err != nil {
				return err
			}
			if o.Deliveries < 2 {
				continue
			}
			if _, err := w.exec(promote, w.now.UnixMicro(), o.Operation[:]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Undelivered implements [store.Outbox].
func (l *Ledger) Undelivered(ctx context.Context, o store.Outgoing, wait time.Duration, dead bool) error {
	return l.write(ctx, func(w *write) error {
		var due driver.Value
		behind := w.now.Add(store.BehindDead).UnixMicro()
		if !dead {
			behind = w.now.Add(wait).UnixMicro()
			due = behind
		}
		n, err := w.exec(returnOutgoing, due, o.Seq, int64(o.Deliveries))
		if err == nil && n > 0 {
			_, err = w.exec(putOffBehind, behind, o.Operation[:], o.Seq)
		}
		return err
	})
}

// Waiting implements [store.Outbox].
func (l *Ledger) Waiting(ctx context.Context, f store.OutgoingFilter) (waiting []store.Outgoing, err error) {
	err = l.read(ctx, func(v *view) (err error) {
		waiting, err = v.outgoing("WHERE x.seq > ?1 AND (?2 = '' OR t.name = ?2) AND (?3 = 0 OR x.due_at IS NULL) ORDER BY x.seq LIMIT ?4",
			f.After, f.Tenant, encode(&f.Dead), int64(cmp.Or(f.Limit, 100)))
		return err
	})
	return waiting, err
}

// Redeliver implements [store.Outbox].
func (l *Ledger) Redeliver(ctx context.Context, tenant string, id uuid.UUID) error {
	return l.withOutgoing(ctx, tenant, id, func(w *write, seq int64) error {
		_, err := w.exec(resendOutgoing, w.now.UnixMicro(), seq)
		return err
	})
}

// Discard implements [store.Outbox].
func (l *Ledger) Discard(ctx context.Context, tenant string, id uuid.UUID) error {
	return l.withOutgoing(ctx, tenant, id, func(w *write, seq int64) error {
		_, err := w.exec(deleteOutgoing, seq)
		return err
	})
}

func (l *Ledger) withOutgoing(ctx context.Context, tenant string, id uuid.UUID, do func(*write, int64) error) error {
	return l.write(ctx, func(w *write) error {
		var seq int64
		var operation uuid.UUID
		found, err := w.first([]any{&seq, &operation}, findOutgoing, id[:], tenant)
		if err == nil && !found {
			err = store.ErrNotFound
		}
		if err == nil {
			err = do(w, seq)
		}
		if err == nil {
			_, err = w.exec(promote, w.now.UnixMicro(), operation[:])
		}
		return err
	})
}
