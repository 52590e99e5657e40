package settle_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
)

// The operators of a scenario.

// person is an operator at work on the queue of a process.
type person struct {
	*process
	ctx context.Context
}

// person is an operator who sees everything, at this process.
func (p *process) person(name string, tenants ...string) *person {
	return &person{p, settle.WithOperator(context.Background(), settle.Operator{Name: name, Tenants: tenants})}
}

// sees is the case of an operation.
func (o *person) sees(operation string) settle.Case {
	o.Helper()
	c, err := o.x.Queue().Get(o.ctx, operation)
	if err != nil {
		o.Fatal(err)
	}
	return c
}

// decision is one on the case as it stands.
func (o *person) decision(operation string, kind settle.DecisionKind) settle.Decision {
	o.Helper()
	return settle.Decision{Operation: operation, Version: o.sees(operation).Version, ID: uuid.NewString(), Kind: kind, Reason: "looked it up"}
}

// decides settles a case.
func (o *person) decides(operation string, kind settle.DecisionKind) settle.Case {
	o.Helper()
	c, err := o.x.Queue().Decide(o.ctx, o.decision(operation, kind))
	if err != nil {
		o.Fatal(err)
	}
	return c
}

// refused requires that a decision is refused with an error, and that nothing
// but the audit has changed (R41).
func (o *person) refused(d settle.Decision, want string) {
	o.Helper()
	before := o.dump()
	_, err := o.x.Queue().Decide(o.ctx, d)
	if err == nil || !strings.Contains(err.Error(), want) {
		o.Errorf("the decision %s: error %v, want one that says %q", d.Kind, err, want)
	}
	equal(o.world, "the ledger after a refusal", o.dump(), before)
}

// dump is everything that the ledger holds but for audit rows and the instants
// of reading.
func (w *world) dump() string {
	w.Helper()
	var b strings.Builder
	for _, e := range w.rows() {
		row := e
		row.Read = row.CreatedAt
		fmt.Fprintf(&b, "%+v\n%+v\n", row, w.events(e.ID))
	}
	return b.String()
}
