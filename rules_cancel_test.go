package settle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// The caller goes, at every point of its call.

func TestR24ACallerThatIsGoneBeforeTheClaimStartsNothing(t *testing.T) {
	for name, warm := range map[string]bool{"first call": false, "known intent": true} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: keyedContract()}
			x := g.executor(p.tool())
			if warm {
				g.want(x, payCall("A-0", 5), settle.StatusCompleted)
			}
			ctx, cancel := context.WithCancel(g.ctx)
			cancel()
			before := p.effects.Load()
			out := g.do(ctx, x, payCall("A-1", 5))
			g.wantStatus(out, settle.StatusUnavailable)
			if out.Reason != "caller_gone" {
				t.Errorf("the reason is %q", out.Reason)
			}
			outs, err := x.ExecuteAll(ctx, payCall("A-2", 5), payCall("A-3", 5))
			if err != nil {
				t.Fatal(err)
			}
			for _, out := range outs {
				g.wantStatus(out, settle.StatusUnavailable)
			}
			g.did(p, before)
			g.want(x, payCall("A-1", 5), settle.StatusCompleted)
		})
	}
}

func TestR24ACallerThatIsGoneResumesNothing(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		return paid{}, settle.NotSent(errors.New("no route"))
	}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	ctx, cancel := context.WithCancel(g.ctx)
	g.ledger.next("claim", func(call func() error) error {
		defer cancel()
		return call()
	})
	g.do(ctx, x, payCall("A-1", 5))
	if err := x.Shutdown(g.ctx); err != nil { // waits for what was begun
		t.Fatal(err)
	}
	if p.entered.Load() != 1 {
		t.Error("an attempt was made for a caller that had gone")
	}
}

func TestR24ACancelledCallerLeavesTheAttemptToItsEnd(t *testing.T) {
	g := onFile(t)
	entered, release := make(chan struct{}), make(chan struct{})
	cancelled := false
	p := &pay{contract: unsafeContract()}
	p.attempt = func(ctx context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		close(entered)
		<-release
		cancelled = ctx.Err() != nil
		return act(), nil
	}
	x := g.executor(p.tool())
	ctx, cancel := context.WithCancel(g.ctx)
	done := g.background(ctx, x, payCall("A-1", 5))
	after(g, "the attempt", entered)
	cancel()
	out := after(g, "the cancelled caller's answer", done)
	g.wantStatus(out, settle.StatusInProgress)
	if out.Operation == "" {
		t.Error("the caller wasn't told which operation goes on")
	}
	close(release)
	again := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if !again.Replayed || cancelled {
		t.Errorf("replayed %v, handler cancelled %v", again.Replayed, cancelled)
	}
	g.did(p, 1)
}

func TestR24AnInterruptibleHandlerHearsTheCallerGo(t *testing.T) {
	g := onFile(t)
	entered := make(chan struct{})
	p := &pay{contract: settle.Contract{NoLookup: true, Interruptible: true}}
	p.attempt = func(ctx context.Context, _ settle.Op, _ payArgs, _ func() paid) (paid, error) {
		close(entered)
		<-ctx.Done()
		return paid{}, ctx.Err()
	}
	x := g.executor(p.tool())
	ctx, cancel := context.WithCancel(g.ctx)
	done := g.background(ctx, x, payCall("A-1", 5))
	after(g, "the attempt", entered)
	cancel()
	began := time.Now()
	after(g, "the cancelled caller's answer", done)
	g.eventually("the record", func() bool { return g.all()[0].State == store.Unknown })
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the handler ended after %v, by its own timeout of 10 s", took)
	}
}

// A claim that was cut off halfway would be nobody's, and a person's case.
func TestR24ACallerThatGoesWhileTheClaimIsOnItsWayLeavesNoOrphan(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	x := g.executor(p.tool())
	ctx, cancel := context.WithCancel(g.ctx)
	g.ledger.next("claim", func(call func() error) error {
		cancel()
		return lostAnswer(call)
	})
	g.do(ctx, x, payCall("A-1", 5))
	again := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if !again.Replayed {
		t.Error("the claim was left behind")
	}
	g.did(p, 1)
}

