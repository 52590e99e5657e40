package settle

import (
	"context"
	"errors"
	"slices"

	"github.com/settle-go/settle/store"
)

// Corrections of a composite: of its steps, since it has no effect of its own.

// compensateSteps corrects a composite's completed steps, the last first, also
// those that were done before it was corrected (R13), and stops at one that isn't
// corrected, or of which nobody knows yet.
func (x *Executor) compensateSteps(ctx context.Context, p Principal, e store.Entry) (Outcome, error) {
	children, err := x.stepsOf(ctx, e.Of.TenantName, e.Operation)
	if err != nil {
		return Outcome{}, err
	}
	// The last first; before them, those of which nobody knows yet and which hold the rest.
	slices.SortFunc(children, func(a, b store.Entry) int {
		switch {
		case !a.State.Settled() && b.State.Settled():
			return -1
		case a.State.Settled() && !b.State.Settled():
			return 1
		}
		return b.SettledAt.Compare(a.SettledAt)
	})
	out := Outcome{Status: StatusCompleted, Tool: undoName(x.toolName(e.Tool)), Recorded: true}
	for _, child := range children {
		if child.State.Settled() && child.State != store.Completed {
			continue
		}
		one, err := x.compensate(ctx, p, child)
		if errors.Is(err, ErrNoCompensation) {
			one, err = Outcome{Status: StatusNotDone, Tool: x.toolName(child.Tool), Operation: child.ID.String(), Reason: "no_compensation"}, nil
		}
		if err != nil {
			return Outcome{}, err
		}
		if one.Operation == "" { // none was begun
			one.Operation = child.ID.String()
		}
		out.Related = append(out.Related, Related{Operation: one.Operation, Tool: one.Tool, State: string(one.Status)})
		if one.Status != StatusCompleted {
			out.Status, out.Reason, out.NotBefore = one.Status, "step_not_corrected", one.NotBefore
			break
		}
	}
	return x.signals.counted(out), nil
}

// correctable are the steps of a composite that were done although it wasn't
// completed, and that can be corrected one by one.
func (x *Executor) correctable(ctx context.Context, e store.Entry) (steps []Related) {
	if e.Class != store.Composite {
		return nil
	}
	children, err := x.stepsOf(ctx, e.Of.TenantName, e.Operation)
	if err != nil {
		return nil // the answer stands without them
	}
	for _, c := range slices.Backward(children) {
		if b := x.byKey[c.Tool]; c.State == store.Completed && b != nil && b.undo != nil {
			steps = append(steps, Related{Operation: c.ID.String(), Tool: b.name, State: c.State.String()})
		}
	}
	return steps
}

// stepsOf are the steps of a composite: its own, and those of the failed ones
// that it has corrected, which it goes on with (R13).
func (x *Executor) stepsOf(ctx context.Context, tenant string, row store.Operation) ([]store.Entry, error) {
	chain, err := x.failedBefore(ctx, row)
	if err != nil {
		return nil, err
	}
	var steps []store.Entry
	for _, composite := range append(chain, row) {
		children, err := x.childrenOf(ctx, tenant, composite)
		if err != nil {
			return nil, err
		}
		steps = append(steps, children...)
	}
	return steps, nil
}

func (x *Executor) childrenOf(ctx context.Context, tenant string, row store.Operation) (children []store.Entry, err error) {
	f := store.Filter{Tenant: tenant, Intent: row.Intent, Parent: row.ID, Limit: maxPage}
	for {
		page, err := x.ledger.List(ctx, f)
		if children = append(children, page...); err != nil || len(page) < f.Limit {
			return children, err
		}
		f.After = page[len(page)-1].ID
	}
}

// correctedStep finds the compensation of one of a composite's steps.
func (x *Executor) correctedStep(ctx context.Context, of store.Intent, row store.Operation) string {
	steps, err := x.stepsOf(ctx, of.TenantName, row)
	if err != nil {
		return ""
	}
	for _, step := range steps {
		if step.State != store.Completed {
			continue
		}
		if by := x.corrected(ctx, x.byKey[step.Tool], of, step.Operation); by != "" {
			return by
		}
	}
	return ""
}
