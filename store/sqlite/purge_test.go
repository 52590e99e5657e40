package sqlite_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

// newRetained is a world whose clock can be put on.
func newRetained(t *testing.T) (*world, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock()
	return newWorld(t, sqlite.WithClock(clock.Now)), clock
}

func (w *world) purge() store.Purged {
	w.Helper()
	done, err := w.Purge(w.ctx, store.Purge{})
	w.must(err)
	return done
}

func TestR52NothingIsLeftOfADeletedOperation(t *testing.T) {
	t.Parallel()
	w, clock := newRetained(t)
	i := w.intent()
	w.apply(storetest.Completion(w.won(i), "r-1"))
	w.apply(storetest.Change(w.apply(storetest.Change(w.won(i), store.Manual)), store.Abandoned))
	w.must(w.CloseIntent(w.ctx, i.TenantName, i.ID))
	clock.Age(t, store.ClosedGrace)
	if done := w.purge(); done.Removed != 2 {
		t.Errorf("%d operations were removed, want 2", done.Removed)
	}
	got := w.strings(`SELECT 'operation' FROM settle_operation UNION ALL SELECT 'event' FROM settle_event
		UNION ALL SELECT 'case' FROM settle_case UNION ALL SELECT 'intent' FROM settle_intent
		UNION ALL SELECT 'outcome' FROM settle_outcome`)
	if want := []string{"intent", "outcome"}; !slices.Equal(got, want) {
		t.Errorf("what is left is %q, want %q", got, want)
	}
}

// A page on which nothing is to be done costs the writers nothing.
func TestR52APageWithoutWorkTakesNoLock(t *testing.T) {
	t.Parallel()
	w, clock := newRetained(t)
	i := w.intent()
	w.apply(storetest.Completion(w.won(i), "r-1"))
	w.won(i)
	unlock := w.locked()
	if done := w.purge(); done != (store.Purged{Seen: 2}) {
		t.Errorf("beside a writer the purge did %+v, want two operations seen", done)
	}
	done, err := w.Purge(w.ctx, store.Purge{Principal: [32]byte{1}})
	if w.must(err); done != (store.Purged{Seen: 2}) {
		t.Errorf("beside a writer the erasure did %+v, want two operations seen", done)
	}
	unlock()
	clock.Age(t, 2*storetest.Retention)
	if done := w.purge(); done.Removed != 1 {
		t.Errorf("%d payloads were removed, want 1", done.Removed)
	}
}

// What another process made of a row since its page was read counts.
func TestR52APurgeJudgesAgainUnderTheLock(t *testing.T) {
	t.Parallel()
	w, clock := newRetained(t)
	o := w.apply(storetest.Change(w.won(w.intent()), store.Failed))
	clock.Age(t, 2*storetest.Retention)
	c := w.sql()
	w.exec(c, "BEGIN IMMEDIATE")
	purged := make(chan store.Purged, 1)
	go func() {
		done, err := w.Purge(w.ctx, store.Purge{})
		if err != nil {
			w.Error(err)
		}
		purged <- done
	}()
	w.queued(1) // the page is read
	w.exec(c, "UPDATE settle_operation SET settled_at = NULL, state = 'manual' WHERE id = ?", o.ID[:])
	w.exec(c, "COMMIT")
	if done := <-purged; done != (store.Purged{Seen: 1}) {
		t.Errorf("the purge did %+v, want nothing removed", done)
	}
}

// Others see the page half done, so they can write in between, and a purge that is
// interrupted there has done what it has done.
func TestR52APageIsWrittenInShortTransactions(t *testing.T) {
	t.Parallel()
	w, clock := newRetained(t)
	const rows = 3000
	i := w.intent()
	claims := make([]store.Claim, rows)
	for n := range claims {
		claims[n] = storetest.Claim(storetest.Operation(i))
	}
	_, err := w.Claim(w.ctx, claims...)
	w.must(err)
	w.exec(w.sql(), "UPDATE settle_operation SET state = 'completed', settled_at = 1, lease_until = NULL, due_at = NULL")
	clock.Age(t, 2*storetest.Retention)

	interrupted, interrupt := context.WithCancel(w.ctx)
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		_, err := w.Purge(interrupted, store.Purge{Limit: rows})
		ended <- err
	}()
	buried := func() string {
		return w.strings("SELECT count(*) FROM settle_operation WHERE arguments IS NULL")[0]
	}
	for buried() == "0" {
	}
	interrupt()
	w.unwritten(<-ended)
	if n := buried(); n == "0" || n == strconv.Itoa(rows) {
		t.Errorf("%s of %d rows were written when the purge was interrupted, want some", n, rows)
	}
	done, err := w.Purge(w.ctx, store.Purge{Limit: rows})
	if w.must(err); done.Seen != rows || done.Removed == 0 || done.Removed == rows || buried() != strconv.Itoa(rows) {
		t.Errorf("the next purge did %+v and left %s without payload, want the rest of %d", done, buried(), rows)
	}
}
