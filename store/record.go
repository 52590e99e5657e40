package store

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Digest is a fixed-length digest that a ledger indexes instead of names from
// outside (R12): 16 bytes, the zero value meaning "none".
type Digest [16]byte

// IsZero reports whether the digest is absent.
func (d Digest) IsZero() bool { return d == Digest{} }

// Intent is one business intent of one principal (R7). Its row is written once,
// before the first attempt, and never deleted.
type Intent struct {
	ID uuid.UUID
	// Digest is SHA-256 over the tuple that names the intent; unique.
	Digest [32]byte
	// Tenant is the random id that the ledger gave the tenant when it first met
	// it. Rows refer to a tenant by it, never by name.
	Tenant uuid.UUID
	// TenantDigest is SHA-256 over the tenant's name; unique among tenants.
	TenantDigest [32]byte
	// Principal is SHA-256 over the names of tenant and subject: what a
	// principal's rows are erased by (R52).
	Principal [32]byte
	// The names, exactly as the host gave them.
	TenantName, Subject, Task, Goal string
	// Key is the intent's 256-bit random key; operation keys are derived under it (R11).
	Key []byte
	// TenantKey is the tenant's 256-bit random key; fingerprints and nodes are digested under it (R15).
	TenantKey []byte
	// Version is that of the canonical form and key derivation, pinned for ever (R7).
	Version   int
	CreatedAt time.Time
	// ClosedAt is set once the intent is closed; a closed intent answers every call "expired" (R52).
	ClosedAt time.Time
}

// Source says where an operation's node comes from (R8).
type Source string

// The sources of a node. A step's node is its parent's key and its own name (R13).
const (
	FromHost     Source = "host"
	FromIdentity Source = "identity"
	FromWhole    Source = "whole"
	FromStep     Source = "step"
	// FromOriginal: a compensation, keyed from the operation that it undoes (R49).
	FromOriginal Source = "original"
)

// Operation is one side effect: the ledger's central record. The executor
// fills in what a claim needs; the ledger fills in versions, instants and the
// chain.
type Operation struct {
	// ID is the operation's reference: random, the only name of it that leaves
	// the ledger (R55).
	ID     uuid.UUID
	Intent uuid.UUID
	Tenant uuid.UUID
	// Slot is the digest of tool, node and occurrence within the intent;
	// (Intent, Slot, Number) is the unique constraint that decides who executes (R19).
	Slot   Digest
	Number int
	// Parent is the composite operation that this one is a step of, or zero.
	Parent uuid.UUID

	Tool  string
	Class Class
	// Contract is the digest of the tool's identity definition (R3).
	Contract   Digest
	Source     Source
	Node       Digest
	Occurrence int

	State State
	// Reason is a code that explains the state: "rejected", "replaced", "lease_expired", …
	Reason string
	// Version counts the events of the operation and guards every write (R20).
	Version int
	// Tail and TailAt are hash and instant of the last event (R57).
	Tail   [32]byte
	TailAt time.Time

	// Attempt counts the attempts that were started. Doubts counts those of
	// them, but for a running one, of which nobody knows whether they had an
	// effect (R23).
	Attempt, Doubts int
	// Owner is the attempt that may write the outcome; Run the process
	// incarnation that started it; Batch the calls of one model turn (R30).
	Owner, Run, Batch uuid.UUID
	// Told says that the caller was told "not_done": only another call or a
	// person goes on (R37).
	Told bool
	// Granted says that a person allowed one further effect, or the effect that
	// waits for approval; the write that starts an attempt consumes it (R40, R43).
	Granted bool
	// Taken is who of the operators has taken the operation's case, if anybody.
	Taken string

	// LeaseUntil ends the running attempt's lease. DueAt is when the machine
	// looks at the row next; zero means never. Moment is the instant after which
	// none of its attempts can still take effect (R21).
	LeaseUntil, DueAt, Moment time.Time
	// Visibility is the contract's VisibilityDelay as recorded (R21).
	Visibility time.Duration
	// KeyUntil ends the window in which the far side deduplicates; zero where it
	// never ends or the class has none (R29).
	KeyUntil time.Time
	// Escalate is the contract's EscalateAfter as recorded; zero: at the moment (R35).
	Escalate time.Duration

	// Checks and Verdict tell of the lookups so far (R36).
	Checks  int
	Verdict string

	CreatedAt, FirstSent, UnknownSince, SettledAt time.Time
	// Read is the ledger's clock when this row was read. It isn't stored.
	Read time.Time

	// Fingerprint digests the business arguments, Fields each of them (R15).
	Fingerprint [32]byte
	Fields      []byte
	Arguments   []byte
	// CallID and Trace (trace id and span id) correlate; they identify nothing.
	CallID string
	Trace  []byte

	Resource string
	// ResourceDigest indexes Resource for R34; ByAttribute says that attribute
	// evidence settled the operation, and is unique with tool and digest.
	ResourceDigest Digest
	ByAttribute    bool
	Result         []byte
	ResultVersion  int
	// Flags tell what the result is not (FlagOversize, FlagUnencodable), and what else
	// is so of the operation for good.
	Flags uint8

	// Retention is the contract's, as recorded: how long after settlement the
	// payload is kept (R51). Zero keeps it.
	Retention time.Duration

	// Unique holds R14's digest of tool and identity in the tenant, or zero.
	Unique Digest
	// ResourceKey and ResourceSeq order the idempotent writes on a resource (R31).
	ResourceKey Digest
	ResourceSeq int64
}

