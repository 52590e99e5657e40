package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

// What callers are told stays true while they leave at any moment and sessions
// end under groups: a write that was acknowledged stands, one that is said to be
// unwritten doesn't, and every place is free again at the end.
func TestR26InAStormOfLostAnswersNobodyIsToldWrong(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t, pgtest.MaxConns(5))
	i := w.intent()
	w.won(storetest.Claim(storetest.Operation(i)))
	killer := w.db.Pool(t, pgtest.MaxConns(1))

	const callers, rounds = 64, 12
	var mu sync.Mutex
	told := map[string]int{}
	count := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		told[what]++
	}
	stored := func(o store.Operation) (store.State, bool) {
		for {
			entry, err := w.Get(t.Context(), i.TenantName, o.ID)
			switch {
			case err == nil:
				return entry.State, true
			case errors.Is(err, store.ErrNotFound):
				return 0, false
			case t.Context().Err() != nil:
				t.Error(err)
				return 0, false
			}
		}
	}
	// impatient is a context that may end at any moment of a write.
	impatient := func() (context.Context, context.CancelFunc) {
		if rand.IntN(3) > 0 {
			return context.WithTimeout(t.Context(), time.Minute)
		}
		return context.WithTimeout(t.Context(), time.Duration(rand.IntN(4000))*time.Microsecond)
	}
	call := func() {
		o := storetest.Operation(i)
		ctx, cancel := impatient()
		defer cancel()
		answers, err := w.Claim(ctx, storetest.Claim(o, func(c *store.Claim) { c.Known = true }))
		_, there := stored(o)
		switch {
		case err == nil && (!answers[0].Won || !there):
			t.Errorf("a claim of a new place was answered with %v; its row is there: %v", answers[0].Won, there)
		case store.Unwritten(err) && there:
			t.Errorf("a claim that is said to be unwritten (%v) stands", err)
		}
		if err != nil {
			if count("claim lost"); store.Unwritten(err) {
				count("claim unwritten")
			}
			return
		}
		ctx, cancel = impatient()
		defer cancel()
		_, err = w.Apply(ctx, storetest.Completion(answers[0].Operation, ""))
		state, _ := stored(o)
		switch {
		case err == nil && state != store.Completed:
			t.Errorf("an acknowledged end left its operation %s", state)
		case store.Unwritten(err) && state != store.Running:
			t.Errorf("an end that is said to be unwritten (%v) left its operation %s", err, state)
		case err == nil:
			count("done")
		default:
			count("end lost")
		}
	}

	stop := make(chan struct{})
	var kills sync.WaitGroup
	kills.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if _, err := killer.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE pid <> pg_backend_pid() AND position($1 in query) > 0 ORDER BY random() LIMIT 1`, w.schema); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range rounds {
				call()
			}
		})
	}
	group.Wait()
	close(stop)
	kills.Wait()
	if told["done"] == 0 || told["claim lost"]+told["end lost"] == 0 {
		t.Errorf("no storm: %v", told)
	}
	if n := postgres.Busy(w.Ledger); n != 0 {
		t.Errorf("%d places are taken when nobody is at work", n)
	}
}
