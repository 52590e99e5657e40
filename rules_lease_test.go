package settle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// The lease: nothing is sent outside it.

// A claim whose answer came late has used up part of its lease.
func TestR22AHandlerEndsInsideTheLeaseThatIsLeft(t *testing.T) {
	g := onFile(t)
	ended := make(chan time.Time, 1)
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: 2 * time.Second}}
	p.attempt = func(ctx context.Context, _ settle.Op, _ payArgs, _ func() paid) (paid, error) {
		<-ctx.Done()
		ended <- time.Now()
		return paid{}, ctx.Err()
	}
	x := g.executor(p.tool())
	// The lease is 4 s; 1.6 s of it are gone when the answer comes.
	slow := func(call func() error) error {
		err := call()
		pause(1600 * time.Millisecond)
		return err
	}
	g.ledger.next("claim", slow)
	claimed := time.Now()
	g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	if ran := after(g, "the handler's end", ended).Sub(claimed); ran > 3200*time.Millisecond {
		t.Errorf("the handler was cancelled %v after the claim was sent; its lease is 4 s with 1 s kept for the record", ran)
	}
	g.did(p, 0)
}

// The first request wrote the claim and its lease; the second one only found it.
func TestR22ALeaseBeganWithTheFirstRequest(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: time.Millisecond}}
	x := g.executor(p.tool())
	g.ledger.next("claim", func(call func() error) error {
		_ = call()
		pause(1200 * time.Millisecond)
		return errLink
	})
	// The lease is 2 s; less is left than an attempt and its record need.
	g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	if p.entered.Load() != 0 {
		t.Error("an attempt began when its lease was nearly over")
	}
}

func TestR22TheLeaseIsCheckedAfterTheHostWasAsked(t *testing.T) {
	g := onFile(t)
	slow := false
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: time.Millisecond}}
	p.contract.Authorize = func(_ context.Context, a settle.Authorization) error {
		if slow && a.Purpose == "attempt" && a.Operation != "" {
			pause(1200 * time.Millisecond)
		}
		return nil
	}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		if op.Attempt() == 1 {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	slow = true
	g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	if p.entered.Load() != 1 {
		t.Error("an attempt began when its lease was nearly over")
	}
}

// The margin of a lease has room for a slow ledger: a contract with a short
// timeout still gets it whole.
func TestR22ASlowClaimTakesNothingFromAShortTimeout(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: 100 * time.Millisecond}}
	p.attempt = func(ctx context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < 50*time.Millisecond {
			return paid{}, errors.New("there is no time")
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	g.ledger.next("claim", func(call func() error) error {
		pause(300 * time.Millisecond)
		return call()
	})
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
}

// A handler that ends with its context has a moment to say what is known.
func TestR22AHandlerThatEndsWithItsContextIsHeard(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: 50 * time.Millisecond}}
	p.attempt = func(ctx context.Context, _ settle.Op, _ payArgs, _ func() paid) (paid, error) {
		<-ctx.Done()
		pause(20 * time.Millisecond)
		return paid{}, settle.NotSent(ctx.Err())
	}
	g.want(g.executor(p.tool()), payCall("A-1", 5), settle.StatusNotDone)
}
