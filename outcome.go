package settle

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/store"
)

// Status is what a caller is told of a call: one stable code (R59).
type Status string

// The statuses.
const (
	// StatusCompleted: it happened.
	StatusCompleted Status = "completed"
	// StatusFailed: it definitely had no effect, and was refused for good.
	StatusFailed Status = "failed"
	// StatusNotDone: nothing happened, and nothing will unless it is called
	// again, not before [Outcome.NotBefore].
	StatusNotDone Status = "not_done"
	// StatusInvalidArguments: the arguments don't fit the schema; nothing was done.
	StatusInvalidArguments Status = "invalid_arguments"
	// StatusDenied: the principal, or a person, doesn't allow it; nothing was done.
	StatusDenied Status = "denied"
	// StatusConflict: the same call was made before with another meaning; this one was not done.
	StatusConflict Status = "conflict"
	// StatusHeld: something else has to be settled, or told, first; this call was not done.
	StatusHeld Status = "held"
	// StatusInProgress: an attempt is at work, or will be, without the caller.
	StatusInProgress Status = "in_progress"
	// StatusUnknown: nobody knows whether it happened; evidence is sought.
	StatusUnknown Status = "unknown"
	// StatusAwaitingApproval: nothing was sent; a person has to allow it.
	StatusAwaitingApproval Status = "awaiting_approval"
	// StatusManual: a person settles it.
	StatusManual Status = "manual"
	// StatusSuperseded: a newer write on the same resource stands.
	StatusSuperseded Status = "superseded"
	// StatusAbandoned: a person closed it without knowing; it is never executed again.
	StatusAbandoned Status = "abandoned"
	// StatusExpired: the record of this call is closed or purged; it is never executed again.
	StatusExpired Status = "expired"
	// StatusNoSuchTool: there is no such tool; nothing was done.
	StatusNoSuchTool Status = "no_such_tool"
	// StatusUnavailable: the ledger can't be written, so nothing was sent (R26).
	StatusUnavailable Status = "unavailable"
)

// Outcome is the answer to a call.
type Outcome struct {
	Status Status
	Tool   string
	// Operation is the operation's random reference, or "" where none was recorded.
	Operation string
	// Result is the business result as JSON, where the call completed and the
	// caller may see it.
	Result json.RawMessage
	// Resource is the effect's id at the far side.
	Resource string
	// Replayed says that nothing was executed for this call: the outcome was recorded before (R48).
	Replayed bool
	// Recorded says that the ledger holds the outcome. Where it is false beside
	// a completed status, the effect happened and could not be written down yet,
	// or the tool is a Read one, which records nothing.
	Recorded bool
	// Reason is a code beside the status: "rejected", "exhausted", "contract_changed", …
	Reason string
	// Detail says more in words. It may quote the far side's refusal.
	Detail string
	// Fields are the arguments in which a conflict differs, or that are invalid.
	Fields []string
	// Related are the operations that a held or conflicting call runs into.
	Related []Related
	// NotBefore is the earliest time for another call, where there is one (R28).
	NotBefore time.Time
	// PossibleRepeat says that this replay answers another call id than the
	// first execution: if the repeat was meant, it was not done (R9).
	PossibleRepeat bool
	// CorrectedBy is the reference of the compensation that corrected a completed
	// operation (R48).
	CorrectedBy string
	// Duplicates counts the retries that AcceptDuplicates allowed (R5).
	Duplicates int

	// wait is how far away NotBefore was, by the clock that it comes from.
	wait time.Duration
	// spent says that attempts are used up, though there is no record of it: those
	// of a Read, or of one of a composite's steps.
	spent bool
	// state is the operation's, where one was read.
	state store.State
	// err is what the handler returned, for Around.
	err error
	// value is the handler's own result, for Around and Step.
	value any
	// composite: the text must not say that there was no effect, since steps may be done.
	composite bool
	// repeatable: the text may mention the repeat parameter.
	repeatable bool
}

// Related is another operation that matters to an outcome.
type Related struct {
	Operation string
	Tool      string
	State     string
	// Resource is shown where the caller may see it.
	Resource string
}

// waits says that the operation must not be called before it is due.
func (o *Outcome) waits(row store.Operation) {
	o.NotBefore, o.wait = row.DueAt, max(row.DueAt.Sub(row.Read), 0)
}

