package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/faulty"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

// faultyWorld is a ledger behind a proxy that can break its connections.
func faultyWorld(t *testing.T) (*ledgerWorld, *faulty.Proxy) {
	t.Helper()
	db := pgtest.New(t)
	proxy := faulty.NewProxy(t, db.Addr(t))
	return newLedgerWorldIn(t, db, pgtest.Via(t, proxy.Addr()), pgtest.ExecMode(pgx.QueryExecModeExec)), proxy
}

// unanswered requires an error that says neither that it was written nor that
// it wasn't.
func unanswered(t *testing.T, err error) {
	t.Helper()
	if err == nil || store.Unwritten(err) {
		t.Fatalf("a write whose answer was lost gave the error %v, want one that leaves it open", err)
	}
}

func TestR26WithoutAConnectionNothingIsWritten(t *testing.T) {
	t.Parallel()
	w, proxy := faultyWorld(t)
	i := w.intent()
	o := w.won(storetest.Claim(storetest.Operation(i)))
	proxy.Refuse()
	proxy.Cut()
	w.pool.Reset()
	_, err := w.Claim(t.Context(), storetest.Claim(storetest.Operation(i)))
	if !store.Unwritten(err) {
		t.Errorf("a claim without a connection gave the error %v", err)
	}
	if _, err = w.Apply(t.Context(), storetest.Completion(o, "r-1")); !store.Unwritten(err) {
		t.Errorf("an outcome without a connection gave the error %v", err)
	}
	if _, err = postgres.New(t.Context(), w.pool, postgres.WithSchema(w.schema)); err == nil {
		t.Error("New gave a ledger without a connection")
	}
}

func TestR19AClaimWhoseAnswerWasLostIsWonWhenItIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, fault := range []faulty.Action{faulty.LoseAnswer, faulty.CutBefore} {
		for name, edit := range map[string]func(*store.Claim){
			"plain": func(*store.Claim) {}, "guarded": storetest.UnderHold(), "likely": func(c *store.Claim) { c.Likely = true },
		} {
			t.Run(name+" "+fault.String(), func(t *testing.T) {
				t.Parallel()
				w, proxy := faultyWorld(t)
				c := storetest.Claim(storetest.Operation(w.intent(), storetest.Whole), edit)
				proxy.Arm(faulty.Fault{Request: ".operation (id", Do: fault})
				_, err := w.Claim(t.Context(), c)
				unanswered(t, err)
				o := w.won(c)
				if o.Version != 1 || o.Owner != c.Operation.Owner {
					t.Errorf("the claim that was made again is at version %d", o.Version)
				}
			})
		}
	}
}

// cutShort ends the context of a batch that begins with a statement.
type cutShort struct{ statement string }

func (c cutShort) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (c cutShort) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c cutShort) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if !strings.Contains(data.Batch.QueuedQueries[0].SQL, c.statement) {
		return ctx
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return ended
}

func (c cutShort) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (c cutShort) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestR19WhatWasWonStandsThoughTheOthersCouldntBeRead: the second round trip of
// a call isn't sent, but the first one has written.
func TestR19WhatWasWonStandsThoughTheOthersCouldntBeRead(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	i := w.intent()
	recorded := w.won(storetest.Claim(storetest.Operation(i)))
	twin := storetest.Claim(storetest.Operation(i, storetest.On(recorded, 1)))
	fresh := storetest.Claim(storetest.Operation(i))
	cut := open(t, w.db.Pool(t, pgtest.Tracer(cutShort{"AS k(intent, slot, n)"})), w.schema)

	if _, err := cut.Claim(t.Context(), twin); !store.Unwritten(err) {
		t.Errorf("a claim that wrote nothing gave the error %v", err)
	}
	_, err := cut.Claim(t.Context(), twin, fresh)
	unanswered(t, err)
	if o := w.won(fresh); o.Version != 1 || o.CreatedAt.After(w.read(recorded).Read) {
		t.Error("the claim that was won didn't stand")
	}
}

