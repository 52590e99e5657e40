package settle

import (
	"context"
	"errors"
	"time"

	"github.com/settle-go/settle/store"
)

// write records an ending. Where the row has moved on meanwhile, the ending is
// late evidence (R25); where the ledger can't take it, it is kept and tried on
// (R24), and the outcome says so. due, if it is set, takes the place of what the
// contract says on when the machine looks next.
func (j *job) write(ctx context.Context, end ending, due store.Due) bool {
	var row store.Operation
	if err := j.tryWrite(ctx, end, due, &row); err != nil {
		j.out = j.unrecorded(end, err)
		j.x.keepWriting(j, end)
		return false
	}
	j.row = row
	return true
}

func (j *job) tryWrite(ctx context.Context, end ending, due store.Due, row *store.Operation) error {
	var c store.Change
	for range 8 {
		j.change(&c, end)
		if due.Set {
			c.Due = due
		}
		err := j.x.applyTo(ctx, &c, row)
		if err == nil {
			return nil
		}
		var stale *store.StaleError
		if !errors.As(err, &stale) {
			return err
		}
		if current := &stale.Current; current.State != store.Running || current.Owner != j.owner {
			*row = *current
			return j.x.late(ctx, j.r.tool, j.row.Attempt, end, row)
		}
		j.row = stale.Current
	}
	return errBusyRow
}

var errBusyRow = errors.New("settle: the row changed each time that it was to be written")

// keepWriting tries on until the ledger takes the ending or the process ends
// (R24). The job goes on to its end without it, so it works on a copy.
func (x *Executor) keepWriting(j *job, end ending) {
	kept := *j
	x.work.Add(1)
	go func() {
		defer x.work.Done()
		ctx := context.WithoutCancel(kept.caller)
		x.keepTrying(func() error {
			var row store.Operation
			return kept.tryWrite(ctx, end, store.Due{}, &row)
		})
	}()
}

// The pauses between two tries to write down what is known: the first, and the
// longest, which is shorter while a Shutdown waits.
const (
	firstTry     = 50 * time.Millisecond
	longestTry   = 5 * time.Second
	longestAtEnd = 500 * time.Millisecond
)

// keepTrying pauses and tries, until the write is made or never can be. When the
// executor shuts down it tries at once, and goes on: Shutdown waits for it as long
// as its context allows, since the ledger may be restarting just as the host is.
func (x *Executor) keepTrying(write func() error) {
	closing, longest := (<-chan struct{})(x.closing), longestTry
	for pause := firstTry; ; pause = min(2*pause, longest) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-closing:
			timer.Stop()
			closing, longest, pause = nil, longestAtEnd, firstTry
		}
		if err := write(); err == nil || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrNotFound) {
			return
		}
	}
}

// awaitLate waits for a handler that was still at work when its lease ended.
// What it returns is evidence on its own attempt (R25). Shutdown doesn't wait
// for the handler, whose row has its moment, but for the writing of what it
// returned: nothing is written after a Shutdown that said that all is recorded.
func (x *Executor) awaitLate(j *job, late <-chan ending) {
	id, attempt := j.row.ID, j.row.Attempt
	go func() {
		var end ending
		select {
		case end = <-late:
		case <-x.closing:
			return
		}
		if x.enter() != nil {
			return
		}
		defer x.work.Done()
		ctx := context.WithoutCancel(j.caller)
		write := func() error {
			entry, err := x.ledger.Get(ctx, j.r.intent.TenantName, id)
			if err != nil {
				return err
			}
			return x.late(ctx, j.r.tool, attempt, end, &entry.Operation)
		}
		if write() != nil {
			x.keepTrying(write)
		}
	}()
}

// late brings an attempt's own late answer to a row that has moved on (R25), and
// leaves the row as it then is in row.
func (x *Executor) late(ctx context.Context, b *binding, attempt int, end ending, row *store.Operation) error {
	for range 8 {
		change, ok := lateChange(b, attempt, end, *row)
		if !ok {
			return nil
		}
		err := x.applyTo(ctx, &change, row)
		var stale *store.StaleError
		switch {
		case errors.As(err, &stale):
			*row = stale.Current
			continue
		case errors.As(err, new(*store.ResourceTakenError)):
			// Reopening would break uniqueness (R14): the row stays, a person is told.
			change.To, change.Reason, change.Incident = change.Of.State, change.Of.Reason, reasonLateSuccess
			return x.applyTo(ctx, &change, row)
		}
		return err
	}
	return errBusyRow
}

