package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Ledger is a durable place for operations. Every method is safe for use by
// several goroutines and by several processes on one database.
//
// Errors are of three kinds. [*StaleError], [*BlockedError], [ErrNotFound] and
// the other typed errors of this package say that nothing was written and why.
// An error for which [Unwritten] holds says that nothing was written and that
// the same call may be made again. After any other error nobody knows whether
// the write took effect, exactly as with any far side: the caller makes the
// same claim again, or reads the row and looks for its own attempt.
type Ledger interface {
	// Info says what kind of ledger this is. It does no I/O.
	Info() Info

	// Intent returns the row with the proposed digest and creates it, and its
	// tenant's, where there is none. Of several callers at once all get the same row.
	Intent(ctx context.Context, proposed Intent) (Intent, error)

	// Claim records operations, or reads what is recorded in their place. It is
	// atomic: all the claims of one call stand in one transaction, and a refused
	// one doesn't keep the others from being made. They are decided as if made
	// one after the other, in the order given, and the answer has one element
	// per claim. A claim in a state that no operation begins in is a
	// [*MoveError], and none of the call is made.
	Claim(ctx context.Context, claims ...Claim) ([]Claimed, error)

	// Apply moves one operation and journals the move in the same write. It
	// returns the row as it then stands. A row that isn't at the version of
	// c.Of is left alone: [*StaleError], with the row as it is.
	Apply(ctx context.Context, c Change) (Operation, error)

	// Renew extends the leases of running attempts, with their moments. What it
	// returns was lost: no longer running, another owner, or the lease had ended.
	Renew(ctx context.Context, lease time.Duration, held ...Held) (lost []Held, err error)

	// Take hands out work that is due, each row to one taker: it pushes the
	// row's DueAt past the taker's lease and changes nothing else, neither
	// version nor journal, since an expired lease proves nothing (R22).
	Take(ctx context.Context, t Take) ([]Entry, error)

	// Get returns an operation of the tenant (by name). Another tenant's
	// operation is [ErrNotFound].
	Get(ctx context.Context, tenant string, operation uuid.UUID) (Entry, error)

	// List returns operations in the order of their ids, which is the order of
	// their claims.
	List(ctx context.Context, f Filter) ([]Entry, error)

	// Events returns the journal of an operation from the event after the given
	// sequence number.
	Events(ctx context.Context, operation uuid.UUID, after int) ([]Event, error)

	// Audit appends plain rows on what changed nothing: refusals, conflicts,
	// reveals (R57).
	Audit(ctx context.Context, entries ...Audit) error

	// Audits returns the plain rows on an operation, or those on none for
	// [uuid.Nil], oldest first.
	Audits(ctx context.Context, operation uuid.UUID) ([]Audit, error)

	// Cases returns cases in the order of their opening, then id.
	Cases(ctx context.Context, f CaseFilter) ([]CaseEntry, error)

	// Purge looks at one page of operations in the order of their ids and takes
	// the payload from those that are settled longer than their Retention and
	// hang on nothing open: no unsettled parent, child or compensation, no open
	// incident (R51). What stays is a tombstone: FlagPurged, without arguments,
	// result, fingerprint, field digests, call id and trace. A result or a trace
	// that comes in later isn't kept, and a proposal only while its case is open.
	//
	// Under the same conditions it deletes operations of intents that are closed
	// for longer than [ClosedGrace], but for those that stay: see CloseIntent.
	Purge(ctx context.Context, p Purge) (Purged, error)

	// CloseIntent closes an intent for good: its names go, its digest stays, its
	// operations become tombstones (R52). [ErrUnsettled] where one of them is
	// unsettled or has an open incident; closing again is no change. Once
	// [ClosedGrace] is over, Purge deletes the settled operations with their
	// journals and cases, but for what has to stand in the way of others for
	// ever: what Unique admitted (R14), and writes on a resource that aren't
	// failed, without which an older one that they overtook would start again
	// (R31). A resource that completed one of those that are deleted still
	// settles no other operation by attribute (R34).
	CloseIntent(ctx context.Context, tenant string, intent uuid.UUID) error

	// Declare keeps what people need to know of tools, the latest word on each;
	// Declared returns it for one tool, or a zero record.
	Declare(ctx context.Context, tools ...ToolRecord) error
	Declared(ctx context.Context, tool string) (ToolRecord, error)

	// Check reports settings that break what the protocol promises.
	Check(ctx context.Context) ([]Finding, error)

	// Close releases what the ledger opened itself.
	Close() error
}

// Info describes a ledger.
type Info struct {
	// Name is "memory", "sqlite" or "postgres": a telemetry attribute.
	Name string
	// Durable ledgers survive the process. One that doesn't refuses side
	// effects unless the host says otherwise (R26).
	Durable bool
}

