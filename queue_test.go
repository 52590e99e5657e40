package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

type deskClock struct{ d time.Duration }

func (c *deskClock) now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(c.d) }

type deskArgs struct {
	Order  string `json:"order" settle:"identity"`
	Amount int    `json:"amount"`
}
type deskPaid struct {
	ID string `json:"id" settle:"resource"`
}

func deskWorld(t *testing.T, tool settle.Tool[deskArgs, deskPaid]) (*settle.Executor, context.Context, context.Context, *deskClock) {
	t.Helper()
	clock := &deskClock{}
	x, err := settle.New(memory.New(memory.WithClock(clock.now)), settle.WithTools(tool), settle.Volatile())
	if err != nil {
		t.Fatal(err)
	}
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "bot"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "t1", Goal: "g"})
	desk := settle.WithOperator(context.Background(), settle.Operator{Name: "ann"})
	return x, ctx, desk, clock
}

func TestR43ApprovalIsForOneEffect(t *testing.T) {
	t.Parallel()
	n := 0
	tool := settle.Tool[deskArgs, deskPaid]{Name: "pay", Contract: settle.Contract{NoLookup: true, Approval: true},
		Do: func(_ context.Context, op settle.Op, in deskArgs) (deskPaid, error) { n++; return deskPaid{"p1"}, nil }}
	x, ctx, desk, _ := deskWorld(t, tool)
	call := settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":"a","amount":1}`)}
	out, _ := x.Execute(ctx, call)
	if out.Status != settle.StatusAwaitingApproval {
		t.Fatal(out.ForModel())
	}
	page, err := x.Queue().List(desk, settle.QueueFilter{})
	if err != nil || len(page.Cases) != 1 {
		t.Fatal(page, err)
	}
	c, err := x.Queue().Get(desk, out.Operation)
	if err != nil {
		t.Fatal(err)
	}
	d := settle.Decision{Operation: out.Operation, Version: c.Version, ID: uuid.NewString(), Kind: settle.DecideApprove, Reason: "ok"}
	if _, err := x.Queue().Decide(desk, d); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Queue().Decide(desk, d); err != nil {
		t.Fatal("the same decision again", err)
	}
	out, _ = x.Execute(ctx, call)
	if out.Status != settle.StatusCompleted || n != 1 {
		t.Fatal(out.ForModel(), n)
	}
	out, _ = x.Execute(ctx, call)
	if !out.Replayed || n != 1 {
		t.Fatal(out.ForModel())
	}
}

func TestR40RunOnceMore(t *testing.T) {
	t.Parallel()
	n := 0
	fail := errors.New("reset")
	tool := settle.Tool[deskArgs, deskPaid]{Name: "pay", Contract: settle.Contract{NoLookup: true, Timeout: time.Second},
		Do: func(_ context.Context, op settle.Op, in deskArgs) (deskPaid, error) { n++; return deskPaid{"p1"}, fail }}
	x, ctx, desk, clock := deskWorld(t, tool)
	call := settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":"a","amount":1}`)}
	out, _ := x.Execute(ctx, call)
	if out.Status != settle.StatusUnknown {
		t.Fatal(out.ForModel())
	}
	clock.d += 6 * time.Second
	if _, err := x.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	c, err := x.Queue().Get(desk, out.Operation)
	if err != nil || c.State != "manual" {
		t.Fatal(c, err)
	}
	d := settle.Decision{Operation: out.Operation, Version: c.Version, ID: uuid.NewString(), Kind: settle.DecideRunOnce, Reason: "asked them"}
	fail = nil
	if _, err := x.Queue().Decide(desk, d); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	out, err = x.Wait(ctx, out.Operation)
	if err != nil || out.Status != settle.StatusCompleted || n != 2 {
		t.Fatal(out.ForModel(), err, n)
	}
}

func TestR49Compensate(t *testing.T) {
	t.Parallel()
	undone := 0
	tool := settle.Tool[deskArgs, deskPaid]{Name: "pay", Contract: settle.Contract{NoLookup: true},
		Do: func(_ context.Context, op settle.Op, in deskArgs) (deskPaid, error) { return deskPaid{"p1"}, nil },
		Compensation: &settle.Compensation[deskArgs, deskPaid]{Contract: settle.Contract{NoLookup: true},
			Do: func(_ context.Context, op settle.Op, o settle.Original[deskArgs, deskPaid]) error {
				if o.Out.ID != "p1" || o.In.Amount != 1 || o.Resource != "p1" {
					return errors.New("bad")
				}
				undone++
				return nil
			}}}
	x, ctx, _, _ := deskWorld(t, tool)
	call := settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":"a","amount":1}`)}
	out, _ := x.Execute(ctx, call)
	undo, err := x.Compensate(ctx, out.Operation)
	if err != nil || undo.Status != settle.StatusCompleted {
		t.Fatal(undo, err)
	}
	undo, err = x.Compensate(ctx, out.Operation)
	if err != nil || !undo.Replayed || undone != 1 {
		t.Fatal(undo, err)
	}
	out, _ = x.Execute(ctx, call)
	if out.CorrectedBy != undo.Operation {
		t.Fatal(out.ForModel())
	}
}

