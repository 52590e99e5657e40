package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

// retained is a ledger with the database under it.
type retained struct {
	*postgres.Ledger
	t      *testing.T
	pool   *pgxpool.Pool
	schema string
	intent store.Intent
}

func newRetained(t *testing.T, options ...postgres.Option) *retained {
	t.Helper()
	db := pgtest.New(t)
	r := &retained{t: t, pool: db.Pool(t), schema: db.Schema(t)}
	install(t, r.pool, r.schema)
	r.Ledger = open(t, r.pool, r.schema, options...)
	var err error
	r.intent, err = r.Intent(t.Context(), storetest.NewIntent())
	r.must(err)
	return r
}

func (r *retained) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *retained) claimed(edits ...func(*store.Operation)) store.Operation {
	r.t.Helper()
	answers, err := r.Claim(r.t.Context(), storetest.Claim(storetest.Operation(r.intent, edits...)))
	r.must(err)
	return answers[0].Operation
}

func (r *retained) apply(c store.Change) store.Operation {
	r.t.Helper()
	o, err := r.Apply(r.t.Context(), c)
	r.must(err)
	return o
}

func (r *retained) purge() store.Purged {
	r.t.Helper()
	done, err := r.Purge(r.t.Context(), store.Purge{})
	r.must(err)
	return done
}

func (r *retained) age(d time.Duration) {
	r.t.Helper()
	age(r.t, r.pool, r.schema, d)
}

func (r *retained) table(name string) string { return pgx.Identifier{r.schema, name}.Sanitize() }

func (r *retained) count(table string) (n int) {
	r.t.Helper()
	r.must(r.pool.QueryRow(r.t.Context(), "SELECT count(*) FROM "+r.table(table)).Scan(&n))
	return n
}

// begun runs a statement in a transaction that stays open.
func (r *retained) begun(sql string, args ...any) pgx.Tx {
	r.t.Helper()
	tx, err := r.pool.Begin(r.t.Context())
	r.must(err)
	r.t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // where it wasn't committed
	_, err = tx.Exec(r.t.Context(), sql, args...)
	r.must(err)
	return tx
}

// blocked waits until another session waits for what the transaction holds.
func (r *retained) blocked(tx pgx.Tx) {
	r.t.Helper()
	for blocked := false; !blocked; {
		r.must(tx.QueryRow(r.t.Context(),
			"SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))").Scan(&blocked))
	}
}

func TestR52NothingIsLeftOfADeletedOperation(t *testing.T) {
	t.Parallel()
	r := newRetained(t)
	r.apply(storetest.Completion(r.claimed(), "r-1"))
	abandoned := r.apply(storetest.Change(r.apply(storetest.Change(r.claimed(), store.Manual)), store.Abandoned))
	r.apply(storetest.Change(abandoned, store.Abandoned))
	r.must(r.CloseIntent(t.Context(), r.intent.TenantName, r.intent.ID))
	r.age(store.ClosedGrace)
	if done := r.purge(); done.Removed != 2 {
		t.Errorf("%d operations were removed, want 2", done.Removed)
	}
	for table, want := range map[string]int{"operation": 0, "event": 0, "case": 0, "intent": 1, "attribute": 1} {
		if n := r.count(table); n != want {
			t.Errorf("the table %s has %d rows, want %d", table, n, want)
		}
	}
}

func TestR52APurgeStepsOverWhatAnotherTransactionHas(t *testing.T) {
	t.Parallel()
	r := newRetained(t)
	held := r.apply(storetest.Completion(r.claimed(), "r-1"))
	r.apply(storetest.Completion(r.claimed(), "r-2"))
	r.age(2 * storetest.Retention)
	tx := r.begun("SELECT FROM "+r.table("operation")+" WHERE id = $1 FOR UPDATE", held.ID)
	if done := r.purge(); done != (store.Purged{Seen: 2, Removed: 1}) {
		t.Errorf("beside a transaction the purge did %+v, want one row removed of two", done)
	}
	r.must(tx.Rollback(t.Context()))
	if done := r.purge(); done != (store.Purged{Seen: 2, Removed: 1}) {
		t.Errorf("the next purge did %+v, want the other row removed", done)
	}
}

