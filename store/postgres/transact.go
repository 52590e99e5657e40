package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/store"
)

var _ store.Transactor = (*Ledger)(nil)

type txKey struct{}

// Tx returns the transaction that a handler of class Transactional runs in, to
// write business rows that commit together with the operation (R53). The ledger
// ends it: Commit and Rollback are refused, and Begin makes a savepoint. It must
// not be used once the handler has returned.
func Tx(ctx context.Context) (tx pgx.Tx, ok bool) {
	tx, ok = ctx.Value(txKey{}).(pgx.Tx)
	return tx, ok
}

// ErrNoTx says that a handler was made for the ledger's transaction and doesn't
// run in one.
var ErrNoTx = errors.New("store/postgres: there is no transaction of a PostgreSQL ledger in the context: declare the tool Transactional, and run it on a ledger of this package")

// InTx makes a handler of one that writes in the ledger's transaction:
//
//	Contract: settle.Contract{Class: settle.Transactional},
//	Do: postgres.InTx(func(ctx context.Context, tx pgx.Tx, op settle.Op, in Reserve) (Reserved, error) {
//		_, err := tx.Exec(ctx, "UPDATE item SET free = free - 1 WHERE …")
//		…
//	}),
func InTx[Op, In, Out any](do func(ctx context.Context, tx pgx.Tx, op Op, in In) (Out, error)) func(context.Context, Op, In) (Out, error) {
	return func(ctx context.Context, op Op, in In) (out Out, err error) {
		tx, ok := Tx(ctx)
		if !ok {
			return out, ErrNoTx
		}
		return do(ctx, tx, op, in)
	}
}

// handlerTx is the transaction as a handler has it: the ledger ends it.
type handlerTx struct{ pgx.Tx }

var errNotYours = errors.New("store/postgres: the ledger ends this transaction, with what the handler returns: return an error to roll it back")

func (handlerTx) Commit(context.Context) error   { return errNotYours }
func (handlerTx) Rollback(context.Context) error { return errNotYours }

// Transact implements [store.Transactor]. Beside what do itself sends it takes
// three round trips: the begin, the claim, and the outcome with the commit.
func (l *Ledger) Transact(ctx context.Context, do func(ctx context.Context, t store.Transaction) error) error {
	conn, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	t := &transaction{conn: conn.pooled}
	defer func() {
		if t.abandoned.Load() {
			// The handler may still be using it: the pool must not hand it out again.
			_ = t.conn.Hijack().PgConn().Conn().Close()
			return
		}
		conn.Release()
	}()
	t.tx, err = conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin(ctx)})
	if err != nil {
		return fromRead(err) // nothing of it was begun
	}
	t.ledger = l.over(conn)
	err = do(context.WithValue(ctx, txKey{}, pgx.Tx(handlerTx{t.tx})), t)
	if t.ended || t.abandoned.Load() {
		return err
	}
	if c := conn.Conn().PgConn(); !t.sent && c.TxStatus() == 'I' && !c.IsClosed() {
		return unanswered(errEnded)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if lost := t.tx.Rollback(ctx); lost != nil && err == nil {
		return fromRead(lost) // a connection that is lost rolls back as well
	}
	return err
}

// begin makes the server end a transaction that stands still for longer than the
// context allows, such as that of a machine that is gone: its locks are in
// everybody's way (R53).
func begin(ctx context.Context) string {
	deadline, ok := ctx.Deadline()
	if !ok {
		return "begin"
	}
	return fmt.Sprintf("begin; set local idle_in_transaction_session_timeout = %d", max(time.Until(deadline).Milliseconds(), 1))
}

// rollbackTimeout bounds the wait for the answer to a rollback. Without one the
// connection is closed, which rolls back as well.
const rollbackTimeout = 2 * time.Second

var errEnded = errors.New("store/postgres: the handler ended the ledger's transaction by a statement of its own, which only the ledger may: return an error to roll it back")

// over is the ledger on one connection that is held already.
func (l *Ledger) over(held leased) *Ledger {
	held.kept = true
	return &Ledger{pool: l.pool, schema: l.schema, sql: l.sql, limits: l.limits, held: &held}
}

// leased is a connection of the pool, or one that its holder goes on to keep.
type leased struct {
	*pooled
	kept bool
}

type pooled = pgxpool.Conn

// Release gives the connection back, unless its holder keeps it.
func (c leased) Release() {
	if !c.kept {
		c.pooled.Release()
	}
}

type transaction struct {
	ledger    *Ledger // on the transaction's connection
	conn      *pgxpool.Conn
	tx        pgx.Tx
	sent      bool // the commit
	ended     bool // by the commit
	abandoned atomic.Bool
}

// Claim implements [store.Transaction].
func (t *transaction) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	claimed, err := t.ledger.Claim(ctx, c)
	if err != nil {
		return store.Claimed{}, uncommitted(err)
	}
	return claimed[0], nil
}

// Apply implements [store.Transaction].
func (t *transaction) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	row, err := t.ledger.Apply(ctx, c)
	return row, uncommitted(err)
}

// uncommitted says that an error came before the commit was sent, so that what
// it leaves open is decided: whatever reached the server is rolled back.
func uncommitted(err error) error {
	if err == nil || store.Unwritten(err) {
		return err
	}
	return &store.UnwrittenError{Err: err, Again: true}
}

var errNotMoved = errors.New("store/postgres: the operation moved on inside its own transaction, which was committed without its outcome")

// Commit implements [store.Transaction]: one round trip.
func (t *transaction) Commit(ctx context.Context, c store.Change) (row store.Operation, err error) {
	if move := (store.Move{From: c.Of.State, To: c.To}); !move.Allowed() {
		return row, &store.MoveError{Move: move}
	}
	e := store.NextEvent(c)
	var moved instants
	var b pgx.Batch
	t.ledger.plainly(&c, &e, &moved).queue(&b)
	t.ledger.queueAnnounce(&b, c.Of.ID, e.Seq, e.Hash[:], c.Announce)
	b.Queue("COMMIT")
	t.sent = true
	err = t.conn.SendBatch(ctx, &b).Close()
	if err != nil {
		return row, fromWrite(err)
	}
	t.ended = true
	if moved.tailAt.IsZero() {
		return row, errNotMoved
	}
	return after(&c, &e, &moved), nil
}

// Abandon implements [store.Transaction]: the server rolls back what it has of
// the transaction when it finds the connection closed.
func (t *transaction) Abandon() {
	t.abandoned.Store(true)
	_ = t.conn.Conn().PgConn().Conn().Close()
}
