package sqlite_test

import (
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

// What the writer remembers of a row must never outlive a write by anybody
// else, nor by a statement that doesn't read the row.
func TestR20AnOutcomeIsOfTheRowAsItStands(t *testing.T) {
	t.Parallel()
	lease := func(w *world, l *sqlite.Ledger, o store.Operation) {
		w.Helper()
		lost, err := l.Renew(w.ctx, 3*storetest.Lease, store.Held{Operation: o.ID, Owner: o.Owner})
		if err != nil || lost != nil {
			w.Fatalf("the lease was lost: %v", err)
		}
	}
	for _, by := range []string{"another process", "the same one"} {
		t.Run("renewed by "+by, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			writer := w.Ledger
			if by == "another process" {
				writer = open(t, w.path)
			}
			o := w.won(w.intent())
			lease(w, writer, o)
			got := w.apply(storetest.Change(o, store.Unknown))
			if want := o.Moment.Add(storetest.Lease); !got.Moment.After(want) {
				t.Errorf("the moment is %v after a lease that ended after %v", got.Moment, want)
			}
			w.same(got)
		})
		t.Run("moved by "+by, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			writer := w.Ledger
			if by == "another process" {
				writer = open(t, w.path)
			}
			o := w.won(w.intent())
			moved, err := writer.Apply(w.ctx, storetest.Change(o, store.Unknown))
			w.must(err)
			_, err = w.Apply(w.ctx, storetest.Completion(o, "r-1"))
			var stale *store.StaleError
			if !errors.As(err, &stale) || stale.Current.Version != moved.Version {
				t.Fatalf("an outcome over a row that moved on gave %v", err)
			}
			w.same(w.apply(storetest.Completion(moved, "r-1")))
		})
		t.Run("taken by "+by, func(t *testing.T) {
			t.Parallel()
			clock := handAt(noon)
			w := newWorld(t, clock.option())
			taker := w.Ledger
			if by == "another process" {
				taker = open(t, w.path, clock.option())
			}
			atOnce := func(c *store.Change) { c.Due = store.DueIn(0) }
			retryable := w.apply(storetest.Change(w.won(w.intent()), store.Retryable, atOnce))
			taken, err := taker.Take(w.ctx, store.Take{Lease: time.Hour})
			w.must(err)
			if len(taken) != 1 || taken[0].ID != retryable.ID {
				t.Fatalf("%d rows were taken", len(taken))
			}
			w.same(w.apply(storetest.Change(retryable, store.Retryable, atOnce)))
		})
	}
}

// same requires the ledger's row to be the one that was answered.
func (w *world) same(answered store.Operation) {
	w.Helper()
	e, err := w.Get(w.ctx, "acme", answered.ID)
	w.must(err)
	events, err := w.Events(w.ctx, answered.ID, 0)
	w.must(err)
	w.must(store.VerifyChain(answered, events))
	for name, pair := range map[string][2]time.Time{
		"DueAt":      {answered.DueAt, e.DueAt},
		"Moment":     {answered.Moment, e.Moment},
		"LeaseUntil": {answered.LeaseUntil, e.LeaseUntil},
		"SettledAt":  {answered.SettledAt, e.SettledAt},
	} {
		if !pair[0].Equal(pair[1]) {
			w.Errorf("%s was answered as %v and is %v", name, pair[0], pair[1])
		}
	}
	if answered.Version != e.Version || answered.State != e.State || answered.Resource != e.Resource {
		w.Errorf("answered as %s at version %d, and is %s at version %d", answered.State, answered.Version, e.State, e.Version)
	}
}

func TestARolledBackRowIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	o := w.won(i)
	bad := w.claiming(storetest.Operation(i, func(x *store.Operation) { x.ID = o.ID }))
	var moved store.Operation
	errs := w.atOnce(func() (err error) {
		moved, err = w.Apply(w.ctx, storetest.Change(o, store.Unknown))
		return err
	}, bad, bad)
	w.must(errs[0])
	if moved.Version != o.Version+1 {
		t.Errorf("the row was moved to version %d from %d", moved.Version, o.Version)
	}
	w.same(moved)
	w.same(w.apply(storetest.Completion(moved, "r-1")))
}

func TestMoreOperationsAtOnceThanAreRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	var claims []store.Claim
	for range sqlite.MaxRecent + 50 {
		claims = append(claims, storetest.Claim(storetest.Operation(i)))
	}
	answers, err := w.Claim(w.ctx, claims...)
	w.must(err)
	for n, a := range answers {
		if n%100 == 0 || n > sqlite.MaxRecent {
			w.same(w.apply(storetest.Completion(a.Operation, "r")))
		}
	}
}

func TestTheLedgerOwnsItsBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := storetest.Claim(storetest.Operation(w.intent()))
	arguments := string(c.Operation.Arguments)
	answers, err := w.Claim(w.ctx, c)
	w.must(err)
	clear(c.Operation.Arguments)
	clear(answers[0].Operation.Arguments)
	got := w.apply(storetest.Change(answers[0].Operation, store.Unknown))
	if string(got.Arguments) != arguments {
		t.Errorf("a caller changed the ledger's arguments to %q", got.Arguments)
	}
}
