package settle

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// authorize asks the host (R46). It does so on a goroutine of the host's own, since
// callers, their turns and Shutdown wait for those that ask.
func (x *Executor) authorize(ctx context.Context, r *request, operation, purpose string) error {
	allow := r.tool.contract.Authorize
	if allow == nil {
		return nil
	}
	err := apart(func() error {
		return allow(ctx, Authorization{Principal: r.principal, Task: r.taskName, Tool: r.tool.name,
			Operation: operation, Purpose: purpose, Args: bytes.Clone(r.args)})
	})
	if misbehaved(err) {
		x.log.Error("settle: Authorize panicked or didn't return, which counts as a refusal", "tool", r.tool.name, "operation", operation)
	}
	return err
}

// answer tells the caller of a recorded operation: a replay, or where it stands
// (R48). What the caller may not see any more is left out (R46).
func (x *Executor) answer(ctx context.Context, r *request, row store.Operation, status Status) Outcome {
	out := Outcome{Status: status, Tool: r.tool.name, Operation: row.ID.String(), Recorded: true, Reason: row.Reason,
		Replayed: row.State.Settled(), composite: row.Class == store.Composite, state: row.State, repeatable: r.tool.contract.Repeatable}
	if row.State == store.Retryable && row.Reason == reasonThrottled {
		out.waits(row)
	}
	if out.Replayed && r.call.CallID != row.CallID {
		out.PossibleRepeat = true
	}
	if err := x.authorize(ctx, r, out.Operation, "answer"); err != nil {
		out.Reason, out.Detail = reasonDenied, ""
		return x.signals.replayed(ctx, r, row, out)
	}
	if row.State == store.Completed {
		out.Resource = row.Resource
		out.Result, out.Reason = r.tool.resultNow(row)
		out.CorrectedBy = x.corrected(ctx, r.tool, r.intent, row)
		x.told.set(row.ID, struct{}{})
	}
	return x.signals.replayed(ctx, r, row, out)
}

// resultNow is a stored result as today's tool returns it (R47).
func (b *binding) resultNow(row store.Operation) (json.RawMessage, string) {
	switch {
	case row.Flags&store.FlagUnencodable != 0:
		return nil, "result_not_encodable"
	case row.Flags&store.FlagOversize != 0:
		return nil, "result_too_large"
	case row.ResultVersion == b.resultVersion:
		return row.Result, ""
	case b.upgrade == nil:
		return nil, "result_of_other_version"
	}
	upgraded, err := b.upgrade(row.ResultVersion, row.Result)
	if err != nil {
		return nil, "result_of_other_version"
	}
	encoded, err := encode(upgraded)
	if err != nil {
		return nil, "result_not_encodable"
	}
	return encoded, ""
}

// outcome is what a job's caller is told: of a first execution, unless somebody
// else settled the operation meanwhile.
func (j *job) outcome(end ending) Outcome {
	row := &j.row
	out := Outcome{Status: statusOf(*row), Tool: j.r.tool.name, Operation: row.ID.String(), Recorded: true, Reason: row.Reason,
		Detail: refusal(end), state: row.State, err: end.err, Duplicates: j.duplicates, repeatable: j.r.tool.contract.Repeatable,
		spent: end.spent}
	if row.State == store.Retryable && row.Reason == reasonThrottled {
		out.waits(*row)
	}
	if row.State != store.Failed {
		out.Detail = ""
	}
	if row.Class == store.Composite && row.State != store.Completed {
		out.composite, out.Related = true, j.run.stepsDone()
	}
	if end.open != nil && row.State == store.Retryable {
		out.Status = end.open.Status
		out.Related = append(out.Related, Related{Operation: end.open.Operation, Tool: end.open.Tool, State: end.open.state.String()})
	}
	if row.State == store.Completed {
		out.Resource = row.Resource
		out.Result, out.Reason = j.r.tool.resultNow(*row)
		if end.effect == effectHappened {
			out.value = end.value
			if end.encoded != nil && out.Result == nil {
				out.Result = end.encoded
			}
		}
	}
	return j.x.signals.counted(out)
}

// relate describes another operation, with its resource where the caller may see it.
func (x *Executor) relate(ctx context.Context, r *request, o store.Operation) Related {
	related := Related{Operation: o.ID.String(), Tool: r.tool.name, State: o.State.String()}
	if x.authorize(ctx, r, related.Operation, "answer") == nil {
		related.Resource = o.Resource
	}
	return related
}

// Get returns the present outcome of an operation of the context's principal's
// tenant. Another tenant's reference is not found (R46).
func (x *Executor) Get(ctx context.Context, operation string) (Outcome, error) {
	p, ok := PrincipalFrom(ctx)
	if !ok {
		return Outcome{}, ErrNoPrincipal
	}
	id, err := uuid.Parse(operation)
	if err != nil {
		return Outcome{}, store.ErrNotFound
	}
	entry, err := x.ledger.Get(ctx, p.Tenant, id)
	if err != nil {
		return Outcome{}, err
	}
	tool, ok := x.byKey[entry.Tool]
	if !ok {
		return Outcome{Status: statusOf(entry.Operation), Tool: entry.Tool, Operation: operation, Recorded: true,
			Replayed: entry.State.Settled(), Reason: entry.Reason, state: entry.State}, nil
	}
	r := recordedRequest(tool, entry)
	r.principal, r.call.CallID = p, entry.CallID // whoever asks, it is no repeat
	return x.answer(ctx, r, entry.Operation, statusOf(entry.Operation)), nil
}