func TestR13Composite(t *testing.T) {
	t.Parallel()
	var made []string
	failing := true
	step := settle.Tool[deskArgs, deskPaid]{Name: "ticket", Contract: settle.Contract{NoLookup: true},
		Do: func(_ context.Context, op settle.Op, in deskArgs) (deskPaid, error) {
			made = append(made, in.Order)
			return deskPaid{"t-" + in.Order}, nil
		}}
	mail := settle.Tool[deskArgs, deskPaid]{Name: "mail", Contract: settle.Contract{NoLookup: true},
		Do: func(_ context.Context, op settle.Op, in deskArgs) (deskPaid, error) {
			if failing {
				return deskPaid{}, settle.NotSent(errors.New("down"))
			}
			made = append(made, "mail")
			return deskPaid{"m"}, nil
		}}
	tool := settle.Tool[deskArgs, deskPaid]{Name: "incident", Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{step, mail},
		Do: func(ctx context.Context, op settle.Op, in deskArgs) (deskPaid, error) {
			a, err := settle.Step(ctx, op, "ticket", step, deskArgs{Order: in.Order, Amount: 1})
			if err != nil {
				return deskPaid{}, err
			}
			_, err = settle.Step(ctx, op, "mail", mail, deskArgs{Order: in.Order, Amount: 1}, settle.After("ticket"))
			return a, err
		}}
	x, ctx, _, _ := deskWorld(t, tool)
	call := settle.Call{Tool: "incident", Args: json.RawMessage(`{"order":"a","amount":1}`)}
	if out, err := x.Execute(ctx, call); err != nil || out.Status != settle.StatusNotDone || strings.Contains(out.ForModel(), "no effect") {
		t.Fatalf("the first run, whose ticket is made: %s, %v", out.ForModel(), err)
	}
	failing = false
	if out, err := x.Execute(ctx, call); err != nil || out.Status != settle.StatusCompleted {
		t.Fatalf("the second run: %s, %v", out.ForModel(), err)
	}
	if !slices.Equal(made, []string{"a", "mail"}) {
		t.Errorf("the steps made %v, want each once", made)
	}
}

// tenantsOnly is a ledger that lists cases of a named tenant and no others.
type tenantsOnly struct {
	*memory.Ledger
	t *testing.T
}

func (l tenantsOnly) Cases(ctx context.Context, f store.CaseFilter) ([]store.CaseEntry, error) {
	if f.Tenant != "acme" && f.Tenant != "globex" {
		l.t.Errorf("the ledger is asked for the cases of tenant %q", f.Tenant)
	}
	return l.Ledger.Cases(ctx, f)
}

func TestR46AnOperatorOfTenantsReadsTheirQueueAndNoOther(t *testing.T) {
	t.Parallel()
	clock := &deskClock{}
	tool := settle.Tool[deskArgs, deskPaid]{Name: "pay", Contract: settle.Contract{NoLookup: true, Approval: true},
		Do: func(context.Context, settle.Op, deskArgs) (deskPaid, error) {
			return deskPaid{}, errors.New("not approved")
		}}
	x, err := settle.New(tenantsOnly{memory.New(memory.WithClock(clock.now)), t}, settle.WithTools(tool), settle.Volatile())
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, tenant := range []string{"globex", "initech", "acme", "initech", "acme", "globex", "globex", "initech", "acme"} {
		ctx := settle.WithTask(settle.WithPrincipal(t.Context(), settle.Principal{Tenant: tenant, Subject: "bot"}), settle.Task{ID: "t1", Goal: "g"})
		clock.d += time.Second
		out, err := x.Execute(ctx, settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":"` + clock.d.String() + `","amount":1}`)})
		if err != nil || out.Status != settle.StatusAwaitingApproval {
			t.Fatal(out.ForModel(), err)
		}
		if tenant != "initech" {
			want = append(want, out.Operation)
		}
	}
	desk := settle.WithOperator(t.Context(), settle.Operator{Name: "ann", Tenants: []string{"globex", "acme", "globex", ""}})
	var got []string
	f := settle.QueueFilter{Limit: 2}
	for {
		page, err := x.Queue().List(desk, f)
		if err != nil || len(page.Cases) > f.Limit {
			t.Fatalf("a page of %d cases: %v", len(page.Cases), err)
		}
		for _, c := range page.Cases {
			got = append(got, c.Operation)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages hold %v, want %v, oldest first", got, want)
	}
	if page, err := x.Queue().List(desk, settle.QueueFilter{Tenant: "initech"}); err != nil || len(page.Cases) > 0 {
		t.Errorf("of another tenant: %d cases, %v; want none", len(page.Cases), err)
	}
}