// Claim asks for the right to execute one operation.
//
// Operation holds what the row will be: ID, Intent, Tenant, Slot, Number,
// Parent, Tool, Class, Contract, Source, Node, Occurrence, State (Running,
// AwaitingApproval, or Retryable where an idempotent write must wait), Reason,
// Owner, Run, Batch, Visibility, Escalate, Fingerprint, Fields, Arguments, CallID,
// Trace, Unique, ResourceKey, Flags. The ledger sets Version and Attempt to 1 (Attempt
// to 0 where the state isn't Running), the instants, ResourceSeq and the first
// event.
type Claim struct {
	Operation Operation
	// Lease is how long the attempt may run: LeaseUntil = DueAt = now + Lease,
	// Moment = now + Lease + Visibility, FirstSent = now. Where the state isn't
	// Running, nothing runs; DueAt = now + Wait.
	Lease, Wait time.Duration
	// KeyWindow sets KeyUntil = now + KeyWindow; zero leaves it unset.
	KeyWindow time.Duration
	// Actor is the actor of the first event.
	Actor string
	// Announce is written where the claim makes its row (R54).
	Announce []Announcement

	// Look reads and never writes.
	Look bool
	// After must stand unchanged, at these versions, for the claim to be made:
	// the number before (R10), the occurrence before (R9).
	After []Guard
	// Hold makes the claim only where no other operation of the tool in the
	// intent holds it, decided under one lock with the claim (R30).
	Hold *Hold
	// Likely hints that the row probably exists, so that reading it should cost
	// no second round trip. It never decides.
	Likely bool
	// Known hints that this process has already seen a claim of this tool with
	// this Contract succeed in this intent, so that the check of the identity
	// definition (R3) can be left out.
	Known bool
}

// Guard names an operation at a version.
type Guard struct {
	ID      uuid.UUID
	Version int
}

// Hold is what R30 asks of a whole-arguments tool. The claim is held by every
// other operation of the tool in the intent that is unsettled, or completed
// under another Run, but for those of the claim's own Batch and those in Told.
type Hold struct {
	Told []uuid.UUID
}

// Refusal says why a claim was not made though its slot had no such number.
type Refusal uint8

// The refusals.
const (
	NotRefused Refusal = iota
	// RefusedGuard: a row of Claim.After has changed; Slot is as it is now.
	RefusedGuard
	// RefusedHold: Others hold the claim.
	RefusedHold
	// RefusedContract: the intent has operations of this tool under another
	// identity definition (R3).
	RefusedContract
	// RefusedUnique: Others has the operation that is there already (R14).
	RefusedUnique
)

// Claimed is the answer to a [Claim].
type Claimed struct {
	// Won says that the row's owner is the claim's own attempt. A claim whose
	// answer was lost is simply made again and is recognised by that. For a row
	// in a state other than Running it says that this claim, or the same one
	// before, recorded it.
	Won bool
	// Operation is the row that was won.
	Operation Operation
	// Slot holds every number recorded on the node and occurrence, lowest
	// first. It is filled in where the claim wasn't won.
	Slot []Operation
	// Refused and Others say what stood in the way of a new row. For an
	// idempotent write Others holds the writes on its resource that are
	// unsettled or still Block, with lower numbers than the row that was won,
	// else than the last of Slot: it starts when they are settled or past their
	// moment (R31). A won write that must wait for them is recorded as Retryable.
	Refused Refusal
	Others  []Entry
	// Newest is the write on the resource with the highest number that isn't
	// Failed, where the claim has a ResourceKey and wasn't won.
	Newest *Entry
}

// Start begins another attempt of an operation (R21, R28).
type Start struct {
	Owner, Run, Batch uuid.UUID
	CallID            string
	Trace             []byte
	// Lease is as in [Claim]. Visibility is today's; the row keeps the longer.
	Lease, Visibility time.Duration
}

// Due says when the machine looks at a row next. The zero Due means never.
type Due struct {
	// In is the time from now; Set says that it counts.
	In  time.Duration
	Set bool
	// AtMoment is not before the operation's moment.
	AtMoment bool
}

// DueIn is a Due after d.
func DueIn(d time.Duration) Due { return Due{In: d, Set: true} }

