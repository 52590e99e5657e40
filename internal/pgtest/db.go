package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// EnvDSN names the environment variable that holds the connection string of a
// PostgreSQL server to test on. Its user must be allowed to create schemas.
const EnvDSN = "SETTLE_TEST_POSTGRES"

// cleanupTimeout bounds what a test's end waits for.
const cleanupTimeout = 30 * time.Second

// shared is the one server of this test process, started by the first test that
// asks. A server for each test would cost half a second each, and a test binary
// has no other place that all of its tests can see.
var shared struct {
	once    sync.Once
	cluster *Cluster
	db      *DB
	err     error
}

// Main runs a package's tests and then ends their server. It is what TestMain
// calls in a package that uses [New]:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// A process that ends without it takes its server along too, a moment later.
func Main(m *testing.M) {
	// The code of Run reaches os.Exit by itself when TestMain returns.
	m.Run()
	if shared.cluster == nil {
		return
	}
	if err := shared.cluster.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
	}
}

// DB is a database to test on. Its methods are safe for concurrent use.
type DB struct {
	dsn string
	// ephemeral holds for a database that ends with its cluster.
	ephemeral bool
}

// New returns the database that the tests of this process share: that of
// SETTLE_TEST_POSTGRES, else a private one. It fails the test where there is
// neither such a variable nor an installed server.
func New(t testing.TB) *DB {
	t.Helper()
	shared.once.Do(func() {
		// The server outlives the test that happens to be the first.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		shared.db, shared.cluster, shared.err = provide(ctx, os.Getenv(EnvDSN))
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.db
}

// provide returns the database at dsn, or that of a new cluster where there is
// no dsn.
func provide(ctx context.Context, dsn string) (*DB, *Cluster, error) {
	if dsn == "" {
		cluster, err := Start(ctx)
		if err != nil {
			return nil, nil, err
		}
		return &DB{dsn: cluster.DSN()}, cluster, nil
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("reach the PostgreSQL server of %s: %w", EnvDSN, err)
	}
	return &DB{dsn: dsn}, nil, conn.Close(ctx)
}

// DSN is the database's connection string.
func (db *DB) DSN() string { return db.dsn }

// Addr is where the server listens: "host:port", or the path of its socket.
func (db *DB) Addr(t testing.TB) string {
	t.Helper()
	config, err := pgconn.ParseConfig(db.dsn)
	if err != nil {
		t.Fatal(err)
	}
	_, addr := pgconn.NetworkAddress(config.Host, config.Port)
	return addr
}

// Schema returns a schema name that no other test has. The schema isn't there
// yet; it is dropped with all it holds at the test's end.
func (db *DB) Schema(t testing.TB) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	if !db.ephemeral {
		t.Cleanup(func() { db.drop(t, name) })
	}
	return name
}

func (db *DB) drop(t testing.TB, schema string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.dsn)
	if err != nil {
		t.Errorf("drop the test's schema: %v", err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
		t.Errorf("drop the test's schema (does a transaction on it outlive the test?): %v", err)
	}
}

// PoolOption changes a pool's configuration before it is opened.
type PoolOption func(*pgxpool.Config)

// ExecMode sets how the pool's statements travel, such as
// [pgx.QueryExecModeExec], which needs no prepared statement and so works
// through PgBouncer.
func ExecMode(mode pgx.QueryExecMode) PoolOption {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }
}

// Tracer makes the pool report its statements to the tracer.
func Tracer(tracer pgx.QueryTracer) PoolOption {
	return func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer }
}

// MaxConns sets the most connections that the pool opens, 4 otherwise.
func MaxConns(n int32) PoolOption {
	return func(c *pgxpool.Config) { c.MaxConns = n }
}

// Via leads the pool's connections, unencrypted, through a proxy at the
// loopback address "host:port", such as one of the package faulty.
func Via(t testing.TB, addr string) PoolOption {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *pgxpool.Config) {
		c.ConnConfig.Host, c.ConnConfig.Port = host, uint16(number)
		c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil
	}
}

// Pool opens a pool of connections and closes it at the test's end. A
// connection that the test hasn't given back by then is an error.
func (db *DB) Pool(t testing.TB, opts ...PoolOption) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 4
	for _, opt := range opts {
		opt(config)
	}
	// Not the test's own context: it ends before the test's cleanups do.
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePool(t, pool, cleanupTimeout) })
	return pool
}

func closePool(t testing.TB, pool *pgxpool.Pool, timeout time.Duration) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(timeout):
		t.Errorf("close the test's pool: %d of its connections weren't given back", pool.Stat().AcquiredConns())
	}
}
