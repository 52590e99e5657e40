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

// Who goes on without a caller, and as whom.

// abandonedCall leaves an operation whose caller was told "in progress" and that
// had no effect: what a worker may go on with.
func (g *rig) abandonedCall(p *pay, end error) store.Operation {
	g.Helper()
	before := p.attempt
	entered, release := make(chan struct{}), make(chan struct{})
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, _ func() paid) (paid, error) {
		_ = op.Key()
		close(entered)
		<-release
		return paid{}, end
	}
	x := g.executor(p.tool())
	ctx, cancel := context.WithCancel(g.ctx)
	done := g.background(ctx, x, payCall("A-1", 5))
	after(g, "the attempt", entered)
	cancel()
	g.wantStatus(after(g, "the caller", done), settle.StatusInProgress)
	soon, stop := context.WithTimeout(g.ctx, time.Millisecond)
	defer stop()
	_ = x.Shutdown(soon) // no further attempts in this process
	close(release)
	g.eventually("the record", func() bool { return g.all()[0].State != store.Running })
	p.attempt = before
	return g.all()[0].Operation
}

func TestR37WhoGoesOnDependsOnWhatTheCallerWasTold(t *testing.T) {
	reset, noRoute := errors.New("connection reset"), settle.NotSent(errors.New("no route"))
	day := 24 * time.Hour
	for name, tc := range map[string]struct {
		contract settle.Contract
		end      error
		// effects are those after recovery.
		effects int64
		state   store.State
	}{
		"keyed, unknown":       {settle.Contract{Class: settle.Keyed, KeyWindow: day, NoLookup: true}, reset, 1, store.Completed},
		"keyed, not sent":      {settle.Contract{Class: settle.Keyed, KeyWindow: day, NoLookup: true}, noRoute, 1, store.Completed},
		"idempotent, unknown":  {settle.Contract{Class: settle.Idempotent}, reset, 1, store.Completed},
		"idempotent, not sent": {settle.Contract{Class: settle.Idempotent}, noRoute, 1, store.Completed},
		"unsafe, unknown":      {settle.Contract{NoLookup: true}, reset, 0, store.Manual},
		"unsafe, not sent":     {settle.Contract{NoLookup: true}, noRoute, 0, store.Retryable},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: tc.contract}
			row := g.abandonedCall(p, tc.end)
			if row.Told {
				t.Error("the ledger thinks that the caller was told")
			}
			x := g.executor(p.tool())
			for range 3 {
				g.forward(time.Minute)
				g.recover(x)
			}
			g.did(p, tc.effects)
			if row := g.all()[0]; row.State != tc.state {
				t.Errorf("it is %s (%s), want %s", row.State, row.Reason, tc.state)
			}
		})
	}
}

