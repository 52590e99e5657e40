package store

import (
	"time"

	"github.com/google/uuid"
)

// First is the row that a claim records at the ledger's instant now, and its
// first event. Ledgers that compute rows in Go share it; those that do it in
// SQL are held to it by the conformance suite.
func First(c Claim, now time.Time) (Operation, Event) {
	e := FirstEvent(c)
	e.At = now
	o := c.Operation
	o.Begin(&c, e.Hash, now)
	return o, e
}

// Begin makes o, which the claim asks for, the row that the claim records: what
// [First] does once its event is sealed.
func (o *Operation) Begin(c *Claim, hash [32]byte, now time.Time) {
	o.Version, o.CreatedAt, o.Read = 1, now, now
	if c.KeyWindow > 0 {
		o.KeyUntil = after(now, c.KeyWindow)
	}
	if o.State == Running {
		o.Attempt, o.FirstSent = 1, now
		o.LeaseUntil = after(now, c.Lease)
		o.DueAt = o.LeaseUntil
		o.Moment = after(o.LeaseUntil, o.Visibility)
	} else {
		o.Attempt, o.Moment = 0, now
		o.DueAt = after(now, c.Wait)
	}
	o.Tail, o.TailAt = hash, now
}

// after is the instant d after t, in the ledger's resolution.
func after(t time.Time, d time.Duration) time.Time { return t.Add(d).Truncate(time.Microsecond) }

// FirstEvent is the event of a claim, sealed.
func FirstEvent(c Claim) Event {
	e := Event{
		Operation: c.Operation.ID, Seq: 1, Move: Move{To: c.Operation.State},
		Kind: "claimed", Actor: c.Actor, Reason: c.Operation.Reason,
	}
	if c.Operation.State == Running {
		e.Attempt = 1
	}
	e.Hash = e.Seal(Tail{})
	return e
}

// NextEvent is the event of a change, sealed.
func NextEvent(c Change) Event {
	e := Event{
		Operation: c.Of.ID, Seq: c.Of.Version + 1, Move: Move{From: c.Of.State, To: c.To},
		Kind: c.Kind, Actor: c.Actor, Attempt: c.Of.Attempt, Reason: c.Reason,
		Decision: c.Decision, Body: c.Body,
	}
	if c.Start != nil {
		e.Attempt++
	}
	e.Hash = e.Seal(Tail{Hash: c.Of.Tail, At: c.Of.TailAt})
	return e
}

// Next is the row that a change makes of o at the ledger's instant now, and the
// event. The caller has compared versions and checked the move.
func Next(o Operation, c Change, now time.Time) (Operation, Event) {
	e := NextEvent(c)
	e.At = now
	o.Advance(&c, e.Hash, now)
	return o, e
}

// Advance makes the change of o: what [Next] does once its event is sealed.
func (o *Operation) Advance(c *Change, hash [32]byte, now time.Time) {
	from := o.State
	o.State, o.Reason, o.Version, o.Read = c.To, c.Reason, o.Version+1, now
	o.Tail, o.TailAt = hash, now

	alone := o.Doubts == 0
	o.Doubts, o.Told, o.Granted = c.Doubts, c.Told, c.Granted
	if c.Checked {
		o.Checks++
		o.Verdict = c.Verdict
	}
	if c.To != Running {
		o.LeaseUntil = time.Time{}
	}
	o.setMoment(c, alone, now)
	o.DueAt = time.Time{}
	if c.Due.Set && !c.To.Settled() {
		o.DueAt = after(now, c.Due.In)
		if c.Due.AtMoment && o.Moment.After(o.DueAt) {
			o.DueAt = o.Moment
		}
	}
	if c.Start != nil {
		o.start(*c.Start, now)
	}
	o.setInstants(from, now)
	if c.To == Completed && from != Completed {
		o.Resource, o.ResourceDigest, o.ByAttribute = c.Resource, c.ResourceDigest, c.ByAttribute
		o.Result, o.ResultVersion = c.Result, c.ResultVersion
	}
	o.Flags |= c.Flags
	if c.Trace != nil {
		o.Trace = c.Trace
	}
	if c.Take != nil && c.Start == nil {
		o.Taken = *c.Take
	} else if from.NeedsCase() && o.State != from {
		o.Taken = ""
	}
	if o.Flags&FlagPurged != 0 {
		o.Entomb()
	}
}