func TestR24TheCallersDeadlineIsNotTheAttempts(t *testing.T) {
	g := onFile(t)
	release := make(chan struct{})
	p := &pay{contract: unsafeContract()}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		<-release
		return paid{"payment-1"}, nil
	}
	x := g.executor(p.tool())
	ctx, cancel := context.WithTimeout(g.ctx, 300*time.Millisecond)
	defer cancel()
	g.wantStatus(g.do(ctx, x, payCall("A-1", 5)), settle.StatusInProgress)
	close(release)
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
}

func TestR24AReadIsCancelledWithItsCaller(t *testing.T) {
	g := inMemory(t)
	entered := make(chan struct{})
	p := &pay{contract: settle.Contract{Class: settle.Read}}
	p.attempt = func(ctx context.Context, _ settle.Op, _ payArgs, _ func() paid) (paid, error) {
		close(entered)
		<-ctx.Done()
		return paid{}, ctx.Err()
	}
	x := g.executor(p.tool())
	ctx, cancel := context.WithCancel(g.ctx)
	done := g.background(ctx, x, payCall("A-1", 5))
	after(g, "the attempt", entered)
	cancel()
	g.wantStatus(after(g, "the answer", done), settle.StatusNotDone)
	if p.entered.Load() != 1 {
		t.Error("a read was repeated for a caller that had gone")
	}
}

// What was told counts: the caller heard "not done" before the ledger did.
func TestR37ANotDoneThatCouldNotBeRecordedIsStillTheCallers(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true, Attempts: 2}}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		if op.Attempt() == 1 {
			return paid{}, settle.NotSent(errors.New("busy"), settle.RetryAfter(time.Hour))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	ctx, cancel := context.WithCancel(g.ctx)
	g.ledger.next("apply", times(6, lostRequest)...)
	out := g.do(ctx, x, payCall("A-1", 5))
	g.wantStatus(out, settle.StatusNotDone)
	if out.Recorded {
		t.Error("an outcome that the ledger didn't take is called recorded")
	}
	cancel() // as a caller does that has its answer
	g.eventually("the record", func() bool { return g.row(out).State == store.Retryable })
	if !g.row(out).Told {
		t.Fatal("the ledger doesn't know that the caller was told")
	}
	g.forward(2 * time.Hour)
	g.recover(x)
	g.did(p, 0)
}

func TestR24ACallerThatGoesWhileTheHostIsAskedClaimsNothing(t *testing.T) {
	g := onFile(t)
	ctx, cancel := context.WithCancel(g.ctx)
	p := &pay{contract: keyedContract()}
	p.contract.Authorize = func(context.Context, settle.Authorization) error {
		cancel()
		return nil
	}
	x := g.executor(p.tool())
	for _, turn := range [][]settle.Call{{payCall("A-1", 5)}, {payCall("A-1", 5), payCall("A-2", 5)}} {
		outs, err := x.ExecuteAll(ctx, turn...)
		if err != nil || outs[0].Status != settle.StatusUnavailable || outs[0].Reason != "caller_gone" {
			t.Errorf("got %+v, %v", outs, err)
		}
	}
	if n := len(g.all()); n != 0 {
		t.Errorf("%d operations were claimed", n)
	}
}

// For a caller that has gone, a claim of which nothing was written isn't made again
// and again, and its going is no word on the ledger.
func TestR24ACallerThatWentIsNotClaimedFor(t *testing.T) {
	for _, method := range []string{"intent", "claim"} {
		t.Run(method, func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: unsafeContract()}
			x := g.executor(p.tool())
			ctx, leave := context.WithCancel(g.ctx)
			busy := func(func() error) error {
				leave()
				return &store.UnwrittenError{Err: errors.New("locked"), Again: true}
			}
			g.ledger.next(method, busy, busy, busy, busy)
			out := g.do(ctx, x, payCall("A-1", 5))
			g.wantStatus(out, settle.StatusUnavailable)
			if calls, _ := g.ledger.counted(); out.Reason != "caller_gone" || calls[method] != 1 || p.entered.Load() != 0 {
				t.Errorf("reason %q after %d calls, %d attempts", out.Reason, calls[method], p.entered.Load())
			}
			g.ledger.mend(method)
			g.want(x, payCall("A-1", 5), settle.StatusCompleted)
		})
	}
}
