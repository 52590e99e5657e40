package settle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/store"
)

const (
	// lookupTimeout bounds one lookup.
	lookupTimeout = 10 * time.Second
	// lookupLease is how long whoever looks keeps others from looking (R36).
	lookupLease = lookupTimeout + recordMargin
	// resumeAfter is when a worker goes on with what no caller waits for.
	resumeAfter = time.Second
	// firstRecheck and maxRecheck bound the pauses between lookups, doubled each
	// time, with jitter (R36).
	firstRecheck = 2 * time.Second
	maxRecheck   = 5 * time.Minute
)

// takeOne takes a due operation for an inline investigation (R32, R36).
func (x *Executor) takeOne(ctx context.Context, row store.Operation) (store.Entry, bool) {
	entries, err := x.ledger.Take(ctx, store.Take{Lease: lookupLease, Limit: 1, Operation: row.ID})
	if err != nil || len(entries) == 0 {
		return store.Entry{}, false
	}
	return entries[0], true
}

// investigate brings an operation whose end nobody saw as far as evidence and
// time allow, without sending anything that has an effect. The caller has taken
// the operation. It returns the row as it then stands.
func (x *Executor) investigate(ctx context.Context, e store.Entry, b *binding) (store.Operation, error) {
	row := e.Operation
	if row.State == store.Running && row.Expired() {
		expired, err := x.expire(ctx, row, b)
		if err != nil {
			return row, err
		}
		row = expired
	}
	if row.State != store.Unknown {
		return row, nil
	}
	if b == nil || !b.hasLookup {
		if overtaken, err := x.isOvertaken(ctx, row); err != nil {
			return row, err
		} else if overtaken {
			return x.giveWay(ctx, row, b)
		}
		x.escalateIfDue(ctx, &row, b)
		return row, nil
	}
	return x.look(ctx, store.Entry{Operation: row, Of: e.Of}, b, "recovery")
}

// isOvertaken says whether a newer write on the row's resource was recorded:
// such a row is nobody's case, since it is never made again (R31).
func (x *Executor) isOvertaken(ctx context.Context, row store.Operation) (bool, error) {
	if row.ResourceKey.IsZero() {
		return false, nil
	}
	claimed, err := x.ledger.Claim(ctx, store.Claim{Look: true, Operation: store.Operation{Intent: row.Intent, Tenant: row.Tenant,
		Slot: row.Slot, Number: row.Number, Tool: row.Tool, ResourceKey: row.ResourceKey}})
	if err != nil {
		return false, err
	}
	newest := claimed[0].Newest
	return newest != nil && newest.ResourceSeq > row.ResourceSeq, nil
}

// expire notes that an attempt's lease ended without a word of it. That permits
// investigation and proves nothing (R22); only a composite, which has no effect
// of its own, may simply run again (R13).
func (x *Executor) expire(ctx context.Context, row store.Operation, b *binding) (store.Operation, error) {
	c := store.Change{Of: row, To: store.Unknown, Kind: "lease_expired", Actor: "recovery", Reason: reasonLeaseExpired,
		Doubts: row.Doubts + 1, Due: store.Due{Set: true, AtMoment: true}}
	if b != nil {
		c.Visibility, c.Due = b.contract.VisibilityDelay, b.firstCheck()
		if b.hasLookup {
			c.Due = store.DueIn(lookupLease)
		}
	}
	if row.Class == store.Composite {
		c.To, c.Doubts, c.Due = store.Retryable, 0, store.DueIn(resumeAfter)
	}
	orPerson(&c)
	x.signals.expired(row)
	return x.apply(ctx, c)
}

// look asks the far side, and writes down what it said.
func (x *Executor) look(ctx context.Context, e store.Entry, b *binding, actor string) (store.Operation, error) {
	row := e.Operation
	in, err := b.decode(row.Arguments)
	if err != nil {
		return x.apply(ctx, store.Change{Of: row, To: store.Manual, Kind: "escalated", Actor: actor, Reason: reasonUndecodable, Doubts: row.Doubts})
	}
	ctx, span := x.signals.lookup(ctx, b, row)
	evidence := x.ask(ctx, e, b, in)
	change := b.weigh(e, evidence)
	change.Actor = actor
	if change.ByAttribute && !x.maySee(ctx, e, b) {
		change = caseOf(change, reasonResourceTaken)
	}
	if change.To == store.Manual {
		if overtaken, err := x.isOvertaken(ctx, row); err != nil {
			return row, err
		} else if c, yields := giving(row, b); overtaken && yields {
			c.Checked, c.Verdict, c.Body, c.Visibility, c.Actor = true, change.Verdict, change.Body, change.Visibility, actor
			change = c
		}
	}
	span.end(change.Verdict)
	next, err := x.apply(ctx, change)
	if errors.As(err, new(*store.ResourceTakenError)) {
		return x.apply(ctx, caseOf(change, reasonResourceTaken))
	}
	return next, err
}

