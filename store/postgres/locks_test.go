package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

// TestLocksDecideTogether stops a claim at the point where it has its locks and
// has decided, lets another call decide against it, and lets both go. What the
// other one decides by must be what the first one left.
func TestLocksDecideTogether(t *testing.T) {
	t.Parallel()
	only := func(d store.Digest) func(*store.Operation) { return func(o *store.Operation) { o.Unique = d } }

	for name, run := range map[string]func(w *ledgerWorld){
		"R30AClaimIsHeldByTheOneBeforeIt": func(w *ledgerWorld) {
			i := w.intent()
			first := w.won(storetest.Claim(storetest.Operation(i, storetest.Whole)))
			w.apply(storetest.Change(first, store.Failed))
			stopped := w.stop(first, storetest.Claim(storetest.Operation(i, storetest.Whole), storetest.UnderHold()))
			second := w.claims(storetest.Claim(storetest.Operation(i, storetest.Whole), storetest.UnderHold()))
			stopped.letGo()
			w.wantState(<-stopped.answer, store.Running)
			w.wantRefusal(<-second, store.RefusedHold)
		},
		"R31ANewerWriteWaitsForTheOneBeforeIt": func(w *ledgerWorld) {
			resource := storetest.SomeDigest()
			first := w.write(w.intent(), resource, store.Completed)
			stopped := w.stop(first, storetest.Claim(storetest.Operation(w.intent(), storetest.Writes(resource))))
			second := w.claims(storetest.Claim(storetest.Operation(w.intent(), storetest.Writes(resource))))
			stopped.letGo()
			w.wantState(<-stopped.answer, store.Running)
			w.wantState(<-second, store.Retryable)
		},
		"R31AnAttemptIsOvertakenByTheWriteBeforeIt": func(w *ledgerWorld) {
			resource := storetest.SomeDigest()
			lower := w.write(w.intent(), resource, store.Retryable)
			stopped := w.stop(lower, storetest.Claim(storetest.Operation(w.intent(), storetest.Writes(resource))))
			started := w.applies(storetest.Attempt(lower))
			stopped.letGo()
			w.wantState(<-stopped.answer, store.Running)
			var blocked *store.BlockedError
			if err := <-started; !errors.As(err, &blocked) || !blocked.Overtaken {
				w.t.Errorf("the start of an overtaken write gave the error %v", err)
			}
		},
		"R14AClaimIsRefusedByTheOneBeforeIt": func(w *ledgerWorld) {
			unique := only(storetest.SomeDigest())
			first := w.won(storetest.Claim(storetest.Operation(w.intent(), unique)))
			w.apply(storetest.Change(first, store.Failed))
			stopped := w.stop(first, storetest.Claim(storetest.Operation(w.intent(), unique)))
			second := w.claims(storetest.Claim(storetest.Operation(w.intent(), unique)))
			stopped.letGo()
			w.wantState(<-stopped.answer, store.Running)
			w.wantRefusal(<-second, store.RefusedUnique)
		},
		"R14AFailedOneStaysBehindTheClaimBeforeIt": func(w *ledgerWorld) {
			unique := only(storetest.SomeDigest())
			failed := w.apply(storetest.Change(w.won(storetest.Claim(storetest.Operation(w.intent(), unique))), store.Failed))
			stopped := w.stop(failed, storetest.Claim(storetest.Operation(w.intent(), unique)))
			back := w.applies(storetest.Change(failed, store.Manual))
			stopped.letGo()
			w.wantState(<-stopped.answer, store.Running)
			var taken *store.ResourceTakenError
			if err := <-back; !errors.As(err, &taken) {
				w.t.Errorf("a failed operation whose digest is taken came back: %v", err)
			}
		},
		"R10AGuardWaitsForTheClaimBeforeIt": func(w *ledgerWorld) {
			i := w.intent()
			guard := w.apply(storetest.Change(w.won(storetest.Claim(storetest.Operation(i))), store.Failed))
			stopped := w.stop(guard, storetest.Claim(storetest.Operation(i, storetest.On(guard, 2)), storetest.After(guard)))
			moved := w.applies(storetest.Change(guard, store.Manual))
			select {
			case err := <-moved:
				w.t.Fatalf("a guard moved on before the claim was made: %v", err)
			default:
			}
			stopped.letGo()
			w.wantState(<-stopped.answer, store.Running)
			if err := <-moved; err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLedgerWorld(t)
			w.Ledger = open(t, w.pool, w.schema, postgres.WithLockWait(time.Minute))
			run(w)
		})
	}
}

// stopped is a claim that waits in the middle of its transaction.
type stopped struct {
	letGo  func()
	answer <-chan answered
}

type answered struct {
	store.Claimed
	err error
}

// stop makes a claim that meets a row in its own place that isn't committed, a
// copy of another one, and never will be.
func (w *ledgerWorld) stop(model store.Operation, c store.Claim) stopped {
	w.t.Helper()
	tx, err := w.db.Pool(w.t).Begin(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	o := c.Operation
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{"CREATE TEMP TABLE copied ON COMMIT DROP AS SELECT * FROM " + w.table("operation") + " WHERE id = $1", []any{model.ID}},
		{"UPDATE copied SET id = $1, intent = $2, slot = $3, number = $4", []any{uuid.New(), o.Intent, uuid.UUID(o.Slot), o.Number}},
		{"INSERT INTO " + w.table("operation") + " SELECT * FROM copied", nil},
	} {
		if _, err := tx.Exec(w.t.Context(), step.sql, append([]any{pgx.QueryExecModeExec}, step.args...)...); err != nil {
			w.t.Fatal(err)
		}
	}
	return stopped{answer: w.claims(c), letGo: func() {
		w.t.Helper()
		if err := tx.Rollback(context.Background()); err != nil {
			w.t.Error(err)
		}
	}}
}

// claims makes a claim that has to wait, and returns when it does.
func (w *ledgerWorld) claims(c store.Claim) <-chan answered {
	w.t.Helper()
	before := len(w.waiters())
	answer := make(chan answered, 1)
	go func() {
		answers, err := w.Claim(context.Background(), c)
		if err != nil {
			answer <- answered{err: err}
			return
		}
		answer <- answered{Claimed: answers[0]}
	}()
	w.awaitWaiters(before+1, func() bool { return len(answer) > 0 })
	return answer
}

// applies makes a change that has to wait, and returns when it does.
func (w *ledgerWorld) applies(c store.Change) <-chan error {
	w.t.Helper()
	before := len(w.waiters())
	result := make(chan error, 1)
	go func() {
		_, err := w.Apply(context.Background(), c)
		result <- err
	}()
	w.awaitWaiters(before+1, func() bool { return len(result) > 0 })
	return result
}

// awaitWaiters waits until n sessions wait for locks, or the call is over.
func (w *ledgerWorld) awaitWaiters(n int, over func() bool) {
	w.t.Helper()
	for len(w.waiters()) < n && !over() {
		if w.t.Context().Err() != nil {
			w.t.Fatal("nobody waits")
		}
	}
}

func (w *ledgerWorld) wantState(a answered, want store.State) {
	w.t.Helper()
	if a.err != nil || !a.Won || a.Operation.State != want {
		w.t.Errorf("won %v, refused %d, state %s, error %v; want it won and %s", a.Won, a.Refused, a.Operation.State, a.err, want)
	}
}

func (w *ledgerWorld) wantRefusal(a answered, want store.Refusal) {
	w.t.Helper()
	if a.err != nil || a.Refused != want {
		w.t.Errorf("refused %d, error %v; want the refusal %d", a.Refused, a.err, want)
	}
}
