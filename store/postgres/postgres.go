package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/store"
)

// Ledger is a ledger in a PostgreSQL database. It is safe for use by several
// goroutines, and any number of processes may have one on the same schema.
type Ledger struct {
	pool   *pgxpool.Pool
	schema string
	sql    statements
	limits bool // whether batches set a lock_timeout of their own
	closed atomic.Bool
	watch  watch
	held   *leased // the connection of the transaction that this is the ledger of

	// Claims and ends of first executions; nil where the ledger is a transaction's.
	claims, ends *shared
}

var _ store.Ledger = (*Ledger)(nil)

// defaultLockWait is below the margin that a lease leaves for recording.
const defaultLockWait = 2 * time.Second

type config struct {
	schema     string
	lockWait   time.Duration
	unmigrated bool
}

func newConfig() config { return config{schema: DefaultSchema, lockWait: defaultLockWait} }

// Option configures [New].
type Option interface{ applyToLedger(*config) }

// SchemaOption configures [New], [Migrate] and [Migrations] alike.
type SchemaOption interface {
	Option
	applyToSchema(*config)
}

type schemaOption string

func (o schemaOption) applyToLedger(c *config) { c.schema = string(o) }
func (o schemaOption) applyToSchema(c *config) { c.schema = string(o) }

// WithSchema names the PostgreSQL schema that holds the ledger's tables and
// types, [DefaultSchema] otherwise. Two ledgers in one database have two schemas.
func WithSchema(name string) SchemaOption { return schemaOption(name) }

type ledgerOption func(*config)

func (o ledgerOption) applyToLedger(c *config) { o(c) }

// WithoutMigration makes [New] leave the schema as it is: one that isn't there
// or is older than this program is a [*store.SchemaError]. It is for roles that
// may not change a schema, and for deployments that call [Migrate], or run what
// [Migrations] returns, as a step of their own.
func WithoutMigration() Option { return ledgerOption(func(c *config) { c.unmigrated = true }) }

// WithLockWait bounds how long a statement that takes locks waits for them, 2 s
// otherwise. What runs into it wrote nothing and may be made again. It has to
// stay below the margin that a lease leaves for recording. Where the role's or
// the database's lock_timeout is shorter, that one holds.
func WithLockWait(d time.Duration) Option { return ledgerOption(func(c *config) { c.lockWait = d }) }

// New returns the ledger in the pool's database and brings its schema up to
// date, unless [WithoutMigration] says otherwise. The pool stays the caller's:
// [Ledger.Close] leaves it open.
//
// Errors: [*store.SchemaError] where the schema is newer than this program, or
// older under WithoutMigration; [*IsolationError] where transactions don't run
// at read committed; else what the database said.
func New(ctx context.Context, pool *pgxpool.Pool, options ...Option) (*Ledger, error) {
	if pool == nil {
		return nil, errNoPool
	}
	c := newConfig()
	for _, o := range options {
		o.applyToLedger(&c)
	}
	if c.lockWait < time.Millisecond {
		return nil, fmt.Errorf("store/postgres: a lock wait of %v: it must be 1 ms or more", c.lockWait)
	}
	session, err := inspect(ctx, pool)
	if err != nil {
		return nil, err
	}
	if c.unmigrated {
		err = checkVersion(ctx, pool, c.schema)
	} else {
		err = migrate(ctx, pool, c.schema)
	}
	if err != nil {
		return nil, err
	}
	limit := lockLimit{wait: c.lockWait, session: session > 0 && session <= c.lockWait}
	if limit.session {
		limit.wait = session
	}
	texts, err := newStatements(c.schema, limit)
	if err != nil {
		return nil, err
	}
	l := &Ledger{pool: pool, schema: c.schema, sql: texts, limits: !limit.session}
	l.claims, l.ends = newShared(l), newShared(l)
	return l, nil
}

var errNoPool = errors.New("store/postgres: the pool is nil: make one with pgxpool.New")

// IsolationError says that the database's transactions run at an isolation
// level at which a claim that comes too late fails instead of reading the row.
type IsolationError struct{ Level string }

