package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

func latest(t *testing.T) int64 {
	t.Helper()
	steps, err := postgres.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	return steps[len(steps)-1].Version
}

func TestMigrateBySeveralAtOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, mode := range modes {
		schema := db.Schema(t)
		pools := make([]*pgxpool.Pool, 32)
		for n := range 8 {
			// One connection has to do, for a pool of one.
			pools[n] = db.Pool(t, pgtest.MaxConns(1), pgtest.ExecMode(mode))
		}
		crowd(t, func(n int) error {
			if n >= 8 {
				return nil
			}
			if n%2 == 0 {
				return postgres.Migrate(context.Background(), pools[n], postgres.WithSchema(schema))
			}
			_, err := postgres.New(context.Background(), pools[n], postgres.WithSchema(schema))
			return err
		})
		got := askAll[int64](t, pools[0], "SELECT version_id FROM "+pgx.Identifier{schema, "migration"}.Sanitize()+" ORDER BY id")
		if want := []int64{0, latest(t)}; !slices.Equal(got, want) {
			t.Errorf("%v: the versions are %v, want %v: each migration runs once", mode, got, want)
		}
	}
}

// catalog describes everything in a schema.
func catalog(t *testing.T, pool *pgxpool.Pool, schema string) []string {
	t.Helper()
	all := askAll[string](t, pool, `
		SELECT 'column ' || table_name || '.' || column_name || ' ' || udt_name || ' ' || is_nullable || ' ' || coalesce(column_default, '')
		  FROM information_schema.columns WHERE table_schema = $1
		UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = $1
		UNION ALL SELECT 'enum ' || typname || ' ' || enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid
		    JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = $1
		UNION ALL SELECT 'constraint ' || conname || ' ' || pg_get_constraintdef(c.oid) FROM pg_constraint c
		    JOIN pg_namespace n ON n.oid = c.connamespace WHERE n.nspname = $1
		ORDER BY 1`, schema)
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], schema, "settle")
	}
	return all
}

func TestMigrationsAreWhatMigrateRuns(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool := db.Pool(t)
	byHand, migrated := db.Schema(t), db.Schema(t)
	install(t, pool, byHand)
	if err := postgres.Migrate(t.Context(), pool, postgres.WithSchema(migrated)); err != nil {
		t.Fatal(err)
	}
	got, want := catalog(t, pool, byHand), catalog(t, pool, migrated)
	if !slices.Equal(got, want) {
		t.Errorf("run by hand the SQL makes\n%s\nand Migrate makes\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(want) < 100 {
		t.Errorf("the catalog has %d entries only", len(want))
	}
	// What was run by hand is known to Migrate as well.
	if err := postgres.Migrate(t.Context(), pool, postgres.WithSchema(byHand)); err != nil {
		t.Error(err)
	}
	open(t, pool, byHand, postgres.WithoutMigration())
}

func TestMigrationsAreNumberedAndAddressOneSchema(t *testing.T) {
	t.Parallel()
	steps, err := postgres.Migrations(postgres.WithSchema(`od"d`))
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range steps {
		if step.Version != int64(i+1) || !strings.HasPrefix(step.Name, fmt.Sprintf("%05d_", i+1)) {
			t.Errorf("step %d is version %d and called %q", i+1, step.Version, step.Name)
		}
		if strings.Contains(step.SQL, "settle.") || !strings.Contains(step.SQL, `"od""d".`) {
			t.Errorf("%s isn't for the schema that was asked for", step.Name)
		}
	}
}

func TestASchemaMayHaveAnyName(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, name := range []string{"select", "Mixed Case", `quo"ted`, "schöma", "a.b"} {
		schema := name + db.Schema(t)
		pool := db.Pool(t)
		t.Cleanup(func() { drop(t, db, schema) })
		ledger := open(t, pool, schema)
		i, err := ledger.Intent(t.Context(), storetest.NewIntent())
		if err != nil {
			t.Fatal(err)
		}
		answers, err := ledger.Claim(t.Context(), storetest.Claim(storetest.Operation(i)))
		if err != nil || !answers[0].Won {
			t.Errorf("schema %q: a claim gave %v", schema, err)
		}
	}
}

// drop removes a schema that pgtest doesn't know.
func drop(t *testing.T, db *pgtest.DB, schema string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), db.DSN())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); err != nil {
		t.Error(err)
	}
}

func TestASchemaThatIsNotThereIsSaidUnderWithoutMigration(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool, schema := db.Pool(t), db.Schema(t)
	_, err := postgres.New(t.Context(), pool, postgres.WithSchema(schema), postgres.WithoutMigration())
	var old *store.SchemaError
	if !errors.As(err, &old) || old.Have != 0 || old.Want != latest(t) {
		t.Fatalf("got the error %v, want a SchemaError from 0 to %d", err, latest(t))
	}
	if ask[bool](t, pool, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", schema) {
		t.Error("WithoutMigration made a schema")
	}
}

func TestANewerSchemaIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	w.exec("INSERT INTO " + w.table("migration") + " (version_id, is_applied) VALUES (900, true)")
	for name, call := range map[string]func() error{
		"New":     func() error { _, err := postgres.New(t.Context(), w.pool, postgres.WithSchema(w.schema)); return err },
		"Migrate": func() error { return postgres.Migrate(t.Context(), w.pool, postgres.WithSchema(w.schema)) },
		"New without migration": func() error {
			_, err := postgres.New(t.Context(), w.pool, postgres.WithSchema(w.schema), postgres.WithoutMigration())
			return err
		},
	} {
		err := call()
		var newer *store.SchemaError
		if !errors.As(err, &newer) || newer.Have != 900 || !strings.Contains(err.Error(), "upgrade the program") {
			t.Errorf("%s: got the error %v, want a SchemaError that says to upgrade", name, err)
		}
	}
}

// TestARoleThatMayOnlyWorkNeedsNoMigration gives a role what doc.go says.
func TestARoleThatMayOnlyWorkNeedsNoMigration(t *testing.T) {
	t.Parallel()
	w := newLedgerWorldIn(t, pgtest.NewCluster(t).DB())
	w.exec("CREATE ROLE worker LOGIN")
	schema := pgx.Identifier{w.schema}.Sanitize()
	w.exec("GRANT USAGE ON SCHEMA " + schema + " TO worker")
	w.exec("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema + " TO worker")
	pool := w.db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.User = "worker" })
	worker := open(t, pool, w.schema)
	i, err := worker.Intent(t.Context(), storetest.NewIntent())
	if err != nil {
		t.Fatal(err)
	}
	answers, err := worker.Claim(t.Context(), storetest.Claim(storetest.Operation(i)))
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Audit(t.Context(), store.Audit{Operation: answers[0].Operation.ID, Kind: "refused"}); err != nil {
		t.Fatal(err)
	}
	other := w.db.Schema(t)
	_, err = postgres.New(t.Context(), pool, postgres.WithSchema(other))
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "42501" || !strings.Contains(err.Error(), "needs CREATE on the database") {
		t.Errorf("a role that may not make a schema got the error %v", err)
	}
}

// TestRowsOfAnOlderSchemaAreRead reads what programs wrote under each schema so
// far: the rows in testdata stay as they were written for ever.
func TestRowsOfAnOlderSchemaAreRead(t *testing.T) {
	t.Parallel()
	steps, err := postgres.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		t.Run(step.Name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			pool, schema := db.Pool(t), db.Schema(t)
			installUpTo(t, pool, schema, step.Version)
			rows, err := os.ReadFile(fmt.Sprintf("testdata/schema%d.sql", step.Version))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), strings.ReplaceAll(string(rows), "settle.", pgx.Identifier{schema}.Sanitize()+".")); err != nil {
				t.Fatal(err)
			}
			readOldRows(t, open(t, pool, schema))
		})
	}
}

func installUpTo(t *testing.T, pool *pgxpool.Pool, schema string, version int64) {
	t.Helper()
	steps, err := postgres.Migrations(postgres.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps[:version] {
		if _, err := pool.Exec(t.Context(), step.SQL); err != nil {
			t.Fatal(err)
		}
	}
}

// readOldRows reads the rows of testdata and goes on with one of them.
func readOldRows(t *testing.T, ledger *postgres.Ledger) {
	t.Helper()
	entries, err := ledger.List(t.Context(), store.Filter{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Fatalf("got %d operations, want 2", len(entries))
	}
	for _, e := range entries {
		events, err := ledger.Events(t.Context(), e.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.VerifyChain(e.Operation, events); err != nil {
			t.Error(err)
		}
	}
	settled, running := entries[0], entries[1].Operation
	if settled.State != store.Completed || settled.Resource != "r-1" || string(settled.Result) != `{"id":"r-1"}` ||
		settled.CallID != "call_1" || settled.Visibility != storetest.Visibility ||
		settled.Retention != storetest.Retention || settled.Of.Principal != storetest.NewIntent().Principal || settled.Of.Task != "task-1" {
		t.Error("a settled operation comes back changed")
	}
	if !running.Expired() || running.ResourceSeq != 1 {
		t.Error("a write that was left running comes back changed")
	}
	answers, err := ledger.Claim(t.Context(),
		storetest.Claim(storetest.Operation(settled.Of, storetest.Tool("door"), storetest.Writes(running.ResourceKey))),
		storetest.Claim(storetest.Operation(settled.Of, storetest.Tool("door"), func(o *store.Operation) { o.Unique = running.Unique })))
	if err != nil {
		t.Fatal(err)
	}
	if next := answers[0]; !next.Won || next.Operation.ResourceSeq != 2 || len(next.Others) != 1 || next.Others[0].ID != running.ID {
		t.Error("the next write on the resource doesn't follow the old one")
	}
	if answers[1].Refused != store.RefusedUnique {
		t.Error("an old operation doesn't hold its unique digest")
	}
	unknown, err := ledger.Apply(t.Context(), storetest.Change(running, store.Unknown))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Apply(t.Context(), storetest.Completion(unknown, uuid.NewString())); err != nil {
		t.Error(err)
	}
}

func TestWithoutAPoolThereIsNoLedger(t *testing.T) {
	t.Parallel()
	if l, err := postgres.New(t.Context(), nil); l != nil || err == nil {
		t.Errorf("New gave %v and the error %v", l, err)
	}
	if err := postgres.Migrate(t.Context(), nil); err == nil {
		t.Error("Migrate gave no error")
	}
}
