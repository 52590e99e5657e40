package settle

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/settle-go/settle/store"
)

// record writes down how an attempt ended, or starts another one. It says
// whether there is one more attempt to make.
func (j *job) record(ctx context.Context, end ending) (again bool) {
	if end.late != nil {
		defer j.x.awaitLate(j, end.late)
	}
	if wait, ok := j.retries(end); ok {
		if j.lookFirst(end) {
			return j.settleUnknown(ctx, end)
		}
		if done, again := j.retry(ctx, end, wait); !done {
			return again
		}
	}
	if !j.write(ctx, end, store.Due{}) {
		return false
	}
	if j.row.State == store.Unknown && j.r.tool.hasLookup && !end.atWork {
		return j.settleUnknown(ctx, end)
	}
	if j.row.State == store.Unknown {
		j.x.escalateIfDue(ctx, &j.row, j.r.tool)
	}
	j.out = j.outcome(end)
	return false
}

// retries says whether the contract allows another attempt in this claim, and
// after which pause: one layer, bounded attempts, one budget (R28).
func (j *job) retries(end ending) (time.Duration, bool) {
	if end.effect != effectNotSent && end.effect != effectUnknown || end.atWork || j.r.once {
		return 0, false
	}
	if end.spent {
		return 0, false // the step's attempts were the budget
	}
	b := j.r.tool
	class := b.effective(j.row)
	if class != Keyed && class != Idempotent && class != Composite || j.row.Attempt >= b.contract.Attempts {
		return 0, false
	}
	if end.effect == effectUnknown && j.keyUnused() {
		return 0, false
	}
	wait := max(j.pauses.next(), end.wait)
	if time.Since(j.began)+wait > b.contract.lease() || j.x.isClosing() {
		return 0, false
	}
	return wait, true
}

// keyUnused says that a Keyed attempt never asked for its key, so that nothing
// deduplicates it and it counts as Unsafe.
func (j *job) keyUnused() bool {
	return j.r.tool.contract.Class == Keyed && j.run != nil && !j.run.keyRead.Load()
}

// lookFirst: evidence comes before another attempt where there is a lookup (R32).
func (j *job) lookFirst(end ending) bool {
	return end.effect == effectUnknown && j.r.tool.hasLookup
}

// retry waits and starts the next attempt under a new lease. It is done where
// that isn't possible any more and the ending has to be recorded as it is.
func (j *job) retry(ctx context.Context, end ending, wait time.Duration) (done, again bool) {
	if !j.x.sleep(context.Background(), wait) {
		return true, false
	}
	change := j.x.startChange(ctx, j.row, j.r.tool, j.owner, j.row.Batch, j.row.CallID)
	change.Reason, change.Body = j.reason(end), endBody(j.row.Attempt, end)
	if end.effect == effectUnknown && j.row.State == store.Running {
		change.Doubts++
	}
	j.asked = time.Now()
	row, err := j.x.apply(ctx, change)
	if err != nil {
		return true, false
	}
	j.row = row
	return false, true
}

// settleUnknown writes the doubt down, looks for evidence at once, and goes on
// as that allows.
func (j *job) settleUnknown(ctx context.Context, end ending) (again bool) {
	if j.row.State == store.Running {
		if !j.write(ctx, end, store.DueIn(lookupLease)) {
			return false
		}
	}
	if j.row.State == store.Unknown {
		row, err := j.x.investigate(ctx, store.Entry{Operation: j.row, Of: j.r.intent}, j.r.tool)
		if err != nil {
			j.out = j.outcome(end)
			return false
		}
		j.row = row
	}
	if wait, ok := j.retries(end); ok && (j.row.State == store.Unknown || j.row.State == store.Retryable) {
		if done, again := j.retry(ctx, end, wait); !done {
			return again
		}
	}
	if j.row.State == store.Retryable && !j.row.Told && j.callerWaits() {
		j.row = j.tell(ctx, j.row)
	}
	j.out = j.outcome(end)
	return false
}

// callerWaits says that somebody will be told how it ended.
func (j *job) callerWaits() bool { return !j.worker && j.caller.Err() == nil }

// tell notes that the caller is told "not done": only another call goes on (R37).
func (j *job) tell(ctx context.Context, row store.Operation) store.Operation {
	told, err := j.x.apply(ctx, store.Change{Of: row, To: store.Retryable, Kind: "told", Actor: "caller", Reason: row.Reason,
		Told: true, Granted: row.Granted, Due: store.DueIn(j.r.tool.contract.StaleAfter)})
	if err != nil {
		return row
	}
	return told
}

