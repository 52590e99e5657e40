package sqltool_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"log/slog"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the test's own connections, beside the ledger's
	_ "modernc.org/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/sqltool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a ledger, a business table beside it, and the test's own connection.
type world struct {
	*testing.T
	ledger   store.Ledger
	db       *sql.DB
	x        *settle.Executor
	ctx      context.Context
	postgres bool
}

const table = `CREATE TABLE stock (item text PRIMARY KEY, free integer NOT NULL CHECK (free >= 0), price numeric, note text, sold boolean)`

// onEachLedger runs a test on both databases.
func onEachLedger(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "settle.db")
		l, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		file := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_pragma=busy_timeout(10000)"}
		test(newWorld(t, l, "sqlite", file.String()))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := pgtest.New(t)
		schema := db.Schema(t)
		at, err := url.Parse(db.DSN())
		if err != nil {
			t.Fatal(err)
		}
		q := at.Query()
		q.Set("search_path", schema)
		at.RawQuery = q.Encode()
		l, err := postgres.New(t.Context(), pool(t, at.String()), postgres.WithSchema(schema))
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, l, "pgx", at.String())
		w.postgres = true
		test(w)
	})
}

// pool is one whose statements find the business table without its schema.
func pool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func newWorld(t *testing.T, l store.Ledger, driver, dsn string) *world {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "agent"})
	w := &world{T: t, ledger: l, db: db, ctx: settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "restock"})}
	t.Cleanup(func() {
		if w.x != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := w.x.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		db.Close()
	})
	return w
}

// stock is the name of the business table, which it makes.
func (w *world) stock() {
	w.Helper()
	w.exec(table)
	w.exec(`INSERT INTO stock VALUES ('chair', 3, 42.10, 'oak', false), ('table', 0, 199.99, NULL, true)`)
}

func (w *world) exec(statement string) {
	w.Helper()
	if _, err := w.db.Exec(statement); err != nil {
		w.Fatal(err)
	}
}

func (w *world) count(query string, args ...any) (n int) {
	w.Helper()
	if err := w.db.QueryRow(query, args...).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) start(tools ...settle.AnyTool) {
	w.Helper()
	x, err := settle.New(w.ledger, settle.WithTools(tools...), settle.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		w.Fatal(err)
	}
	w.x = x
}

func (w *world) call(tool, args string) settle.Outcome {
	w.Helper()
	out, err := w.x.Execute(w.ctx, settle.Call{Tool: tool, Args: json.RawMessage(args), CallID: rand.Text()})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func (w *world) want(out settle.Outcome, status settle.Status) settle.Outcome {
	w.Helper()
	if out.Status != status {
		w.Fatalf("got %s (%s), want %s: %s", out.Status, out.Reason, status, out.ForModel())
	}
	return out
}

func declare[In, Out any](t *testing.T, spec sqltool.Spec) settle.AnyTool {
	t.Helper()
	tool, err := sqltool.New[In, Out](spec)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}
