package postgres

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

func newPlanned(t *testing.T) (*Ledger, *pgxpool.Conn) {
	t.Helper()
	db := pgtest.New(t)
	pool := db.Pool(t)
	l, err := New(t.Context(), pool, WithSchema(db.Schema(t)))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, l)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	if _, err := conn.Exec(t.Context(), "SET plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	return l, conn
}

// fill records some thousands of operations, most of them settled.
func fill(t *testing.T, l *Ledger) {
	t.Helper()
	for n := range 40 {
		i, err := l.Intent(t.Context(), storetest.IntentOf(fmt.Sprint("tenant-", n%8), "agent", uuid.NewString(), "refund"))
		if err != nil {
			t.Fatal(err)
		}
		var claims []store.Claim
		for k := range 100 {
			o := storetest.Operation(i, storetest.Tool(fmt.Sprint("tool-", k%5)))
			if k%10 == 0 {
				o.Unique, o.ResourceKey = storetest.SomeDigest(), storetest.DigestOf(fmt.Sprint("door-", n%4))
			}
			claims = append(claims, storetest.Claim(o))
		}
		if _, err := l.Claim(t.Context(), claims...); err != nil {
			t.Fatal(err)
		}
	}
	settle := inSchema(`UPDATE settle.operation SET state = 'completed', due_at = NULL, lease_until = NULL, resource_digest = node WHERE right(id::text, 1) <> '0'`, l.schema)
	for _, sql := range []string{settle, inSchema("VACUUM ANALYZE settle.operation, settle.event, settle.intent, settle.contract, settle.resource, settle.\"case\"", l.schema)} {
		if _, err := l.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// every lists all statements by name.
func (s statements) every() map[string]string {
	all := map[string]string{}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		all[v.Type().Field(i).Name] = v.Field(i).String()
	}
	return all
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// plan is how the server runs a statement whatever its parameters are.
func plan(t *testing.T, conn *pgxpool.Conn, sql string) string {
	t.Helper()
	highest := 0
	for _, m := range parameter.FindAllStringSubmatch(sql, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, n)
	}
	execute := "EXPLAIN EXECUTE planned"
	if highest > 0 {
		execute += "(NULL" + strings.Repeat(", NULL", highest-1) + ")"
	}
	run(t, conn, "PREPARE planned AS "+sql)
	defer run(t, conn, "DEALLOCATE planned")
	rows, err := conn.Query(t.Context(), execute, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", execute, err)
	}
	return strings.Join(lines, "\n")
}

func run(t *testing.T, conn *pgxpool.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestStatementsReadAlongIndexes looks at the plans on a ledger of some
// thousand rows: none reads a table that grows from end to end.
func TestStatementsReadAlongIndexes(t *testing.T) {
	t.Parallel()
	l, conn := newPlanned(t)
	all := l.sql.every()
	for _, f := range []store.Filter{
		{Intent: uuid.New()}, {Parent: uuid.New()}, {Limit: 10},
		{Intent: uuid.New(), Tenant: "tenant-1", Tool: "tool-1", States: []store.State{store.Running}},
	} {
		sql, args := l.list(f)
		all[fmt.Sprint("list", len(args))] = sql
	}
	for _, f := range []store.CaseFilter{{}, {Tenant: "tenant-1", Tool: "tool-1", Free: true}, {Operation: uuid.New(), Closed: true}} {
		sql, args := l.cases(f)
		all[fmt.Sprint("cases", len(args))] = sql
	}
	for name, sql := range all {
		switch name {
		case "list", "listIntent", "listParent", "ofTenant", "cases", "caseOfTenant", "tables", "lockLimit", "uncompiled": // parts, or of the catalog
			continue
		}
		wantNoScan(t, name, plan(t, conn, sql), "operation", "event")
		// The other tables are small here, so that only what is possible counts.
		run(t, conn, "SET enable_seqscan = off")
		wantNoScan(t, name, plan(t, conn, sql), "operation", "event", "intent", "tenant", "contract", "resource", `"case"`)
		run(t, conn, "SET enable_seqscan = on")
	}
	if got := plan(t, conn, l.sql.take); strings.Count(got, "operation_due") < 5 {
		t.Errorf("take doesn't walk along operation_due:\n%s", got)
	}
}

// A backlog that nobody has counted yet isn't read from end to end for each batch.
func TestR54FetchReadsAlongIndexesBeforeTheTableIsAnalysed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool := db.Pool(t)
	l, err := New(t.Context(), pool, WithSchema(db.Schema(t)))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	run(t, conn, inSchema(`INSERT INTO settle.outbox (event, operation, intent, at, due_at, type)
		SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), clock_timestamp(), clock_timestamp(), 'a' FROM generate_series(1, 10000)`, l.schema))
	run(t, conn, "PREPARE fetching AS "+l.sql.fetch)
	rows, err := conn.Query(t.Context(), "EXPLAIN EXECUTE fetching (128, '2 minutes')", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	wantNoScan(t, "fetch", strings.Join(lines, "\n"), "outbox")
}

func wantNoScan(t *testing.T, statement, plan string, tables ...string) {
	t.Helper()
	for _, table := range tables {
		if strings.Contains(plan, "Seq Scan on "+table+" ") {
			t.Errorf("%s reads %s from end to end:\n%s", statement, table, plan)
		}
	}
}

func TestEveryPieceOfSQLIsUsed(t *testing.T) {
	t.Parallel()
	limit := lockLimit{wait: defaultLockWait}
	s, err := newStatements(DefaultSchema, limit)
	if err != nil {
		t.Fatal(err)
	}
	for name, sql := range s.every() {
		if sql == "" || strings.ContainsAny(sql, "{}") && !strings.Contains(sql, "'{") {
			t.Errorf("statement %s isn't whole: %q", name, sql)
		}
	}
	raw, err := readTexts(sqlFiles, DefaultSchema)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for name := range s.every() {
		used[snake(name)] = true
	}
	for _, text := range raw.parts {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			used[m[1]] = true
		}
	}
	for name := range raw.parts {
		if !used[name] {
			t.Errorf("the piece %q isn't used", name)
		}
	}
}

var upper = regexp.MustCompile(`[A-Z]`)

func snake(name string) string {
	return upper.ReplaceAllStringFunc(name, func(c string) string { return "_" + strings.ToLower(c) })
}

func TestTextsReportTheirMistakes(t *testing.T) {
	t.Parallel()
	text := &texts{parts: map[string]string{}}
	if err := text.add("-- name: a\nSELECT {b}\n-- name: a\nSELECT 1\n"); err == nil {
		t.Error("two statements of one name are no error")
	}
	if _ = text.of("a"); text.err == nil || !strings.Contains(text.err.Error(), `"b"`) {
		t.Errorf("a piece that isn't there gave the error %v", text.err)
	}
}

func TestASessionsOwnLimitOnLocksIsLeftToIt(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for value, own := range map[string]bool{"0": false, "1s": true, "2s": true, "3s": false} {
		pool := db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["lock_timeout"] = value })
		l, err := New(t.Context(), pool, WithSchema(db.Schema(t)))
		if err != nil {
			t.Fatal(err)
		}
		if l.limits == own || strings.Contains(l.sql.move, "lock_timeout") == own {
			t.Errorf("with lock_timeout = %s the ledger sets one of its own: %v", value, l.limits)
		}
	}
}
