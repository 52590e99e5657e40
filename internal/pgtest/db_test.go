package pgtest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestNewSharesOneServer(t *testing.T) {
	t.Parallel()
	a, b := New(t), New(t)
	if a.DSN() != b.DSN() {
		t.Errorf("two calls in one process gave two servers: %s and %s", a.DSN(), b.DSN())
	}
}

func TestSchemaIsUniqueAndDroppedAtTheEnd(t *testing.T) {
	t.Parallel()
	db := New(t)
	var first, second string
	t.Run("uses schemas", func(t *testing.T) {
		first, second = db.Schema(t), db.Schema(t)
		exec1(t, connect(t, db.DSN()), fmt.Sprintf("CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.t (n int); CREATE VIEW %[1]s.v AS TABLE %[1]s.t", first))
	})
	if first == second {
		t.Errorf("two schemas have the name %s", first)
	}
	if got := ask[int](t, connect(t, db.DSN()), "SELECT count(*)::int FROM pg_namespace WHERE nspname = $1", first); got != 0 {
		t.Error("the schema outlived its test")
	}
}

func TestNamedServerIsTaken(t *testing.T) {
	t.Parallel()
	want := New(t).DSN()
	db, cluster, err := provide(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	if cluster != nil || db.DSN() != want {
		t.Errorf("got cluster %v and %s, want the named server %s alone", cluster, db.DSN(), want)
	}
}

func TestUnreachableNamedServerIsAnError(t *testing.T) {
	t.Parallel()
	port, err := freePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = provide(t.Context(), fmt.Sprintf("postgres://someone:hush@127.0.0.1:%d/db", port))
	if err == nil {
		t.Fatal("a server that isn't there was taken")
	}
	if !strings.Contains(err.Error(), EnvDSN) || strings.Contains(err.Error(), "hush") {
		t.Errorf("the error must name %s and keep the password to itself: %v", EnvDSN, err)
	}
}

type counter struct{ queries atomic.Int32 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.queries.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestPoolOptions(t *testing.T) {
	t.Parallel()
	db := New(t)
	const prepared = "SELECT count(*)::int FROM pg_prepared_statements"
	for _, tc := range []struct {
		mode pgx.QueryExecMode
		want int
	}{
		{pgx.QueryExecModeCacheStatement, 1},
		{pgx.QueryExecModeExec, 0},
		{pgx.QueryExecModeSimpleProtocol, 0},
	} {
		t.Run(tc.mode.String(), func(t *testing.T) {
			t.Parallel()
			var seen counter
			pool := db.Pool(t, ExecMode(tc.mode), Tracer(&seen), MaxConns(1))
			var got int
			if err := pool.QueryRow(t.Context(), prepared).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("the server holds %d prepared statements, want %d", got, tc.want)
			}
			if n := seen.queries.Load(); n != 1 {
				t.Errorf("the tracer saw %d statements, want 1", n)
			}
			if n := pool.Stat().MaxConns(); n != 1 {
				t.Errorf("the pool opens up to %d connections, want 1", n)
			}
		})
	}
}

func TestViaLeadsToTheProxy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reached := make(chan struct{})
	go func() {
		defer close(reached)
		if conn, err := l.Accept(); err == nil {
			conn.Close()
		}
	}()
	pool := New(t).Pool(t, Via(t, l.Addr().String()))
	if err := pool.Ping(t.Context()); err == nil {
		t.Error("the pool reached a server, want the listener that closes at once")
	}
	<-reached
}

func TestAddrIsWhereTheServerListens(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://u@127.0.0.1:5433/d":   "127.0.0.1:5433",
		"host=/run/postgresql port=5434":  "/run/postgresql/.s.PGSQL.5434",
		"host=::1 port=5435 user=someone": "[::1]:5435",
	} {
		if got := (&DB{dsn: dsn}).Addr(t); got != want {
			t.Errorf("Addr of %q is %q, want %q", dsn, got, want)
		}
	}
}

// failures records what a test would have been failed for.
type failures struct {
	testing.TB
	said string
}

func (f *failures) Errorf(format string, args ...any) { f.said = fmt.Sprintf(format, args...) }

func TestConnectionKeptBeyondTheTestIsAnError(t *testing.T) {
	t.Parallel()
	pool := New(t).Pool(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	failed := &failures{TB: t}
	closePool(failed, pool, time.Millisecond)
	if !strings.Contains(failed.said, "1 of its connections") {
		t.Errorf("the test would have been failed for %q, want the connection that it kept", failed.said)
	}
}
