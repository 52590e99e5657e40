package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

const (
	extendLease = `UPDATE settle_operation SET lease_until = ?1, due_at = ?1, moment = max(coalesce(moment, 0), ?1 + visibility)
		WHERE id = ?2 AND owner = ?3 AND state = 'running' AND lease_until > ?4`
	// nextPair finds the next tool and tenant with pending rows, and when the
	// first of them is due: one step down the index, however many rows they have.
	nextPair = `SELECT tool, tenant, due_at FROM settle_operation
		WHERE due_at IS NOT NULL AND (tool, tenant) > (?, ?) ORDER BY tool, tenant, due_at LIMIT 1`
	dueOfPair = `SELECT id FROM settle_operation
		WHERE due_at IS NOT NULL AND tool = ? AND tenant = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?`
	dueAlone = `SELECT id, tool FROM settle_operation WHERE id = ? AND due_at <= ?`
	pushDue  = `UPDATE settle_operation SET due_at = ? WHERE id = ?`
)

// Renew implements [store.Ledger].
func (l *Ledger) Renew(ctx context.Context, lease time.Duration, held ...store.Held) ([]store.Held, error) {
	if len(held) == 0 {
		return nil, nil
	}
	held = slices.Clone(held)
	return written(ctx, l, func(w *write) (lost []store.Held, err error) {
		until := w.now.Add(lease).UnixMicro()
		for _, h := range held {
			w.recent.forget(h.Operation)
			n, err := w.exec(extendLease, until, h.Operation[:], h.Owner[:], w.now.UnixMicro())
			if err != nil {
				return nil, err
			}
			if n == 0 {
				lost = append(lost, h)
			}
		}
		return lost, nil
	})
}

// Take implements [store.Ledger].
func (l *Ledger) Take(ctx context.Context, t store.Take) ([]store.Entry, error) {
	t.Except = slices.Clone(t.Except)
	for {
		// Looking for what is due takes no lock, so a scan of a ledger in which
		// nothing is due costs the writers nothing.
		var found []store.Pair
		err := l.read(ctx, func(v *view) (err error) {
			found, err = v.duePairs(t)
			return err
		})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		taken, err := written(ctx, l, func(w *write) ([]store.Entry, error) { return w.take(t, found) })
		if err != nil || len(taken) > 0 {
			return taken, err
		}
		// Another taker was faster with all of them: look what is left.
	}
}

// duePairs lists the tools and tenants that have due rows, in the order in
// which they are served, as many as the limit can use: each gives one row or more.
func (v *view) duePairs(t store.Take) ([]store.Pair, error) {
	if t.Operation != uuid.Nil {
		return v.dueOperation(t)
	}
	var due []store.Pair
	full := func() bool { return t.Limit > 0 && len(due) >= t.Limit }
	for _, half := range []struct {
		from    store.Pair
		wrapped bool
	}{{from: t.After}, {wrapped: true}} {
		at, tenant := half.from, half.from.Tenant[:]
		if half.wrapped {
			tenant = []byte{} // before every tenant, also before the zero one
		}
		for !full() {
			var first int64
			var next store.Pair
			found, err := v.first([]any{&next.Tool, &next.Tenant, &first}, nextPair, at.Tool, tenant)
			if err != nil {
				return nil, err
			}
			if !found || (half.wrapped && behind(next, t.After)) {
				break
			}
			if first <= v.now.UnixMicro() && !slices.Contains(t.Except, next.Tool) {
				due = append(due, next)
			}
			at, tenant = next, next.Tenant[:]
		}
	}
	return due, nil
}

// behind says that the pair comes after the cursor.
func behind(p, cursor store.Pair) bool {
	if p.Tool != cursor.Tool {
		return p.Tool > cursor.Tool
	}
	return string(p.Tenant[:]) > string(cursor.Tenant[:])
}

// dueOperation is duePairs for one operation.
func (v *view) dueOperation(t store.Take) ([]store.Pair, error) {
	var id uuid.UUID
	var pair store.Pair
	found, err := v.first([]any{&id, &pair.Tool}, dueAlone, t.Operation[:], v.now.UnixMicro())
	if err != nil || !found || slices.Contains(t.Except, pair.Tool) {
		return nil, err
	}
	return []store.Pair{pair}, nil
}

// take pushes the due rows of the pairs past the taker's lease.
func (w *write) take(t store.Take, pairs []store.Pair) (entries []store.Entry, err error) {
	if t.Operation != uuid.Nil {
		if still, err := w.dueOperation(t); err != nil || len(still) == 0 {
			return nil, err
		}
		return w.push(entries, t, t.Operation)
	}
	for _, p := range pairs {
		limit := w.share(t, len(entries))
		if limit == 0 {
			break
		}
		var ids []uuid.UUID
		err := w.query(context.Background(), func(values []driver.Value) error {
			var id uuid.UUID
			err := decode(&id, values[0])
			ids = append(ids, id)
			return err
		}, dueOfPair, p.Tool, p.Tenant[:], w.now.UnixMicro(), limit)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if entries, err = w.push(entries, t, id); err != nil {
				return nil, err
			}
		}
	}
	return entries, nil
}

// share is how many rows the next pair may give; -1 is no bound.
func (w *write) share(t store.Take, taken int) int64 {
	each, left := int64(-1), int64(-1)
	if t.Each > 0 {
		each = int64(t.Each)
	}
	if t.Limit > 0 {
		left = int64(t.Limit - taken)
	}
	if each < 0 || (left >= 0 && left < each) {
		return left
	}
	return each
}

func (w *write) push(entries []store.Entry, t store.Take, id uuid.UUID) ([]store.Entry, error) {
	w.recent.forget(id)
	if _, err := w.exec(pushDue, w.now.Add(t.Lease).UnixMicro(), id[:]); err != nil {
		return nil, err
	}
	e, err := w.entry(context.Background(), id)
	return append(entries, e), err
}