// ErrNoResult says that an outcome has no result to decode.
var ErrNoResult = errors.New("settle: the outcome has no result")

// Decode reads an outcome's result. The error is [ErrNoResult] where there is
// none, which is so for every status but completed, and where the result was
// too large to keep, could not be encoded, or is of an older version.
//
// It reads as encoding/json does, but for a number that goes into an any and that
// a float64 doesn't hold, such as an id of 2^53 or more: that is an int64 where it
// fits into one, or a [json.Number]. Declare the field's type where you can.
func Decode[T any](o Outcome) (T, error) {
	var out T
	if len(o.Result) == 0 {
		return out, fmt.Errorf("%w: its status is %s", ErrNoResult, o.Status)
	}
	if raw, ok := any(&out).(*json.RawMessage); ok {
		*raw = o.Result
		return out, nil
	}
	if err := schema.Exact(o.Result, &out); err != nil {
		return out, fmt.Errorf("settle: decode the result of operation %s: %w", o.Operation, err)
	}
	return out, nil
}

// Settled says that the outcome is known for good or closed by a person.
func (o Outcome) Settled() bool {
	switch o.Status {
	case StatusCompleted, StatusFailed, StatusDenied, StatusSuperseded, StatusAbandoned, StatusExpired:
		return o.Recorded
	}
	return false
}

// statusOf is the status of a recorded operation.
func statusOf(o store.Operation) Status {
	switch o.State {
	case store.AwaitingApproval:
		return StatusAwaitingApproval
	case store.Running:
		return StatusInProgress
	case store.Retryable:
		if o.Told {
			return StatusNotDone
		}
		return StatusInProgress
	case store.Unknown:
		return StatusUnknown
	case store.Manual:
		return StatusManual
	case store.Completed:
		return StatusCompleted
	case store.Superseded:
		return StatusSuperseded
	case store.Abandoned:
		return StatusAbandoned
	}
	switch o.Reason {
	case reasonDenied, reasonApprovalExpired:
		return StatusDenied
	case reasonExhausted, reasonStale:
		return StatusNotDone
	}
	return StatusFailed
}

// Reasons are codes that explain a state. They are stored with it and are part
// of what operators filter by.
const (
	reasonRejected        = "rejected"
	reasonRolledBack      = "rolled_back"
	reasonUnanswered      = "commit_unanswered"
	reasonNotSent         = "not_sent"
	reasonThrottled       = "throttled"
	reasonInterrupted     = "interrupted"
	reasonExhausted       = "exhausted"
	reasonStale           = "stale"
	reasonReplaced        = "replaced"
	reasonDenied          = "denied"
	reasonApprovalExpired = "approval_expired"
	reasonTimeout         = "timeout"
	reasonUnclear         = "unclear_answer"
	reasonPanic           = "panic"
	reasonLeaseExpired    = "lease_expired"
	reasonKeyUnused       = "key_unused"
	reasonEscalated       = "escalated"
	reasonNoEvidence      = "no_evidence_possible"
	reasonEvidenceDiffers = "evidence_differs"
	reasonSeveralMatches  = "several_matches"
	reasonResourceTaken   = "resource_settles_another"
	reasonTooOld          = "resource_too_old"
	reasonUndecodable     = "arguments_undecodable"
	reasonOriginalExpired = "original_expired"
	reasonLateSuccess     = "late_success"
	reasonNothingToUndo   = "nothing_to_correct"
	reasonOvertaken       = "overtaken"
	reasonWaiting         = "waits_for_older_write"
	reasonContractChanged = "contract_changed"
	reasonUnsettled       = "unsettled_operation"
	reasonUntold          = "done_before_restart"
	reasonOccurrence      = "occurrence"
	reasonSchema          = "schema_unusable"
	reasonRecursion       = "recursion"
	reasonUnique          = "unique"
	reasonStepOpen        = "step_open"
	reasonApproval        = "approval_required"
	reasonCallerGone      = "caller_gone"
	reasonNewerVersion    = "newer_version"
	reasonHandedBack      = "handed_back"
	reasonChangedSince    = "changed_since"
	reasonApproved        = "approved"
	reasonGranted         = "run_once_more"
	reasonDecided         = "decided"
)
