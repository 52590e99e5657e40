package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/internal/faulty"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

// transacted claims, writes a business row and completes, in one transaction.
func transacted(ctx context.Context, l store.Ledger, c store.Claim, table string) (claimed store.Claimed, err error) {
	err = l.(store.Transactor).Transact(ctx, func(ctx context.Context, t store.Transaction) (err error) {
		if claimed, err = t.Claim(ctx, c); err != nil || !claimed.Won || claimed.Operation.State != store.Running {
			return err
		}
		tx, ok := postgres.Tx(ctx)
		if !ok {
			return postgres.ErrNoTx
		}
		if _, err := tx.Exec(ctx, "INSERT INTO "+table+" VALUES ($1)", "chair"); err != nil {
			return err
		}
		_, err = t.Commit(ctx, storetest.Completion(claimed.Operation, "r-1"))
		return err
	})
	return claimed, err
}

func TestR53OneCommitAndFourRoundTrips(t *testing.T) {
	t.Parallel()
	db := pgtest.NewCluster(t, pgtest.Setting("autovacuum", "off")).DB()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			m := newMeter(t, db, mode)
			table := db.Schema(t) + "_shelf"
			if _, err := m.watch.Exec(t.Context(), "CREATE TABLE "+table+" (item text)"); err != nil {
				t.Fatal(err)
			}
			var i store.Intent
			m.costs("an intent", 1, 1, func() (err error) {
				i, err = m.ledger.Intent(t.Context(), storetest.NewIntent())
				return err
			})
			run := func() error {
				_, err := transacted(t.Context(), m.ledger, storetest.Claim(storetest.Operation(i), func(c *store.Claim) { c.Known = true }), table)
				return err
			}
			m.costs("the first one", 0, 0, run) // prepares the statements
			m.counts = true
			m.costs("a tool in the ledger's transaction", 4, 1, run)
		})
	}
}

func TestR53ALostCommitIsSettledByTheSameClaim(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do    faulty.Action
		stood bool
	}{
		"whose answer was lost":         {faulty.LoseAnswer, true},
		"that never reached the server": {faulty.CutBefore, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, proxy := faultyWorld(t)
			table := w.schema + ".shelf"
			if _, err := w.pool.Exec(t.Context(), "CREATE TABLE "+table+" (item text)"); err != nil {
				t.Fatal(err)
			}
			c := storetest.Claim(storetest.Operation(w.intent()))
			fault := proxy.Arm(faulty.Fault{Request: "COMMIT", Do: tc.do})
			_, err := transacted(t.Context(), w.Ledger, c, table)
			unanswered(t, err)
			<-fault.Done()
			again, err := transacted(t.Context(), w.Ledger, c, table)
			if tc.stood {
				if !again.Won || again.Operation.State != store.Completed {
					t.Errorf("the claim made again found won %v, state %s: %v", again.Won, again.Operation.State, err)
				}
			} else if err != nil || !again.Won {
				t.Errorf("the claim made again: won %v, error %v", again.Won, err)
			}
			var rows int
			if err := w.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows); err != nil || rows != 1 {
				t.Errorf("%d business rows, error %v, want 1", rows, err)
			}
		})
	}
}

func TestR53AConstraintThatIsCheckedAtTheCommitUndoesAll(t *testing.T) {
	t.Parallel()
	w, _ := faultyWorld(t)
	table := w.schema + ".shelf"
	if _, err := w.pool.Exec(t.Context(), "CREATE TABLE "+table+" (item text UNIQUE DEFERRABLE INITIALLY DEFERRED)"); err != nil {
		t.Fatal(err)
	}
	i := w.intent()
	if _, err := transacted(t.Context(), w.Ledger, storetest.Claim(storetest.Operation(i)), table); err != nil {
		t.Fatal(err)
	}
	second := storetest.Claim(storetest.Operation(i))
	if _, err := transacted(t.Context(), w.Ledger, second, table); !store.Unwritten(err) {
		t.Errorf("error %v, want one that says that nothing was written", err)
	}
	if answer := w.won(second); answer.State != store.Running {
		t.Errorf("the claim is %s", answer.State)
	}
}

func TestR53AnAbandonedTransactionIsRolledBack(t *testing.T) {
	t.Parallel()
	w, _ := faultyWorld(t)
	c := storetest.Claim(storetest.Operation(w.intent()))
	late := make(chan pgx.Tx, 1)
	err := w.Transact(t.Context(), func(ctx context.Context, tr store.Transaction) error {
		if _, err := tr.Claim(ctx, c); err != nil {
			return err
		}
		tx, _ := postgres.Tx(ctx)
		late <- tx
		tr.Abandon()
		return errors.New("the handler didn't return")
	})
	if err == nil {
		t.Fatal("an abandoned transaction has no error")
	}
	if _, err := (<-late).Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("the handler still has its transaction")
	}
	if answer := w.won(c); answer.Version != 1 {
		t.Errorf("the claim is at version %d", answer.Version)
	}
}

func TestR53ARollbackThatIsntAnsweredIsBounded(t *testing.T) {
	t.Parallel()
	w, proxy := faultyWorld(t)
	c := storetest.Claim(storetest.Operation(w.intent()))
	fault := proxy.Arm(faulty.Fault{Request: "rollback", Do: faulty.HoldRequest})
	defer fault.Release()
	refused := errors.New("the handler refused")
	ended := make(chan error, 1)
	go func() {
		ended <- w.Transact(t.Context(), func(ctx context.Context, tr store.Transaction) error {
			_, err := tr.Claim(ctx, c)
			return errors.Join(err, refused)
		})
	}()
	<-fault.Done()
	select {
	case err := <-ended:
		if !errors.Is(err, refused) {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the transaction never ends")
	}
}

// A process that stands still with its transaction open loses it: its locks are
// in everybody's way.
func TestR53TheServerEndsATransactionThatStandsStill(t *testing.T) {
	t.Parallel()
	w, _ := faultyWorld(t)
	c := storetest.Claim(storetest.Operation(w.intent()))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := w.Transact(ctx, func(ctx context.Context, tr store.Transaction) error {
		if _, err := tr.Claim(ctx, c); err != nil {
			return err
		}
		var other store.Claimed
		deadline := time.Now().Add(10 * time.Second)
		for !other.Won && time.Now().Before(deadline) {
			patience, stop := context.WithTimeout(t.Context(), 5*time.Second)
			answers, err := w.Claim(patience, c)
			stop()
			if err == nil {
				other = answers[0]
			}
		}
		if !other.Won {
			t.Error("nobody else gets the claim")
		}
		return errors.New("too late")
	})
	if err == nil {
		t.Error("no error")
	}
}

func TestR53AHandlersOwnWaitsForLocksAreItsOwn(t *testing.T) {
	t.Parallel()
	w, _ := faultyWorld(t)
	var before, after string
	if err := w.pool.QueryRow(t.Context(), "SHOW lock_timeout").Scan(&before); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*store.Claim){"plain": func(*store.Claim) {}, "held": func(c *store.Claim) { c.Hold = &store.Hold{} }} {
		c := storetest.Claim(storetest.Operation(w.intent()), edit)
		err := w.Transact(t.Context(), func(ctx context.Context, tr store.Transaction) error {
			if _, err := tr.Claim(ctx, c); err != nil {
				return err
			}
			tx, _ := postgres.Tx(ctx)
			return tx.QueryRow(ctx, "SHOW lock_timeout").Scan(&after)
		})
		if err != nil {
			t.Fatal(err)
		}
		if after != before {
			t.Errorf("%s: the handler waits for locks for %s, want the session's %s", name, after, before)
		}
	}
}
