package inbox

import (
	"context"
	"fmt"
	"time"
)

// PgxTx is a pgx.Tx. It is written down here so that a consumer over database/sql
// isn't built with pgx; pools and connections, which commit each statement by
// itself, don't fit.
type PgxTx[Tag interface{ RowsAffected() int64 }] interface {
	Exec(ctx context.Context, sql string, arguments ...any) (Tag, error)
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// OncePgx is [Once] in a transaction of pgx:
//
//	isNew, err := inbox.OncePgx(ctx, tx, event.Source, event.ID) // tx is a pgx.Tx
func OncePgx[Tag interface{ RowsAffected() int64 }](ctx context.Context, tx PgxTx[Tag], source, id string) (isNew bool, err error) {
	if err := check(source, id); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, record, source, id)
	if err != nil {
		return false, fmt.Errorf("inbox: record that an event was received: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// ForgetPgx is [Forget] in a transaction of pgx.
func ForgetPgx[Tag interface{ RowsAffected() int64 }](ctx context.Context, tx PgxTx[Tag], keep time.Duration) (forgotten int64, err error) {
	if err := checkMemory(keep); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, forget, int64(keep/time.Second))
	if err != nil {
		return 0, fmt.Errorf("inbox: forget old events: %w", err)
	}
	return tag.RowsAffected(), nil
}
