package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// A purge judges a row at the ledger's instant ?2. An intent is closed for long
// enough where that was before ?3, and ?4 marks tombstones.
const (
	// hangs is true of what something open keeps: an unsettled relative or an
	// incident (R51).
	hangs = `(EXISTS (SELECT 1 FROM settle_operation p WHERE p.id = o.parent AND p.settled_at IS NULL)
		OR EXISTS (SELECT 1 FROM settle_operation k WHERE k.parent = o.id AND k.parent IS NOT NULL AND k.settled_at IS NULL)
		OR EXISTS (SELECT 1 FROM settle_case c WHERE c.operation = o.id AND c.closed_at IS NULL))`
	// departs is true of what is deleted: all of a closed intent but what has to
	// stand in the way of others for ever (R14, R31).
	departs = `(o.settled_at IS NOT NULL AND EXISTS (SELECT 1 FROM settle_intent i WHERE i.id = o.intent AND i.closed_at <= ?3)
		AND (o.state = 'failed' OR (o.unique_digest IS NULL AND o.resource_key IS NULL)) AND NOT ` + hangs + `)`
	// retired is true of what loses its payload.
	retired = `(o.settled_at IS NOT NULL AND o.retention > 0 AND o.settled_at + o.retention <= ?2 AND o.flags & ?4 = 0 AND NOT ` + hangs + `)`

	purgePage = `SELECT o.id, ` + departs + ` OR ` + retired + ` FROM settle_operation o WHERE o.id > ?1 ORDER BY o.id LIMIT ?5`
	purged    = `SELECT ` + departs + ` FROM settle_operation o WHERE o.id = ?1 AND (` + departs + ` OR ` + retired + `)`
	erasePage = `SELECT o.id, o.flags & ?2 = 0 AND EXISTS (SELECT 1 FROM settle_intent i WHERE i.id = o.intent AND i.principal = ?3)
		FROM settle_operation o WHERE o.id > ?1 ORDER BY o.id LIMIT ?4`
)

// purgeWrite bounds what a purge does in one transaction, since all that others
// write meanwhile waits for its end.
const purgeWrite = 2 * time.Millisecond

// Purge implements [store.Ledger]. The page is read without the writer, so that
// one on which nothing is to be done costs the writers nothing; what is judged
// so is judged again under the lock. It is written in short transactions, and
// after each the writer is left to others for as long (R52).
func (l *Ledger) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	limit := cmp.Or(max(p.Limit, 0), 1000)
	var done store.Purged
	var last uuid.UUID
	var page []uuid.UUID
	err := l.read(ctx, func(v *view) error {
		sql, args := purgePage, append(v.purgeArgs(p.After), int64(limit))
		if p.Principal != [32]byte{} {
			sql, args = erasePage, []driver.Value{p.After[:], int64(store.FlagPurged), p.Principal[:], int64(limit)}
		}
		done, page = store.Purged{}, nil
		return v.query(ctx, func(values []driver.Value) error {
			var due bool
			err := decodeAll([]any{&last, &due}, values)
			if done.Seen++; due {
				page = append(page, last)
			}
			return err
		}, sql, args...)
	})
	if err != nil {
		return store.Purged{}, err
	}
	if done.Seen == limit {
		done.Next = last
	}
	if len(page) == 0 {
		return done, nil
	}
	// An interruption is seen between two parts only: whoever left one on its way
	// couldn't say whether it was written.
	uncut := context.WithoutCancel(ctx)
	for {
		began := time.Now()
		part, err := written(uncut, l, func(w *write) (purgedPart, error) { return w.purge(page, p) })
		if err != nil {
			return store.Purged{}, err
		}
		done.Removed += part.removed
		if page = page[part.seen:]; len(page) == 0 {
			return done, nil
		}
		if err := rest(ctx, time.Since(began)); err != nil {
			return store.Purged{}, err
		}
	}
}

// purgedPart is how many rows of a page a transaction got through, and how many
// of them it changed.
type purgedPart struct{ seen, removed int }

// rest leaves the writer to others.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &store.UnwrittenError{Err: ctx.Err()}
	}
}

func (v *view) purgeArgs(id uuid.UUID) []driver.Value {
	return []driver.Value{id[:], v.now.UnixMicro(), v.now.Add(-store.ClosedGrace).UnixMicro(), int64(store.FlagPurged)}
}

