package postgres_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// R45: who waits hears of a person's decision from another process, and of no
// other outcome.
func TestR45ADecisionIsHeard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgx.QueryExecModeCacheStatement)
	decider := w.Again(t)
	watcher, ok := w.Ledger.(store.Watcher)
	if !ok {
		t.Fatal("the ledger can't be watched")
	}
	intent, err := w.Ledger.Intent(t.Context(), storetest.NewIntent())
	if err != nil {
		t.Fatal(err)
	}
	row := manualRow(t, decider, intent)
	other := manualRow(t, decider, intent)

	woken := make(chan struct{}, 64)
	stop := watcher.Watch(row.ID, func() { woken <- struct{}{} })
	defer stop()
	hears(t, woken) // once it listens
	decide(t, decider, other)
	decide(t, decider, row)
	hears(t, woken)
	select {
	case <-woken:
		t.Error("another operation's decision was heard")
	default:
	}
}

func hears(t *testing.T, woken <-chan struct{}) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	select {
	case <-woken:
	case <-deadline.C:
		t.Fatal("nothing was heard")
	}
}

// manualRow is an operation that waits for a person.
func manualRow(t *testing.T, l store.Ledger, intent store.Intent) store.Operation {
	t.Helper()
	claimed, err := l.Claim(t.Context(), storetest.Claim(storetest.Operation(intent)))
	if err != nil {
		t.Fatal(err)
	}
	row, err := l.Apply(t.Context(), store.Change{Of: claimed[0].Operation, To: store.Unknown, Kind: "attempt_ended", Doubts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if row, err = l.Apply(t.Context(), store.Change{Of: row, To: store.Manual, Kind: "escalated", Doubts: 1}); err != nil {
		t.Fatal(err)
	}
	return row
}

func decide(t *testing.T, l store.Ledger, row store.Operation) {
	t.Helper()
	_, err := l.Apply(context.Background(), store.Change{Of: row, To: store.Abandoned, Kind: "decided", Decision: uuid.New()})
	if err != nil {
		t.Fatal(err)
	}
}

// A host whose passwords change has its word on every connection, on those beside
// the pool as well.
func TestR45TheListeningConnectionIsMadeAsThePoolsAre(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var made atomic.Int32
	pool := db.Pool(t, func(c *pgxpool.Config) {
		user := c.ConnConfig.User
		c.ConnConfig.User = "nobody_of_this_name"
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			made.Add(1)
			c.User = user
			return nil
		}
	})
	l := open(t, pool, db.Schema(t))
	before := made.Load()
	woken := make(chan struct{}, 64)
	defer l.Watch(uuid.New(), func() { woken <- struct{}{} })()
	hears(t, woken) // once it listens
	if made.Load() == before {
		t.Error("a connection was made past the host")
	}
}

// A pool that its owner has closed is gone for good: nothing is tried on it again.
func TestR26AClosedPoolIsAClosedLedger(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool, schema := db.Pool(t), db.Schema(t)
	l := open(t, pool, schema)
	intent, err := l.Intent(t.Context(), storetest.NewIntent())
	if err != nil {
		t.Fatal(err)
	}
	o := storetest.Operation(intent)
	answers, err := l.Claim(t.Context(), storetest.Claim(o))
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	_, claims := l.Claim(t.Context(), storetest.Claim(storetest.Operation(intent)))
	_, ends := l.Apply(t.Context(), storetest.Completion(answers[0].Operation, ""))
	_, reads := l.Get(t.Context(), intent.TenantName, o.ID)
	_, takes := l.Take(t.Context(), store.Take{Lease: time.Minute, Limit: 1})
	for what, err := range map[string]error{"a claim": claims, "an end": ends, "a read": reads, "a take": takes} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s on a closed pool: %v", what, err)
		}
	}
}
