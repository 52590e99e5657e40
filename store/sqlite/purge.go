package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

const (
	purgePage = `SELECT id FROM settle_operation WHERE id > ? ORDER BY id LIMIT ?`
	// entomb leaves of a row what has to be known for ever (R51).
	entomb = `UPDATE settle_operation SET flags = flags | ?, arguments = NULL, result = NULL, fields = NULL,
		fingerprint = NULL, trace = NULL, call_id = NULL WHERE id = ? AND flags & ? = 0 `
	// retired is a row past its retention that hangs on nothing open.
	retired = `AND settled_at IS NOT NULL AND retention > 0 AND settled_at + retention <= ?
		AND NOT EXISTS (SELECT 1 FROM settle_operation p WHERE p.id = settle_operation.parent AND p.settled_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM settle_operation k
			WHERE k.parent = settle_operation.id AND k.parent IS NOT NULL AND k.settled_at IS NULL)
		AND NOT EXISTS (SELECT 1 FROM settle_case c WHERE c.operation = settle_operation.id AND c.closed_at IS NULL)`
	// A proposal holds the result that a person gave.
	dropProposal = `UPDATE settle_case SET proposal = NULL WHERE operation = ? AND proposal IS NOT NULL`
	ofPrincipal  = `AND intent IN (SELECT id FROM settle_intent WHERE principal = ?)`
)

// Purge implements [store.Ledger]. The page is found without the writer; each
// row is judged again under the lock.
func (l *Ledger) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	limit := cmp.Or(max(p.Limit, 0), 1000)
	var page []uuid.UUID
	err := l.read(ctx, func(v *view) error {
		return v.query(ctx, func(values []driver.Value) error {
			var id uuid.UUID
			err := decode(&id, values[0])
			page = append(page, id)
			return err
		}, purgePage, p.After[:], int64(limit))
	})
	if err != nil || len(page) == 0 {
		return store.Purged{}, err
	}
	done := store.Purged{Seen: len(page)}
	if len(page) == limit {
		done.Next = page[len(page)-1]
	}
	done.Removed, err = written(ctx, l, func(w *write) (int, error) { return w.purge(page, p.Principal) })
	return done, err
}

func (w *write) purge(page []uuid.UUID, principal [32]byte) (removed int, err error) {
	for _, id := range page {
		w.recent.forget(id)
		if principal == [32]byte{} {
			if gone, err := w.remove(id); err != nil {
				return 0, err
			} else if gone {
				removed++
				continue
			}
		}
		args := []driver.Value{int64(store.FlagPurged), id[:], int64(store.FlagPurged)}
		sql := entomb + retired
		if principal != [32]byte{} {
			sql, args = entomb+ofPrincipal, append(args, principal[:])
		} else {
			args = append(args, w.now.UnixMicro())
		}
		n, err := w.exec(sql, args...)
		if err != nil {
			return 0, err
		}
		if removed += int(n); n == 0 {
			continue
		}
		if _, err := w.exec(dropProposal, id[:]); err != nil {
			return 0, err
		}
	}
	return removed, nil
}

// departed are the rows of the page that go: tombstones of intents that are
// closed for long enough, but for what has to stand in the way of others for
// ever (R14, R31).
const departed = `id = ? AND settled_at IS NOT NULL AND NOT (state <> 'failed' AND (unique_digest IS NOT NULL OR resource_key IS NOT NULL))
	AND EXISTS (SELECT 1 FROM settle_intent i WHERE i.id = intent AND i.closed_at IS NOT NULL AND i.closed_at <= ?)
	AND NOT EXISTS (SELECT 1 FROM settle_case c WHERE c.operation = settle_operation.id AND c.closed_at IS NULL)`

const (
	leaves       = `SELECT 1 FROM settle_operation WHERE ` + departed
	deleteCases  = `DELETE FROM settle_case WHERE operation = ?`
	deleteEvents = `DELETE FROM settle_event WHERE operation = ?`
	deleteRow    = `DELETE FROM settle_operation WHERE id = ?`
)

// remove deletes a row that goes, with its journal and its cases.
func (w *write) remove(id uuid.UUID) (gone bool, err error) {
	before := w.now.Add(-store.ClosedGrace).UnixMicro()
	if gone, err = w.has(leaves, id[:], before); err != nil || !gone {
		return false, err
	}
	for _, sql := range []string{deleteCases, deleteEvents, deleteRow} {
		if _, err := w.exec(sql, id[:]); err != nil {
			return false, err
		}
	}
	return true, nil
}

const (
	intentNamed = `SELECT i.closed_at FROM settle_intent i JOIN settle_tenant t ON t.id = i.tenant WHERE i.id = ? AND t.name = ?`
	unsettled   = `SELECT 1 FROM settle_operation o WHERE intent = ? AND (settled_at IS NULL
		OR EXISTS (SELECT 1 FROM settle_case c WHERE c.operation = o.id AND c.closed_at IS NULL)) LIMIT 1`
	closeIntent = `UPDATE settle_intent SET closed_at = ?, subject = '', task = '', goal = '' WHERE id = ?`
	entombAll   = `UPDATE settle_operation SET flags = flags | ?, arguments = NULL, result = NULL, fields = NULL,
		fingerprint = NULL, trace = NULL, call_id = NULL WHERE intent = ?`
	dropProposals = `UPDATE settle_case SET proposal = NULL WHERE operation IN (SELECT id FROM settle_operation WHERE intent = ?)`
)

// CloseIntent implements [store.Ledger].
func (l *Ledger) CloseIntent(ctx context.Context, tenant string, intent uuid.UUID) error {
	_, err := written(ctx, l, func(w *write) (struct{}, error) { return struct{}{}, w.closeIntent(tenant, intent) })
	return err
}

func (w *write) closeIntent(tenant string, intent uuid.UUID) error {
	var of store.Intent
	found, err := w.first([]any{&of.ClosedAt}, intentNamed, intent[:], tenant)
	if err != nil {
		return err
	}
	if !found {
		return store.ErrNotFound
	}
	if !of.ClosedAt.IsZero() {
		return nil
	}
	if open, err := w.has(unsettled, intent[:]); err != nil || open {
		return cmp.Or[error](err, store.ErrUnsettled)
	}
	w.recent.clear()
	if _, err := w.exec(entombAll, int64(store.FlagPurged), intent[:]); err != nil {
		return err
	}
	if _, err := w.exec(dropProposals, intent[:]); err != nil {
		return err
	}
	_, err = w.exec(closeIntent, w.now.UnixMicro(), intent[:])
	return err
}