func (e *IsolationError) Error() string {
	return fmt.Sprintf("store/postgres: default_transaction_isolation is %q and the ledger needs \"read committed\": set it for the role (ALTER ROLE … SET default_transaction_isolation) or in the connection string", e.Level)
}

// inspect reads the session's lock_timeout and refuses another isolation level.
func inspect(ctx context.Context, pool *pgxpool.Pool) (lockTimeout time.Duration, err error) {
	const query = `SELECT current_setting('default_transaction_isolation'), setting::bigint FROM pg_settings WHERE name = 'lock_timeout'`
	var level string
	var ms int64
	if err := pool.QueryRow(ctx, query).Scan(&level, &ms); err != nil {
		return 0, fromRead(err)
	}
	if level != "read committed" {
		return 0, &IsolationError{Level: level}
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// Info implements [store.Ledger].
func (l *Ledger) Info() store.Info { return store.Info{Name: "postgres", Durable: true} }

// Close implements [store.Ledger]. It leaves the pool open.
func (l *Ledger) Close() error {
	l.closed.Store(true)
	l.watch.close()
	return nil
}

// acquire takes a connection. Nothing was sent before it has one.
func (l *Ledger) acquire(ctx context.Context) (leased, error) {
	if l.held != nil {
		return *l.held, nil
	}
	if l.closed.Load() {
		return leased{}, store.ErrClosed
	}
	conn, err := l.pool.Acquire(ctx)
	switch {
	case err == nil:
		return leased{pooled: conn}, nil
	case err.Error() == closedPool:
		return leased{}, store.ErrClosed
	}
	return leased{}, fromRead(err)
}

// closedPool is what pgxpool says, without a name for it, once its owner has
// closed the pool: no connection will ever come of it.
const closedPool = "closed pool"

// connectBeside opens a connection like the pool's and leaves those of the pool to
// others. The host may have its word on each, such as a password of the hour.
func connectBeside(ctx context.Context, pool *pgxpool.Pool) (*pgx.Conn, error) {
	config := pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

// send sends a batch: one round trip, and one transaction.
func (l *Ledger) send(ctx context.Context, b *pgx.Batch) error {
	conn, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return conn.SendBatch(ctx, b).Close()
}

// statement is one that answers with a row at most, and where the row belongs.
type statement struct {
	sql    string
	args   []any
	fields []any
}

func (s statement) queue(b *pgx.Batch) {
	b.Queue(s.sql, s.args...).QueryRow(func(row pgx.Row) error { return optional(row.Scan(s.fields...)) })
}

func (s statement) fetch(ctx context.Context, c conn) error {
	return optional(c.QueryRow(ctx, s.sql, s.args...).Scan(s.fields...))
}

// forget empties what the statement scanned into.
func (s statement) forget() {
	for _, field := range s.fields {
		reflect.ValueOf(field).Elem().SetZero()
	}
}

// fetch sends one statement by itself.
func (l *Ledger) fetch(ctx context.Context, s statement) error {
	conn, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return s.fetch(ctx, conn)
}

// exec sends one statement that writes.
func (l *Ledger) exec(ctx context.Context, sql string, args ...any) error {
	var b pgx.Batch
	b.Queue(sql, args...)
	return asWrite(l.send(ctx, &b))
}

// query collects the rows of one statement.
func query[T any](ctx context.Context, l *Ledger, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	return queryInto(ctx, l, nil, scan, sql, args...)
}

// queryInto collects them in a slice that has room for them.
func queryInto[T any](ctx context.Context, l *Ledger, all []T, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	conn, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	all, err = pgx.AppendRows(all, rows, scan)
	if len(all) == 0 {
		return nil, err
	}
	return all, err
}

// asRead and asWrite say what an error of send or query means, where it isn't
// said already.
func asRead(err error) error { return said(err, fromRead) }

func asWrite(err error) error { return said(err, fromWrite) }

func said(err error, say func(error) error) error {
	var unwritten *store.UnwrittenError
	if errors.Is(err, store.ErrClosed) || errors.As(err, &unwritten) {
		return err
	}
	return say(err)
}
