package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Operator is a person who settles cases, as the host has authenticated them (R41).
type Operator struct {
	Name string
	// Tenants are those whose cases the operator may see. Nil means all.
	Tenants []string
}

// WithOperator returns a context in which o works on the queue.
func WithOperator(ctx context.Context, o Operator) context.Context {
	return context.WithValue(ctx, operatorKey, o)
}

// OperatorAction is what an operator is about to do, for [WithOperatorPolicy].
type OperatorAction struct {
	Operator Operator
	// Action is "list", "show", "reveal", "take", "take_over", "release", "note",
	// "look", "confirm", a decision's kind, "compensate" for the correction of an
	// abandoned operation, "erase", "close", "acts", or for events "redeliver" and
	// "discard".
	Action    string
	Tenant    string
	Tool      string
	Operation string
	// Decision is what is decided: a decision's kind, and for "confirm" that of the
	// proposal, or "" where none waits.
	Decision DecisionKind
}

// WithOperatorPolicy asks the host before an operator sees or does anything. Its
// error refuses. Without a policy every authenticated operator may do all, for
// their tenants.
func WithOperatorPolicy(allow func(context.Context, OperatorAction) error) Option {
	return optionFunc(func(s *settings) { s.policy = allow })
}

// Errors of the queue. All of them leave the operation as it was (R41).
var (
	// ErrNoOperator: the context has no operator. Call WithOperator with whom
	// your authentication names.
	ErrNoOperator = errors.New("settle: the context has no operator: call settle.WithOperator with whom your authentication names (R41)")
	// ErrNotAllowed: the host's policy refuses this operator.
	ErrNotAllowed = errors.New("settle: this operator may not do that")
	// ErrBlankReason: a decision needs a reason (R40).
	ErrBlankReason = errors.New("settle: a decision needs a reason: say in words how it was found out (R40)")
	// ErrTooLong: a reason, a note or a resource is longer than what is kept.
	ErrTooLong = fmt.Errorf("settle: a reason or a note has at most %d bytes, and a resource %d", maxNote, maxResource)
	// ErrNoCase: the operation has no open case that this decision settles.
	ErrNoCase = errors.New("settle: the operation has no open case that this decides")
	// ErrAttached: an attempt's success came in meanwhile, so "did not happen" is
	// refused, and so is handing the operation back to look for evidence (R40).
	ErrAttached = errors.New("settle: an attempt has reported success: look at the case again; it can't be decided as not happened, nor handed back (R40)")
	// ErrErased: the arguments are purged or erased, so there is nothing to run.
	ErrErased = errors.New("settle: the arguments are erased, so it can't be run any more: find out whether it happened, and decide that (R52)")
	// ErrNoProposal: there is nothing to confirm, or new evidence has voided it (R41).
	ErrNoProposal = errors.New("settle: there is no proposal to confirm: none was made, or the case has moved on since (R41)")
	// ErrApprovalExpired: the approval came after its ApprovalTTL, which denies (R43).
	ErrApprovalExpired = errors.New("settle: the approval has expired and counts as denied: the same call stays denied in its task (R43)")
	// ErrSamePerson: who proposed can't confirm (R41).
	ErrSamePerson = errors.New("settle: this decision takes two persons, and the one who proposed it can't confirm it (R41)")
	// ErrTaken: somebody else has the case.
	ErrTaken = errors.New("settle: somebody else has taken the case: they release it first, or decide it, or another takes it over from them")
	// ErrOtherDecision: the id was used for another decision on the case.
	ErrOtherDecision = errors.New("settle: this id stands for another decision on the case, which was not taken again: look at the case, and give a new decision an id of its own (R41)")
	// ErrVoid: the id is that of a proposal that nobody can confirm any more (R41).
	ErrVoid = errors.New("settle: what was proposed under this id is void, since the case has moved on: look at it, and give a new decision an id of its own (R41)")
	// ErrNoSuchDecision: the kind of the decision isn't one that exists.
	ErrNoSuchDecision = errors.New("settle: there is no such decision")
)

// StaleVersionError says that a decision names a version that isn't the case's
// any more (R41).
type StaleVersionError struct{ Seen, Now int }

func (e *StaleVersionError) Error() string {
	return fmt.Sprintf("settle: the decision names version %d and the case is at version %d: look at it again before deciding (R41)", e.Seen, e.Now)
}

// MomentError says that "did not happen" can't be decided yet: an attempt may
// still take effect until then (R21, R40).
type MomentError struct{ Until time.Time }

func (e *MomentError) Error() string {
	return fmt.Sprintf("settle: an attempt may still take effect until %s: \"did not happen\" can't be decided before (R40)", e.Until.UTC().Format(time.RFC3339))
}

// ResultError says that a result doesn't fit the tool's schema (R40).
type ResultError struct{ Err error }

func (e *ResultError) Error() string {
	return "settle: the result doesn't fit the tool's schema: " + e.Err.Error()
}
func (e *ResultError) Unwrap() error { return e.Err }

// operatorFrom reads and checks the context's operator.
func operatorFrom(ctx context.Context) (Operator, error) {
	o, ok := ctx.Value(operatorKey).(Operator)
	if !ok {
		return o, ErrNoOperator
	}
	if strings.TrimSpace(o.Name) != o.Name {
		// Two names that nobody can tell apart would be two persons.
		return o, &NameError{"operator", "begins or ends with a space (R41)"}
	}
	return o, checkName("operator", o.Name)
}

// sees says whether the operator may see a tenant's cases at all.
func (o Operator) sees(tenant string) bool {
	return o.Tenants == nil || slices.Contains(o.Tenants, tenant)
}
