package settle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Tools without declared identity: a reworded call can't be told from a new one.

func TestR30AnUnsettledOneHolds(t *testing.T) {
	g := onFile(t)
	lost := true
	s := &say{attempt: func(context.Context, settle.Op) error {
		if lost {
			return errors.New("connection reset")
		}
		return nil
	}}
	x, elsewhere := g.executor(s.tool()), g.executor(s.tool())
	first := g.want(x, sayCall("hello"), settle.StatusUnknown)
	lost = false
	for _, x := range []*settle.Executor{x, elsewhere} {
		out := g.want(x, sayCall("hello there"), settle.StatusHeld)
		if out.Reason != "unsettled_operation" || len(out.Related) != 1 || out.Related[0].Operation != first.Operation {
			t.Errorf("got %+v", out)
		}
	}
	g.forward(time.Hour)
	g.recover(x)
	g.want(x, sayCall("hello there"), settle.StatusHeld) // a person's, and unsettled
	if s.effects.Load() != 0 || len(g.all()) != 1 {
		t.Errorf("%d operations", len(g.all()))
	}
	// Another task, and another tool, aren't held.
	g.wantStatus(g.do(g.inTask("another"), x, sayCall("hello there")), settle.StatusCompleted)
}

func TestR30CallersWaitForWhatRuns(t *testing.T) {
	g := onFile(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s := &say{attempt: func(_ context.Context, op settle.Op) error {
		select {
		case <-entered:
		default:
			close(entered)
			<-release
		}
		return nil
	}}
	x, elsewhere := g.executor(s.tool()), g.executor(s.tool())
	first := g.background(g.ctx, x, sayCall("hello"))
	after(g, "the first", entered)
	second := g.background(g.ctx, x, sayCall("hello there"))
	third := g.background(g.ctx, elsewhere, sayCall("hello everybody"))
	close(release)
	g.wantStatus(after(g, "the first", first), settle.StatusCompleted)
	// In the same process its answer was told; another process says it once.
	g.wantStatus(after(g, "the second", second), settle.StatusCompleted)
	g.wantStatus(after(g, "the third", third), settle.StatusHeld)
	// By now the second may hold it as well, once.
	if out := g.do(g.ctx, elsewhere, sayCall("hello everybody")); out.Status == settle.StatusHeld {
		g.want(elsewhere, sayCall("hello everybody"), settle.StatusCompleted)
	}
	if s.effects.Load() != 3 {
		t.Errorf("%d effects", s.effects.Load())
	}
}

func TestR30WhatWasDoneBeforeTheRestartHoldsOnce(t *testing.T) {
	g := onFile(t)
	s := &say{}
	done := g.want(g.executor(s.tool()), sayCall("hello"), settle.StatusCompleted)
	x := g.executor(s.tool())
	held := g.want(x, sayCall("hello there"), settle.StatusHeld)
	if held.Reason != "done_before_restart" || len(held.Related) != 1 || held.Related[0].Operation != done.Operation || held.Related[0].Resource != "word-1" {
		t.Errorf("got %+v", held)
	}
	g.want(x, sayCall("hello there"), settle.StatusCompleted)
	g.want(x, sayCall("hello everybody"), settle.StatusCompleted)
	// A replay tells as well.
	y := g.executor(s.tool())
	for _, text := range []string{"hello", "hello there", "hello everybody"} {
		if out := g.want(y, sayCall(text), settle.StatusCompleted); !out.Replayed {
			t.Errorf("%q ran again", text)
		}
	}
	g.want(y, sayCall("goodbye"), settle.StatusCompleted)
}

// What a worker finished after the restart was told to nobody in it.
func TestR30WhatAWorkerFinishedHoldsAsWell(t *testing.T) {
	g := onFile(t)
	s := &say{contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true}}
	crash := true
	entered, release := make(chan struct{}), make(chan struct{})
	s.attempt = func(_ context.Context, op settle.Op) error {
		_ = op.Key()
		if crash {
			close(entered)
			<-release
			return errors.New("connection reset")
		}
		return nil
	}
	ctx, cancel := context.WithCancel(g.ctx)
	old := g.executor(s.tool())
	gone := g.background(ctx, old, sayCall("hello"))
	after(g, "the attempt", entered)
	cancel()
	g.wantStatus(after(g, "the caller", gone), settle.StatusInProgress)
	g.ledger.next("apply", times(12, lostRequest)...) // as if the process had died
	crash = false
	g.forward(time.Minute)
	x := g.executor(s.tool())
	close(release)
	g.eventually("the lost writes", func() bool { return g.ledger.pending() == 0 || len(g.kinds(g.all()[0].Operation)) > 1 })
	g.ledger.mend("apply")
	g.recover(x)
	g.forward(time.Minute)
	g.recover(x)
	row := g.all()[0].Operation
	if row.State != store.Completed {
		t.Fatalf("recovery left it %s", row.State)
	}
	out := g.want(x, sayCall("hello there"), settle.StatusHeld)
	if out.Reason != "done_before_restart" {
		t.Errorf("the reason is %q", out.Reason)
	}
}

