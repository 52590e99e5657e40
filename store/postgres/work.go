package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/settle-go/settle/store"
)

// Renew implements [store.Ledger], in one round trip.
func (l *Ledger) Renew(ctx context.Context, lease time.Duration, held ...store.Held) (lost []store.Held, err error) {
	operations, owners := uuids(len(held)), uuids(len(held))
	for i, h := range held {
		operations[i], owners[i] = some(h.Operation), some(h.Owner)
	}
	var b pgx.Batch
	if l.limits {
		b.Queue(l.sql.lockLimit)
	}
	renewed := map[store.Held]bool{}
	b.Queue(l.sql.renew, operations, owners, span(lease)).Query(func(rows pgx.Rows) error {
		var h store.Held
		_, err := pgx.ForEachRow(rows, []any{(*key)(&h.Operation), (*key)(&h.Owner)}, func() error {
			renewed[h] = true
			return nil
		})
		return err
	})
	if err := l.send(ctx, &b); err != nil {
		return nil, asWrite(err)
	}
	for _, h := range held {
		if !renewed[h] {
			lost = append(lost, h)
		}
	}
	return lost, nil
}

// Take implements [store.Ledger], in one round trip. It waits for no lock.
func (l *Ledger) Take(ctx context.Context, t store.Take) ([]store.Entry, error) {
	except := t.Except
	if except == nil {
		except = []string{}
	}
	var entries []store.Entry
	var err error
	if t.Operation != uuid.Nil {
		entries, err = query(ctx, l, scanEntry, l.sql.takeOne, some(t.Operation), except, span(t.Lease))
	} else {
		entries, err = query(ctx, l, scanEntry, l.sql.take,
			t.After.Tool, some(t.After.Tenant), bound(t.Each), except, bound(t.Limit), span(t.Lease))
	}
	return entries, asWrite(err)
}

// bound is a LIMIT, where zero is none.
func bound(n int) pgtype.Int8 { return pgtype.Int8{Int64: int64(n), Valid: n > 0} }

// Audit implements [store.Ledger], in one round trip.
func (l *Ledger) Audit(ctx context.Context, entries ...store.Audit) error {
	operations := uuids(len(entries))
	kinds, actors, details := make([]string, len(entries)), make([]string, len(entries)), make([]string, len(entries))
	for i, e := range entries {
		operations[i], kinds[i], actors[i], details[i] = maybe(e.Operation), e.Kind, e.Actor, e.Detail
	}
	return l.exec(ctx, l.sql.audit, operations, kinds, actors, details)
}
