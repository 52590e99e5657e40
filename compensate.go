package settle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/store"
)

// Compensation corrects an effect that has happened: closes the ticket, books
// the amount back. It is an operation of its own, keyed from the original's key,
// with its own contract, approval, attempts and audit (R49). Nothing is undone
// as if it had never been.
type Compensation[In, Out any] struct {
	// Contract is the correction's own. Identity doesn't matter: there is one
	// correction of an original.
	Contract Contract
	// Check reads what stands now. It is called before each attempt; nil takes
	// it that the original's effect stands untouched (R50).
	Check func(ctx context.Context, o Original[In, Out]) (Standing, error)
	// Do corrects, with the version that Check saw where the far side has conditions.
	Do func(ctx context.Context, op Op, o Original[In, Out]) error
	// Lookup asks the far side whether the correction happened.
	Lookup func(ctx context.Context, q Query[json.RawMessage], o Original[In, Out]) (Evidence, error)
}

// Original is the operation that is corrected.
type Original[In, Out any] struct {
	Reference string
	In        In
	// Out is its result, as today's tool returns it. It is the zero value where
	// the ledger has none that can be read (R47): Resource says what was made.
	Out      Out
	Resource string
	// Version is what Check saw.
	Version string
}

// Standing is what [Compensation.Check] found.
type Standing struct {
	kind    standing
	version string
}

type standing uint8

const (
	standingChanged standing = iota
	standingStands
	standingGone
)

// Stands says that the original's effect stands as it was made, at this version
// of the far side's, or "".
func Stands(version string) Standing { return Standing{standingStands, version} }

// Gone says that the effect isn't there any more: there is nothing to correct.
func Gone() Standing { return Standing{kind: standingGone} }

// ChangedSince says that somebody has changed it since: a person decides, since
// a correction would undo their change too (R50). It is the zero Standing.
func ChangedSince() Standing { return Standing{} }

// ErrNoCompensation says that the operation's tool has none.
var ErrNoCompensation = errors.New("settle: the tool of this operation has no Compensation")

// errChangedSince makes a person's case of a compensation.
var errChangedSince = errors.New("settle: the effect was changed since by somebody else")

// originalArgs are a compensation's arguments: what it has to know of the original.
type originalArgs struct {
	Operation string          `json:"operation"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result,omitempty"`
	// ResultVersion is what the result was stored under (R47).
	ResultVersion int    `json:"result_version,omitempty"`
	Resource      string `json:"resource,omitempty"`
}

// undoName is the name under which a tool's compensations are keyed.
func undoName(tool string) string { return tool + " (compensation)" }

// resultReader reads a stored result as today's tool returns it (R47).
type resultReader[Out any] func(version int, stored json.RawMessage) (Out, error)

// bind makes the compensation's own binding.
func (c *Compensation[In, Out]) bind(tool string, redelivery time.Duration, result resultReader[Out]) (*binding, error) {
	contract := c.Contract
	contract.Identity, contract.WholeArguments = nil, contract.Class != Idempotent
	b := &binding{name: undoName(tool), identity: undoName(tool), hasDo: true, hasLookup: c.Lookup != nil, contract: contract.withDefaults(redelivery)}
	b.resource = func(any, []byte) string { return "" }
	if c.Do == nil {
		return nil, errors.New("its Compensation has no Do")
	}
	if err := b.contract.check(b.hasLookup, contract.Class == Idempotent, redelivery); err != nil {
		return nil, fmt.Errorf("its Compensation: %w", err)
	}
	b.digest = b.definitionUnder(store.FromOriginal)
	b.bindFuncs(c.erase(result))
	return b, nil
}