// ClosedGrace is how long a closed intent keeps its tombstones. A process that
// knew the intent from before may claim in it until it reads it again, and has
// to meet them: executors read an intent again well within this time (R52).
const ClosedGrace = 24 * time.Hour

// Flags of a result (R47).
const (
	// FlagOversize: the result was larger than the limit; the reference is kept instead.
	FlagOversize uint8 = 1 << iota
	// FlagUnencodable: the effect happened, its result could not be encoded.
	FlagUnencodable
	// FlagAttached: an attempt's success came in while a person had the case or
	// another attempt ran, or reopened it; it lies with the events, and "did not
	// happen" is refused (R25, R40).
	FlagAttached
	// FlagPurged: arguments, result, fingerprint and correlation are gone; the row
	// is a tombstone (R51). The names of its intent go when that is closed (R52).
	FlagPurged
	// FlagAnnounced: what becomes of the operation is announced through the outbox
	// (R54), by whichever process moves it.
	FlagAnnounced
	// FlagTwoPersons: a decision on the operation takes two persons, whatever the
	// tool's record says by now (R3, R41).
	FlagTwoPersons
)

// Expired says that the running attempt's lease had ended when the row was read.
func (o Operation) Expired() bool {
	return o.State == Running && !o.Read.Before(o.LeaseUntil)
}

// Due says that the machine should look at the row.
func (o Operation) Due() bool { return !o.DueAt.IsZero() && !o.Read.Before(o.DueAt) }

// MomentUnder is the operation's moment where today's contract has the given
// VisibilityDelay: of the recorded and the current one, the longer holds (R21).
func (o Operation) MomentUnder(visibility time.Duration) time.Time {
	if visibility <= o.Visibility || o.Moment.IsZero() {
		return o.Moment
	}
	return after(o.Moment, visibility-o.Visibility)
}

// Entry is an operation with the intent that it belongs to. Recovery and the
// queue need both: no key is stored, so keys are derived anew (R11).
type Entry struct {
	Operation
	Of Intent
}

// Case is what a person has to settle (R39).
type Case struct {
	ID        uuid.UUID
	Operation uuid.UUID
	Tenant    uuid.UUID
	Tool      string
	Reason    string
	// Incident marks a case on an operation that stays settled.
	Incident           bool
	OpenedAt, ClosedAt time.Time
	// Holder has taken the case; Proposal waits for a second person (R41).
	Holder   string
	HeldAt   time.Time
	Proposal []byte
}

// CaseEntry is a case with its operation.
type CaseEntry struct {
	Case  Case
	Entry Entry
}

// Proposed says that the case's proposal still waits: it names the version that it
// covers, and whatever has happened since voids it (R41).
func (e CaseEntry) Proposed() bool {
	var p struct {
		Covers int `json:"covers"`
	}
	return len(e.Case.Proposal) > 0 && json.Unmarshal(e.Case.Proposal, &p) == nil && p.Covers == e.Entry.Version
}

// ToolRecord is what the ledger knows of a tool for people who work without its
// code: the command line.
type ToolRecord struct {
	Tool string
	// Deciders is how many persons a decision takes (R41).
	Deciders int
	// Guidance is the author's advice; ResultSchema the JSON Schema of a result
	// that a person gives, or nil (R40).
	Guidance     string
	ResultSchema []byte
}
