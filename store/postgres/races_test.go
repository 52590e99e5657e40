package postgres_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// crowd makes calls of 32 goroutines at once.
func crowd(t *testing.T, call func(n int) error) {
	t.Helper()
	const size = 32
	errs := make([]error, size)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for n := range size {
		wg.Go(func() {
			<-start
			errs[n] = call(n)
		})
	}
	close(start)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func crowdedLedger(t *testing.T, mode pgx.QueryExecMode) (*ledgerWorld, store.Intent) {
	t.Helper()
	w := newLedgerWorld(t, pgtest.ExecMode(mode), pgtest.MaxConns(16))
	return w, w.intent()
}

func TestR19OneOfThirtyTwoIsWonAndAllOthersAreShownIt(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			w, i := crowdedLedger(t, mode)
			for round := range 30 {
				slot := storetest.Operation(i)
				answers := make([]store.Claimed, 32)
				crowd(t, func(n int) error {
					c := storetest.Claim(storetest.Operation(i, storetest.On(slot, 1)))
					c.Likely, c.Known = (round+n)%2 == 0, round%3 == 0
					got, err := w.Claim(t.Context(), c)
					if err == nil {
						answers[n] = got[0]
					}
					return err
				})
				wantOneWinner(t, answers)
			}
		})
	}
}

func wantOneWinner(t *testing.T, answers []store.Claimed) {
	t.Helper()
	var winner store.Operation
	for _, a := range answers {
		if a.Won && winner.Version > 0 {
			t.Fatal("two claims of one number were won")
		}
		if a.Won {
			winner = a.Operation
		}
	}
	if winner.Version == 0 {
		t.Fatal("no claim was won")
	}
	for _, a := range answers {
		if !a.Won && (len(a.Slot) != 1 || a.Slot[0].ID != winner.ID) {
			t.Fatalf("a claim that wasn't won is shown %d rows, want the winner's", len(a.Slot))
		}
	}
}

// TestR19BatchesInAnyOrderNeverDeadlock lets calls claim the same operations in
// orders of their own. Plain claims sort, guarded ones lock in order: nobody is
// told to try again.
func TestR19BatchesInAnyOrderNeverDeadlock(t *testing.T) {
	t.Parallel()
	for name, guarded := range map[string]bool{"plain": false, "guarded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, i := crowdedLedger(t, pgx.QueryExecModeCacheStatement)
			for range 10 {
				var slots []store.Operation
				for n := range 8 {
					o := storetest.Operation(i)
					if guarded && n%2 == 0 {
						storetest.Tool("door")(&o)
						storetest.Writes(storetest.SomeDigest())(&o)
					}
					slots = append(slots, o)
				}
				crowd(t, func(n int) error {
					var claims []store.Claim
					for _, k := range rand.Perm(len(slots)) {
						claims = append(claims, storetest.Claim(storetest.Operation(i, storetest.On(slots[k], 1))))
					}
					_, err := w.Claim(t.Context(), claims...)
					return err
				})
			}
		})
	}
}
