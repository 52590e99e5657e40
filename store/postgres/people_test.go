package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// crowdedQueue is a ledger in which 100,000 operations wait for a person and
// 20,000 are done with.
type crowdedQueue struct {
	*Ledger
	t    *testing.T
	conn *pgxpool.Conn
}

func newCrowdedQueue(t *testing.T) *crowdedQueue {
	t.Helper()
	db := pgtest.New(t)
	pool := db.Pool(t)
	l, err := New(t.Context(), pool, WithSchema(db.Schema(t)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if _, err := l.Intent(t.Context(), storetest.IntentOf(fmt.Sprint("tenant-", n), "agent", "task", "refund")); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	q := &crowdedQueue{Ledger: l, t: t, conn: conn}
	for _, sql := range crowding {
		q.exec(sql)
	}
	return q
}

var crowding = []string{
	`INSERT INTO settle.intent (id, digest, principal, tenant, subject, task, goal, key, version, created_at)
SELECT gen_random_uuid(), uuid_send(gen_random_uuid()), '\x00', id, 'agent', 'task', 'refund', '\x00', 1, now()
FROM generate_series(1, 500), settle.tenant`,
	`INSERT INTO settle.operation (created_at, tail_at, moment, visibility, escalate, retention, id, intent, tenant, slot, node, contract,
    number, occurrence, version, attempt, class, state, source, tool, reason, tail, fingerprint, settled_at)
SELECT now(), now(), now(), 0, 0, 1, gen_random_uuid(), i.id, i.tenant, gen_random_uuid(), i.id, i.id,
    1, 1, 2, 1, 'unsafe', CASE WHEN n % 6 = 0 THEN 'failed' ELSE 'manual' END::settle.state, 'host', 'tool-' || n % 5, 'exhausted',
    '\x00', '\x00', CASE WHEN n % 6 = 0 THEN now() END
FROM generate_series(1, 60) n, settle.intent i WHERE i.key = '\x00'`,
	`INSERT INTO settle."case" (operation, tenant, tool, reason, incident, opened_at, closed_at)
SELECT id, tenant, tool, reason, false, now() - random() * interval '90 days', settled_at FROM settle.operation`,
	`INSERT INTO settle.event (operation, seq, attempt, at, move, kind, actor, reason, hash)
SELECT id, 1, 1, now(), '>running', 'claimed', 'executor', '', '\x00' FROM settle.operation`,
	`ANALYZE settle.operation, settle.event, settle."case", settle.intent`,
}

func (q *crowdedQueue) exec(sql string) {
	q.t.Helper()
	if _, err := q.conn.Exec(q.t.Context(), inSchema(sql, q.schema)); err != nil {
		q.t.Fatal(err)
	}
}

// explain is how the server runs a statement with these parameters, or whatever
// they are where the plan is generic.
func (q *crowdedQueue) explain(generic bool, sql string, args ...any) string {
	q.t.Helper()
	mode := "force_custom_plan"
	if generic {
		mode = "force_generic_plan"
	}
	q.exec("SET plan_cache_mode = " + mode)
	if _, err := q.conn.Conn().Prepare(q.t.Context(), "explained", sql); err != nil {
		q.t.Fatalf("%v\n%s", err, sql)
	}
	defer func() {
		if err := q.conn.Conn().Deallocate(q.t.Context(), "explained"); err != nil {
			q.t.Error(err)
		}
	}()
	execute := "EXPLAIN EXECUTE explained"
	if len(args) > 0 {
		marks := make([]string, len(args))
		for n := range args {
			marks[n] = fmt.Sprintf("$%d", n+1)
		}
		execute += "(" + strings.Join(marks, ", ") + ")"
	}
	rows, err := q.conn.Query(q.t.Context(), execute, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
	if err != nil {
		q.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		q.t.Fatalf("%v\n%s", err, execute)
	}
	return strings.Join(lines, "\n")
}

// wantAlong requires a plan along an index that reads nothing from end to end.
func (q *crowdedQueue) wantAlong(index, name, plan string) {
	q.t.Helper()
	for _, table := range []string{"operation", "event", "intent", `"case"`} {
		if strings.Contains(plan, "Seq Scan on "+table+" ") {
			q.t.Errorf("%s reads %s from end to end:\n%s", name, table, plan)
		}
	}
	if !strings.Contains(plan, index) {
		q.t.Errorf("%s isn't read along %s:\n%s", name, index, plan)
	}
}

func TestPlansOfACrowdedQueue(t *testing.T) {
	t.Parallel()
	q := newCrowdedQueue(t)
	for _, generic := range []bool{false, true} {
		t.Run(fmt.Sprintf("generic=%v", generic), func(t *testing.T) {
			q.t = t
			q.pages(generic)
			q.purges(generic)
			q.closings(generic)
		})
	}
}

// pages: the first page of a queue is read in the order of its index (R39).
func (q *crowdedQueue) pages(generic bool) {
	for name, page := range map[string]struct {
		filter store.CaseFilter
		index  string
	}{
		"the queue":            {store.CaseFilter{}, "case_list"},
		"a tenant's queue":     {store.CaseFilter{Tenant: "tenant-1", Limit: 50}, "case_tenant"},
		"a tool's queue":       {store.CaseFilter{Tool: "tool-1", Reason: "exhausted"}, "case_tool"},
		"what nobody has":      {store.CaseFilter{Free: true}, "case_list"},
		"what somebody has":    {store.CaseFilter{Holder: "ann"}, "case_holder"},
		"what is old":          {store.CaseFilter{OlderThan: 1}, "case_list"},
		"what waits in states": {store.CaseFilter{Tenant: "tenant-1", States: []store.State{store.Manual, store.AwaitingApproval}}, "case_tenant"},
	} {
		sql, args := q.cases(page.filter)
		plan := q.explain(generic, sql, args...)
		q.wantAlong("Index Scan using "+page.index, name, plan)
		if strings.Contains(plan, "Sort") {
			q.t.Errorf("%s is sorted for its first page:\n%s", name, plan)
		}
	}
	sql, args := q.cases(store.CaseFilter{Operation: uuid.New(), Closed: true})
	q.wantAlong("case_operation", "the cases of an operation", q.explain(generic, sql, args...))
}

// purges: a page costs what is on it (R52).
func (q *crowdedQueue) purges(generic bool) {
	all := make([]pgtype.UUID, 1000)
	versions, departs := make([]int32, len(all)), make([]bool, len(all))
	for n := range all {
		all[n] = some(uuid.New())
	}
	page := q.explain(generic, q.sql.purgePage, some(uuid.New()), 1000)
	for _, index := range []string{"operation_id", "operation_pkey", "case_operation", "intent_pkey"} {
		q.wantAlong(index, "a purge's page", page)
	}
	q.wantAlong("operation_id", "a purge", q.explain(generic, q.sql.purge, all, versions, departs))
	q.wantAlong("operation_id", "an erasure's page", q.explain(generic, q.sql.erasePage, some(uuid.New()), 1000, make([]byte, 32)))
	q.wantAlong("operation_id", "an erasure", q.explain(generic, q.sql.erase, all))
}

func (q *crowdedQueue) closings(generic bool) {
	for name, sql := range map[string]string{
		"whether an intent is settled": q.sql.unsettled, "the locks on its operations": q.sql.lockOwn,
		"its tombstones": q.sql.entombAll, "its proposals": q.sql.dropProposals,
	} {
		q.wantAlong("operation_pkey", name, q.explain(generic, sql, some(uuid.New())))
	}
}
