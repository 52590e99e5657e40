package settle

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// A case in the hands of an operator.

// opened is an operation with its open case, for one operator.
type opened struct {
	operator Operator
	entry    store.Entry
	file     store.Case
	tool     *binding
	record   store.ToolRecord
}

// open finds an operation, its newest case, and whether the operator may act on
// it. Whoever may not, learns only that there is nothing (R46).
func (q *Queue) open(ctx context.Context, reference, action string) (*opened, error) {
	o, err := operatorFrom(ctx)
	if err != nil {
		return nil, err
	}
	id, err := uuid.Parse(reference)
	if err != nil || id == uuid.Nil { // which the ledger takes for any operation
		return nil, store.ErrNotFound
	}
	cases, err := q.x.ledger.Cases(ctx, store.CaseFilter{Operation: id, Closed: true, Limit: 1000})
	if err != nil {
		return nil, err
	}
	if len(cases) == 0 || !o.sees(cases[0].Entry.Of.TenantName) {
		return nil, store.ErrNotFound
	}
	c := &opened{operator: o, entry: cases[0].Entry, file: newestCase(cases)}
	if c.record, err = q.x.ledger.Declared(ctx, c.entry.Tool); err != nil {
		return nil, err
	}
	deciders := max(c.record.Deciders, 1)
	if c.tool = q.x.byKey[c.entry.Tool]; c.tool != nil {
		c.record = c.tool.record()
	}
	// While two versions of a contract are at work the latest word may be that of
	// the older one, so the safer of them holds, and what the operation says (R3).
	if c.record.Deciders = max(c.record.Deciders, deciders); c.entry.Flags&store.FlagTwoPersons != 0 {
		c.record.Deciders = max(c.record.Deciders, 2)
	}
	return c, q.x.allowed(ctx, OperatorAction{Operator: o, Action: action, Tenant: c.entry.Of.TenantName,
		Tool: q.x.toolName(c.entry.Tool), Operation: c.entry.ID.String(), Decision: c.decides(action)})
}

// decides is what an action decides, if it does.
func (c *opened) decides(action string) DecisionKind {
	if action == actionConfirm {
		p, _ := c.proposal()
		return p.Kind
	}
	if kind := DecisionKind(action); slices.Contains(decisionKinds, kind) {
		return kind
	}
	return ""
}

// newestCase prefers the open case that the state needs, then an open incident,
// then the last one closed.
func newestCase(cases []store.CaseEntry) store.Case {
	best := cases[len(cases)-1].Case
	for _, e := range cases {
		if c := e.Case; c.ClosedAt.IsZero() && (!best.ClosedAt.IsZero() || best.Incident && !c.Incident) {
			best = c
		}
	}
	return best
}

// change is a move of the case's operation by the operator, which otherwise
// leaves the row as it is.
func (c *opened) change(kind string) store.Change {
	row := c.entry.Operation
	return store.Change{Of: row, To: row.State, Kind: kind, Actor: "operator:" + c.operator.Name, Reason: row.Reason,
		Doubts: row.Doubts, Told: row.Told, Granted: row.Granted, Due: keepDue(row)}
}

// passings are the kinds of change that say nothing about what happened.
var passings = []string{"taken", "taken_over", "released", "revealed"}

// passing is a change that says nothing about what happened: who has the case, or
// has looked at it. A proposal outlives it, or else whoever makes sure before they
// confirm would void what they confirm (R41).
func (c *opened) passing(kind string) (store.Change, error) {
	change := c.change(kind)
	p, waits := c.proposal()
	if !waits {
		return change, nil
	}
	p.Covers = c.entry.Version + 1
	encoded, err := json.Marshal(p)
	change.Proposal = &encoded
	return change, err
}

// update makes an operator's change that decides nothing. Where a worker was
// faster, it is made on the case as it then stands; an empty kind is no change.
func (q *Queue) update(ctx context.Context, reference, action string, change func(*opened) (store.Change, error)) (store.Operation, error) {
	for try := 1; ; try++ {
		c, err := q.open(ctx, reference, action)
		if err != nil {
			return store.Operation{}, err
		}
		made, err := change(c)
		if err != nil || made.Kind == "" {
			return c.entry.Operation, err
		}
		err = q.write(ctx, made)
		if errors.As(err, new(*StaleVersionError)) && try < 5 {
			continue
		}
		return c.entry.Operation, err
	}
}
