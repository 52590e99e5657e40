package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

// ledgerWorld is one test's ledger in a schema of its own.
type ledgerWorld struct {
	*postgres.Ledger
	t      *testing.T
	db     *pgtest.DB
	pool   *pgxpool.Pool
	schema string
}

func newLedgerWorld(t *testing.T, options ...pgtest.PoolOption) *ledgerWorld {
	t.Helper()
	return newLedgerWorldIn(t, pgtest.New(t), options...)
}

func newLedgerWorldIn(t *testing.T, db *pgtest.DB, options ...pgtest.PoolOption) *ledgerWorld {
	t.Helper()
	w := &ledgerWorld{t: t, db: db, schema: db.Schema(t)}
	install(t, db.Pool(t), w.schema)
	w.pool = db.Pool(t, options...)
	w.Ledger = open(t, w.pool, w.schema)
	return w
}

func (w *ledgerWorld) intent() store.Intent {
	w.t.Helper()
	i, err := w.Intent(w.t.Context(), storetest.NewIntent())
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// won makes a claim that must be won.
func (w *ledgerWorld) won(c store.Claim) store.Operation {
	w.t.Helper()
	answers, err := w.Claim(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	if !answers[0].Won {
		w.t.Fatalf("the claim wasn't won: refused %d", answers[0].Refused)
	}
	return answers[0].Operation
}

func (w *ledgerWorld) apply(c store.Change) store.Operation {
	w.t.Helper()
	o, err := w.Apply(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// table is the table's name in the test's schema.
func (w *ledgerWorld) table(name string) string { return pgx.Identifier{w.schema, name}.Sanitize() }

func (w *ledgerWorld) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// ask reads one value.
func ask[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (value T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// askAll reads the values of one column.
func askAll[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) []T {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}
