package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// view is the ledger as one transaction sees it at one instant.
type view struct {
	*conn
	now time.Time
}

// operations selects rows without their intents; where is what follows the
// columns.
func (v *view) operations(where string, args ...driver.Value) (all []store.Operation, err error) {
	err = v.query(context.Background(), func(values []driver.Value) error {
		o, _, err := v.operation(values)
		all = append(all, o)
		return err
	}, selectOperation+where, args...)
	return all, err
}

// entries selects rows with their intents.
func (v *view) entries(ctx context.Context, where string, args ...driver.Value) (all []store.Entry, err error) {
	err = v.query(ctx, func(values []driver.Value) (err error) {
		var e store.Entry
		if e.Operation, values, err = v.operation(values); err != nil {
			return err
		}
		_, err = decoded(values, intentColumns, &e.Of)
		all = append(all, e)
		return err
	}, selectEntry+where, args...)
	return all, err
}

func (v *view) operation(values []driver.Value) (o store.Operation, rest []driver.Value, err error) {
	rest, err = decoded(values, operationColumns, &o)
	o.Read = v.now
	return o, rest, err
}

// row returns one operation.
func (v *view) row(id uuid.UUID) (store.Operation, error) {
	all, err := v.operations("WHERE o.id = ?", id[:])
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Operation{}, err
	}
	return all[0], nil
}

// entry returns one operation with its intent.
func (v *view) entry(ctx context.Context, id uuid.UUID) (store.Entry, error) {
	all, err := v.entries(ctx, "WHERE o.id = ?", id[:])
	if err == nil && len(all) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Entry{}, err
	}
	return all[0], nil
}

// intent returns the row with the digest, if there is one.
func (v *view) intent(digest [32]byte) (i store.Intent, found bool, err error) {
	err = v.query(context.Background(), func(values []driver.Value) error {
		found = true
		_, err := decoded(values, intentColumns, &i)
		return err
	}, selectIntent+"WHERE i.digest = ?", digest[:])
	return i, found, err
}

// has says whether the statement has a row.
func (v *view) has(sql string, args ...driver.Value) (found bool, err error) {
	err = v.query(context.Background(), func([]driver.Value) error {
		found = true
		return nil
	}, sql, args...)
	return found, err
}
