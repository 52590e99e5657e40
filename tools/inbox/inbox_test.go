package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/faulty"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/tools/inbox"
)

func TestR54AnEventIsNewOnce(t *testing.T) {
	onEachDatabase(t, func(c *consumer) {
		c.in(func(tx transaction) {
			c.wants(tx, "desk", "1", true)
			c.wants(tx, "desk", "1", false) // also in the same transaction
		})
		c.in(func(tx transaction) {
			c.wants(tx, "desk", "1", false)
			c.wants(tx, "desk", "2", true)
			c.wants(tx, "shop", "1", true) // ids are the source's own
		})
	})
}

func TestR54WhatIsRolledBackWasNotReceived(t *testing.T) {
	onEachDatabase(t, func(c *consumer) {
		tx := c.begins()
		c.wants(tx, "desk", "1", true)
		if err := tx.rollback(c.Context()); err != nil {
			c.Fatal(err)
		}
		c.in(func(tx transaction) { c.wants(tx, "desk", "1", true) })
	})
}

func TestR54TheSecondDeliveryWaitsForTheFirst(t *testing.T) {
	for name, end := range map[string]func(transaction, context.Context) error{
		"committed":   func(tx transaction, ctx context.Context) error { return tx.commit(ctx) },
		"rolled back": func(tx transaction, ctx context.Context) error { return tx.rollback(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			onEachDatabase(t, func(c *consumer) {
				first := c.begins()
				c.wants(first, "desk", "1", true)
				second := make(chan bool, 1)
				go func() { second <- c.onceMore() }()
				if c.pool != nil {
					c.awaitLock()
				}
				select {
				case isNew := <-second:
					c.Fatalf("the second one was told that the event is new: %v, while the first one was open", isNew)
				default:
				}
				if err := end(first, c.Context()); err != nil {
					c.Fatal(err)
				}
				if isNew, want := received(c, second), name == "rolled back"; isNew != want {
					c.Errorf("behind one that was %s the event is new: %v", name, isNew)
				}
			})
		})
	}
}

// onceMore receives the event in a whole transaction.
func (c *consumer) onceMore() bool {
	tx, err := c.begin(c.Context())
	if err != nil {
		c.Error(err)
		return false
	}
	isNew, err := tx.once(c.Context(), "desk", "1")
	if err == nil {
		err = tx.commit(c.Context())
	}
	if err != nil {
		c.Error(err)
	}
	return isNew
}

// awaitLock waits until a connection of this test's waits for a lock.
func (c *consumer) awaitLock() {
	c.Helper()
	const waiting = `SELECT count(*) FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND application_name = current_setting('application_name')`
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		var n int
		if err := c.pool.QueryRow(c.Context(), waiting).Scan(&n); err != nil {
			c.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	c.Fatal("nobody waits for the first transaction")
}

// Of many at once, one is told that it is new.
func TestR54OfManyDeliveriesOneIsNew(t *testing.T) {
	onEachDatabase(t, func(c *consumer) {
		var group sync.WaitGroup
		told := make(chan bool, 8)
		for range cap(told) {
			group.Go(func() { told <- c.onceMore() })
		}
		group.Wait()
		close(told)
		n := 0
		for isNew := range told {
			if isNew {
				n++
			}
		}
		if n != 1 {
			c.Errorf("the event was new %d times", n)
		}
	})
}

// The commit's answer is lost: the consumer can't know, the event comes again,
// and the inbox knows.
func TestR54ALostCommitIsRecognised(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	proxy := faulty.NewProxy(t, db.Addr(t))
	pool := newPool(t, db, pgtest.Via(t, proxy.Addr()))
	if _, err := pool.Exec(t.Context(), inbox.Postgres); err != nil {
		t.Fatal(err)
	}
	c := &consumer{T: t, begin: beginPgx(pool), pool: pool}
	tx := c.begins()
	c.wants(tx, "desk", "1", true)
	proxy.Arm(faulty.Fault{Request: "commit", Do: faulty.LoseAnswer})
	if err := tx.commit(t.Context()); err == nil {
		t.Error("a commit without an answer succeeded")
	}
	c.in(func(tx transaction) { c.wants(tx, "desk", "1", false) })
}

// An error says "unknown", never "new" (the comment on Once).
func TestR54ASnapshotThatIsTooOldIsAnError(t *testing.T) {
	t.Parallel()
	c := onPostgres(t)
	tx, err := c.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM settle_inbox").Scan(&n); err != nil {
		t.Fatal(err)
	}
	c.in(func(tx transaction) { c.wants(tx, "desk", "1", true) })
	if isNew, err := inbox.Once(t.Context(), tx, "desk", "1"); err == nil || isNew {
		t.Errorf("new %v, error %v", isNew, err)
	}
}