func TestR30CallsOfOneTurnDontHoldOneAnother(t *testing.T) {
	g := onFile(t)
	s := &say{}
	p := &pay{contract: keyedContract()}
	read := &pay{contract: settle.Contract{Class: settle.Read}}
	x := g.executor(s.tool(), p.tool(), read.tool("balance"))
	outs, err := x.ExecuteAll(g.ctx, sayCall("a"), sayCall("b"), sayCall("a"), payCall("A-1", 5), payCall("A-1", 5), payCall("A-1", 6),
		rawCall("balance", `{"order":"A-1","amount":1}`), rawCall("nothing", `{}`), rawCall("say", `{"text":`), rawCall("say", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, out := range outs {
		got = append(got, string(out.Status))
	}
	want := []string{"completed", "completed", "completed", "completed", "completed", "conflict", "completed", "no_such_tool", "invalid_arguments", "invalid_arguments"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if outs[0].Operation != outs[2].Operation || outs[0].Replayed == outs[2].Replayed {
		t.Error("two equal calls of one turn aren't one operation")
	}
	if s.effects.Load() != 2 {
		t.Errorf("%d words", s.effects.Load())
	}
	g.did(p, 1)
	g.did(read, 1)
	if outs, err := x.ExecuteAll(g.ctx); err != nil || len(outs) != 0 {
		t.Errorf("an empty turn: %v, %v", outs, err)
	}
}

func TestR30TwoTurnsInOppositeOrderDoEachEffectOnce(t *testing.T) {
	g := onFile(t)
	s := &say{}
	executors := []*settle.Executor{g.executor(s.tool()), g.executor(s.tool())}
	var calls, reversed []settle.Call
	for i := range 6 {
		calls = append(calls, sayCall(fmt.Sprint("word ", i)))
	}
	reversed = slices.Clone(calls)
	slices.Reverse(reversed)
	for range 3 { // what one turn is held by, it may do when it comes again
		g.storm(2, func(i int) settle.Outcome {
			turn := [][]settle.Call{calls, reversed}[i]
			outs, err := executors[i].ExecuteAll(g.ctx, turn...)
			if err != nil {
				t.Error(err)
				return settle.Outcome{}
			}
			return outs[0]
		})
	}
	if s.effects.Load() != 6 || len(g.all()) != 6 {
		t.Errorf("%d effects of %d operations, want 6", s.effects.Load(), len(g.all()))
	}
}

func TestR30ATurnIsHeldByTheOneBefore(t *testing.T) {
	g := onFile(t)
	s := &say{attempt: func(context.Context, settle.Op) error { return errors.New("connection reset") }}
	x := g.executor(s.tool())
	if _, err := x.ExecuteAll(g.ctx, sayCall("a"), sayCall("b")); err != nil {
		t.Fatal(err)
	}
	outs, err := x.ExecuteAll(g.ctx, sayCall("c"), sayCall("d"))
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range outs {
		if out.Status != settle.StatusHeld || len(out.Related) != 2 {
			t.Errorf("got %s, held by %d", out.Status, len(out.Related))
		}
	}
}

func TestR30WhatHadNoEffectAndWasToldIsReplaced(t *testing.T) {
	g := onFile(t)
	s := &say{}
	fails := true
	s.attempt = func(context.Context, settle.Op) error {
		if fails {
			return settle.NotSent(errors.New("no route"))
		}
		return nil
	}
	x := g.executor(s.tool())
	first := g.want(x, sayCall("hello"), settle.StatusNotDone)
	fails = false
	g.want(x, sayCall("hello there"), settle.StatusCompleted)
	if row := g.row(first); row.State != store.Failed || row.Reason != "replaced" {
		t.Errorf("the first is %s (%s)", row.State, row.Reason)
	}
}

// A call that is held by what was told already, and whose own number has failed,
// must not go round in circles.
func TestR30AHeldNextNumberIsMade(t *testing.T) {
	g := onFile(t)
	s := &say{contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true, Attempts: 1}}
	fails := true
	s.attempt = func(_ context.Context, op settle.Op) error {
		_ = op.Key()
		if fails {
			return settle.NotSent(errors.New("no route"))
		}
		return nil
	}
	x := g.executor(s.tool())
	g.want(x, sayCall("hello"), settle.StatusNotDone) // exhausted
	fails = false
	g.want(g.executor(s.tool()), sayCall("good morning"), settle.StatusCompleted)
	g.want(x, sayCall("hello"), settle.StatusHeld)
	out := g.want(x, sayCall("hello"), settle.StatusCompleted)
	if g.row(out).Number != 2 {
		t.Errorf("it is number %d", g.row(out).Number)
	}
}

func TestR30HoldAndClaimAreOneDecision(t *testing.T) {
	g := onFile(t)
	s := &say{attempt: func(context.Context, settle.Op) error { return errors.New("connection reset") }}
	executors := []*settle.Executor{g.executor(s.tool()), g.executor(s.tool()), g.executor(s.tool())}
	unknown := 0
	for _, out := range g.storm(24, func(i int) settle.Outcome {
		return g.do(g.ctx, executors[i%3], sayCall(fmt.Sprint("wording ", i)))
	}) {
		switch out.Status {
		case settle.StatusUnknown:
			unknown++
		case settle.StatusHeld:
		default:
			t.Errorf("got %s", out.Status)
		}
	}
	if unknown != 1 || len(g.all()) != 1 {
		t.Errorf("%d of 24 wordings were claimed, %d operations", unknown, len(g.all()))
	}
}

// A tool that calls itself.

func TestR28ACallThatRecursIntoItsOwnOperationIsRefused(t *testing.T) {
	g := onFile(t)
	var x *settle.Executor
	var inner settle.Outcome
	p := &pay{contract: unsafeContract()}
	p.attempt = func(ctx context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Order == "A-1" {
			inner = g.do(ctx, x, payCall("A-1", 5))
		}
		return act(), nil
	}
	x = g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if inner.Status != settle.StatusConflict || inner.Reason != "recursion" {
		t.Errorf("the inner call got %s (%s)", inner.Status, inner.Reason)
	}
	g.did(p, 1)
}

// A tool that is held by the very operation it runs in would wait for itself.
func TestR28ACallDoesNotWaitForTheOperationItRunsIn(t *testing.T) {
	g := onFile(t)
	var x *settle.Executor
	var inner settle.Outcome
	s := &say{contract: settle.Contract{Timeout: 20 * time.Second}}
	s.attempt = func(ctx context.Context, op settle.Op) error {
		inner = g.do(ctx, x, sayCall("hello there"))
		return nil
	}
	x = g.executor(s.tool())
	began := time.Now()
	g.want(x, sayCall("hello"), settle.StatusCompleted)
	g.wantStatus(inner, settle.StatusHeld)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestR28AWriteDoesNotWaitForTheWriteItRunsIn(t *testing.T) {
	g := onFile(t)
	var x *settle.Executor
	var inner settle.Outcome
	p := &pay{contract: settle.Contract{Class: settle.Idempotent, Timeout: 20 * time.Second}}
	p.attempt = func(ctx context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Amount == 1 {
			inner = g.do(ctx, x, payCall("A-1", 2))
		}
		return act(), nil
	}
	x = g.executor(p.tool())
	began := time.Now()
	g.want(x, payCall("A-1", 1), settle.StatusCompleted)
	g.wantStatus(inner, settle.StatusInProgress)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