func TestR52ErasureStepsOverNothing(t *testing.T) {
	t.Parallel()
	r := newRetained(t, postgres.WithLockWait(20*time.Millisecond))
	held := r.claimed()
	tx := r.begun("SELECT FROM "+r.table("operation")+" WHERE id = $1 FOR UPDATE", held.ID)
	erase := store.Purge{Principal: r.intent.Principal}
	_, err := r.Purge(t.Context(), erase)
	var unwritten *store.UnwrittenError
	if !errors.As(err, &unwritten) || !unwritten.Again {
		t.Errorf("beside a transaction the erasure gave the error %v, want one that says to try again", err)
	}
	r.must(tx.Rollback(t.Context()))
	done, err := r.Purge(t.Context(), erase)
	if err != nil || done.Removed != 1 {
		t.Errorf("the erasure did %+v with the error %v, want one payload removed", done, err)
	}
}

// A proposal that is being made while its principal is erased goes as well.
func TestR52ErasureWaitsForAProposalOnItsWay(t *testing.T) {
	t.Parallel()
	r := newRetained(t)
	o := r.apply(storetest.Change(r.claimed(), store.Manual))
	tx := r.begun("SELECT FROM "+r.table("operation")+" WHERE id = $1 FOR UPDATE", o.ID)
	erased := make(chan error, 1)
	go func() {
		_, err := r.Purge(t.Context(), store.Purge{Principal: r.intent.Principal})
		erased <- err
	}()
	r.blocked(tx)
	_, err := tx.Exec(t.Context(), "UPDATE "+r.table("case")+" SET proposal = 'x'")
	r.must(err)
	r.must(tx.Commit(t.Context()))
	r.must(<-erased)
	cases, err := r.Cases(t.Context(), store.CaseFilter{Operation: o.ID})
	r.must(err)
	if len(cases) != 1 || len(cases[0].Case.Proposal) > 0 {
		t.Errorf("got %d cases, want one without its proposal", len(cases))
	}
}

// What is being reopened while its intent is closed keeps it open.
func TestR52ClosingWaitsForAMoveOnItsWay(t *testing.T) {
	t.Parallel()
	r := newRetained(t)
	o := r.apply(storetest.Change(r.claimed(), store.Failed))
	tx := r.begun("UPDATE "+r.table("operation")+" SET state = 'manual', version = version + 1 WHERE id = $1", o.ID)
	closed := make(chan error, 1)
	go func() { closed <- r.CloseIntent(t.Context(), r.intent.TenantName, r.intent.ID) }()
	r.blocked(tx)
	r.must(tx.Commit(t.Context()))
	if err := <-closed; !errors.Is(err, store.ErrUnsettled) {
		t.Errorf("closing gave the error %v, want ErrUnsettled", err)
	}
	e, err := r.Get(t.Context(), r.intent.TenantName, o.ID)
	r.must(err)
	if e.Flags&store.FlagPurged != 0 || !e.Of.ClosedAt.IsZero() {
		t.Error("an intent that can't be closed was changed")
	}
}

func TestR52AnIntentThatIsInUseIsClosedLater(t *testing.T) {
	t.Parallel()
	r := newRetained(t, postgres.WithLockWait(20*time.Millisecond))
	o := r.apply(storetest.Change(r.claimed(), store.Failed))
	tx := r.begun("SELECT FROM "+r.table("operation")+" WHERE id = $1 FOR UPDATE", o.ID)
	err := r.CloseIntent(t.Context(), r.intent.TenantName, r.intent.ID)
	var unwritten *store.UnwrittenError
	if !errors.As(err, &unwritten) || !unwritten.Again {
		t.Errorf("closing gave the error %v, want one that says to try again", err)
	}
	r.must(tx.Rollback(t.Context()))
	r.must(r.CloseIntent(t.Context(), r.intent.TenantName, r.intent.ID))
}

// A pin outlives the operations that made it, as in the other ledgers.
func TestR3ARefusedClaimTakesBackItsOwnPinOnly(t *testing.T) {
	t.Parallel()
	r := newRetained(t)
	r.apply(storetest.Completion(r.claimed(), "r-1"))
	r.must(r.CloseIntent(t.Context(), r.intent.TenantName, r.intent.ID))
	r.age(store.ClosedGrace)
	r.purge()
	for range 2 {
		other := storetest.Operation(r.intent, func(o *store.Operation) { o.Contract = storetest.DigestOf("another") })
		answers, err := r.Claim(t.Context(), storetest.Claim(other))
		r.must(err)
		if answers[0].Refused != store.RefusedContract {
			t.Errorf("another contract was refused with %d, want %d", answers[0].Refused, store.RefusedContract)
		}
	}
}
