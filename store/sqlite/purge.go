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

const (
	intentNamed = `SELECT i.closed_at FROM settle_intent i JOIN settle_tenant t ON t.id = i.tenant WHERE i.id = ? AND t.name = ?`
	unsettled   = `SELECT 1 FROM settle_operation o WHERE intent = ? AND (settled_at IS NULL
		OR EXISTS (SELECT 1 FROM settle_case c WHERE c.operation = o.id AND c.closed_at IS NULL)) LIMIT 1`
	closeIntent = `UPDATE settle_intent SET closed_at = ?, subject = '', task = '', goal = '' WHERE id = ?`
	// What has to stand in the way of others for ever becomes a tombstone: the one
	// operation that Unique admits (R14), and the writes on a resource, without
	// which an older one that they overtook would start again (R31).
	stays        = `(state <> 'failed' AND (unique_digest IS NOT NULL OR resource_key IS NOT NULL))`
	keepStanding = `UPDATE settle_operation SET flags = flags | ?, arguments = NULL, result = NULL, fields = NULL,
		fingerprint = NULL, trace = NULL, call_id = NULL WHERE intent = ? AND ` + stays
	dropProposals    = `UPDATE settle_case SET proposal = NULL WHERE operation IN (SELECT id FROM settle_operation WHERE intent = ?)`
	gone             = `(SELECT id FROM settle_operation WHERE intent = ? AND NOT ` + stays + `)`
	deleteCases      = `DELETE FROM settle_case WHERE operation IN ` + gone
	deleteEvents     = `DELETE FROM settle_event WHERE operation IN ` + gone
	deleteOperations = `DELETE FROM settle_operation WHERE intent = ? AND NOT ` + stays
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
	if _, err := w.exec(keepStanding, int64(store.FlagPurged), intent[:]); err != nil {
		return err
	}
	for _, sql := range []string{dropProposals, deleteCases, deleteEvents, deleteOperations} {
		if _, err := w.exec(sql, intent[:]); err != nil {
			return err
		}
	}
	_, err = w.exec(closeIntent, w.now.UnixMicro(), intent[:])
	return err
}