// Fresh says whether the row is still as the caller of Apply saw it (R20). What it
// proposes it has read with the row, and no erasure makes a new version (R52).
func (c *Change) Fresh(row *Operation) bool {
	erased := c.Proposal != nil && c.Start == nil && (row.Flags^c.Of.Flags)&FlagPurged != 0
	return row.Version == c.Of.Version && row.State == c.Of.State && row.Tail == c.Of.Tail && !erased
}

// setMoment brings the moment up to date (R21). A longer VisibilityDelay moves
// it back, and so does a handler that returned after its lease; the return of
// the only attempt in question brings it forward.
func (o *Operation) setMoment(c *Change, alone bool, now time.Time) {
	o.lengthen(c.Visibility)
	if !c.Returned {
		return
	}
	if end := after(now, o.Visibility); alone || end.After(o.Moment) {
		o.Moment = end
	}
}

// lengthen keeps the longer VisibilityDelay, for the attempts so far as well.
func (o *Operation) lengthen(visibility time.Duration) {
	if visibility > o.Visibility {
		o.Moment = o.MomentUnder(visibility)
		o.Visibility = visibility
	}
}

func (o *Operation) start(s Start, now time.Time) {
	o.Attempt++
	o.Owner, o.Run, o.Batch, o.CallID, o.Trace = s.Owner, s.Run, s.Batch, s.CallID, s.Trace
	o.Told, o.Granted = false, false
	o.lengthen(s.Visibility)
	o.LeaseUntil = after(now, s.Lease)
	o.DueAt = o.LeaseUntil
	if end := after(o.LeaseUntil, o.Visibility); end.After(o.Moment) {
		o.Moment = end
	}
	if o.FirstSent.IsZero() {
		o.FirstSent = now
	}
}

// setInstants keeps UnknownSince (from the first "unknown", anew when a person
// hands the operation back) and SettledAt.
func (o *Operation) setInstants(from State, now time.Time) {
	switch {
	case o.State == Unknown && (o.UnknownSince.IsZero() || from == Manual):
		o.UnknownSince = now
	case o.State == Retryable || o.State.Settled():
		o.UnknownSince = time.Time{}
	}
	if o.State.Settled() && !from.Settled() {
		o.SettledAt = now
	} else if !o.State.Settled() {
		o.SettledAt = time.Time{}
	}
}

// Entomb leaves of a row what has to be known for ever (R51). What comes in later
// for such a row isn't kept either.
func (o *Operation) Entomb() {
	o.Flags |= FlagPurged
	o.Arguments, o.Result, o.Fields, o.Trace, o.CallID = nil, nil, nil, nil, ""
	o.Fingerprint = [32]byte{}
}

// Holds says whether o keeps the claim waiting under R30. Both are of one tool
// in one intent.
func (o Operation) Holds(c Claim) bool {
	own := c.Operation
	if o.ID == own.ID || o.Slot == own.Slot || (own.Batch != uuid.Nil && o.Batch == own.Batch) {
		return false
	}
	if !o.State.Settled() {
		return true
	}
	if o.State != Completed || o.Run == own.Run {
		return false
	}
	for _, told := range c.Hold.Told {
		if told == o.ID {
			return false
		}
	}
	return true
}

// NeedsCase says whether an operation in this state has an open case (R39).
func (s State) NeedsCase() bool { return s == Manual || s == AwaitingApproval }

// Blocks says whether a lower write keeps a newer one on its resource from
// starting: while one of its attempts can still take effect (R31). A settled one
// can too, where a second attempt completed it and the first is still in doubt:
// the first could land after the newer write and undo it.
func (o Operation) Blocks() bool {
	return (o.State == Running || o.Doubts > 0) && o.Read.Before(o.Moment)
}