func TestR24AnOutcomeWhoseAnswerWasLostIsFoundByItsAttempt(t *testing.T) {
	t.Parallel()
	w, proxy := faultyWorld(t)
	o := w.won(storetest.Claim(storetest.Operation(w.intent())))
	proxy.Arm(faulty.Fault{Request: "SET state = 'completed'", Do: faulty.LoseAnswer})
	change := storetest.Completion(o, "r-1")
	_, err := w.Apply(t.Context(), change)
	unanswered(t, err)

	_, err = w.Apply(t.Context(), change)
	var stale *store.StaleError
	if !errors.As(err, &stale) || stale.Current.State != store.Completed || stale.Current.Owner != o.Owner {
		t.Errorf("the same outcome again gave the error %v, want a StaleError with the row as it was written", err)
	}
}

// TestASessionThatIsEndedLeavesAWriteOpen: a FATAL error can come the moment
// after the commit.
func TestASessionThatIsEndedLeavesAWriteOpen(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	o := w.won(storetest.Claim(storetest.Operation(w.intent())))
	release := w.lockRow(o)
	result := make(chan error, 1)
	go func() {
		_, err := w.Apply(context.Background(), storetest.Completion(o, "r-1"))
		result <- err
	}()
	w.terminate(w.waiter())
	unanswered(t, <-result)
	release()
}

// lockRow holds the operation's row until it is released.
func (w *ledgerWorld) lockRow(o store.Operation) (release func()) {
	w.t.Helper()
	tx, err := w.db.Pool(w.t).Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(w.t.Context(), "SELECT FROM "+w.table("operation")+" WHERE id = $1 FOR UPDATE", o.ID); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}

// waiters are the sessions that wait for a lock on this schema's rows.
func (w *ledgerWorld) waiters() []int {
	w.t.Helper()
	return askAll[int](w.t, w.pool, `SELECT pid FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND position($1 in query) > 0`, w.schema)
}

// waiter waits until a session waits for a lock.
func (w *ledgerWorld) waiter() (pid int) {
	w.t.Helper()
	for {
		if pids := w.waiters(); len(pids) > 0 {
			return pids[0]
		}
		if w.t.Context().Err() != nil {
			w.t.Fatal("nobody waits")
		}
	}
}

func (w *ledgerWorld) terminate(pid int) {
	w.t.Helper()
	if !ask[bool](w.t, w.pool, "SELECT pg_terminate_backend($1)", pid) {
		w.t.Fatal("the session wasn't there")
	}
}

func TestALockThatIsNotFreeInTimeWritesNothingAndMayBeMadeAgain(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	quick := open(t, w.pool, w.schema, postgres.WithLockWait(20*time.Millisecond))
	i := w.intent()
	failed := w.apply(storetest.Change(w.won(storetest.Claim(storetest.Operation(i))), store.Failed))
	running := w.won(storetest.Claim(storetest.Operation(i)))
	retryable := w.apply(storetest.Change(w.won(storetest.Claim(storetest.Operation(i))), store.Retryable))
	for _, o := range []store.Operation{failed, running, retryable} {
		defer w.lockRow(o)()
	}
	next := storetest.Claim(storetest.Operation(i, storetest.On(failed, 2)), storetest.After(failed))
	for name, call := range map[string]func() error{
		"a guarded claim": func() error { _, err := quick.Claim(t.Context(), next); return err },
		"a move":          func() error { _, err := quick.Apply(t.Context(), storetest.Change(running, store.Unknown)); return err },
		"a start":         func() error { _, err := quick.Apply(t.Context(), storetest.Attempt(retryable)); return err },
		"a renewal": func() error {
			_, err := quick.Renew(t.Context(), storetest.Lease, store.Held{Operation: running.ID, Owner: running.Owner})
			return err
		},
	} {
		var unwritten *store.UnwrittenError
		if err := call(); !errors.As(err, &unwritten) || !unwritten.Again {
			t.Errorf("%s that waited too long gave the error %v, want an UnwrittenError with Again", name, err)
		}
	}
}

