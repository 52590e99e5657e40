package settle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/settle-go/settle/store"
)

// same decides a call whose very operation is recorded, by its state (R17).
func (f *flow) same(ctx context.Context, row store.Operation, newest *store.Entry) (Outcome, *store.Claim) {
	if stack, _ := ctx.Value(operationKey).(*operationStack); stack.holds(row.ID) && !row.State.Settled() {
		out := f.bare(StatusConflict, reasonRecursion)
		out.Operation, out.state = row.ID.String(), row.State
		return f.x.signals.counted(out), nil
	}
	switch row.State {
	case store.Running:
		if !row.Expired() {
			if f.await(ctx, row.ID) {
				return Outcome{}, f.look()
			}
			return f.x.answer(ctx, f.request, row, StatusInProgress), nil
		}
		return f.unresolved(ctx, row)
	case store.Unknown:
		return f.unresolved(ctx, row)
	case store.Retryable:
		return f.rerun(ctx, row)
	case store.AwaitingApproval:
		if row.Due() {
			return f.approvalExpired(ctx, row)
		}
	case store.Completed:
		if newest != nil && newest.ID != row.ID && newest.ResourceSeq > row.ResourceSeq {
			return f.overtaken(ctx, row, newest), nil
		}
	}
	return f.x.answer(ctx, f.request, row, statusOf(row)), nil
}

// approvalExpired settles an approval that nobody gave in time (R43).
func (f *flow) approvalExpired(ctx context.Context, row store.Operation) (Outcome, *store.Claim) {
	expired, err := f.x.apply(ctx, store.Change{Of: row, To: store.Failed, Kind: "approval_expired", Actor: "caller", Reason: reasonApprovalExpired})
	if err != nil {
		return f.again(err)
	}
	return f.x.answer(ctx, f.request, expired, statusOf(expired)), nil
}

// overtaken replays an idempotent write after which a newer one was recorded:
// it says so, and what stands now, and writes nothing (R31).
func (f *flow) overtaken(ctx context.Context, row store.Operation, newest *store.Entry) Outcome {
	out := f.x.answer(ctx, f.request, row, StatusSuperseded)
	if out.Reason == reasonDenied {
		return out
	}
	out.Reason = reasonOvertaken
	if newest.Of.ID == f.intent.ID {
		out.Related = []Related{f.x.relate(ctx, f.request, newest.Operation)}
	}
	return out
}

// unresolved decides a call on an operation of which nobody knows whether it
// happened. The caller looks for evidence itself, once, if nobody else does
// (R32); what its contract allows to repeat is repeated.
func (f *flow) unresolved(ctx context.Context, row store.Operation) (Outcome, *store.Claim) {
	if f.denied {
		return f.x.answer(ctx, f.request, row, statusOf(row)), nil
	}
	if !f.investigated {
		f.investigated = true
		entry, taken := f.x.takeOne(ctx, row)
		if taken {
			return f.investigateInline(ctx, entry)
		}
	}
	if row.State == store.Running {
		// Somebody else investigates: its end is this call's.
		if f.await(ctx, row.ID) {
			return Outcome{}, f.look()
		}
		return f.x.answer(ctx, f.request, row, StatusInProgress), nil
	}
	return f.resumeUnknown(ctx, row)
}

// investigateInline works on an operation that this call has taken.
func (f *flow) investigateInline(ctx context.Context, e store.Entry) (Outcome, *store.Claim) {
	row, err := f.x.investigate(ctx, e, f.tool)
	if err != nil {
		return f.again(err)
	}
	if row.State == store.Unknown {
		return f.resumeUnknown(ctx, row)
	}
	return f.same(ctx, row, nil)
}

// resumeUnknown repeats an operation in doubt where its contract promises that
// this can't have a second effect, and otherwise says that it is unknown.
func (f *flow) resumeUnknown(ctx context.Context, row store.Operation) (Outcome, *store.Claim) {
	safe := f.tool.mayRepeat(row)
	accepted := !safe && f.tool.contract.AcceptDuplicates != "" && f.tool.effective(row) == Unsafe && !row.Read.Before(row.MomentUnder(f.tool.contract.VisibilityDelay))
	if f.invalid != nil || !safe && !accepted {
		return f.x.answer(ctx, f.request, row, StatusUnknown), nil
	}
	if accepted {
		f.duplicates++
		f.x.signals.duplicate(f.tool)
	}
	return f.resume(ctx, row, accepted)
}

