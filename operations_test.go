package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

// payTool completes, or ends as its error says.
func payTool(fail *error) settle.Tool[deskArgs, deskPaid] {
	return settle.Tool[deskArgs, deskPaid]{Name: "pay", Contract: settle.Contract{NoLookup: true},
		Do: func(context.Context, settle.Op, deskArgs) (deskPaid, error) { return deskPaid{"p1"}, *fail }}
}

func deskpayCall(order string) settle.Call {
	return settle.Call{Tool: "pay", Args: json.RawMessage(fmt.Sprintf(`{"order":%q,"amount":1}`, order))}
}

func TestOperatorsSeeTheOperationsOfTheirTenants(t *testing.T) {
	t.Parallel()
	var fail error
	x, ctx, desk, clock := deskWorld(t, payTool(&fail))
	var made []string
	make := func(ctx context.Context, order string) {
		t.Helper()
		out, err := x.Execute(ctx, deskpayCall(order))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, out.Operation)
		clock.d += time.Minute
	}
	make(ctx, "a")
	make(settle.WithTask(ctx, settle.Task{ID: "t2", Goal: "g"}), "b")
	fail = errors.New("reset")
	make(ctx, "c")
	make(settle.WithPrincipal(ctx, settle.Principal{Tenant: "globex", Subject: "bot"}), "d")

	ofAcme := settle.WithOperator(context.Background(), settle.Operator{Name: "bo", Tenants: []string{"acme"}})
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		filter settle.OperationFilter
		want   []int
	}{
		{"everything", desk, settle.OperationFilter{}, []int{0, 1, 2, 3}},
		{"own tenants", ofAcme, settle.OperationFilter{}, []int{0, 1, 2}},
		{"a foreign tenant", ofAcme, settle.OperationFilter{Tenant: "globex"}, nil},
		{"a state", desk, settle.OperationFilter{States: []string{"unknown"}}, []int{2, 3}},
		{"a task", desk, settle.OperationFilter{Task: "t2"}, []int{1}},
		{"no such task", desk, settle.OperationFilter{Task: "t9"}, nil},
		{"a tool", desk, settle.OperationFilter{Tool: "pay", Tenant: "globex"}, []int{3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.filter.Limit = 2
			var got []string
			for {
				page, err := x.Queue().Operations(tc.ctx, tc.filter)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range page.Operations {
					got = append(got, o.Operation)
				}
				if tc.filter.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			var want []string
			for _, i := range tc.want {
				want = append(want, made[i])
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
	// R46: a reference of another tenant is not found.
	if _, err := x.Queue().Operation(ofAcme, made[3]); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant's operation: %v", err)
	}
	if _, err := x.Queue().Brief(ofAcme, made[3]); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the brief of another tenant's task: %v", err)
	}
	if _, err := x.Queue().Operations(context.Background(), settle.OperationFilter{}); !errors.Is(err, settle.ErrNoOperator) {
		t.Errorf("without an operator: %v", err)
	}
}

func TestOperationsSince(t *testing.T) {
	t.Parallel()
	var fail error
	x, ctx, desk, clock := deskWorld(t, payTool(&fail))
	// References are made by the host's clock, so the ledger's has to be near it.
	clock.d = time.Until((&deskClock{}).now())*-1 - time.Hour
	if _, err := x.Execute(ctx, deskpayCall("a")); err != nil {
		t.Fatal(err)
	}
	clock.d += time.Hour
	out, err := x.Execute(ctx, deskpayCall("b"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := x.Queue().Operations(desk, settle.OperationFilter{Since: clock.now().Add(-time.Second)})
	if err != nil || len(page.Operations) != 1 || page.Operations[0].Operation != out.Operation {
		t.Errorf("got %+v and %v, want the second operation", page, err)
	}
}

func TestOperationDetailShowsNoValues(t *testing.T) {
	t.Parallel()
	fail := errors.New("reset")
	x, ctx, desk, clock := deskWorld(t, payTool(&fail))
	out, err := x.Execute(ctx, deskpayCall("secret-order"))
	if err != nil {
		t.Fatal(err)
	}
	clock.d += time.Minute
	if _, err := x.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	other := settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":"secret-order","amount":2}`)}
	if again, err := x.Execute(ctx, other); err != nil || again.Status != settle.StatusConflict {
		t.Fatal(again, err)
	}
	d, err := x.Queue().Operation(desk, out.Operation)
	if err != nil {
		t.Fatal(err)
	}
	if d.State != "manual" || d.Attempts != 1 || d.Doubts != 1 || d.Task != "t1" || !d.DueAt.IsZero() || d.Moment.IsZero() {
		t.Errorf("the row is shown as %+v", d.OperationSummary)
	}
	if len(d.Cases) != 1 || len(d.Events) < 2 || len(d.Notices) != 1 || d.Notices[0].Kind != "conflict" {
		t.Errorf("beside the row: %d cases, %d events, notices %v", len(d.Cases), len(d.Events), d.Notices)
	}
	if shown := fmt.Sprintf("%+v", d); strings.Contains(shown, "secret-order") {
		t.Errorf("it shows an argument's value: %s", shown)
	}
	if len(d.Fields) != 2 || d.Fields[0].Name != "order" {
		t.Errorf("the arguments' fields: %v", d.Fields)
	}
}

func TestOperationShowsItsCorrection(t *testing.T) {
	t.Parallel()
	tool := settle.Tool[deskArgs, deskPaid]{Name: "pay", Contract: settle.Contract{NoLookup: true},
		Do: func(context.Context, settle.Op, deskArgs) (deskPaid, error) { return deskPaid{"p1"}, nil },
		Compensation: &settle.Compensation[deskArgs, deskPaid]{Contract: settle.Contract{NoLookup: true},
			Do: func(context.Context, settle.Op, settle.Original[deskArgs, deskPaid]) error { return nil }}}
	x, ctx, desk, _ := deskWorld(t, tool)
	out, err := x.Execute(ctx, deskpayCall("a"))
	if err != nil {
		t.Fatal(err)
	}
	undo, err := x.Compensate(ctx, out.Operation)
	if err != nil {
		t.Fatal(err)
	}
	original, err := x.Queue().Operation(desk, out.Operation)
	if err != nil || len(original.Children) != 1 || original.Children[0].Operation != undo.Operation {
		t.Errorf("the original's children are %v, error %v", original.Children, err)
	}
	correction, err := x.Queue().Operation(desk, undo.Operation)
	if err != nil || correction.Parent != out.Operation {
		t.Errorf("the correction's parent is %q, error %v", correction.Parent, err)
	}
}

type noteArgs struct {
	Text string `json:"text"`
}

func TestR30AnOperatorsBriefTellsTheModelNothing(t *testing.T) {
	t.Parallel()
	ledger := memory.New()
	start := func() *settle.Executor {
		tool := settle.Tool[noteArgs, deskPaid]{Name: "mail", Contract: settle.Contract{NoLookup: true, WholeArguments: true},
			Do: func(context.Context, settle.Op, noteArgs) (deskPaid, error) { return deskPaid{"m1"}, nil }}
		x, err := settle.New(ledger, settle.WithTools(tool), settle.Volatile())
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	ctx := scope(context.Background())
	x := start()
	out, err := x.Execute(ctx, settle.Call{Tool: "mail", Args: json.RawMessage(`{"text":"hello"}`)})
	if err != nil || out.Status != settle.StatusCompleted {
		t.Fatal(out, err)
	}
	// Another run of the host, whose model doesn't know what was done.
	y := start()
	desk := settle.WithOperator(context.Background(), settle.Operator{Name: "ann"})
	text, err := y.Queue().Brief(desk, out.Operation)
	if err != nil || !strings.Contains(text, out.Operation) {
		t.Fatalf("the brief is %q, error %v", text, err)
	}
	out, err = y.Execute(ctx, settle.Call{Tool: "mail", Args: json.RawMessage(`{"text":"hello there"}`)})
	if err != nil || out.Status != settle.StatusHeld {
		t.Errorf("after an operator read the brief a reworded call is %s, error %v; want held", out.Status, err)
	}
}
