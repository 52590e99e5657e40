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

// Purge implements [store.Ledger]. A page on which nothing is to be done takes
// one round trip and locks nothing; what is to be done takes one more.
func (l *Ledger) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	limit := cmp.Or(max(p.Limit, 0), 1000)
	erasing := p.Principal != [32]byte{}
	sql, args := l.sql.purgePage, []any{some(p.After), limit}
	if erasing {
		sql, args = l.sql.erasePage, append(args, p.Principal[:])
	}
	page, err := l.judge(ctx, sql, args...)
	if err != nil {
		return store.Purged{}, asRead(err)
	}
	done := store.Purged{Seen: len(page)}
	if len(page) == limit {
		done.Next = page[len(page)-1].id.Bytes
	}
	ids, versions, departs := uuids(0), make([]int32, 0), make([]bool, 0)
	for _, row := range page {
		if row.due {
			ids, versions, departs = append(ids, row.id), append(versions, row.version), append(departs, row.departs)
		}
	}
	switch {
	case len(ids) == 0:
		return done, nil
	case erasing:
		done.Removed, err = l.remove(ctx, l.sql.erase, ids)
	default:
		done.Removed, err = l.remove(ctx, l.sql.purge, ids, versions, departs)
	}
	if err != nil {
		return store.Purged{}, asWrite(err)
	}
	return done, nil
}

// judged is a row of a page: whether something is to be done to it, and whether
// that is to delete it.
type judged struct {
	id           pgtype.UUID
	version      int32
	departs, due bool
}

func scanJudged(row pgx.CollectableRow) (j judged, err error) {
	err = row.Scan(&j.id, &j.version, &j.departs, &j.due)
	return j, err
}

// judge reads a page, in one round trip.
func (l *Ledger) judge(ctx context.Context, sql string, args ...any) (page []judged, err error) {
	var b pgx.Batch
	b.Queue(l.sql.uncompiled)
	b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		page, err = pgx.CollectRows(rows, scanJudged)
		return err
	})
	return page, l.send(ctx, &b)
}

func (l *Ledger) remove(ctx context.Context, sql string, args ...any) (removed int, err error) {
	var b pgx.Batch
	if l.limits {
		b.Queue(l.sql.lockLimit)
	}
	b.Queue(sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&removed) })
	return removed, l.send(ctx, &b)
}

// CloseIntent implements [store.Ledger], in a transaction: it is rare, and what
// it entombs has to be judged under the locks of the rows.
func (l *Ledger) CloseIntent(ctx context.Context, tenant string, intent uuid.UUID) error {
	conn, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return l.closeIntent(ctx, tx, tenant, intent) })
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnsettled) {
		return err
	}
	return asWrite(err)
}

func (l *Ledger) closeIntent(ctx context.Context, tx pgx.Tx, tenant string, intent uuid.UUID) error {
	var closed time.Time
	var unsettled bool
	check := func(b *pgx.Batch) {
		b.Queue(l.sql.unsettled, some(intent)).QueryRow(func(row pgx.Row) error { return row.Scan(&unsettled) })
	}
	var b pgx.Batch
	if l.limits {
		b.Queue(l.sql.lockLimit)
	}
	b.Queue(l.sql.intentNamed, some(intent), tenant).QueryRow(func(row pgx.Row) error { return row.Scan((*instant)(&closed)) })
	check(&b)
	err := tx.SendBatch(ctx, &b).Close()
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return store.ErrNotFound
	case err != nil || !closed.IsZero():
		return err
	case unsettled:
		return store.ErrUnsettled // without having waited for anybody
	}

	b = pgx.Batch{}
	b.Queue(l.sql.lockOwn, some(intent))
	check(&b)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	if unsettled {
		return store.ErrUnsettled
	}

	b = pgx.Batch{}
	for _, sql := range []string{l.sql.entombAll, l.sql.dropProposals, l.sql.emptyOutbox, l.sql.closeIntent} {
		b.Queue(sql, some(intent))
	}
	return tx.SendBatch(ctx, &b).Close()
}