// rerun starts an operation that is known to have had no effect, unless it has
// to wait, has no attempts left or has grown stale (R37).
func (f *flow) rerun(ctx context.Context, row store.Operation) (Outcome, *store.Claim) {
	if row.Reason == reasonThrottled && row.Read.Before(row.DueAt) {
		out := f.x.answer(ctx, f.request, row, StatusNotDone)
		out.waits(row)
		return out, nil
	}
	left, err := f.x.untilStale(ctx, row, f.tool)
	if err != nil {
		return f.unavailable(err), nil
	}
	if reason := givenUp(row, f.tool, left); reason != "" {
		failed, err := f.x.apply(ctx, store.Change{Of: row, To: store.Failed, Kind: "given_up", Actor: "caller", Reason: reason})
		if err != nil {
			return f.again(err)
		}
		return f.next(failed)
	}
	if out, no := f.barred(); no {
		return out, nil
	}
	if f.tool.contract.Approval && !row.Granted {
		asked, err := f.x.apply(ctx, store.Change{Of: row, To: store.AwaitingApproval, Kind: "approval_asked", Actor: "caller",
			Reason: reasonApproval, Due: store.DueIn(f.tool.contract.ApprovalTTL)})
		if err != nil {
			return f.again(err)
		}
		return f.x.answer(ctx, f.request, asked, StatusAwaitingApproval), nil
	}
	return f.resume(ctx, row, false)
}

// resume starts another attempt with the arguments as first accepted (R29).
func (f *flow) resume(ctx context.Context, row store.Operation, duplicate bool) (Outcome, *store.Claim) {
	if f.tool.contract.Class != Read && f.denied {
		return f.x.signals.counted(f.bare(StatusDenied, reasonDenied)), nil
	}
	if !f.tool.hasSecrets() && row.Arguments != nil {
		in, err := f.tool.decode(row.Arguments)
		if err != nil {
			return f.x.answer(ctx, f.request, row, statusOf(row)), nil
		}
		f.in, f.accepted = in, row.Arguments
	}
	if ctx.Err() != nil {
		// The caller has gone: nothing is begun for it any more.
		return f.x.answer(ctx, f.request, row, statusOf(row)), nil
	}
	change := f.x.startChange(ctx, row, f.tool, f.owner, f.batch, f.call.CallID)
	if duplicate {
		change.Kind, change.Reason = "duplicate_accepted", "duplicate_accepted"
	}
	f.granted = row.Granted
	if f.tool.contract.Class == Transactional {
		return f.transactGranted(ctx, change)
	}
	f.asked = time.Now()
	started, err := f.x.apply(ctx, change)
	var blocked *store.BlockedError
	switch {
	case errors.As(err, &blocked):
		return f.blocked(ctx, row, blocked)
	case err != nil:
		return f.again(err)
	}
	return f.launch(ctx, &started), nil
}

// blocked waits for older writes on the resource, or gives way to a newer one (R31).
func (f *flow) blocked(ctx context.Context, row store.Operation, b *store.BlockedError) (Outcome, *store.Claim) {
	if !b.Overtaken {
		if f.await(ctx, b.Others[0].ID) {
			return Outcome{}, f.look()
		}
		return f.x.answer(ctx, f.request, row, StatusInProgress), nil
	}
	gone, err := f.x.giveWay(ctx, row, f.tool)
	if err != nil {
		return f.again(err)
	}
	return f.x.answer(ctx, f.request, gone, statusOf(gone)), nil
}

// mayRepeat says whether an attempt may be made though an earlier one is in
// doubt: the class in force promises it, attempts are left (R3, R28, R29).
func (b *binding) mayRepeat(row store.Operation) bool {
	switch b.effective(row) {
	case Keyed, Idempotent:
		return row.Attempt < b.contract.Attempts
	case Composite:
		return true
	}
	return false
}