func (c *Compensation[In, Out]) erase(result resultReader[Out]) erased {
	e := erased{
		decode:      func(args []byte) (any, error) { return readOriginal[In](args, result) },
		parseResult: func([]byte) error { return nil },
		do: func(ctx context.Context, op Op, in any) (any, error) {
			o := in.(Original[In, Out])
			if c.Check != nil {
				found, err := c.Check(ctx, o)
				switch {
				case err != nil:
					return nil, NotSent(err)
				case found.kind == standingGone:
					return json.RawMessage("null"), nil
				case found.kind == standingChanged:
					return nil, &knownError{err: errChangedSince, effect: effectCase}
				}
				o.Version = found.version
			}
			return json.RawMessage("null"), c.Do(ctx, op, o)
		},
	}
	if c.Lookup != nil {
		e.lookup = func(ctx context.Context, a *asked, in any) (Evidence, error) {
			return c.Lookup(ctx, Query[json.RawMessage]{a}, in.(Original[In, Out]))
		}
	}
	return e
}

func readOriginal[In, Out any](args []byte, result resultReader[Out]) (Original[In, Out], error) {
	var raw originalArgs
	var o Original[In, Out]
	if err := schema.Decode(args, &raw); err != nil {
		return o, err
	}
	o.Reference, o.Resource = raw.Operation, raw.Resource
	if err := schema.Read(raw.Arguments, &o.In); err != nil {
		return o, err
	}
	if len(raw.Result) == 0 {
		return o, nil
	}
	var err error
	o.Out, err = result(raw.ResultVersion, raw.Result)
	return o, err
}

// resultOf reads a stored result for a compensation. One of another version that
// can't be upgraded is none.
func (t Tool[In, Out]) resultOf(version int, stored json.RawMessage) (out Out, err error) {
	switch {
	case version == t.ResultVersion:
		err = contained(func() error { return schema.Read(stored, &out) })
		return out, err
	case t.Upgrade == nil:
		return out, nil
	}
	err = contained(func() (err error) {
		out, err = t.Upgrade(version, stored)
		return err
	})
	if err != nil {
		var none Out
		return none, nil
	}
	return out, nil
}

// Compensate corrects a completed operation (R49). Calling it again finds the
// same correction. An unsettled original refuses it, and is looked into; a
// failed one leaves nothing to do, but for a composite's steps that were done,
// which are named and corrected one by one; an abandoned one takes an operator in
// the context ([WithOperator]) who may ([WithOperatorPolicy]); of one whose
// arguments are purged or erased nothing can be corrected any more
// ([StatusExpired]). Of a composite the completed steps are corrected, the last first.
func (x *Executor) Compensate(ctx context.Context, operation string) (Outcome, error) {
	if stack, _ := ctx.Value(operationKey).(*operationStack); stack.inTransaction() {
		return Outcome{}, ErrInTransaction
	}
	p, ok := PrincipalFrom(ctx)
	if !ok {
		return Outcome{}, ErrNoPrincipal
	}
	id, err := uuid.Parse(operation)
	if err != nil {
		return Outcome{}, store.ErrNotFound
	}
	if err := x.enter(); err != nil {
		return Outcome{}, err
	}
	defer x.work.Done()
	e, err := x.ledger.Get(ctx, p.Tenant, id)
	if err != nil {
		return Outcome{}, err
	}
	return x.compensate(ctx, p, e)
}

func (x *Executor) compensate(ctx context.Context, p Principal, e store.Entry) (Outcome, error) {
	b := x.byKey[e.Tool]
	if b == nil || b.undo == nil && e.Class != store.Composite {
		return Outcome{}, ErrNoCompensation
	}
	if out, no := x.refusesUndo(ctx, b, e); no {
		return out, nil
	}
	if e.Class == store.Composite {
		return x.compensateSteps(ctx, p, e)
	}
	args, err := json.Marshal(originalArgs{Operation: e.ID.String(), Arguments: e.Arguments, Result: e.Result,
		ResultVersion: e.ResultVersion, Resource: e.Resource})
	if err != nil {
		return Outcome{}, fmt.Errorf("settle: compensate: %w", err)
	}
	r, err := newRequest(b.undo, Call{Tool: b.undo.name, Args: args}, p, Task{ID: e.Of.Task, Goal: e.Of.Goal}, x.undoLimits())
	if err != nil {
		return x.invalid(b.undo, err), nil
	}
	r.original, r.run = &e, b.undo.do
	out := (&flow{x: x, request: r}).go1(ctx)
	x.signals.compensated(b, out)
	return out, nil
}

