package memory_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/store/storetest"
)

// desk is a ledger with one operation, seen from the inside: what the interface
// doesn't show.
type desk struct {
	t *testing.T
	*memory.Ledger
	row store.Operation
}

func newDesk(t *testing.T, state store.State) *desk {
	l := memory.New()
	i, err := l.Intent(t.Context(), storetest.NewIntent())
	if err != nil {
		t.Fatal(err)
	}
	o := storetest.Operation(i, storetest.In(state), func(o *store.Operation) { o.Reason = "needs_approval" })
	answers, err := l.Claim(t.Context(), storetest.Claim(o))
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, Ledger: l, row: answers[0].Operation}
}

func (d *desk) move(to store.State, edits ...func(*store.Change)) {
	d.t.Helper()
	row, err := d.Apply(d.t.Context(), storetest.Change(d.row, to, edits...))
	if err != nil {
		d.t.Fatal(err)
	}
	d.row = row
}

// wantCases compares the reasons of the open cases and the number of closed ones.
func (d *desk) wantCases(closed int, open ...string) {
	d.t.Helper()
	var reasons []string
	for _, c := range d.CasesOf(d.row.ID) {
		if c.ID == uuid.Nil || c.Operation != d.row.ID || c.Tenant != d.row.Tenant || c.Tool != d.row.Tool || c.OpenedAt.IsZero() {
			d.t.Errorf("a case doesn't name its operation: %+v", c)
		}
		if c.ClosedAt.IsZero() {
			reasons = append(reasons, c.Reason)
		} else {
			closed--
		}
	}
	if closed != 0 || len(reasons) != len(open) {
		d.t.Fatalf("the open cases are %v and %d closed ones are missing, want %v", reasons, closed, open)
	}
	for n := range open {
		if reasons[n] != open[n] {
			d.t.Errorf("the open cases are %v, want %v", reasons, open)
		}
	}
}

func TestR39OneCaseIsOpenWhileAPersonIsNeeded(t *testing.T) {
	t.Parallel()
	d := newDesk(t, store.AwaitingApproval)
	reason := func(r string) func(*store.Change) { return func(c *store.Change) { c.Reason = r } }
	d.wantCases(0, "needs_approval")
	d.move(store.AwaitingApproval, reason("noted"))
	d.wantCases(0, "needs_approval")
	d.move(store.Retryable)
	d.wantCases(1)
	d.move(store.Manual, reason("exhausted"))
	d.wantCases(1, "exhausted")
	d.move(store.Manual, reason("noted"))
	d.wantCases(1, "exhausted")
	d.move(store.Failed)
	d.wantCases(2)
	d.move(store.Manual, reason("late_success"))
	d.wantCases(2, "late_success")
}

func TestR25AnIncidentIsACaseOfItsOwn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, store.Running)
	d.wantCases(0)
	d.move(store.Completed)
	d.move(store.Completed, func(c *store.Change) { c.Incident = "second_effect" })
	d.wantCases(0, "second_effect")
	if c := d.CasesOf(d.row.ID)[0]; !c.Incident {
		t.Error("an incident isn't marked as one")
	}
	d.move(store.Completed, func(c *store.Change) { c.Incident = "third_effect" })
	d.wantCases(0, "second_effect", "third_effect")
}

func TestR25AnIncidentStaysOpenWhenAStatesCaseIsClosed(t *testing.T) {
	t.Parallel()
	d := newDesk(t, store.Running)
	d.move(store.Failed)
	d.move(store.Failed, func(c *store.Change) { c.Incident = "late_success" })
	d.move(store.Manual)
	d.wantCases(0, "late_success", "because")
	d.move(store.Completed)
	d.wantCases(1, "late_success")
}

func TestR57WhatChangedNothingIsKept(t *testing.T) {
	t.Parallel()
	d := newDesk(t, store.Running)
	given := store.Audit{Operation: d.row.ID, Kind: "conflict", Actor: "executor", Detail: "order"}
	if err := d.Audit(t.Context(), given, given); err != nil {
		t.Fatal(err)
	}
	if len(d.Audited()) != 2 || d.Audited()[1].At.IsZero() {
		t.Fatalf("kept %+v", d.Audited())
	}
	given.At = d.Audited()[1].At
	if d.Audited()[1] != given {
		t.Errorf("kept %+v, want %+v", d.Audited()[1], given)
	}
}