// maySee asks the host whether the principal may see what an attribute found (R34).
func (x *Executor) maySee(ctx context.Context, e store.Entry, b *binding) bool {
	return x.authorize(ctx, recordedRequest(b, e), e.ID.String(), "answer") == nil
}

// ask calls the tool's lookup. Errors, panics and timeouts are no answer.
func (x *Executor) ask(ctx context.Context, e store.Entry, b *binding, in any) (answer Evidence) {
	principal := Principal{e.Of.TenantName, e.Of.Subject}
	task := Task{e.Of.Task, e.Of.Goal}
	a := &asked{key: operationKeyOf(e.Of, e.Operation), reference: e.ID, first: e.FirstSent,
		last: e.MomentUnder(b.contract.VisibilityDelay), attempts: e.Attempt, principal: principal, task: task}
	ctx, cancel := context.WithTimeout(WithTask(WithPrincipal(context.WithoutCancel(ctx), principal), task), lookupTimeout)
	defer cancel()
	found := make(chan Evidence, 1)
	go func() {
		answer := Evidence{verdict: verdictFailed}
		defer func() {
			if p := recover(); p != nil {
				x.log.Error("settle: a lookup panicked", "tool", b.name, "operation", e.ID.String(), "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			}
			found <- answer
		}()
		if given, err := b.lookup(ctx, a, in); err == nil {
			answer = given
		}
	}()
	select {
	case answer = <-found:
	case <-ctx.Done():
		return Evidence{verdict: verdictFailed}
	}
	if answer.verdict == "" {
		answer.verdict = verdictInconclusive
	}
	return answer
}

// weigh turns evidence into the move that it allows (R33, R34, R35). It is
// dated by the row's reading, which was before the lookup began.
func (b *binding) weigh(e store.Entry, ev Evidence) store.Change {
	row := e.Operation
	moment := row.MomentUnder(b.contract.VisibilityDelay)
	if ev.verdict == verdictNotHappened && row.Read.Before(moment) {
		ev.verdict = verdictNotVisible
	}
	c := store.Change{Of: row, To: store.Unknown, Kind: "lookup", Reason: row.Reason, Doubts: row.Doubts,
		Checked: true, Verdict: string(ev.verdict), Visibility: b.contract.VisibilityDelay, Body: lookupBody(ev)}
	switch ev.verdict {
	case verdictHappened:
		return b.weighFound(e, ev, c)
	case verdictNotHappened:
		c.To, c.Reason, c.Doubts, c.Granted = store.Retryable, reasonNotSent, 0, b.contract.Approval
		c.Due = store.DueIn(b.contract.StaleAfter)
		if b.repeats() {
			c.Due = store.DueIn(resumeAfter)
		}
		return c
	case verdictSeveral:
		return caseOf(c, reasonSeveralMatches)
	}
	if escalates(row, b) {
		return caseOf(c, reasonEscalated)
	}
	c.Due = store.DueIn(recheck(row.Checks))
	c.Due.AtMoment = ev.verdict == verdictNotVisible
	return c
}

// weighFound settles an operation by an effect that was found, or makes a case
// of one that may be another's.
func (b *binding) weighFound(e store.Entry, ev Evidence, c store.Change) store.Change {
	row := e.Operation
	switch {
	case ev.compare != nil && !b.agrees(e, ev.compare):
		return caseOf(c, reasonEvidenceDiffers)
	case ev.byAttribute && ev.resource == "":
		return caseOf(c, reasonSeveralMatches)
	case ev.byAttribute && !ev.created.IsZero() && ev.created.Before(row.FirstSent.Truncate(time.Second)):
		return caseOf(c, reasonTooOld)
	}
	c.To, c.Reason = store.Completed, ""
	c.Resource = cut(ev.resource, maxResource)
	c.ResourceDigest, c.ByAttribute = resourceDigest(c.Resource), ev.byAttribute
	c.ResultVersion = b.resultVersion
	encoded, err := encode(ev.result)
	if err != nil {
		c.Flags = store.FlagUnencodable
		return c
	}
	c.Result, c.Flags = kept(encoded, b.resultLimit)
	return c
}

// kept is what is stored of a result, and the flag that says so: nothing above the
// limit, where the resource stands for it (R47).
func kept(encoded []byte, limit int) ([]byte, uint8) {
	if len(encoded) > limit {
		return nil, store.FlagOversize
	}
	return encoded, 0
}

// agrees compares what the far side shows with what was accepted, field by
// field, under the digests of the claim.
func (b *binding) agrees(e store.Entry, shown any) bool {
	raw, err := encode(shown)
	if err != nil {
		return false
	}
	value, err := canonical.Parse(raw, canonical.Limits{Bytes: len(raw) + 1})
	if err != nil || value.Kind() != canonical.Object {
		return false
	}
	if value, err = canonical.Normalize(value, b.shape()); err != nil {
		return false
	}
	recorded, err := readFields(e.Fields)
	if err != nil {
		return false
	}
	digests := map[string][8]byte{}
	for _, f := range recorded {
		digests[f.name] = f.digest
	}
	byTenant := under(e.Of.TenantKey)
	for name, v := range value.Members() {
		normal, err := b.normalized(name, v)
		if err != nil {
			return false
		}
		shown := part{name, canonical.Append(nil, normal)}
		if have, ok := digests[name]; !ok || have != digestField(byTenant, e.Of.Version, b.identity, shown) {
			return false
		}
	}
	return true
}

// caseOf hands the operation to a person (R39).
func caseOf(c store.Change, reason string) store.Change {
	c.To, c.Kind, c.Reason, c.Doubts = store.Manual, "escalated", reason, c.Of.Doubts
	c.Resource, c.ResourceDigest, c.ByAttribute, c.Result = "", store.Digest{}, false, nil
	c.Due, c.Granted = store.Due{}, false
	return c
}

// lookupBody is the journal's metadata of a lookup; reasons are the author's
// words for a person and stay in the ledger.
func lookupBody(ev Evidence) []byte {
	body, err := json.Marshal(struct {
		Verdict     verdict `json:"verdict"`
		ByAttribute bool    `json:"by_attribute,omitempty"`
		Resource    string  `json:"resource,omitempty"`
		Reason      string  `json:"reason,omitempty"`
	}{ev.verdict, ev.byAttribute, cut(ev.resource, maxResource), cut(ev.reason, 512)})
	if err != nil {
		return nil
	}
	return body
}

// escalates says whether the time for evidence is over, by the ledger's clock:
// never before the moment (R35).
func escalates(row store.Operation, b *binding) bool {
	at := row.Moment
	after := row.Escalate
	if b != nil {
		at = row.MomentUnder(b.contract.VisibilityDelay)
		if row.Class == Keyed && !b.hasLookup && b.effective(row) == Unsafe {
			after = 0
		}
	}
	if due := row.UnknownSince.Add(after); due.After(at) {
		at = due
	}
	return !row.Read.Before(at)
}

// escalateIfDue makes a person's case of an operation for which time is over,
// and otherwise leaves it its next look.
func (x *Executor) escalateIfDue(ctx context.Context, row *store.Operation, b *binding) {
	c := store.Change{Of: *row, To: store.Unknown, Kind: "checked", Actor: "recovery", Reason: row.Reason, Doubts: row.Doubts}
	switch {
	case escalates(*row, b):
		reason := reasonEscalated
		if row.Escalate == 0 {
			reason = reasonNoEvidence
		}
		c = caseOf(c, reason)
		c.Actor = "recovery"
	case !row.Due() && !row.DueAt.IsZero():
		return
	default:
		c.Due = store.DueIn(recheck(row.Checks))
		c.Checked, c.Verdict = true, row.Verdict
		if row.Escalate == 0 {
			c.Due = store.Due{Set: true, AtMoment: true}
		}
	}
	if next, err := x.apply(ctx, c); err == nil {
		*row = next
	}
}

// recheck is the pause before the next lookup: doubled with each, with jitter.
func recheck(checks int) time.Duration {
	pause := maxRecheck
	if checks < 8 {
		pause = firstRecheck << checks
	}
	return spaced(pause)
}

// rerunIn is the pause before a worker runs an operation again that no number of
// attempts ends: a composite with an open step, an effect that a person has
// allowed, a write behind another one. It grows with the operation's age and not
// with its runs: calls that ask how it stands would put the machine off.
func rerunIn(row store.Operation) time.Duration {
	return spaced(row.Read.Sub(row.CreatedAt))
}

func spaced(pause time.Duration) time.Duration {
	pause = max(firstRecheck, min(pause, maxRecheck))
	return pause/2 + rand.N(pause/2+1)
}
