package settle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Processes without a tool beside those that have it, on one ledger, and what a
// person has allowed: who brings it on, and when it is given up.

// allowed is a call of an approved tool, whose far side is out of reach for as
// long as down is true.
func (g *rig) allowed(x *settle.Executor, call settle.Call) settle.Outcome {
	g.Helper()
	out := g.want(x, call, settle.StatusAwaitingApproval)
	ctx := settle.WithOperator(g.ctx, settle.Operator{Name: "ann"})
	if _, err := x.Queue().Decide(ctx, settle.Decision{Operation: out.Operation, Version: g.row(out).Version,
		ID: uuid.NewString(), Kind: settle.DecideApprove, Reason: "asked them"}); err != nil {
		g.Fatal(err)
	}
	return out
}

func approvedPay(c settle.Contract) (p *pay, down *atomic.Bool) {
	c.NoLookup, c.Approval = true, true
	p, down = &pay{contract: c}, new(atomic.Bool)
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		if down.Load() {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	return p, down
}

func TestR37AProcessWithoutTheToolPutsNothingOff(t *testing.T) {
	g := onFile(t)
	p, _ := approvedPay(settle.Contract{StaleAfter: 72 * time.Hour})
	x, stranger := g.executor(p.tool()), g.executor()
	out := g.allowed(x, payCall("A-1", 5))
	version := g.row(out).Version
	for range 3 {
		g.forward(16 * time.Hour)
		g.recover(stranger)
	}
	if row := g.row(out); row.State != store.Retryable || row.Version != version {
		t.Fatalf("a worker without the tool left it %s (%s), with %d events more", row.State, row.Reason, row.Version-version)
	}
	g.forward(2 * time.Minute)
	g.recover(x)
	if row := g.row(out); row.State != store.Completed {
		t.Errorf("a worker with the tool left it %s (%s)", row.State, row.Reason)
	}
	g.did(p, 1)
}

// A wait that the far side asked for ends, whoever recovers (R28).
func TestR28AProcessWithoutTheToolEndsAWait(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	throttles := true
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		if throttles {
			return paid{}, settle.NotSent(errors.New("429"), settle.RetryAfter(time.Minute))
		}
		return act(), nil
	}
	x, stranger := g.executor(p.tool()), g.executor()
	out := g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	throttles = false
	for range 3 {
		g.forward(2 * time.Minute)
		g.recover(stranger)
	}
	version := g.row(out).Version
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if version > 4 {
		t.Errorf("a worker without the tool wrote %d events", version)
	}
	g.did(p, 1)
}

func TestR43WhatIsAllowedGrowsStaleFromThenOn(t *testing.T) {
	for name, told := range map[string]bool{"its caller was told": true, "nobody was told": false} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p, down := approvedPay(settle.Contract{ApprovalTTL: 48 * time.Hour})
			x := g.executor(p.tool())
			down.Store(true)
			out := g.want(x, payCall("A-1", 5), settle.StatusAwaitingApproval)
			g.forward(30 * time.Hour) // longer than StaleAfter
			g.allowed(x, payCall("A-1", 5))
			g.recover(x)
			if told {
				g.want(x, payCall("A-1", 5), settle.StatusNotDone)
			}
			if row := g.row(out); row.State != store.Retryable || !row.Granted {
				t.Fatalf("what was allowed just now is %s (%s)", row.State, row.Reason)
			}
			g.recoverEvery(time.Hour, 12, x)
			if row := g.row(out); row.State != store.Retryable || !row.Granted {
				t.Fatalf("after half a day it is %s (%s)", row.State, row.Reason)
			}
			g.recoverEvery(time.Hour, 30, x)
			row, sent := g.row(out), p.entered.Load()
			if row.State != store.Failed || row.Reason != "stale" {
				t.Errorf("after two days it is %s (%s)", row.State, row.Reason)
			}
			g.recoverEvery(time.Hour, 5, x)
			if now := g.row(out); now.Version != row.Version || p.entered.Load() != sent {
				t.Errorf("given up, it was worked on: %d events, %d attempts", now.Version-row.Version, p.entered.Load()-sent)
			}
			// The word was for that operation: the next one needs its own.
			down.Store(false)
			next := g.want(x, payCall("A-1", 5), settle.StatusAwaitingApproval)
			if n := g.row(next).Number; n != 2 {
				t.Errorf("the next call is number %d", n)
			}
			g.did(p, 0)
		})
	}
}

// A worker's attempts at what a person has allowed are far apart in the end, and
// every one of them is in the journal.
func TestR28AttemptsAtWhatIsAllowedAreSpaced(t *testing.T) {
	g := onFile(t)
	p, down := approvedPay(settle.Contract{})
	x := g.executor(p.tool())
	down.Store(true)
	out := g.allowed(x, payCall("A-1", 5))
	g.recoverEvery(time.Second, 600, x) // ten minutes
	if n := p.entered.Load(); n < 5 || n > 60 {
		t.Errorf("%d attempts in ten minutes", n)
	}
	down.Store(false)
	g.recoverEvery(time.Minute, 10, x)
	if row := g.row(out); row.State != store.Completed {
		t.Errorf("it is %s (%s)", row.State, row.Reason)
	}
	g.did(p, 1)
}

// What is left to others keeps nothing from what any process may do: a lease that
// ends is seen to within a scan, though others of its tool were left just now.
func TestR38WhatIsLeftToOthersDelaysNoExpiry(t *testing.T) {
	g := onFile(t)
	p, _ := approvedPay(settle.Contract{})
	x := g.executor(p.tool())
	left := g.allowed(x, payCall("A-1", 5))
	stranger := g.executor()
	ctx, stop := context.WithCancel(g.ctx)
	ended := make(chan error, 1)
	go func() { ended <- stranger.Run(ctx) }()
	g.eventually("it is left to others", func() bool { row := g.row(left); return row.DueAt.Sub(row.Read) > 30*time.Second })

	q := &pay{contract: unsafeContract()}
	crashed := g.crashed(q.tool(), payCall("A-2", 5))
	g.forward(time.Minute)
	g.eventually("its lease has ended", func() bool {
		return g.row(settle.Outcome{Operation: crashed.ID.String()}).State != store.Running
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
