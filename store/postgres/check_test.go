package postgres_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store/postgres"
)

func found(t *testing.T, l *postgres.Ledger) []string {
	t.Helper()
	findings, err := l.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var settings []string
	for _, f := range findings {
		if f.Problem == "" || f.Advice == "" || f.Value == "" {
			t.Errorf("the finding on %s says %q, what is wrong %q, what to do %q", f.Setting, f.Value, f.Problem, f.Advice)
		}
		settings = append(settings, f.Setting)
	}
	return settings
}

func wantFound(t *testing.T, l *postgres.Ledger, want ...string) {
	t.Helper()
	if got := found(t, l); !slices.Equal(got, want) {
		t.Errorf("Check found %q, want %q", got, want)
	}
}

func setting(name, value string) pgtest.PoolOption {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[name] = value }
}

func TestR26ADurableServerHasNoFindings(t *testing.T) {
	t.Parallel()
	w := newLedgerWorldIn(t, pgtest.NewCluster(t, pgtest.Durable()).DB())
	wantFound(t, w.Ledger)

	for name, pool := range map[string]*pgxpool.Pool{
		"synchronous_commit":            w.db.Pool(t, setting("synchronous_commit", "off")),
		"default_transaction_read_only": w.db.Pool(t, setting("default_transaction_read_only", "on")),
	} {
		wantFound(t, open(t, pool, w.schema), name)
	}
	// Without synchronous standbys there is nobody to wait for.
	wantFound(t, open(t, w.db.Pool(t, setting("synchronous_commit", "local")), w.schema))

	w.exec("ALTER TABLE " + w.table("event") + " SET UNLOGGED")
	wantFound(t, w.Ledger, "unlogged tables")
	w.exec("ALTER TABLE " + w.table("event") + " SET LOGGED")

	streamTo(t, w.db)
	wantFound(t, w.Ledger, "synchronous_standby_names")
	w.exec("CREATE ROLE worker LOGIN")
	w.exec("GRANT USAGE ON SCHEMA " + pgx.Identifier{w.schema}.Sanitize() + " TO worker")
	w.exec("GRANT SELECT ON ALL TABLES IN SCHEMA " + pgx.Identifier{w.schema}.Sanitize() + " TO worker")
	pool := w.db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.User = "worker" })
	wantFound(t, open(t, pool, w.schema), "pg_stat_replication")
}

func TestR26WhatLosesCommitsIsFound(t *testing.T) {
	t.Parallel()
	w := newLedgerWorldIn(t, pgtest.NewCluster(t).DB())
	wantFound(t, w.Ledger, "fsync", "full_page_writes")
}

func TestR19ASynchronousStandbyIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newLedgerWorldIn(t, pgtest.NewCluster(t, pgtest.Durable()).DB())
	w.exec("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
	w.exec("SELECT pg_reload_conf()")
	pool := w.db.Pool(t, setting("synchronous_commit", "local"))
	for ask[string](t, pool, "SHOW synchronous_standby_names") == "" {
		pool.Reset()
	}
	wantFound(t, open(t, pool, w.schema), "synchronous_commit")
}

// streamTo stands for an asynchronous standby: a connection that streams the WAL.
func streamTo(t *testing.T, db *pgtest.DB) {
	t.Helper()
	config, err := pgconn.ParseConfig(db.DSN())
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["replication"] = "true"
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	conn.Frontend().SendQuery(&pgproto3.Query{String: "START_REPLICATION PHYSICAL 0/1000000"})
	if err := conn.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		message, err := conn.ReceiveMessage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch message.(type) {
		case *pgproto3.CopyBothResponse:
			return
		case *pgproto3.ErrorResponse:
			t.Fatalf("the server doesn't stream: %v", message)
		}
	}
}

// TestAPoolerIsSeenByTheProcessIDThatItMakesUp connects through a proxy that
// changes the id in the server's BackendKeyData, as poolers do.
func TestAPoolerIsSeenByTheProcessIDThatItMakesUp(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	for _, mode := range modes {
		pool := w.db.Pool(t, pgtest.ExecMode(mode), func(c *pgxpool.Config) { c.ConnConfig.BuildFrontend = madeUp(c.ConnConfig.BuildFrontend) })
		got := found(t, open(t, pool, w.schema))
		if mode == pgx.QueryExecModeCacheStatement != slices.Contains(got, "default_query_exec_mode") {
			t.Errorf("in mode %v through a pooler Check found %q", mode, got)
		}
	}
	if got := found(t, w.Ledger); slices.Contains(got, "default_query_exec_mode") {
		t.Errorf("without a pooler Check found %q", got)
	}
}

// madeUp changes the process id on its way to the client.
func madeUp(build pgconn.BuildFrontendFunc) pgconn.BuildFrontendFunc {
	return func(r io.Reader, w io.Writer) *pgproto3.Frontend { return build(&otherID{r}, w) }
}

type otherID struct{ io.Reader }

func (o *otherID) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	// BackendKeyData: its type, its length of 12, the id.
	if at := bytes.Index(b[:n], []byte("K\x00\x00\x00\x0c")); at >= 0 && at+8 < n {
		b[at+8] ^= 0xff
	}
	return n, err
}
