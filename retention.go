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
// decided by a person, since its arguments are gone. The audit has that and when,
// and by which operator where the context has one ([WithOperator]), but nobody's
// name whose payloads they were ([Queue.Acts]).
func (x *Executor) Erase(ctx context.Context, p Principal, progress func(PurgeProgress)) (PurgeProgress, error) {
	if err := errors.Join(checkName("tenant", p.Tenant), checkName("subject", p.Subject)); err != nil {
		return PurgeProgress{}, err
	}
	by, err := x.answerable(ctx, "erase", p.Tenant)
	if err != nil {
		return PurgeProgress{}, err
	}
	if err := x.ledger.Audit(ctx, store.Audit{Kind: "erase", Actor: by}); err != nil {
		return PurgeProgress{}, fmt.Errorf("settle: erase: nothing was erased, since the ledger doesn't take down by whom: %w", err)
	}
	done, err := x.purge(ctx, store.Purge{Principal: principalDigest(p)}, "", progress)
	x.auditEnd(ctx, store.Audit{Kind: ended(err, "erased", "erase_interrupted"), Actor: by, Detail: fmt.Sprintf("removed from %d operations", done.Removed)})
	return done, err
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
// day later, and every later call in it is answered "expired" (R52). It is refused
// with [store.ErrUnsettled] while an operation is unsettled. A task that did nothing
// is closed as well. Where the context has an operator ([WithOperator]), the audit
// has that and when, and by whom ([Queue.Acts]).
func (x *Executor) CloseTask(ctx context.Context) error {
	p, t, err := scope(ctx)
	if err != nil {
		return err
	}
	by, err := x.answerable(ctx, "close", p.Tenant)
	if err != nil {
		return err
	}
	intent, err := x.intentOf(ctx, p, t)
	if err != nil {
		return fmt.Errorf("settle: close the task: %w", err)
	}
	if err := x.closeIntent(ctx, p.Tenant, intent, by); err != nil {
		return fmt.Errorf("settle: close the task: %w", err)
	}
	intent.ClosedAt = time.Now()
	x.intents.set(intentName{p, t}, knownIntent{intent, time.Now()})
	return nil
}

// closeIntent closes an intent; the audit names it by its random id. To close it
// again is no change, and no row.
func (x *Executor) closeIntent(ctx context.Context, tenant string, intent store.Intent, by string) error {
	if !intent.ClosedAt.IsZero() {
		return nil
	}
	if by == byHost { // as part of a day's work, of which the intent's row tells enough
		return x.ledger.CloseIntent(ctx, tenant, intent.ID)
	}
	row := store.Audit{Kind: "close", Actor: by, Detail: "intent " + intent.ID.String()}
	if err := x.ledger.Audit(ctx, row); err != nil {
		return fmt.Errorf("nothing was closed, since the ledger doesn't take down by whom: %w", err)
	}
	err := x.ledger.CloseIntent(ctx, tenant, intent.ID)
	row.Kind = ended(err, "closed", "close_failed")
	x.auditEnd(ctx, row)
	return err
}

// byHost is who acts where the context has no operator.
const byHost = "host"

// answerable is who is written down for what is taken away for good: the context's
// operator, whom their tenants and the host's policy must allow it, or the host.
func (x *Executor) answerable(ctx context.Context, action, tenant string) (string, error) {
	o, err := operatorFrom(ctx)
	if errors.Is(err, ErrNoOperator) {
		return byHost, nil
	}
	if err != nil {
		return "", err
	}
	if !o.sees(tenant) {
		return "", fmt.Errorf("%w: the tenant isn't one of theirs", ErrNotAllowed)
	}
	return "operator:" + o.Name, x.allowed(ctx, OperatorAction{Operator: o, Action: action, Tenant: tenant})
}

// auditEnd writes how something ended, though the caller may be gone.
func (x *Executor) auditEnd(ctx context.Context, a store.Audit) {
	ctx, cancel := context.WithTimeout(detached(ctx), ledgerTimeout)
	defer cancel()
	x.audit(ctx, a)
}

func ended(err error, well, badly string) string {
	if err != nil {
		return badly
	}
	return well
}
