package settle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Which number a call is, and whether a tool may have another one.

func TestR10NumbersFollowTheirRules(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount > 100 {
			return paid{}, settle.Rejected(errors.New("too much"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	refused := g.want(x, payCall("A-1", 420), settle.StatusFailed)
	// The same call would be refused again: it isn't made.
	if again := g.want(x, payCall("A-1", 420), settle.StatusFailed); !again.Replayed || again.Operation != refused.Operation {
		t.Error("a refused call was made again")
	}
	corrected := g.want(x, payCall("A-1", 42), settle.StatusCompleted)
	if row := g.row(corrected); corrected.Replayed || row.Number != 2 || row.Slot != g.row(refused).Slot {
		t.Errorf("the corrected call is number %d, replayed %v", row.Number, corrected.Replayed)
	}
	// A redelivery of the earlier number finds its own.
	if again := g.want(x, payCall("A-1", 420), settle.StatusFailed); again.Operation != refused.Operation {
		t.Error("the refused call didn't find its own record")
	}
	g.want(x, payCall("A-1", 43), settle.StatusConflict)
	if p.entered.Load() != 2 {
		t.Errorf("%d attempts, want 2", p.entered.Load())
	}
	g.did(p, 1)
}

func TestR10OneOfManyCorrectionsIsMade(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount > 100 {
			return paid{}, settle.Rejected(errors.New("too much"))
		}
		return act(), nil
	}
	executors := []*settle.Executor{g.executor(p.tool()), g.executor(p.tool())}
	g.want(executors[0], payCall("A-1", 420), settle.StatusFailed)
	outs := g.storm(24, func(i int) settle.Outcome {
		return g.do(g.ctx, executors[i%2], payCall("A-1", 1+i%6))
	})
	count := map[settle.Status]int{}
	for _, out := range outs {
		count[out.Status]++
	}
	g.did(p, 1)
	if count[settle.StatusCompleted] != 4 || count[settle.StatusConflict] != 20 {
		t.Errorf("the corrections gave %v, want 4 completed (one and its repeats) and 20 conflicts", count)
	}
}

func TestR10AnExhaustedCallMayBeMadeAgain(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.contract.Attempts = 2
	fails := true
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		if fails {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	if row := g.row(out); row.State != store.Failed || row.Reason != "exhausted" || row.Attempt != 2 {
		t.Fatalf("it is %s (%s) after %d attempts", row.State, row.Reason, row.Attempt)
	}
	fails = false
	again := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if row := g.row(again); row.Number != 2 || again.Replayed {
		t.Errorf("number %d, replayed %v", row.Number, again.Replayed)
	}
	g.did(p, 1)
}

func TestR10ARetryableOneIsReplacedByItsCaller(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount == 1 {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	first := g.want(x, payCall("A-1", 1), settle.StatusNotDone)
	second := g.want(x, payCall("A-1", 2), settle.StatusCompleted)
	if row := g.row(first); row.State != store.Failed || row.Reason != "replaced" {
		t.Errorf("the replaced one is %s (%s)", row.State, row.Reason)
	}
	if g.row(second).Number != 2 {
		t.Error("the replacement isn't the next number")
	}
	replaced := g.want(x, payCall("A-1", 1), settle.StatusFailed)
	if !replaced.Replayed || !strings.Contains(replaced.ForModel(), "replaced") {
		t.Errorf("the replaced call says %s", replaced.ForModel())
	}
}

func TestR10TheHostReplacesWhatIsSettled(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	replace := func(order string, amount int, reference string) settle.Call {
		call := payCall(order, amount)
		call.Replaces = reference
		return call
	}
	g.want(x, replace("A-1", 5, "0192f7a0-0000-7000-8000-000000000000"), settle.StatusInvalidArguments)
	first := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	second := g.want(x, replace("A-1", 7, first.Operation), settle.StatusCompleted)
	if row := g.row(second); row.Number != 2 || second.Replayed {
		t.Errorf("number %d, replayed %v", row.Number, second.Replayed)
	}
	// Delivered again it finds itself; the first one, in all its forms, too.
	if again := g.want(x, replace("A-1", 7, first.Operation), settle.StatusCompleted); again.Operation != second.Operation {
		t.Error("the replacement was made twice")
	}
	if again := g.want(x, payCall("A-1", 5), settle.StatusCompleted); again.Operation != first.Operation {
		t.Error("the replaced call doesn't find its own record")
	}
	g.want(x, replace("A-1", 9, first.Operation), settle.StatusConflict)
	g.want(x, replace("A-1", 9, "no reference"), settle.StatusInvalidArguments)
	other := g.want(x, payCall("B-1", 5), settle.StatusCompleted)
	g.want(x, replace("A-1", 9, other.Operation), settle.StatusConflict)
	// With the same arguments it is a meant repeat of the same call.
	third := g.want(x, replace("A-1", 7, second.Operation), settle.StatusCompleted)
	if third.Replayed || g.row(third).Number != 3 {
		t.Errorf("got %+v", third)
	}
	if again := g.want(x, replace("A-1", 7, second.Operation), settle.StatusCompleted); again.Operation != third.Operation {
		t.Error("the repeat was made twice")
	}
	if len(p.keys) != 4 {
		t.Errorf("%d keys, want one for each of 4 operations", len(p.keys))
	}
	g.did(p, 4)
}

func TestR10NothingReplacesWhatIsNotSettled(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		return act(), errors.New("connection reset")
	}
	x := g.executor(p.tool())
	first := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	call := payCall("A-1", 7)
	call.Replaces = first.Operation
	g.want(x, call, settle.StatusHeld)
	g.did(p, 1)
}

func TestR14OneOperationOfAUniqueToolInATenant(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.contract.Unique = true
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount > 100 {
			return paid{}, settle.Rejected(errors.New("too much"))
		}
		return act(), nil
	}
	executors := []*settle.Executor{g.executor(p.tool()), g.executor(p.tool())}
	g.want(executors[0], payCall("A-1", 420), settle.StatusFailed)
	done := 0
	for _, out := range g.storm(16, func(i int) settle.Outcome {
		return g.do(g.inTask(fmt.Sprintf("case-%d", i)), executors[i%2], payCall("A-1", 5))
	}) {
		switch {
		case out.Status == settle.StatusCompleted:
			done++
		case out.Status != settle.StatusConflict || out.Reason != "unique":
			t.Errorf("got %s (%s)", out.Status, out.Reason)
		case len(out.Related) > 0 || out.Operation != "":
			t.Errorf("another intent's operation is shown: %+v", out)
		}
	}
	if done != 1 {
		t.Errorf("%d completed", done)
	}
	g.did(p, 1)
	// Another occurrence is a second one all the same, and this intent's own is named.
	ctx := g.inTask("case-x")
	mine := g.do(ctx, executors[0], payCall("B-1", 5))
	call := payCall("B-1", 5)
	call.Occurrence = 2
	out := g.do(ctx, executors[0], call)
	if out.Status != settle.StatusConflict || len(out.Related) != 1 || out.Related[0].Operation != mine.Operation {
		t.Errorf("got %+v", out)
	}
	// Other tenants have their own.
	elsewhere := settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "other", Subject: "bot"})
	g.wantStatus(g.do(elsewhere, executors[0], payCall("A-1", 5)), settle.StatusCompleted)
}

// abandoned is an operation that a person closed without knowing.
func (g *rig) abandoned(x *settle.Executor, call settle.Call) store.Operation {
	g.Helper()
	out := g.want(x, call, settle.StatusUnknown)
	g.forward(time.Hour)
	g.recover(x)
	row, err := g.ledger.Ledger.Apply(g.ctx, store.Change{Of: g.row(out), To: store.Abandoned, Kind: "decision", Actor: "operator", Reason: "a test's"})
	if err != nil {
		g.Fatal(err)
	}
	return row
}

func TestR10WhatIsAbandonedStaysClosed(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		return act(), errors.New("connection reset")
	}
	x := g.executor(p.tool())
	row := g.abandoned(x, payCall("A-1", 5))
	g.want(x, payCall("A-1", 5), settle.StatusAbandoned)
	g.want(x, payCall("A-1", 6), settle.StatusConflict)
	for _, amount := range []int{5, 6} {
		call := payCall("A-1", amount)
		call.Replaces = row.ID.String()
		out := g.want(x, call, settle.StatusAbandoned)
		if !out.Replayed || !out.Settled() {
			t.Errorf("got %+v", out)
		}
	}
	g.did(p, 1)
}
