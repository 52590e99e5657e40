package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Get implements [store.Ledger].
func (l *Ledger) Get(ctx context.Context, tenant string, operation uuid.UUID) (store.Entry, error) {
	var e store.Entry
	err := l.read(ctx, func(v *view) (err error) {
		if e, err = v.entry(ctx, operation); err == nil && e.Of.TenantName != tenant {
			err = store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return store.Entry{}, err
	}
	return e, nil
}

// List implements [store.Ledger].
func (l *Ledger) List(ctx context.Context, f store.Filter) ([]store.Entry, error) {
	where, args := filtered(f)
	var all []store.Entry
	err := l.read(ctx, func(v *view) (err error) {
		all, err = v.entries(ctx, where, args...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// waiting is the condition of the index over what is neither running nor
// settled, word for word.
const waiting = "o.settled_at IS NULL AND o.lease_until IS NULL"

func filtered(f store.Filter) (where string, args []driver.Value) {
	var terms []string
	and := func(term string, values ...driver.Value) {
		terms, args = append(terms, term), append(args, values...)
	}
	if f.Tenant != "" {
		and("t.name = ?", f.Tenant)
	}
	if f.Intent != uuid.Nil {
		and("o.intent = ?", f.Intent[:])
	}
	if f.Parent != uuid.Nil {
		and("o.parent = ? AND o.parent IS NOT NULL", f.Parent[:])
	}
	if f.Tool != "" {
		and("o.tool = ?", f.Tool)
	}
	if !f.Node.IsZero() {
		and("o.node = ? AND o.node IS NOT NULL", f.Node[:])
	}
	if len(f.States) > 0 {
		var states []driver.Value
		for _, s := range f.States {
			states = append(states, s.String())
		}
		and("o.state IN ("+marks(len(states))+")", states...)
		if !slices.ContainsFunc(f.States, func(s store.State) bool { return s == store.Running || s.Settled() }) {
			and(waiting)
		}
	}
	and("o.id > ?", f.After[:])
	limit := int64(1000)
	if f.Limit > 0 {
		limit = int64(f.Limit)
	}
	args = append(args, limit)
	return "WHERE " + strings.Join(terms, " AND ") + " ORDER BY o.id LIMIT ?", args
}

// Events implements [store.Ledger]. The second event is read with the first, to
// which it is chained.
func (l *Ledger) Events(ctx context.Context, operation uuid.UUID, after int) ([]store.Event, error) {
	from := after
	if after == 1 {
		from = 0
	}
	var all []store.Event
	err := l.read(ctx, func(v *view) error {
		return v.query(ctx, func(values []driver.Value) error {
			var e store.Event
			_, err := decoded(values, eventColumns, &e)
			all = append(all, e)
			return err
		}, selectEvents, operation[:], int64(from))
	})
	if err != nil {
		return nil, err
	}
	store.Chain(all)
	if from != after && len(all) > 0 {
		all = all[1:]
	}
	return all, nil
}

const insertAudit = `INSERT INTO settle_audit (operation, at, kind, actor, detail) VALUES (?, ?, ?, ?, ?)`

// Audit implements [store.Ledger].
func (l *Ledger) Audit(ctx context.Context, entries ...store.Audit) error {
	entries = slices.Clone(entries)
	_, err := written(ctx, l, func(w *write) (struct{}, error) {
		for i := range entries {
			e := &entries[i]
			if _, err := w.exec(insertAudit, encode(&e.Operation), w.now.UnixMicro(), e.Kind, e.Actor, text(e.Detail)); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}
