package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// modes are those in which pgx can send statements: prepared ones, and those
// that work through a pooler in transaction mode.
var modes = []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol}

func TestConformance(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) storetest.World { return newWorld(t, mode) })
		})
	}
}

func newWorld(t *testing.T, mode pgx.QueryExecMode) storetest.World {
	t.Helper()
	db := pgtest.New(t)
	schema := db.Schema(t)
	pool := db.Pool(t, pgtest.ExecMode(mode))
	install(t, pool, schema)
	return storetest.World{
		Ledger: open(t, pool, schema),
		Again: func(t testing.TB) store.Ledger {
			return open(t, db.Pool(t, pgtest.ExecMode(mode)), schema)
		},
		Age: func(t testing.TB, d time.Duration) { age(t, pool, schema, d) },
	}
}

// install makes the schema in one round trip, as those do who run the SQL by
// themselves.
func install(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	steps, err := postgres.Migrations(postgres.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if _, err := pool.Exec(t.Context(), step.SQL); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t testing.TB, pool *pgxpool.Pool, schema string, options ...postgres.Option) *postgres.Ledger {
	t.Helper()
	options = append(options, postgres.WithSchema(schema))
	ledger, err := postgres.New(context.Background(), pool, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ledger.Close(); err != nil {
			t.Error(err)
		}
	})
	return ledger
}

// age makes everything older, but for what the chain seals.
func age(t testing.TB, pool *pgxpool.Pool, schema string, d time.Duration) {
	t.Helper()
	for table, columns := range map[string][]string{
		"operation": {"created_at", "moment", "lease_until", "due_at", "key_until", "first_sent", "unknown_since", "settled_at"},
		"intent":    {"created_at", "closed_at"},
		"tenant":    {"created_at"},
		"case":      {"opened_at", "closed_at", "held_at"},
		"outbox":    {"due_at", "leased_until"},
	} {
		sql := "UPDATE " + pgx.Identifier{schema, table}.Sanitize() + " SET "
		for i, c := range columns {
			if i > 0 {
				sql += ", "
			}
			sql += c + " = " + c + " - $1::interval"
		}
		if _, err := pool.Exec(t.Context(), sql, d); err != nil {
			t.Fatal(err)
		}
	}
}
