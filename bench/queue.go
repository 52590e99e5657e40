package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle"
)

// queue measures how long an operator waits for the first page of a long queue
// beside that of a short one. The cases that a filter looks for are one in a
// hundred and the newest, so that all others come before them.
func (b *bench) queue(ctx context.Context) error {
	everybody := settle.Operator{Name: "ada"}
	return b.onEach(ctx, 4, func(database string, open func(string) (*ground, error)) error {
		var lists [2]*settle.Executor
		for i, n := range []int{100, b.cases} {
			g, err := open(fmt.Sprintf("queue_%d", i))
			if err != nil {
				return err
			}
			if lists[i], err = queueOf(ctx, g, n); err != nil {
				return fmt.Errorf("fill a queue of %d: %w", n, err)
			}
		}
		for _, look := range []struct {
			name   string
			who    settle.Operator
			filter settle.QueueFilter
		}{
			{"all", everybody, settle.QueueFilter{}},
			{"tenant", everybody, settle.QueueFilter{Tenant: "globex"}},
			{"tool", everybody, settle.QueueFilter{Tool: "transfer"}},
			{"owner", everybody, settle.QueueFilter{Owner: "ada"}},
			{"operator-of-tenant", settle.Operator{Name: "ben", Tenants: []string{"globex"}}, settle.QueueFilter{}},
		} {
			var took [2][]float64
			for range 3 * b.rounds {
				for i, x := range lists {
					ms, err := firstPage(settle.WithOperator(ctx, look.who), x, look.filter)
					if err != nil {
						return fmt.Errorf("list %s: %w", look.name, err)
					}
					took[i] = append(took[i], ms)
				}
			}
			name := database + "/queue/" + look.name
			b.figure(name+"/short", median(took[0]), "ms")
			b.figure(name+"/long", median(took[1]), "ms")
			b.atMost(name+"-ms-longer", median(took[1])-median(took[0]), 20)
		}
		return errors.Join(stop(lists[0]), stop(lists[1]))
	})
}

// firstPage lists a page and says how many milliseconds that took.
func firstPage(ctx context.Context, x *settle.Executor, f settle.QueueFilter) (float64, error) {
	began := time.Now()
	page, err := x.Queue().List(ctx, f)
	took := time.Since(began)
	if err == nil && len(page.Cases) == 0 {
		err = errors.New("the page is empty")
	}
	return float64(took.Nanoseconds()) / 1e6, err
}

// queueOf fills a ledger with so many open cases: operations that wait for an
// approval, nearly all of one tenant and tool, and a hundredth of each of two
// others and of those that somebody has taken.
func queueOf(ctx context.Context, g *ground, n int) (*settle.Executor, error) {
	x, err := settle.New(g.Ledger, settle.WithTools(waiting("pay"), waiting("transfer")))
	if err != nil {
		return nil, err
	}
	few := max(n/100, 1)
	opened := g.at(g.began.Add(-time.Hour))
	for _, like := range []struct {
		tenant, tool, holder string
		n                    int
	}{
		{"acme", "pay", "", n - 3*few}, {"acme", "pay", "ada", few}, {"acme", "transfer", "", few}, {"globex", "pay", "", few},
	} {
		ctx := settle.WithTask(settle.WithPrincipal(ctx, settle.Principal{Tenant: like.tenant, Subject: "agent"}),
			settle.Task{ID: "queue" + like.holder, Goal: "pay"})
		args, err := json.Marshal(paymentOf("ord_1"))
		if err != nil {
			return nil, err
		}
		out, err := x.Execute(ctx, settle.Call{Tool: like.tool, Args: args, CallID: "call_1"})
		if err != nil || out.Status != settle.StatusAwaitingApproval {
			return nil, fmt.Errorf("the outcome is %q (%s), where an approval was to be waited for: %w", out.Status, out.Reason, err)
		}
		if like.holder != "" {
			if err := x.Queue().Take(settle.WithOperator(ctx, settle.Operator{Name: like.holder}), out.Operation); err != nil {
				return nil, err
			}
		}
		err = g.fill(ctx, copies{operation: out.Operation, n: like.n - 1,
			change: map[string]map[string]string{"case": {"opened_at": g.later(opened, "n")}}})
		if err != nil {
			return nil, err
		}
	}
	return x, g.finish(ctx)
}

// waiting is a tool whose every effect needs a person's word.
func waiting(name string) settle.AnyTool {
	return settle.Tool[payment, receipt]{
		Name: name, Description: "Pay for an order",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true, Approval: true},
		Do: func(context.Context, settle.Op, payment) (receipt, error) {
			return receipt{}, errors.New("nobody has approved this")
		},
	}
}