func TestR37WhatWasToldNotDoneIsTheCallers(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	fails := true
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		if fails {
			return paid{}, settle.NotSent(errors.New("429"), settle.RetryAfter(time.Hour))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	fails = false
	for range 3 {
		g.forward(3 * time.Hour)
		g.recover(x)
	}
	g.did(p, 0)
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	g.did(p, 1)
}

func TestR37AWorkerActsAsTheStoredPrincipalWithTheStoredArguments(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	asked := 0
	p.contract.Authorize = func(_ context.Context, a settle.Authorization) error {
		if a.Operation != "" && a.Purpose == "attempt" {
			asked++
		}
		return nil
	}
	var saw []string
	p.attempt = func(ctx context.Context, op settle.Op, in payArgs, act func() paid) (paid, error) {
		who, _ := settle.PrincipalFrom(ctx)
		saw = append(saw, fmt.Sprint(who, op.Principal(), op.Task(), in))
		return act(), nil
	}
	g.abandonedCall(p, settle.NotSent(errors.New("no route")))
	g.forward(time.Minute)
	g.recover(g.executor(p.tool()))
	want := []string{"{acme bot} {acme bot} {case-1 rules} {A-1 5 }"}
	if !slices.Equal(saw, want) || asked != 1 {
		t.Errorf("the worker's attempt saw %v, authorised %d times", saw, asked)
	}
}

func TestR37AWorkerWithoutPermissionSendsNothing(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	g.abandonedCall(p, settle.NotSent(errors.New("no route")))
	p.contract.Authorize = func(context.Context, settle.Authorization) error { return errors.New("no") }
	g.forward(time.Minute)
	g.recover(g.executor(p.tool()))
	g.did(p, 0)
	if row := g.all()[0]; row.State != store.Failed || row.Reason != "denied" {
		t.Errorf("it is %s (%s)", row.State, row.Reason)
	}
}

func TestR37WithoutItsSecretsOnlyTheCallerGoesOn(t *testing.T) {
	type args struct {
		Order string `json:"order" settle:"identity"`
		Card  string `json:"card" settle:"secret"`
	}
	g := onFile(t)
	var cards []string
	fails := true
	tool := settle.Tool[args, paid]{Name: "pay", Contract: keyedContract(), Do: func(_ context.Context, op settle.Op, in args) (paid, error) {
		_ = op.Key()
		if cards = append(cards, in.Card); fails {
			return paid{}, errors.New("connection reset")
		}
		return paid{"p-1"}, nil
	}}
	tool.Contract.Attempts = 2
	tool.Contract.Timeout = time.Second
	g.crashed(tool, rawCall("pay", `{"order":"A-1","card":"4111"}`))
	cards, fails = nil, false
	x := g.executor(tool)
	for range 2 {
		g.forward(time.Minute)
		g.recover(x)
	}
	if len(cards) != 0 {
		t.Errorf("a worker sent %q", cards)
	}
	g.want(x, rawCall("pay", `{"order":"A-1","card":"4111"}`), settle.StatusCompleted)
	if !slices.Equal(cards, []string{"4111"}) {
		t.Errorf("the caller's attempt sent %q", cards)
	}
}

func TestR37StaleOperationsAreGivenUp(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	fails := true
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		if fails {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	for _, recovered := range []bool{true, false} {
		order := fmt.Sprint("A-", recovered)
		out := g.want(x, payCall(order, 5), settle.StatusNotDone)
		g.forward(25 * time.Hour)
		if recovered {
			g.recover(x)
			if row := g.row(out); row.State != store.Failed || row.Reason != "stale" {
				t.Errorf("after StaleAfter it is %s (%s)", row.State, row.Reason)
			}
		}
		fails = false
		again := g.want(x, payCall(order, 5), settle.StatusCompleted)
		if row := g.row(again); row.Number != 2 {
			t.Errorf("the call after it is number %d", row.Number)
		}
		fails = true
	}
	g.did(p, 2)
}

func TestR38NothingStaysRunningUnderADeadOwner(t *testing.T) {
	day := 24 * time.Hour
	for name, contract := range map[string]settle.Contract{
		"unsafe": {NoLookup: true}, "keyed": {Class: settle.Keyed, KeyWindow: day, NoLookup: true}, "idempotent": {Class: settle.Idempotent},
	} {
		for who, knows := range map[string]bool{"its tool": true, "no tool": false} {
			t.Run(name+", a worker that knows "+who, func(t *testing.T) {
				g := onFile(t)
				p := &pay{contract: contract}
				g.crashed(p.tool(), payCall("A-1", 5))
				x := g.executor()
				if knows {
					x = g.executor(p.tool())
				}
				g.recover(x)
				if row := g.all()[0]; row.State != store.Running {
					t.Errorf("inside its lease it became %s", row.State)
				}
				g.forward(time.Minute)
				report := g.recover(x)
				if row := g.all()[0]; row.State == store.Running || report.Taken != 1 || report.Failed != 0 {
					t.Errorf("after one scan it is %s; the report is %+v", row.State, report)
				}
				g.forward(48 * time.Hour)
				g.recover(x)
				g.forward(time.Minute)
				g.recover(x)
				want := store.Manual
				if knows && contract.Class != settle.Unsafe {
					want = store.Completed
				}
				if row := g.all()[0]; row.State != want {
					t.Errorf("in the end it is %s (%s), want %s", row.State, row.Reason, want)
				}
			})
		}
	}
}

type newArgs struct {
	Order  string   `json:"order" settle:"identity"`
	Amount []string `json:"amount"`
}

func TestR38ArgumentsThatNoLongerDecodeAreACaseAndNoLoop(t *testing.T) {
	for name, lookup := range map[string]bool{"resumed": false, "looked for": true} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: keyedContract()}
			g.abandonedCall(p, settle.NotSent(errors.New("no route")))
			tool := settle.Tool[newArgs, paid]{Name: "pay", Contract: keyedContract(), Do: does[newArgs, paid]()}
			if lookup {
				tool.Contract.NoLookup = false
				tool.Lookup = func(_ context.Context, q settle.Query[paid], _ newArgs) (settle.Evidence, error) {
					return q.NotHappened(), nil
				}
			}
			x := g.executor(tool)
			for range 3 {
				g.forward(time.Minute)
				g.recover(x)
			}
			if row := g.all()[0]; row.State != store.Manual || row.Reason != "arguments_undecodable" {
				t.Errorf("it is %s (%s)", row.State, row.Reason)
			}
		})
	}
}

// Caller and worker at the same time: one of them.
func TestR37ACallerAndWorkersResumeOnce(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		pause(20 * time.Millisecond)
		return act(), nil
	}
	g.abandonedCall(p, settle.NotSent(errors.New("no route")))
	g.forward(time.Minute)
	executors := []*settle.Executor{g.executor(p.tool()), g.executor(p.tool()), g.executor(p.tool())}
	outs := g.storm(18, func(i int) settle.Outcome {
		if i%3 == 0 {
			g.recover(executors[i/3%3])
			return settle.Outcome{Status: settle.StatusCompleted}
		}
		return g.do(g.ctx, executors[i%3], payCall("A-1", 5))
	})
	for _, out := range outs {
		g.wantStatus(out, settle.StatusCompleted)
	}
	g.did(p, 1)
}
