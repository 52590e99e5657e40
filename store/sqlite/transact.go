package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	modernc "modernc.org/sqlite"

	"github.com/settle-go/settle/store"
)

var _ store.Transactor = (*Ledger)(nil)

type txKey struct{}

// Tx returns the transaction that a handler of class Transactional runs in, to
// write business rows in the ledger's file that commit together with the
// operation (R53). The ledger ends it: the handler must call neither Commit nor
// Rollback, and must not use it once it has returned.
func Tx(ctx context.Context) (tx *sql.Tx, ok bool) {
	tx, ok = ctx.Value(txKey{}).(*sql.Tx)
	return tx, ok
}

// ErrNoTx says that a handler was made for the ledger's transaction and doesn't
// run in one.
var ErrNoTx = errors.New("store/sqlite: there is no transaction of a SQLite ledger in the context: declare the tool Transactional, and run it on a ledger of this package")

// InTx makes a handler of one that writes in the ledger's transaction:
//
//	Contract: settle.Contract{Class: settle.Transactional},
//	Do: sqlite.InTx(func(ctx context.Context, tx *sql.Tx, op settle.Op, in Reserve) (Reserved, error) {
//		_, err := tx.ExecContext(ctx, "UPDATE item SET free = free - 1 WHERE …")
//		…
//	}),
func InTx[Op, In, Out any](do func(ctx context.Context, tx *sql.Tx, op Op, in In) (Out, error)) func(context.Context, Op, In) (Out, error) {
	return func(ctx context.Context, op Op, in In) (out Out, err error) {
		tx, ok := Tx(ctx)
		if !ok {
			return out, ErrNoTx
		}
		return do(ctx, tx, op, in)
	}
}

// business is the connection on which a transaction is shared with handlers. It
// is database/sql's, whose transactions handlers know, and the ledger speaks to
// the driver below it.
type business struct {
	db   *sql.DB
	conn *conn // of db's one connection
}

// connector is what database/sql opens the connection with.
type connector struct {
	ledger   *Ledger
	business *business
}

func (c connector) Driver() driver.Driver { return &modernc.Driver{} }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	l := c.ledger
	if err := l.file.same(); err != nil {
		return nil, err
	}
	opened, err := connect(ctx, l.dsn(url.Values{"mode": {"rw"}, "_txlock": {"immediate"}}), l.busy, append(slices.Clone(writes), "cache_size = -4096")...)
	if err != nil {
		return nil, err
	}
	c.business.conn = opened
	return opened.raw, nil
}

func (b *business) close() error {
	if b.db == nil {
		return nil
	}
	err := b.conn.unprepare()
	return errors.Join(err, b.db.Close())
}

// Transact implements [store.Transactor]. The transaction holds the file's write
// lock until do returns: this process's other writes wait in the order in which
// they came, those of other processes for as long as their busy timeout allows.
func (l *Ledger) Transact(ctx context.Context, do func(ctx context.Context, t store.Transaction) error) error {
	if l.writer == nil {
		return &store.UnwrittenError{Err: errReadOnly}
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return &store.UnwrittenError{Err: ctx.Err()}
	}
	t, err := l.transaction(ctx)
	if err != nil {
		return unwritten(err)
	}
	err = do(context.WithValue(ctx, txKey{}, t.tx), t)
	if !t.ended && t.tx.Rollback() != nil && t.stands() {
		err = unknown(errEnded)
	}
	if lasting(err) {
		t.discard = true
	}
	return errors.Join(err, t.release())
}

// transaction opens one. It isn't bound to ctx: database/sql would roll it back
// behind the ledger's back when that ends.
func (l *Ledger) transaction(ctx context.Context) (*transaction, error) {
	if l.shutting.Load() {
		return nil, store.ErrClosed
	}
	if err := l.file.same(); err != nil {
		return nil, err
	}
	b := &l.business
	if b.db == nil {
		b.db = sql.OpenDB(connector{l, b})
		b.db.SetMaxOpenConns(1)
	}
	lone := context.WithoutCancel(ctx)
	held, err := b.db.Conn(lone)
	if err != nil {
		return nil, err
	}
	t := &transaction{ledger: l, held: held}
	err = patiently(ctx, l.busy, func() (err error) {
		t.tx, err = held.BeginTx(lone, nil)
		return err
	})
	if err == nil {
		err = t.inside(func(w *write) error {
			var stored int64
			_, err := w.first([]any{&stored}, readClock)
			t.now = l.clock.write(stored)
			return err
		})
	}
	if err != nil {
		if t.tx != nil {
			err = errors.Join(err, t.tx.Rollback())
		}
		t.discard = lasting(err)
		return nil, errors.Join(err, t.release())
	}
	return t, nil
}