// undoLimits leaves room for what wraps the original's arguments and result.
func (x *Executor) undoLimits() (l canonical.Limits) {
	l = x.settings.limits
	l.Bytes = max(l.Bytes, 1<<20)*2 + 2*x.settings.resultLimit
	l.Depth = max(l.Depth, 64) + 2
	return l
}

// refusesUndo says why there is nothing to correct, or not yet.
func (x *Executor) refusesUndo(ctx context.Context, b *binding, e store.Entry) (Outcome, bool) {
	out := Outcome{Tool: undoName(b.name), Related: []Related{{Operation: e.ID.String(), Tool: b.name, State: e.State.String()}}}
	switch {
	case (e.State == store.Completed || e.State == store.Abandoned) && e.Class != store.Composite && e.Flags&store.FlagPurged != 0:
		// What would be undone is forgotten: a correction of nothing in particular is none.
		out.Status, out.Reason = StatusExpired, reasonOriginalExpired
		out.CorrectedBy = x.corrected(ctx, b, e.Of, e.Operation)
	case e.State == store.Completed:
		return out, false
	case e.State == store.Abandoned:
		if out.Reason = x.refusesOrder(ctx, b, e); out.Reason == "" {
			return out, false
		}
		out.Status = StatusDenied
	case e.State.Settled():
		out.Status, out.Reason = StatusNotDone, reasonNothingToUndo
		out.Related = append(out.Related, x.correctable(ctx, e)...)
	default:
		if taken, ok := x.takeOne(ctx, e.Operation); ok {
			if _, _, err := x.recoverOne(ctx, taken); err != nil {
				x.log.Warn("settle: an operation could not be recovered", "operation", e.ID.String(), "error", err)
			}
		}
		out.Status, out.Reason = StatusHeld, reasonUnsettled
	}
	return x.signals.counted(out), true
}

// refusesOrder says why the context's operator can't have an abandoned operation
// corrected, or "" where they can.
func (x *Executor) refusesOrder(ctx context.Context, b *binding, e store.Entry) string {
	o, err := operatorFrom(ctx)
	if err != nil || !o.sees(e.Of.TenantName) {
		return "operator_required"
	}
	if err := x.allowed(ctx, OperatorAction{Operator: o, Action: "compensate", Tenant: e.Of.TenantName, Tool: b.name, Operation: e.ID.String()}); err != nil {
		return "operator_not_allowed"
	}
	return ""
}

// originalNode is the node of a compensation: the original's key (R49).
func originalNode(byTenant *deriver, intent store.Intent, original store.Operation) node {
	key := operationKeyOf(intent, original)
	byTenant.begin("settle node")
	byTenant.text(string(store.FromOriginal))
	byTenant.bytes(key[:])
	return node{store.FromOriginal, byTenant.digest()}
}

// corrected finds the completed compensation of an operation, if its tool has any
// (R48): of a composite that of a step, since it has none of its own (R49).
func (x *Executor) corrected(ctx context.Context, b *binding, of store.Intent, row store.Operation) string {
	if row.Class == store.Composite {
		return x.correctedStep(ctx, of, row)
	}
	if b == nil || b.undo == nil {
		return ""
	}
	n := originalNode(under(of.TenantKey), of, row)
	claimed, err := x.ledger.Claim(ctx, store.Claim{Look: true, Operation: store.Operation{Intent: row.Intent, Tenant: row.Tenant,
		Slot: n.slot(under(of.Key), b.undo.identity, 1), Number: 1, Tool: b.undo.identity}})
	if err != nil {
		return ""
	}
	for _, o := range claimed[0].Slot {
		if o.State == store.Completed {
			return o.ID.String()
		}
	}
	return ""
}
