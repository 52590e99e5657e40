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

// Purge implements [store.Ledger]: one page in three round trips, the ids, the
// tombstones that go, and the rows that are past their retention.
func (l *Ledger) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	limit := cmp.Or(max(p.Limit, 0), 1000)
	page, err := query(ctx, l, pgx.RowTo[pgtype.UUID], l.sql.purgePage, some(p.After), limit)
	if err != nil || len(page) == 0 {
		return store.Purged{}, asRead(err)
	}
	done := store.Purged{Seen: len(page)}
	if len(page) == limit {
		done.Next = page[len(page)-1].Bytes
	}
	var removed []int
	if p.Principal == [32]byte{} {
		removed, err = query(ctx, l, pgx.RowTo[int], l.sql.depart, page, span(store.ClosedGrace))
		if err != nil {
			return store.Purged{}, asWrite(err)
		}
		done.Removed = removed[0]
		removed, err = query(ctx, l, pgx.RowTo[int], l.sql.purge, page)
	} else {
		removed, err = query(ctx, l, pgx.RowTo[int], l.sql.erase, page, p.Principal[:])
	}
	if err != nil {
		return store.Purged{}, asWrite(err)
	}
	done.Removed += removed[0]
	return done, nil
}

// CloseIntent implements [store.Ledger], in a transaction: it is rare, and what
// it deletes has to be judged under the intent's lock.
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
	err := tx.QueryRow(ctx, l.sql.intentNamed, some(intent), tenant).Scan((*instant)(&closed))
	if errors.Is(err, pgx.ErrNoRows) {
		return store.ErrNotFound
	}
	if err != nil || !closed.IsZero() {
		return err
	}
	var unsettled bool
	if err := tx.QueryRow(ctx, l.sql.unsettled, some(intent)).Scan(&unsettled); err != nil {
		return err
	}
	if unsettled {
		return store.ErrUnsettled
	}
	for _, sql := range []string{l.sql.entombAll, l.sql.dropProposals, l.sql.closeIntent} {
		if _, err := tx.Exec(ctx, sql, some(intent)); err != nil {
			return err
		}
	}
	return nil
}