// lateChange is what a late answer does to a row, or false where it says
// nothing that the ledger doesn't know.
func lateChange(b *binding, attempt int, end ending, row store.Operation) (store.Change, bool) {
	c := store.Change{Of: row, To: row.State, Kind: "late_answer", Actor: "attempt", Reason: row.Reason, Body: endBody(attempt, end),
		Doubts: row.Doubts, Told: row.Told, Granted: row.Granted, Due: keepDue(row)}
	switch {
	case end.effect == effectHappened:
		return lateSuccess(b, attempt, end, row, c)
	case row.Doubts == 0 || row.State != store.Unknown && row.State != store.Manual:
		return c, false
	case end.effect == effectUnknown || row.State == store.Manual || row.Attempt != attempt:
		// It settles nothing: the row doesn't say whether an earlier attempt is
		// still one of the doubts (R23). But until now it could act (R21).
		c.Kind, c.Returned, c.Visibility = "late_return", true, b.contract.VisibilityDelay
		return c, row.Moment.Before(row.Read.Add(c.Visibility))
	}
	// The last attempt is one of the doubts; it isn't any more.
	if c.Doubts--; c.Doubts == 0 {
		c.To, c.Reason, c.Due = store.Retryable, reasonNotSent, store.DueIn(resumeAfter)
		c.Granted = b.contract.Approval
		if end.effect == effectRejected {
			c.To, c.Reason, c.Granted = store.Failed, reasonRejected, false
		}
	}
	return c, true
}

func lateSuccess(b *binding, attempt int, end ending, row store.Operation, c store.Change) (store.Change, bool) {
	c.Kind, c.Body = "late_success", lookupBody(Evidence{verdict: verdictHappened, resource: end.resource})
	c.Result, c.ResultVersion = end.stored, b.resultVersion
	c.Resource, c.ResourceDigest = end.resource, resourceDigest(end.resource)
	switch row.State {
	case store.Unknown, store.Retryable:
		c.To, c.Reason = store.Completed, ""
	case store.Manual:
		if row.Taken == "" {
			c.To, c.Reason = store.Completed, ""
		} else {
			c.Flags = store.FlagAttached
		}
	case store.AwaitingApproval:
		// It can't complete: nothing may be approved that has happened.
		c.Flags, c.Incident = store.FlagAttached, reasonLateSuccess
	case store.Failed, store.Abandoned:
		c.To, c.Reason, c.Flags = store.Manual, reasonLateSuccess, store.FlagAttached
	case store.Completed:
		// Without a resource two effects look the same, unless the class says
		// that they are one.
		if row.Resource == end.resource && (end.resource != "" || row.Attempt == 1 || b.repeats()) {
			return c, false
		}
		c.Incident = reasonLateSuccess
	case store.Superseded:
		// The older state may stand where the newer one should.
		c.Incident = reasonLateSuccess
	case store.Running:
		switch {
		case row.Attempt == attempt:
			c.To, c.Reason = store.Completed, ""
		case b.contract.Class == Composite: // its steps tell what has happened
			c.Incident = reasonLateSuccess
		default:
			c.Flags, c.Incident = store.FlagAttached, reasonLateSuccess
		}
	}
	if c.To == store.Completed {
		c.Flags = end.flags
	}
	return c, true
}

// orPerson gives to a person what the machine would close as without effect, or
// make again, though an earlier attempt has reported success meanwhile (R23, R40).
func orPerson(c *store.Change) {
	if c.Of.Flags&store.FlagAttached != 0 && c.To != store.Completed {
		c.To, c.Reason, c.Told, c.Granted, c.Due = store.Manual, reasonLateSuccess, false, false, store.Due{}
	}
}

// keepDue leaves a row's next look where it is, as far as the ledger's clock at
// the last read allows.
func keepDue(row store.Operation) store.Due {
	if row.DueAt.IsZero() {
		return store.Due{}
	}
	return store.DueIn(max(row.DueAt.Sub(row.Read), 0))
}

// unrecorded is an ending that the ledger couldn't take: returned as it is, and
// never called settled (R24).
func (j *job) unrecorded(end ending, err error) Outcome {
	j.x.log.Error("settle: an outcome could not be recorded; it is tried on", "tool", j.r.tool.name,
		"operation", j.row.ID.String(), "error", err)
	out := Outcome{Tool: j.r.tool.name, Operation: j.row.ID.String(), Reason: "not_recorded", value: end.value, err: end.err, state: store.Running}
	j.toldNotDone = j.callerWaits()
	switch doubtful := j.row.Doubts > 0; {
	case end.effect == effectHappened:
		out.Status, out.Result, out.Resource = StatusCompleted, end.encoded, end.resource
	case doubtful: // whatever this attempt proves, an earlier one may have acted (R23)
		out.Status = StatusUnknown
	case end.effect == effectRejected:
		out.Status, out.Detail = StatusFailed, refusal(end)
	case end.effect == effectNotSent, end.effect == effectInterrupted:
		out.Status = StatusInProgress
		if j.toldNotDone {
			out.Status = StatusNotDone
		}
	default:
		out.Status = StatusUnknown
	}
	return j.x.signals.counted(out)
}

// refusal is the far side's own word, for the model.
func refusal(end ending) string {
	if end.effect != effectRejected || end.err == nil {
		return ""
	}
	text := end.err.Error()
	var step *StepError
	if errors.As(end.err, &step) && step.Outcome.Detail != "" {
		text += ": " + step.Outcome.Detail // without it nobody could correct the call (R13)
	}
	return cut(text, 512)
}