// TestR22AWaitForALockTakesNothingFromALease starts an attempt on a row that is
// locked for a moment.
func TestR22AWaitForALockTakesNothingFromALease(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	o := w.apply(storetest.Change(w.won(storetest.Claim(storetest.Operation(w.intent()))), store.Retryable))
	release := w.lockRow(o)
	started := make(chan store.Operation, 1)
	go func() {
		defer close(started)
		if o, err := w.Apply(context.Background(), storetest.Attempt(o)); err != nil {
			t.Error(err)
		} else {
			started <- o
		}
	}()
	w.waiter()
	freed := ask[time.Time](t, w.db.Pool(t), "SELECT clock_timestamp()")
	release()
	if row := <-started; row.LeaseUntil.Before(freed.Add(storetest.Lease)) {
		t.Errorf("the lease ends %v too early", freed.Add(storetest.Lease).Sub(row.LeaseUntil))
	}
}

func TestAReadOnlyServerSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	i := w.intent()
	o := w.won(storetest.Claim(storetest.Operation(i)))
	pool := w.db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on" })
	reader := open(t, pool, w.schema)
	if _, err := reader.Get(t.Context(), i.TenantName, o.ID); err != nil {
		t.Errorf("reading on a read-only server gave the error %v", err)
	}
	_, err := reader.Claim(t.Context(), storetest.Claim(storetest.Operation(i)))
	if !store.Unwritten(err) || !strings.Contains(err.Error(), "read-only") || !strings.Contains(err.Error(), "primary") {
		t.Errorf("a claim on a read-only server gave the error %v", err)
	}
}

func TestAnotherIsolationLevelIsRefused(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, level := range []string{"repeatable read", "serializable", "read uncommitted"} {
		pool := db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level })
		_, err := postgres.New(t.Context(), pool, postgres.WithSchema(db.Schema(t)))
		var isolation *postgres.IsolationError
		if !errors.As(err, &isolation) || isolation.Level != level || !strings.Contains(err.Error(), "read committed") {
			t.Errorf("at %s New gave the error %v", level, err)
		}
	}
}

// TestR55ErrorsOfTheServerQuoteNoValues makes the server refuse a value.
func TestR55ErrorsOfTheServerQuoteNoValues(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	o := w.won(storetest.Claim(storetest.Operation(w.intent())))
	_, err := w.Apply(t.Context(), storetest.Change(o, store.Unknown, func(c *store.Change) { c.Reason = "hush\x00hush" }))
	var server *pgconn.PgError
	if !errors.As(err, &server) || !store.Unwritten(err) {
		t.Fatalf("a text with a NUL gave the error %v", err)
	}
	if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "0x00") {
		t.Errorf("the error quotes a value: %v", err)
	}
}

func TestALostTableIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	i := w.intent()
	w.exec("DROP TABLE " + w.table("operation"))
	_, err := w.Claim(t.Context(), storetest.Claim(storetest.Operation(i)))
	if !store.Unwritten(err) || !strings.Contains(err.Error(), "run the migrations") {
		t.Errorf("a claim without its tables gave the error %v", err)
	}
	if _, err := w.Events(t.Context(), uuid.New(), 0); !store.Unwritten(err) {
		t.Errorf("reading without tables gave the error %v", err)
	}
}

func TestALockWaitMustBeAWait(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, d := range []time.Duration{0, -time.Second, time.Microsecond} {
		if _, err := postgres.New(t.Context(), db.Pool(t), postgres.WithLockWait(d)); err == nil {
			t.Errorf("New took a lock wait of %v", d)
		}
	}
}

func TestCloseLeavesThePoolOpen(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.List(t.Context(), store.Filter{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed ledger gave the error %v", err)
	}
	if got := ask[int](t, w.pool, "SELECT 1"); got != 1 {
		t.Error("the pool is closed")
	}
}