// change makes c the join of the operation's attempts with this one (R23).
func (j *job) change(c *store.Change, end ending) {
	b := j.r.tool
	*c = store.Change{Of: j.row, Kind: "attempt_ended", Actor: j.actor(), Reason: j.reason(end), Body: endBody(j.row.Attempt, end),
		Returned: !end.atWork, Visibility: b.contract.VisibilityDelay, Doubts: j.row.Doubts}
	switch {
	case end.effect == effectHappened:
		c.To, c.Reason = store.Completed, ""
		c.Result, c.ResultVersion, c.Flags = end.stored, b.resultVersion, end.flags
		c.Resource, c.ResourceDigest = end.resource, resourceDigest(end.resource)
	case end.effect == effectUnknown:
		c.To, c.Doubts = store.Unknown, c.Doubts+1
		c.Due = b.firstCheck()
	case end.effect == effectCase:
		c.To = store.Manual
	case c.Doubts > 0:
		c.To, c.Due = store.Unknown, b.firstCheck()
	case end.effect == effectRejected:
		c.To = store.Failed
		if errors.Is(end.err, errNotAuthorized) {
			c.Reason = reasonDenied
		}
	default:
		j.withoutEffect(c, end)
	}
	orPerson(c)
	// What was given up for a want of attempts neither completed nor was refused.
	if told := end.effect == effectHappened || end.effect == effectRejected; told && c.To.Settled() && j.run != nil {
		c.Announce = j.run.published.all()
	}
}

// withoutEffect rests an operation that is known to have had no effect (R37).
func (j *job) withoutEffect(c *store.Change, end ending) {
	b := j.r.tool
	c.To, c.Granted = store.Retryable, j.approved
	c.Told = j.toldNotDone || j.callerWaits()
	switch {
	case end.effect == effectOpen:
		c.Told, c.Due = false, store.DueIn(rerunIn(j.row))
	case end.effect == effectInterrupted:
		c.Due = store.DueIn(b.contract.StaleAfter)
	case end.wait > 0:
		c.Reason, c.Due = reasonThrottled, store.DueIn(end.wait)
	case b.contract.Class != Composite && b.contract.Attempts > 0 && j.row.Attempt >= b.contract.Attempts && !j.approved:
		c.To, c.Reason, c.Told, c.Granted = store.Failed, reasonExhausted, false, false
	case c.Told:
		c.Due = store.DueIn(b.contract.StaleAfter)
	case j.approved:
		c.Due = store.DueIn(rerunIn(j.row)) // no number of attempts ends what a person has allowed
	default:
		c.Due = store.DueIn(resumeAfter)
	}
}

// firstCheck is when the machine looks at a doubtful operation first: at its
// moment, since absence counts from then on, or at once where nothing but
// another attempt can help.
func (b *binding) firstCheck() store.Due {
	if b.hasLookup || !b.repeats() {
		return store.Due{Set: true, AtMoment: true}
	}
	return store.DueIn(resumeAfter)
}

// repeats says whether a worker may repeat the tool's doubtful operations (R37).
func (b *binding) repeats() bool {
	return b.contract.Class == Keyed || b.contract.Class == Idempotent || b.contract.Class == Composite
}

func (j *job) actor() string {
	if j.worker {
		return "worker"
	}
	return "caller"
}

// reason is the code of how an attempt ended.
func (j *job) reason(end ending) string {
	switch {
	case end.effect == effectRejected:
		return reasonRejected
	case end.effect == effectInterrupted:
		return reasonInterrupted
	case end.effect == effectOpen:
		return reasonStepOpen
	case end.effect == effectCase:
		return reasonChangedSince
	case end.effect == effectNotSent:
		return reasonNotSent
	case end.effect == effectHappened:
		return ""
	case j.keyUnused():
		return reasonKeyUnused
	case end.panic:
		return reasonPanic
	case end.atWork, errors.Is(end.err, context.DeadlineExceeded):
		return reasonTimeout
	}
	return reasonUnclear
}

// endBody is the event's metadata on how an attempt ended: no error texts, since
// they may quote data (R55).
func endBody(attempt int, end ending) []byte {
	body := append(make([]byte, 0, 64), `{"attempt":`...)
	body = strconv.AppendInt(body, int64(attempt), 10)
	body = append(append(append(body, `,"effect":"`...), end.effect.String()...), '"')
	if end.atWork {
		body = append(body, `,"at_work":true`...)
	}
	if ms := end.wait.Milliseconds(); ms != 0 {
		body = strconv.AppendInt(append(body, `,"wait_ms":`...), ms, 10)
	}
	return append(body, '}')
}

// resourceDigest indexes a resource for R34, whatever the tenant.
func resourceDigest(resource string) store.Digest {
	if resource == "" {
		return store.Digest{}
	}
	return shortened(digestOf("settle resource id", resource))
}

// pauses are the waits between attempts: exponential, with full jitter (R28).
// Most jobs never pause.
type pauses struct{ policy *backoff.ExponentialBackOff }

func (p *pauses) next() time.Duration {
	if p.policy == nil {
		p.policy = backoff.NewExponentialBackOff()
		p.policy.InitialInterval, p.policy.MaxInterval, p.policy.MaxElapsedTime = firstBackoff/2, maxBackoff/2, 0
		// A factor of 1 spreads each pause from nothing to twice the interval.
		p.policy.RandomizationFactor = 1
		p.policy.Reset()
	}
	return p.policy.NextBackOff()
}

// sleep waits, unless the context ends or the executor shuts down first.
func (x *Executor) sleep(ctx context.Context, d time.Duration) bool {
	return x.sleepUntil(ctx, d, nil)
}

// sleepUntil also ends where it is woken.
func (x *Executor) sleepUntil(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	if d <= 0 {
		return !x.isClosing() && ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-woken:
		return true
	case <-x.closing:
		return false
	case <-ctx.Done():
		return false
	}
}

func (x *Executor) isClosing() bool {
	select {
	case <-x.closing:
		return true
	default:
		return false
	}
}