// effective is the class that holds for a recorded operation: the one that it
// was claimed with, if that is still the tool's and its promise still binds the
// far side; otherwise Unsafe (R3, R29).
func (b *binding) effective(row store.Operation) Class {
	switch {
	case row.Class != b.contract.Class, row.Reason == reasonKeyUnused:
		return Unsafe
	case row.Class == Keyed && !b.inWindow(row):
		return Unsafe
	}
	return row.Class
}

// inWindow says whether an attempt that starts now ends before the far side may
// forget the key, by the ledger's clock (R29).
func (b *binding) inWindow(row store.Operation) bool {
	until := row.KeyUntil
	if w := b.contract.KeyWindow; w != Permanent {
		if now := row.FirstSent.Add(w); until.IsZero() || now.Before(until) {
			until = now
		}
	}
	if until.IsZero() || row.FirstSent.IsZero() {
		return true
	}
	return row.Read.Add(b.contract.keyMargin()).Before(until)
}

// givenUp says why an operation without effect won't run any more, or "". A
// process without the tool passes no binding; left is of [Executor.untilStale].
func givenUp(row store.Operation, b *binding, left time.Duration) string {
	switch {
	case row.Class == Composite && row.Attempt > 0 && !ranThrough(row):
		return ""
	case left < 0:
		return reasonStale
	case row.Granted || b == nil:
		return ""
	case row.Class == Keyed && b.contract.Class == Keyed && !b.inWindow(row):
		// The far side may have forgotten the key: what runs next gets its own.
		return reasonStale
	case row.Class == Composite && row.Told:
		// A call may run it again: what its steps have done replays (R13).
		return ""
	case b.contract.Attempts > 0 && row.Attempt >= b.contract.Attempts && row.Attempt > 0:
		return reasonExhausted
	}
	return ""
}

// untilStale is how long an operation without effect is still worth doing (R37).
// A person's word that it may run counts as a beginning. A process without the
// tool can't know its StaleAfter, and leaves it to one that does for as long as
// the row would be kept.
func (x *Executor) untilStale(ctx context.Context, row store.Operation, b *binding) (time.Duration, error) {
	after := max(defaultStaleAfter, row.Retention)
	if b != nil {
		after = b.contract.StaleAfter
	}
	left := after - row.Read.Sub(row.CreatedAt)
	if left >= 0 || !row.Granted {
		return left, nil
	}
	events, err := x.ledger.Events(ctx, row.ID, 0)
	if err != nil {
		return 0, err
	}
	for _, e := range slices.Backward(events) {
		if e.Kind == "decided" {
			return after - row.Read.Sub(e.At), nil
		}
	}
	return left, nil
}

// ranThrough says that a composite's last run came to its end with no step open.
// Any other has to run again to know what its steps came to (R13); this one is
// given up like every operation, or a worker would run it for ever: its next
// number goes on with its steps.
func ranThrough(row store.Operation) bool {
	return row.Reason == reasonNotSent || row.Reason == reasonInterrupted || row.Reason == reasonThrottled
}

// escalation is the EscalateAfter that a claim records: none where nothing can
// ever be learnt, so that the operation is a person's at its moment (R35).
func (b *binding) escalation() time.Duration {
	if b.contract.Class == Unsafe && !b.hasLookup && b.contract.AcceptDuplicates == "" {
		return 0
	}
	return b.contract.EscalateAfter
}

// startChange is the move that begins another attempt, under ctx's span.
func (x *Executor) startChange(ctx context.Context, row store.Operation, b *binding, owner, batch [16]byte, callID string) store.Change {
	if callID == "" {
		callID = row.CallID
	}
	return store.Change{
		Of: row, To: store.Running, Kind: "attempt", Actor: "caller", Doubts: row.Doubts,
		Start: &store.Start{Owner: owner, Run: x.run, Batch: batch, CallID: callID, Trace: spanContext(ctx),
			Lease: b.contract.lease(), Visibility: b.contract.VisibilityDelay},
	}
}