func TestR54ForgetKeepsWhatMayComeAgain(t *testing.T) {
	onEachDatabase(t, func(c *consumer) {
		const month = 30 * 24 * time.Hour
		c.in(func(tx transaction) {
			c.wants(tx, "desk", "old", true)
			c.wants(tx, "desk", "older than a day", true)
		})
		c.exec("UPDATE settle_inbox SET received_at = received_at - $1 WHERE event = 'old'", int64(month/time.Second)+100)
		c.exec("UPDATE settle_inbox SET received_at = received_at - $1 WHERE event = 'older than a day'", int64(month/time.Second)-100)
		c.in(func(tx transaction) { c.wants(tx, "desk", "new", true) })
		c.in(func(tx transaction) {
			if n, err := tx.forget(c.Context(), inbox.ShortestMemory-time.Second); n != 0 || err == nil {
				c.Errorf("less than the sender's redeliveries: %d forgotten, error %v", n, err)
			}
			if n, err := tx.forget(c.Context(), month); n != 1 || err != nil {
				c.Errorf("%d forgotten, error %v", n, err)
			}
			c.wants(tx, "desk", "older than a day", false)
			c.wants(tx, "desk", "new", false)
			c.wants(tx, "desk", "old", true) // why keep has its bound
		})
	})
}

func TestR54ForgetOfAnEmptyInbox(t *testing.T) {
	onEachDatabase(t, func(c *consumer) {
		c.in(func(tx transaction) {
			if n, err := tx.forget(c.Context(), inbox.ShortestMemory); n != 0 || err != nil {
				c.Errorf("%d forgotten, error %v", n, err)
			}
		})
	})
}

func TestR55AnImpossibleNameIsRefusedWithoutBeingRepeated(t *testing.T) {
	onEachDatabase(t, func(c *consumer) {
		long := strings.Repeat("secret", 100)
		for _, name := range [][2]string{{"", "1"}, {"desk", ""}, {long, "1"}, {"desk", long}} {
			tx := c.begins()
			isNew, err := tx.once(c.Context(), name[0], name[1])
			if err == nil || isNew || strings.Contains(err.Error(), "secret") {
				c.Errorf("new %v, error %v", isNew, err)
			}
			if err := tx.rollback(c.Context()); err != nil {
				c.Fatal(err)
			}
		}
	})
}

func TestSeveralProcessesCreateTheTable(t *testing.T) {
	t.Parallel()
	pool := newPool(t, pgtest.New(t))
	c := &consumer{T: t, begin: beginPgx(pool), pool: pool}
	first, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(context.Background())
	if _, err := first.Exec(t.Context(), inbox.Postgres); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := pool.Exec(t.Context(), inbox.Postgres)
		second <- err
	}()
	c.awaitLock()
	if err := errors.Join(first.Commit(t.Context()), received(t, second)); err != nil {
		t.Error(err)
	}
	c.in(func(tx transaction) { c.wants(tx, "desk", "1", true) })
}

// Who uses database/sql isn't built with pgx.
func TestPackageIsBuiltWithoutPgx(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if deps := string(out); strings.Contains(deps, "pgx") || !strings.Contains(deps, "database/sql") {
		t.Errorf("it is built from:\n%s", deps)
	}
}
