package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// PurgeProgress is what a purge has done so far.
type PurgeProgress struct {
	// Seen is how many operations were looked at, Removed how many lost their payload.
	Seen, Removed int
	// After is where to go on: the last operation that was looked at.
	After string
}

// purgePage bounds the operations of one page of a purge.
const purgePage = 500

// Purge takes arguments, results and names from the operations whose Retention
// is over, and leaves tombstones: a call that meets one is answered "expired"
// and never executed (R51). It works in pages, and rests after each for as long
// as that took, so that it leaves the ledger to the calls beside it (R52). It
// calls progress after each page if it isn't nil, and can be interrupted anywhere:
// what it has done is done, and it goes on behind progress.After or starts anew.
func (x *Executor) Purge(ctx context.Context, after string, progress func(PurgeProgress)) (PurgeProgress, error) {
	return x.purge(ctx, store.Purge{}, after, progress)
}

// Erase removes the payloads of a principal at once, whatever their age and
// state, and keeps tombstones (R52). An unsettled operation can then only be
// decided by a person, since its arguments are gone.
func (x *Executor) Erase(ctx context.Context, p Principal, progress func(PurgeProgress)) (PurgeProgress, error) {
	if err := errors.Join(checkName("tenant", p.Tenant), checkName("subject", p.Subject)); err != nil {
		return PurgeProgress{}, err
	}
	return x.purge(ctx, store.Purge{Principal: principalDigest(p)}, "", progress)
}

func (x *Executor) purge(ctx context.Context, page store.Purge, after string, progress func(PurgeProgress)) (PurgeProgress, error) {
	var p PurgeProgress
	var err error
	page.Limit = purgePage
	if after != "" {
		if page.After, err = uuid.Parse(after); err != nil {
			return p, ErrCursor
		}
	}
	for {
		err := ctx.Err()
		if err == nil && x.isClosing() {
			err = ErrShutdown
		}
		if err != nil {
			return p, fmt.Errorf("settle: purge: interrupted; go on behind %q: %w", p.After, err)
		}
		began := time.Now()
		done, err := x.ledger.Purge(ctx, page)
		took := time.Since(began)
		if err != nil {
			return p, fmt.Errorf("settle: purge: %w", err)
		}
		p.Seen += done.Seen
		p.Removed += done.Removed
		page.After = done.Next
		if done.Next != uuid.Nil {
			p.After = done.Next.String()
		}
		if progress != nil {
			progress(p)
		}
		if done.Next == uuid.Nil {
			return p, nil
		}
		if done.Removed > 0 { // where nothing was written, nobody waited for it
			x.sleep(ctx, took)
		}
	}
}

// CloseTask closes the intent of the context's principal and task for good: its
// names are removed, its operations become tombstones, which a purge deletes a
// day later, and every later call in it is answered "expired" (R52). It is refused with [store.ErrUnsettled] while an operation is
// unsettled. A task that did nothing is closed as well.
func (x *Executor) CloseTask(ctx context.Context) error {
	p, t, err := scope(ctx)
	if err != nil {
		return err
	}
	intent, err := x.intentOf(ctx, p, t)
	if err != nil {
		return fmt.Errorf("settle: close the task: %w", err)
	}
	if err := x.ledger.CloseIntent(ctx, p.Tenant, intent.ID); err != nil {
		return fmt.Errorf("settle: close the task: %w", err)
	}
	intent.ClosedAt = time.Now()
	x.intents.set(intentName{p, t}, knownIntent{intent, time.Now()})
	return nil
}
