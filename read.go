package settle

import (
	"context"
	"time"

	"github.com/settle-go/settle/store"
)

// read runs a tool that changes nothing: no intent, no claim, no record (R26).
// It is retried freely, within its attempts and budget.
func (f *flow) read(ctx context.Context) Outcome {
	f.invalid = f.validate(f.x)
	f.denied = f.invalid == nil && f.x.authorize(ctx, f.request, "", "attempt") != nil
	if out, no := f.barred(); no {
		return out
	}
	c := f.tool.contract
	j := &job{x: f.x, r: f.request, row: store.Operation{ID: newID(), Attempt: 1}, caller: ctx, span: f.span,
		began: time.Now(), done: make(chan struct{})}
	j.span.dispatch(j)
	var end ending
	for ; ; j.row.Attempt++ {
		end = j.readOnce(ctx)
		retry := !f.once && (end.effect == effectNotSent || end.effect == effectUnknown)
		wait := max(j.pauses.next(), end.wait)
		if !retry || j.row.Attempt >= c.Attempts || time.Since(j.began)+wait > c.lease() || !f.x.sleep(ctx, wait) {
			end.spent = retry && j.row.Attempt >= c.Attempts
			break
		}
	}
	j.out = f.readOutcome(end)
	j.span.end(j.out)
	return f.x.signals.counted(j.out)
}

func (j *job) readOnce(ctx context.Context) ending {
	j.run = &running{executor: j.x, binding: j.r.tool, reference: j.row.ID, attempt: j.row.Attempt, principal: j.r.principal, task: j.r.taskName, args: j.r.forTool()}
	ctx, span := j.x.signals.attempt(ctx, j)
	above, _ := ctx.Value(operationKey).(*operationStack)
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, operationKey, &operationStack{running: j.run, above: above}), j.r.tool.contract.Timeout)
	defer cancel()
	ended, run := make(chan ending, 1), j.run
	answer := func(end ending) { ended <- end }
	j.x.crew.run(func() { answer(j.call(ctx, run, answer)) })
	var end ending
	select {
	case end = <-ended:
	case <-ctx.Done():
		end = ending{knownError: knownError{err: ctx.Err(), effect: effectUnknown}}
	}
	span.end(end)
	return end
}

// readOutcome: whatever went wrong, nothing was changed, so nothing is unknown.
func (f *flow) readOutcome(end ending) Outcome {
	out := f.bare(StatusNotDone, end.effect.String())
	out.err, out.value, out.spent = end.err, end.value, end.spent
	switch end.effect {
	case effectHappened:
		out.Status, out.Reason = StatusCompleted, ""
		out.Result, out.Resource = end.encoded, end.resource
	case effectRejected:
		out.Status, out.Reason, out.Detail = StatusFailed, reasonRejected, refusal(end)
	case effectInterrupted:
		out.Reason = reasonInterrupted
	default:
		if end.wait > 0 {
			out.NotBefore, out.wait, out.Reason = time.Now().Add(end.wait), end.wait, reasonThrottled
		}
	}
	return out
}