// purge takes the payloads of the page's first rows, or the rows: one at least,
// and as many as there is time for.
func (w *write) purge(page []uuid.UUID, p store.Purge) (part purgedPart, err error) {
	for began := time.Now(); part.seen < len(page) && (part.seen == 0 || time.Since(began) < purgeWrite); part.seen++ {
		id, goes := page[part.seen], false
		if p.Principal == [32]byte{} {
			due, err := w.first([]any{&goes}, purged, w.purgeArgs(id)...)
			if err != nil {
				return part, err
			}
			if !due {
				continue
			}
		}
		w.recent.forget(id)
		do := w.entomb
		if goes {
			do = w.remove
		}
		n, err := do(id)
		if err != nil {
			return part, err
		}
		part.removed += n
	}
	return part, nil
}

const (
	// bare leaves of a row what has to be known for ever (R51).
	bare = `UPDATE settle_operation SET flags = flags | ?1, arguments = NULL, result = NULL, fields = NULL,
		fingerprint = NULL, trace = NULL, call_id = NULL WHERE flags & ?1 = 0 AND `
	entomb    = bare + `id = ?2`
	entombAll = bare + `intent = ?2`
	// A proposal holds the result that a person gave.
	dropProposal  = `UPDATE settle_case SET proposal = NULL WHERE operation = ? AND proposal IS NOT NULL`
	emptyOutgoing = `UPDATE settle_outbox SET data = NULL WHERE operation = ? AND data IS NOT NULL`
	emptyOutbox   = `UPDATE settle_outbox SET data = NULL WHERE intent = ? AND data IS NOT NULL`
	dropProposals = `UPDATE settle_case SET proposal = NULL
		WHERE operation IN (SELECT id FROM settle_operation WHERE intent = ?) AND proposal IS NOT NULL`
)

func (w *write) entomb(id uuid.UUID) (int, error) {
	n, err := w.exec(entomb, int64(store.FlagPurged), id[:])
	if err == nil && n > 0 {
		_, err = w.exec(dropProposal, id[:])
	}
	if err == nil && n > 0 {
		_, err = w.exec(emptyOutgoing, id[:])
	}
	return int(n), err
}

const (
	// keepResource keeps a deleted operation's resource from settling another one (R34).
	keepResource = `INSERT INTO settle_outcome (tool, resource_digest) SELECT tool, resource_digest FROM settle_operation
		WHERE id = ? AND state = 'completed' AND resource_digest IS NOT NULL ON CONFLICT DO NOTHING`
	deleteCases  = `DELETE FROM settle_case WHERE operation = ?`
	deleteEvents = `DELETE FROM settle_event WHERE operation = ?`
	deleteRow    = `DELETE FROM settle_operation WHERE id = ?`
)

// remove deletes a row with its journal and its cases.
func (w *write) remove(id uuid.UUID) (int, error) {
	for _, sql := range []string{keepResource, deleteCases, deleteEvents, deleteRow} {
		if _, err := w.exec(sql, id[:]); err != nil {
			return 0, err
		}
	}
	return 1, nil
}

const (
	intentNamed = `SELECT i.closed_at FROM settle_intent i JOIN settle_tenant t ON t.id = i.tenant WHERE i.id = ? AND t.name = ?`
	unsettled   = `SELECT 1 FROM settle_operation o WHERE intent = ? AND (settled_at IS NULL
		OR EXISTS (SELECT 1 FROM settle_case c WHERE c.operation = o.id AND c.closed_at IS NULL)) LIMIT 1`
	closeIntent = `UPDATE settle_intent SET closed_at = ?, subject = '', task = '', goal = '' WHERE id = ?`
)

// CloseIntent implements [store.Ledger].
func (l *Ledger) CloseIntent(ctx context.Context, tenant string, intent uuid.UUID) error {
	return l.write(ctx, func(w *write) error { return w.closeIntent(tenant, intent) })
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
	for _, sql := range []string{dropProposals, emptyOutbox} {
		if _, err := w.exec(sql, intent[:]); err != nil {
			return err
		}
	}
	_, err = w.exec(closeIntent, w.now.UnixMicro(), intent[:])
	return err
}