// Change is one guarded move of one operation with its event. What is not said
// here stays as it is in the row.
type Change struct {
	// Of is the operation as last seen: ID, Version, State and Tail guard the
	// write and chain its event.
	Of Operation
	To State
	// Kind, Actor, Body and Decision go into the event; Reason into event and
	// row, always taken. A Decision that the operation's journal has already is
	// a [*StaleError] with Repeated, whatever the version (R41).
	Kind, Actor, Reason string
	Body                []byte
	Decision            uuid.UUID

	// Start begins an attempt: To is Running; Attempt+1; Owner and the rest as
	// given; LeaseUntil = DueAt = now + Lease; Moment = the later of the present
	// one (moved back as for Visibility below) and LeaseUntil + Visibility; FirstSent = now where it is unset; Told
	// and Granted are cleared. Where the row has a ResourceKey the attempt
	// starts only for the highest number and when every lower one is settled or
	// past its moment, decided under the resource's lock (R31): else
	// [*BlockedError].
	Start *Start
	// Returned ends the lease: the handler was seen to return. Moment = now +
	// Visibility where Doubts becomes at most 1 by this attempt alone (the row's
	// Doubts were 0), else the later of that and the present one.
	Returned bool
	// Visibility is today's; the row keeps the longer, and where it grows the
	// moment moves back by as much.
	Visibility time.Duration

	// Doubts is the new number of attempts in doubt, always taken (R23).
	Doubts int
	// Told and Granted are always taken, but where Start clears them.
	Told, Granted bool
	// Due is always taken, but where Start sets DueAt. A settled row is never due.
	Due Due
	// Checked counts a lookup: Checks+1, and Verdict.
	Checked bool
	Verdict string

	// Outcome: taken where To is Completed and the operation wasn't yet.
	Resource       string
	ResourceDigest Digest
	// ByAttribute makes the write only where no other operation of the tool is
	// completed with this resource digest, held by a unique index: else
	// [*ResourceTakenError] (R34).
	ByAttribute   bool
	Result        []byte
	ResultVersion int
	// Flags are added to the row's, whatever the move.
	Flags uint8
	// Announce is written with the change (R54). It doesn't go with Start.
	Announce []Announcement

	// Of what follows, Take, Proposal, Resolve and Incident don't go with Start:
	// an attempt begins, and the ledger leaves them out.

	// Trace is the span of the attempt that ended; it is kept for the links of
	// replays.
	Trace []byte

	// Take, where it is not nil, sets who of the operators has the operation's
	// case; "" releases it. It sets Taken in the row and Holder in the cases that
	// were open before the change, also in one that the change closes.
	Take *string
	// Proposal, where it is not nil, is kept with the same cases (R41). It may be
	// what was read there: of a row that was erased since, it is a [*StaleError].
	Proposal *[]byte
	// Resolve closes the open incidents of the operation.
	Resolve bool
	// Incident opens a case on an operation that stays settled. Cases of the
	// states Manual and AwaitingApproval are opened and closed with the move,
	// with Reason as theirs.
	Incident string
}

// Held names a running attempt.
type Held struct{ Operation, Owner uuid.UUID }

// Take asks for due work.
type Take struct {
	// Lease is how long the taker has.
	Lease time.Duration
	// Limit bounds the answer, Each the rows of one tool and tenant (R36); 0 is
	// no bound.
	Limit, Each int
	// After continues behind a tool and tenant, and from the first again at the
	// end, so that a long list starves nobody. Rows come pair by pair, within
	// one in the order of DueAt and id.
	After Pair
	// Except leaves out tools that are at their limit.
	Except []string
	// Operation takes this one, if it is due.
	Operation uuid.UUID
}

// Pair is a tool and a tenant, in this order.
type Pair struct {
	Tool   string
	Tenant uuid.UUID
}

// Filter selects operations. Empty fields select everything.
type Filter struct {
	// Tenant is the tenant's name.
	Tenant string
	Intent uuid.UUID
	Parent uuid.UUID
	States []State
	Tool   string
	// Node selects operations with the same identity, over all intents of the tenant.
	Node Digest
	// After continues behind an id; Limit bounds the answer (0: 1,000).
	After uuid.UUID
	Limit int
}

// CaseFilter selects cases. Empty fields select everything but closed cases.
type CaseFilter struct {
	// Tenant is the tenant's name.
	Tenant    string
	Operation uuid.UUID
	States    []State
	Tool      string
	Reason    string
	// Holder selects the cases that somebody has taken, Free those that nobody has.
	Holder string
	Free   bool
	// OlderThan selects cases that have been open for at least so long.
	OlderThan time.Duration
	// Closed selects closed cases as well.
	Closed bool
	// After continues behind a case; Limit bounds the answer (0: 100).
	After CaseCursor
	Limit int
}

// CaseCursor is a place in the order of cases.
type CaseCursor struct {
	OpenedAt time.Time
	ID       uuid.UUID
}

// Purge asks for one page of a purge.
type Purge struct {
	// After continues behind an operation; Limit bounds the page (0: 1,000).
	After uuid.UUID
	Limit int
	// Principal, where it isn't zero, erases the payloads of that principal's
	// intents whatever their age and state, instead of those past their
	// retention (R52).
	Principal [32]byte
}

// Purged says what a page of a purge did.
type Purged struct {
	// Seen is how many operations the page had, Removed how many of them lost
	// their payload or were deleted.
	Seen, Removed int
	// Next continues the purge; zero at the end.
	Next uuid.UUID
}

// Watcher is what a ledger can offer beside [Ledger]: word of an operation that
// was settled by a person, sooner than by reading the row again. It promises
// nothing; who waits reads the row all the same.
type Watcher interface {
	// Watch calls woken, at most until stop is called, when the operation may
	// have been settled.
	Watch(operation uuid.UUID, woken func()) (stop func())
}

// Audit is a row on something that changed nothing, or on what was done to no one
// operation, which is zero then (R57).
type Audit struct {
	Operation   uuid.UUID
	Kind, Actor string
	Detail      string
	// At is set by the ledger.
	At time.Time
}

// Finding is a setting that breaks what the protocol promises.
type Finding struct {
	Setting, Value, Problem, Advice string
}
