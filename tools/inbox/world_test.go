package inbox_test

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/tools/inbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// consumer is a consumer's database and the way that it is used.
type consumer struct {
	*testing.T
	db *sql.DB
	// begin begins a transaction of the consumer's.
	begin func(ctx context.Context) (transaction, error)
	// pool is there for PostgreSQL.
	pool *pgxpool.Pool
}

// transaction is one of database/sql or of pgx.
type transaction struct {
	once             func(ctx context.Context, source, id string) (bool, error)
	forget           func(ctx context.Context, keep time.Duration) (int64, error)
	commit, rollback func(ctx context.Context) error
}

// onEachDatabase runs a test with each database, and each way to use it.
func onEachDatabase(t *testing.T, test func(c *consumer)) {
	t.Helper()
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) *consumer{"sqlite": onSQLite, "postgres": onPostgres, "pgx": onPgx} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(open(t))
		})
	}
}

func onSQLite(t *testing.T) *consumer {
	t.Helper()
	file := url.URL{Scheme: "file", OmitHost: true, Path: filepath.Join(t.TempDir(), "consumer.db"), RawQuery: "_pragma=busy_timeout(20000)&_txlock=immediate"}
	db, err := sql.Open("sqlite", file.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c := &consumer{T: t, db: db, begin: beginSQL(db)}
	c.exec(inbox.SQLite)
	c.exec(inbox.SQLite) // with each start
	return c
}

func onPostgres(t *testing.T) *consumer {
	t.Helper()
	pool := newPool(t, pgtest.New(t))
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { db.Close() })
	c := &consumer{T: t, db: db, begin: beginSQL(db), pool: pool}
	c.exec(inbox.Postgres)
	c.exec(inbox.Postgres)
	return c
}

func onPgx(t *testing.T) *consumer {
	t.Helper()
	c := onPostgres(t)
	c.begin = beginPgx(c.pool)
	return c
}

// newPool is a pool in an empty schema of its own.
func newPool(t *testing.T, db *pgtest.DB, options ...pgtest.PoolOption) *pgxpool.Pool {
	t.Helper()
	schema := db.Schema(t)
	pool := db.Pool(t, append(options, pgtest.MaxConns(8), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["search_path"] = schema
		c.ConnConfig.RuntimeParams["application_name"] = schema
	})...)
	if _, err := pool.Exec(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	return pool
}

func beginSQL(db *sql.DB) func(context.Context) (transaction, error) {
	return func(ctx context.Context) (t transaction, err error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return t, err
		}
		return transaction{
			once: func(ctx context.Context, source, id string) (bool, error) { return inbox.Once(ctx, tx, source, id) },
			forget: func(ctx context.Context, keep time.Duration) (int64, error) {
				return inbox.Forget(ctx, tx, keep)
			},
			commit: func(context.Context) error { return tx.Commit() }, rollback: func(context.Context) error { return tx.Rollback() },
		}, nil
	}
}

func beginPgx(pool *pgxpool.Pool) func(context.Context) (transaction, error) {
	return func(ctx context.Context) (t transaction, err error) {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return t, err
		}
		return ofPgx(tx), nil
	}
}

func ofPgx(tx pgx.Tx) transaction {
	return transaction{
		once:   func(ctx context.Context, source, id string) (bool, error) { return inbox.OncePgx(ctx, tx, source, id) },
		forget: func(ctx context.Context, keep time.Duration) (int64, error) { return inbox.ForgetPgx(ctx, tx, keep) },
		commit: tx.Commit, rollback: tx.Rollback,
	}
}

func (c *consumer) exec(statement string, args ...any) {
	c.Helper()
	if _, err := c.db.ExecContext(c.Context(), statement, args...); err != nil {
		c.Fatal(err)
	}
}

// in runs something in a transaction, which commits.
func (c *consumer) in(do func(tx transaction)) {
	c.Helper()
	tx := c.begins()
	do(tx)
	if err := tx.commit(c.Context()); err != nil {
		c.Fatal(err)
	}
}

func (c *consumer) begins() transaction {
	c.Helper()
	tx, err := c.begin(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = tx.rollback(context.Background()) }) // of what the test left open
	return tx
}

// wants asks once, and fails the test where the answer is another one.
func (c *consumer) wants(tx transaction, source, id string, want bool) {
	c.Helper()
	isNew, err := tx.once(c.Context(), source, id)
	if err != nil || isNew != want {
		c.Errorf("the event is new: %v, error %v; want %v", isNew, err, want)
	}
}

// received waits for something that must come.
func received[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	select {
	case v := <-from:
		return v
	case <-deadline.C:
		t.Fatal("what the test waits for didn't come")
	}
	panic("unreachable")
}