// transaction is one that a handler shares. Its writes are the writer's own, on
// another connection and without what the writer remembers of rows.
type transaction struct {
	ledger  *Ledger
	held    *sql.Conn
	tx      *sql.Tx
	now     time.Time
	begun   store.Operation // what was claimed or started, by id and owner
	ended   bool            // by a commit
	discard bool            // the connection may be what failed
}

// release gives the connection back, or up.
func (t *transaction) release() error {
	err := t.held.Close()
	if t.discard {
		err = errors.Join(err, t.ledger.business.close())
		t.ledger.business = business{}
	}
	return err
}

// inside runs do on the transaction's connection, while no handler is in a
// statement of it.
func (t *transaction) inside(do func(*write) error) error {
	return t.held.Raw(func(any) error {
		return do(&write{view: view{conn: t.ledger.business.conn, now: t.now}, shapes: t.ledger.writer.shapes,
			recent: &recent{rows: map[uuid.UUID]store.Operation{}}})
	})
}

// open makes sure that the transaction is still there: without it statements
// would commit one by one.
func (t *transaction) open(ctx context.Context) error {
	_, err := t.tx.ExecContext(ctx, "SELECT 1")
	return err
}

// Claim implements [store.Transaction].
func (t *transaction) Claim(ctx context.Context, c store.Claim) (answer store.Claimed, err error) {
	if move := (store.Move{To: c.Operation.State}); !c.Look && !move.Allowed() {
		return answer, &store.MoveError{Move: move}
	}
	if err := t.open(ctx); err != nil {
		return answer, unwritten(err)
	}
	ownClaim(&c)
	err = t.inside(func(w *write) error {
		answer, err = w.claim(&c)
		return err
	})
	if answer.Won {
		t.begun = answer.Operation
	}
	return answer, unwritten(err)
}

// Apply implements [store.Transaction].
func (t *transaction) Apply(ctx context.Context, c store.Change) (row store.Operation, err error) {
	if err := t.open(ctx); err != nil {
		return row, unwritten(err)
	}
	ownChange(&c)
	err = t.inside(func(w *write) error {
		row, err = w.apply(&c)
		return err
	})
	if err == nil {
		t.begun = row
	}
	return row, unwritten(err)
}

// stands says whether the handler ended the transaction by a commit, or so that
// nobody can say.
func (t *transaction) stands() (stands bool) {
	err := t.inside(func(w *write) (err error) {
		stands, err = w.has("SELECT 1 FROM settle_operation WHERE id = ? AND owner = ?", t.begun.ID[:], t.begun.Owner[:])
		return err
	})
	return stands || err != nil
}

// Commit implements [store.Transaction].
func (t *transaction) Commit(ctx context.Context, c store.Change) (row store.Operation, err error) {
	if err := t.open(ctx); err != nil {
		if errors.Is(err, sql.ErrTxDone) {
			err = errEnded // and if that was a commit, Transact finds it out
		}
		return row, unwritten(err)
	}
	ownChange(&c)
	err = t.inside(func(w *write) error {
		w.now = t.ledger.clock.write(t.now.UnixMicro())
		if row, err = w.apply(&c); err != nil {
			return err
		}
		_, err := w.exec("UPDATE settle_clock SET at = ?", w.now.UnixMicro())
		return err
	})
	if err != nil {
		return row, unwritten(err)
	}
	t.ended = true
	err = t.tx.Commit()
	switch {
	case err == nil:
		return row, nil
	case neverCommitted(err):
		// SQLite leaves the transaction open after a deferred constraint; the
		// connection is closed with it.
		t.discard = true
		return store.Operation{}, unwritten(err)
	}
	return store.Operation{}, unknown(err)
}

var errEnded = errors.New("store/sqlite: the handler ended the ledger's transaction itself, which only the ledger may: return an error to roll it back, and call neither Commit nor Rollback")

// Abandon implements [store.Transaction]. The handler's statements end with
// their context; Transact rolls back what there is.
func (t *transaction) Abandon() {}
