package settle

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// meet decides a call whose slot has records: which of the numbers it is, and
// whether a next one is admitted (R10).
func (f *flow) meet(ctx context.Context, c *store.Claimed) (Outcome, *store.Claim) {
	last := c.Slot[len(c.Slot)-1]
	if f.call.Replaces != "" {
		return f.replace(ctx, c)
	}
	row, found := f.own(c.Slot)
	if !found {
		return f.other(ctx, last)
	}
	if row.Flags&store.FlagPurged != 0 {
		return f.x.answer(ctx, f.request, row, StatusExpired), nil
	}
	if row.ID == last.ID && f.nextNumber(c.Slot) {
		return f.next(last)
	}
	return f.same(ctx, row, c.Newest)
}

// own finds the highest number with the call's fingerprint.
func (f *flow) own(slot []store.Operation) (store.Operation, bool) {
	for i := len(slot) - 1; i >= 0; i-- {
		if slot[i].Fingerprint == f.print.whole {
			return slot[i], true
		}
	}
	return store.Operation{}, false
}

// nextNumber says whether the same call may run as the next number: the last
// one failed because it was given up, not because it was refused.
func (f *flow) nextNumber(slot []store.Operation) bool {
	if len(slot) == 0 {
		return true
	}
	last := slot[len(slot)-1]
	if last.State != store.Failed {
		return false
	}
	return last.Fingerprint != f.print.whole || last.Reason == reasonExhausted || last.Reason == reasonStale
}

// next claims the number after last, if the call may claim at all.
func (f *flow) next(last store.Operation) (Outcome, *store.Claim) {
	if out, no := f.barred(); no {
		return out, nil
	}
	return Outcome{}, f.newClaim(last.Number+1, store.Guard{ID: last.ID, Version: last.Version})
}

// other decides a call whose arguments no number has: a corrected call after a
// failed one, in place of one that had no effect, or a conflict (R10, R17).
func (f *flow) other(ctx context.Context, last store.Operation) (Outcome, *store.Claim) {
	switch {
	case last.Flags&store.FlagPurged != 0:
		return f.x.answer(ctx, f.request, last, StatusExpired), nil
	case last.State == store.Failed:
		return f.next(last)
	case last.State == store.Retryable && f.owned(last):
		if out, no := f.barred(); no {
			return out, nil
		}
		replaced, err := f.x.apply(ctx, store.Change{Of: last, To: store.Failed, Kind: "replaced", Actor: "caller", Reason: reasonReplaced})
		if err != nil {
			return f.again(err)
		}
		return f.next(replaced)
	}
	return f.conflict(ctx, last), nil
}

// owned says whether a retryable operation is its caller's: it was told, or no
// worker would resume it.
func (f *flow) owned(o store.Operation) bool {
	return o.Told || o.Class == Unsafe || f.tool.hasSecrets()
}

// again goes back to the ledger after a write that a change in between refused.
func (f *flow) again(err error) (Outcome, *store.Claim) {
	var stale *store.StaleError
	if errors.As(err, &stale) {
		return Outcome{}, f.look()
	}
	return f.unavailable(err), nil
}

// conflict refuses: nothing is changed or executed, no former argument or result
// is shown (R17), and to whom the answer isn't allowed nothing but the code (R46).
// It is journaled beside the operation.
func (f *flow) conflict(ctx context.Context, row store.Operation) Outcome {
	out := f.bare(StatusConflict, "other_arguments")
	out.Operation, out.state = row.ID.String(), row.State
	if f.x.authorize(ctx, f.request, out.Operation, "answer") != nil {
		out.Reason = reasonDenied
	} else {
		out.Fields = differing(row.Fields, f.print.fields, f.tool.knows)
		out.Related = []Related{{Operation: out.Operation, Tool: f.tool.name, State: row.State.String(), Resource: row.Resource}}
	}
	f.x.audit(ctx, store.Audit{Operation: row.ID, Kind: "conflict", Actor: "caller"})
	return f.x.signals.counted(out)
}

// knows says whether today's schema has the field: only such names are shown.
func (b *binding) knows(field string) bool {
	if b.schema == nil {
		return true
	}
	_, ok := b.schema.Field(field)
	return ok
}

// taken refuses a second operation of a Unique tool (R14).
func (f *flow) taken(ctx context.Context, others []store.Entry) Outcome {
	out := f.bare(StatusConflict, reasonUnique)
	for _, e := range others {
		if e.Of.ID == f.intent.ID {
			out.Related = append(out.Related, f.x.relate(ctx, f.request, e.Operation))
		}
		f.x.audit(ctx, store.Audit{Operation: e.ID, Kind: "conflict", Actor: "caller", Detail: reasonUnique})
	}
	return f.x.signals.counted(out)
}

// held answers a whole-arguments call that another operation of its tool keeps
// waiting (R30): it waits for what runs, closes what had no effect and was told,
// and tells once of what was done before this process began.
func (f *flow) held(ctx context.Context, others []store.Entry) (Outcome, *store.Claim) {
	var holding []store.Operation
	told := true
	for _, e := range others {
		switch {
		case e.State == store.Running && !e.Expired():
			if f.await(ctx, e.ID) {
				return Outcome{}, f.newClaim(1)
			}
		case e.State == store.Retryable && e.Told:
			_, err := f.x.apply(ctx, store.Change{Of: e.Operation, To: store.Failed, Kind: "replaced", Actor: "caller", Reason: reasonReplaced})
			if err != nil {
				return f.again(err)
			}
			return Outcome{}, f.newClaim(1)
		case e.State.Settled() && f.x.told.has(e.ID):
			f.told = append(f.told, e.ID)
			continue
		}
		told = false
		holding = append(holding, e.Operation)
	}
	if told {
		return Outcome{}, f.newClaim(1)
	}
	return f.tellHolding(ctx, holding), nil
}

func (f *flow) tellHolding(ctx context.Context, holding []store.Operation) Outcome {
	out := f.bare(StatusHeld, reasonUntold)
	for _, o := range holding {
		if !o.State.Settled() {
			out.Reason = reasonUnsettled
		} else {
			f.x.told.set(o.ID, struct{}{})
		}
		out.Related = append(out.Related, f.x.relate(ctx, f.request, o))
		f.x.audit(ctx, store.Audit{Operation: o.ID, Kind: "held", Actor: "caller"})
	}
	return f.x.signals.counted(out)
}

// replace makes the next number in place of a settled one that the host names,
// because the plan has changed. What a person abandoned stays closed (R10).
func (f *flow) replace(ctx context.Context, c *store.Claimed) (Outcome, *store.Claim) {
	last := c.Slot[len(c.Slot)-1]
	id, err := uuid.Parse(f.call.Replaces)
	if err != nil {
		return f.x.invalid(f.tool, &invalidError{reason: "replaces is no operation's reference"}), nil
	}
	if last.ID == id {
		switch {
		case last.State == store.Abandoned:
			return f.x.answer(ctx, f.request, last, StatusAbandoned), nil
		case last.State.Settled():
			return f.next(last)
		}
		out := f.bare(StatusHeld, reasonUnsettled)
		out.Related = []Related{f.x.relate(ctx, f.request, last)}
		return f.x.signals.counted(out), nil
	}
	// The replacement itself, delivered again, finds its own row.
	if row, found := f.own(c.Slot); found {
		return f.same(ctx, row, c.Newest)
	}
	return f.conflict(ctx, last), nil
}
