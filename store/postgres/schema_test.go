package postgres_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// labels lists an enum's values in their order.
func (w *ledgerWorld) labels(enum string) []string {
	w.t.Helper()
	return askAll[string](w.t, w.pool, `SELECT enumlabel::text FROM pg_enum WHERE enumtypid = $1::text::regtype ORDER BY enumsortorder`,
		pgx.Identifier{w.schema, enum}.Sanitize())
}

func names[T interface{ String() string }](all []T) []string {
	var names []string
	for _, one := range all {
		names = append(names, one.String())
	}
	return names
}

func TestR20TheDatabaseHasTheStateTable(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	classes := []store.Class{store.Unsafe, store.Read, store.Idempotent, store.Keyed, store.Composite, store.Transactional}
	for enum, want := range map[string][]string{
		"state": names(store.States()), "move": names(store.Moves()), "class": names(classes),
	} {
		if got := w.labels(enum); !slices.Equal(got, want) {
			t.Errorf("the values of %s are %q, want %q", enum, got, want)
		}
	}
}

func TestR20AMoveThatTheTableLacksCantBeJournaled(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	o := w.won(storetest.Claim(storetest.Operation(w.intent())))
	_, err := w.pool.Exec(t.Context(), "INSERT INTO "+w.table("event")+
		" (operation, seq, attempt, at, move, kind, actor, reason, hash) VALUES ($1, 2, 1, now(), 'running>abandoned', '', '', '', '')", o.ID)
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "22P02" {
		t.Errorf("got the error %v, want one of the enum", err)
	}
}

func TestTheHotTableHasFewIndexes(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	got := askAll[string](t, w.pool, "SELECT indexname::text FROM pg_indexes WHERE schemaname = $1 AND tablename = 'operation' ORDER BY 1", w.schema)
	want := []string{"operation_due", "operation_id", "operation_outcome", "operation_pkey"}
	if !slices.Equal(got, want) {
		t.Errorf("the indexes are %q, want %q: each one costs every first execution some 2 %%", got, want)
	}
}

// openCases reads the reasons of open cases, and of incidents.
func (w *ledgerWorld) openCases(o store.Operation, incident bool) []string {
	w.t.Helper()
	return askAll[string](w.t, w.pool, "SELECT reason FROM "+w.table("case")+
		" WHERE operation = $1 AND closed_at IS NULL AND incident = $2 ORDER BY opened_at", o.ID, incident)
}

func TestR39EveryOperationOfAPersonHasOneOpenCase(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	o := w.won(storetest.Claim(storetest.Operation(w.intent(), storetest.In(store.AwaitingApproval),
		func(o *store.Operation) { o.Reason = "needs_approval" })))
	if got := w.openCases(o, false); !slices.Equal(got, []string{"needs_approval"}) {
		t.Errorf("after the claim the open cases are %q", got)
	}
	for _, step := range []struct {
		to   store.State
		want []string
	}{
		{store.AwaitingApproval, []string{"needs_approval"}},
		{store.Retryable, nil},
		{store.AwaitingApproval, []string{"to awaiting_approval"}},
		{store.Failed, nil},
		{store.Manual, []string{"to manual"}},
		{store.Manual, []string{"to manual"}},
		{store.Unknown, nil},
		{store.Manual, []string{"to manual"}},
		{store.Completed, nil},
	} {
		o = w.apply(storetest.Change(o, step.to, func(c *store.Change) { c.Reason = "to " + step.to.String() }))
		if got := w.openCases(o, false); !slices.Equal(got, step.want) {
			t.Errorf("after the move to %s the open cases are %q, want %q", step.to, got, step.want)
		}
	}
	wantCase := ask[bool](t, w.pool, "SELECT bool_and(tenant = $2 AND tool = $3 AND closed_at >= opened_at) FROM "+w.table("case")+
		" WHERE operation = $1", o.ID, o.Tenant, o.Tool)
	if !wantCase {
		t.Error("a case has another tenant or tool than its operation, or was closed before it was opened")
	}
}

func TestR25AnIncidentLeavesTheOperationSettled(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	o := w.won(storetest.Claim(storetest.Operation(w.intent())))
	o = w.apply(storetest.Completion(o, "r-1"))
	for range 2 {
		o = w.apply(storetest.Change(o, store.Completed, func(c *store.Change) { c.Incident = "late_success" }))
	}
	if got := w.openCases(o, true); !slices.Equal(got, []string{"late_success", "late_success"}) {
		t.Errorf("the open incidents are %q", got)
	}
	if got := w.openCases(o, false); len(got) > 0 {
		t.Errorf("a settled operation has the open cases %q", got)
	}
}

func TestR57AuditRowsAreKeptInTheirOrder(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	o := w.won(storetest.Claim(storetest.Operation(w.intent())))
	if err := w.Audit(t.Context(),
		store.Audit{Operation: o.ID, Kind: "conflict", Actor: "executor", Detail: "order"},
		store.Audit{Kind: "refused", Actor: "operator é"}); err != nil {
		t.Fatal(err)
	}
	got := askAll[string](t, w.pool, "SELECT kind || '/' || actor || '/' || detail || '/' || (operation IS NOT NULL) FROM "+
		w.table("audit")+" WHERE at <= clock_timestamp() ORDER BY id")
	if want := []string{"conflict/executor/order/true", "refused/operator é//false"}; !slices.Equal(got, want) {
		t.Errorf("the audit rows are %q, want %q", got, want)
	}
}

func TestR3ARefusedClaimPinsNothing(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	only := storetest.SomeDigest()
	unique := func(o *store.Operation) { o.Unique = only }
	w.won(storetest.Claim(storetest.Operation(w.intent(), unique)))

	i := w.intent()
	answers, err := w.Claim(t.Context(), storetest.Claim(storetest.Operation(i, unique)))
	if err != nil || answers[0].Refused != store.RefusedUnique {
		t.Fatalf("got %v and the refusal %d, want RefusedUnique", err, answers[0].Refused)
	}
	w.won(storetest.Claim(storetest.Operation(i, func(o *store.Operation) { o.Contract = storetest.SomeDigest() })))
}
