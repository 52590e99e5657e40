package postgres_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// write claims a write on the resource and brings it through the states.
func (w *ledgerWorld) write(i store.Intent, resource store.Digest, through ...store.State) store.Operation {
	w.t.Helper()
	o := w.won(storetest.Claim(storetest.Operation(i, storetest.Writes(resource))))
	for _, to := range through {
		if to == store.Completed {
			o = w.apply(storetest.Completion(o, uuid.NewString()))
			continue
		}
		o = w.apply(storetest.Change(o, to))
	}
	return o
}

// standing counts the writes that a resource's row lists.
func (w *ledgerWorld) standing(resource store.Digest) int {
	w.t.Helper()
	return ask[int](w.t, w.pool, "SELECT cardinality(standing) FROM "+w.table("resource")+" WHERE key = $1", uuid.UUID(resource))
}

// newest asks which write is the newest, as a twin of o is told.
func (w *ledgerWorld) newest(i store.Intent, o store.Operation) uuid.UUID {
	w.t.Helper()
	answers, err := w.Claim(w.t.Context(), storetest.Claim(storetest.Operation(i, storetest.On(o, 1))))
	if err != nil {
		w.t.Fatal(err)
	}
	if answers[0].Newest == nil {
		return uuid.Nil
	}
	return answers[0].Newest.ID
}

func (w *ledgerWorld) wantOvertaken(o store.Operation) {
	w.t.Helper()
	_, err := w.Apply(w.t.Context(), storetest.Attempt(o))
	var blocked *store.BlockedError
	if !errors.As(err, &blocked) || !blocked.Overtaken {
		w.t.Errorf("the start of an overtaken write gave the error %v", err)
	}
}

func TestR31TheNewestWriteIsFoundWhenAllAboveItFailed(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	i, resource := w.intent(), storetest.SomeDigest()
	first := w.write(i, resource, store.Retryable)
	settled := w.write(i, resource, store.Completed)
	second, third := w.write(i, resource), w.write(i, resource)
	for _, o := range []store.Operation{second, third} {
		w.apply(storetest.Change(o, store.Failed))
	}
	w.write(i, resource, store.Failed)
	if got := w.newest(i, settled); got != settled.ID {
		t.Errorf("the newest write is %v, want the one that is completed", got)
	}
	w.wantOvertaken(first)
}

func TestR31AWriteThatComesBackAndFailsOvertakesNothing(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	i, resource := w.intent(), storetest.SomeDigest()
	first := w.write(i, resource, store.Retryable)
	settled := w.write(i, resource, store.Completed)
	closed := w.write(i, resource, store.Manual, store.Abandoned)
	w.write(i, resource, store.Failed)
	if got := w.newest(i, settled); got != closed.ID {
		t.Errorf("the newest write is %v, want the one that was abandoned", got)
	}
	back := w.apply(storetest.Change(closed, store.Manual))
	w.apply(storetest.Change(back, store.Failed))
	if got := w.newest(i, settled); got != settled.ID {
		t.Errorf("the newest write is %v, want the one that is completed", got)
	}
	w.wantOvertaken(first)
}

func TestR31AFailedWriteThatComesBackStandsAgain(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	i, resource := w.intent(), storetest.SomeDigest()
	first := w.write(i, resource, store.Retryable)
	failed := w.write(i, resource, store.Failed)
	w.write(i, resource, store.Failed)
	w.write(i, resource, store.Failed) // leaves out what has failed
	w.apply(storetest.Change(failed, store.Manual))
	if got := w.newest(i, first); got != failed.ID {
		t.Errorf("the newest write is %v, want the one that came back", got)
	}
	w.wantOvertaken(first)
}

func TestR31ALongHistoryIsNotListed(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	i, resource := w.intent(), storetest.SomeDigest()
	open := w.write(i, resource, store.Retryable)
	for range 10 {
		w.write(i, resource, store.Completed)
		w.write(i, resource, store.Failed)
		w.write(i, resource, store.Retryable, store.Superseded)
	}
	// The one that is open, the newest that isn't failed, and the last claim.
	if got := w.standing(resource); got > 3 {
		t.Errorf("the resource lists %d of its 31 writes", got)
	}
	w.wantOvertaken(open)
}

func TestR14AFailedOneComesBackWhereItsDigestIsFree(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	only := storetest.SomeDigest()
	unique := func(o *store.Operation) { o.Unique = only }
	first := w.apply(storetest.Change(w.won(storetest.Claim(storetest.Operation(w.intent(), unique))), store.Failed))
	second := w.won(storetest.Claim(storetest.Operation(w.intent(), unique)))
	_, err := w.Apply(t.Context(), storetest.Change(first, store.Manual))
	var taken *store.ResourceTakenError
	if !errors.As(err, &taken) {
		t.Fatalf("a failed operation whose digest is taken came back: %v", err)
	}
	w.apply(storetest.Change(second, store.Failed))
	w.apply(storetest.Change(first, store.Manual))
	_, err = w.Apply(t.Context(), storetest.Change(w.read(second), store.Manual))
	if !errors.As(err, &taken) {
		t.Errorf("two operations hold one digest: %v", err)
	}
}

// read gets the row as it is, from a list, whatever its tenant.
func (w *ledgerWorld) read(o store.Operation) store.Operation {
	w.t.Helper()
	entries, err := w.List(w.t.Context(), store.Filter{Intent: o.Intent})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if e.ID == o.ID {
			return e.Operation
		}
	}
	w.t.Fatalf("operation %s isn't there", o.ID)
	return store.Operation{}
}
