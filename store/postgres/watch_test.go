package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

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
