package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/settle-go/settle/store"
)

// write is the open transaction as a request sees it.
type write struct {
	view
	// since is the ledger's instant before the transaction, once it is read.
	since *int64
	// changed says that something was written since the transaction began.
	changed bool
	shapes  shapes
	recent  *recent
	// What a write works on, used again by each: its row as it was and as it will
	// be, its event, and the arguments of a statement that has many.
	before, after store.Operation
	event         store.Event
	args          []driver.Value
}

// exec runs a statement that writes.
func (w *write) exec(sql string, args ...driver.Value) (int64, error) {
	n, err := w.view.exec(sql, args...)
	w.changed = w.changed || n > 0
	return n, err
}

func (w *writer) transaction() *write {
	return &write{view: view{conn: w.conn}, shapes: w.shapes, recent: &w.recent}
}

// begin takes the database's write lock.
func (w *writer) begin() error {
	if err := w.ledger.file.same(); err != nil {
		return err
	}
	if w.conn == nil {
		c, err := w.ledger.connectWriter(context.Background())
		if err != nil {
			return err
		}
		w.conn = c
	}
	err := w.patiently("BEGIN IMMEDIATE")
	if err == nil {
		err = w.recent.refresh(w.conn)
	}
	if err != nil {
		w.rollback(err)
	}
	return err
}

// patiently runs a statement that may have to wait for another process.
func (w *writer) patiently(statement string) error {
	return patiently(context.Background(), w.ledger.busy, func() error {
		_, err := w.conn.exec(statement)
		return err
	})
}

// perform runs the requests of a batch. Without savepoints it stops at the
// first that fails; with them it undoes what that one did and goes on.
func (w *writer) perform(tx *write, batch []*request, results []error, savepoints bool) error {
	if tx.since == nil {
		tx.since = new(int64)
		if _, err := tx.first([]any{tx.since}, readClock); err != nil {
			return err
		}
	}
	for i, r := range batch {
		tx.now = w.ledger.clock.write(*tx.since)
		run := r.do
		if savepoints {
			run = isolated(r.do)
		}
		results[i] = run(tx)
		var kept *keptError
		if err := results[i]; errors.As(err, &kept) {
			results[i] = unwritten(kept.error)
		} else if err != nil && !refusal(err) {
			return err
		}
	}
	return nil
}

// keptError is the failure of a request that left the transaction intact.
type keptError struct{ error }

// isolated puts a savepoint round a request.
func isolated(do func(*write) error) func(*write) error {
	return func(tx *write) error {
		if _, err := tx.conn.exec("SAVEPOINT request"); err != nil {
			return err
		}
		err := do(tx)
		if err != nil && !refusal(err) {
			// Some errors (a full disk, a failed read) end the whole
			// transaction: then there is no savepoint to go back to.
			tx.recent.clear()
			if _, lost := tx.conn.exec("ROLLBACK TO request"); lost != nil {
				return err
			}
			err = &keptError{err}
		}
		if _, lost := tx.conn.exec("RELEASE request"); lost != nil {
			return errors.Join(err, lost)
		}
		return err
	}
}

// again runs a batch that failed once more, each request in a savepoint. That
// it takes two passes keeps the savepoints' cost off the batches in which
// nothing fails, which are nearly all.
func (w *writer) again(batch []*request, results []error, cause error) (*write, error) {
	w.rollback(cause)
	if err := w.begin(); err != nil {
		return nil, err
	}
	tx := w.transaction()
	return tx, w.perform(tx, batch, results, true)
}

// commit stores the ledger's instant and commits. Its error is for the callers.
func (w *writer) commit(tx *write) error {
	if !tx.changed {
		if _, err := tx.conn.exec("COMMIT"); err != nil {
			w.rollback(err)
		}
		return nil
	}
	if _, err := tx.exec("UPDATE settle_clock SET at = ?", tx.now.UnixMicro()); err != nil {
		w.rollback(err)
		return unwritten(err)
	}
	if err := w.patiently("COMMIT"); err != nil { // in WAL mode it never waits
		certain := neverCommitted(err)
		w.rollback(err)
		if certain {
			return unwritten(err)
		}
		return unknown(err)
	}
	return nil
}

// rollback ends the transaction, if there is one, and gives up a connection
// that failed in a way that may last.
func (w *writer) rollback(cause error) {
	if w.conn == nil {
		return
	}
	w.recent.clear()
	_, err := w.conn.exec("ROLLBACK")
	if (cause == nil && err != nil) || lasting(cause) {
		_ = w.conn.close() // the next batch opens another one
		w.conn = nil
	}
}
