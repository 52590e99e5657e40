package storetest

import (
	"context"
	"errors"

	"github.com/settle-go/settle/store"
)

// transactions are for ledgers that share theirs with business rows. What those
// rows do is the driver's own to test; a ledger that isn't a [store.Transactor]
// has nothing to show here.
func transactions(s suite) {
	s.test("R53ACommitRecordsClaimAndOutcome", onTransactor(func(w *world, l store.Transactor) {
		c := Claim(Operation(w.intent()))
		var done store.Operation
		w.must(l.Transact(w.ctx, func(ctx context.Context, t store.Transaction) error {
			claimed, err := t.Claim(ctx, c)
			w.must(err, "claim")
			w.wantWon(claimed)
			done, err = t.Commit(ctx, Completion(claimed.Operation, "r-1"))
			return err
		}), "transact")
		w.wantRow(w.read(done), done)
		w.verify(done)
		want(w, "events", len(w.journal(done)), 2)
		want(w, "state", done.State, store.Completed)
	}))
	s.test("R53WithoutACommitNothingIsThere", onTransactor(func(w *world, l store.Transactor) {
		c := Claim(Operation(w.intent()))
		undo := errors.New("the handler failed")
		err := l.Transact(w.ctx, func(ctx context.Context, t store.Transaction) error {
			_, err := t.Claim(ctx, c)
			w.must(err, "claim")
			return undo
		})
		if !errors.Is(err, undo) {
			w.Errorf("transact returned %v, want what its function returned", err)
		}
		w.absent(c.Operation)
		w.wantWon(w.claim(c)) // the key is free
	}))
	s.test("R53AnApprovedOperationStartsAndCompletesInOne", onTransactor(func(w *world, l store.Transactor) {
		before := w.standing(w.intent(), store.Retryable)
		w.must(l.Transact(w.ctx, func(ctx context.Context, t store.Transaction) error {
			started, err := t.Apply(ctx, Attempt(before))
			w.must(err, "apply")
			_, err = t.Commit(ctx, Completion(started, "r-1"))
			return err
		}), "transact")
		after := w.read(before)
		want(w, "state", after.State, store.Completed)
		want(w, "version", after.Version, before.Version+2)
		w.verify(after)
	}))
	s.test("R53AStaleChangeIsRefusedInside", onTransactor(func(w *world, l store.Transactor) {
		before := w.standing(w.intent(), store.Retryable)
		w.apply(Attempt(before))
		err := l.Transact(w.ctx, func(ctx context.Context, t store.Transaction) error {
			_, err := t.Apply(ctx, Attempt(before))
			return err
		})
		wantError[*store.StaleError](w, err)
	}))
	s.test("R53ATwinWaitsForTheCommitAndReadsIt", onTransactor(func(w *world, l store.Transactor) {
		c := Claim(Operation(w.intent()))
		twin := Claim(Operation(store.Intent{ID: c.Operation.Intent, Tenant: c.Operation.Tenant}, On(c.Operation, 1)))
		inside, answered := make(chan struct{}), make(chan error, 1)
		var met store.Claimed
		go func() {
			<-inside
			answered <- l.Transact(w.ctx, func(ctx context.Context, t store.Transaction) (err error) {
				met, err = t.Claim(ctx, twin)
				return err
			})
		}()
		var done store.Operation
		w.must(l.Transact(w.ctx, func(ctx context.Context, t store.Transaction) error {
			claimed, err := t.Claim(ctx, c)
			w.must(err, "claim")
			close(inside)
			done, err = t.Commit(ctx, Completion(claimed.Operation, "r-1"))
			return err
		}), "transact")
		w.must(<-answered, "the twin's claim")
		want(w, "won by the twin", met.Won, false)
		w.wantSlot(met, done)
	}))
}

func onTransactor(run func(*world, store.Transactor)) func(*world) {
	return func(w *world) {
		l, ok := w.Ledger.(store.Transactor)
		if !ok {
			return
		}
		run(w, l)
	}
}
