package settle_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// What an attempt says after its time, and after somebody else went on.

// eventually waits for what a goroutine of the executor will bring about.
func (g *rig) eventually(what string, done func() bool) {
	g.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			g.Fatalf("waited 20 s for %s", what)
		}
		pause(5 * time.Millisecond)
	}
}

// stuck is a tool whose first attempt ignores the end of its context and stays
// until the test lets it return.
type stuck struct {
	pay
	release chan func(act func() paid) (paid, error)
	// later is what the other attempts do.
	later func(act func() paid) (paid, error)
}

func newStuck(c settle.Contract) *stuck {
	s := &stuck{release: make(chan func(func() paid) (paid, error)), later: func(act func() paid) (paid, error) { return act(), nil }}
	c.Timeout = 20 * time.Millisecond
	s.contract = c
	s.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		if op.Attempt() == 1 {
			return (<-s.release)(act)
		}
		return s.later(act)
	}
	return s
}

func TestR25ALateSuccessCompletesAnUnknownOperation(t *testing.T) {
	g := onFile(t)
	s := newStuck(unsafeContract())
	x := g.executor(s.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	if out.Reason != "timeout" {
		t.Errorf("the reason is %q, want timeout", out.Reason)
	}
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	g.eventually("the late answer", func() bool { return g.row(out).State == store.Completed })
	again := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if !again.Replayed || again.Resource != "payment-1" {
		t.Errorf("the replay is %+v", again)
	}
	g.did(&s.pay, 1)
}

func TestR25ALateSuccessCompletesACaseThatNobodyHasTaken(t *testing.T) {
	g := onFile(t)
	s := newStuck(unsafeContract())
	x := g.executor(s.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	g.forward(time.Hour)
	g.recover(x)
	if got := g.row(out).State; got != store.Manual {
		t.Fatalf("past its moment it is %s, want manual", got)
	}
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	g.eventually("the late answer", func() bool { return g.row(out).State == store.Completed })
}

func TestR25ALateSuccessIsAttachedToACaseThatSomebodyHasTaken(t *testing.T) {
	g := onFile(t)
	s := newStuck(unsafeContract())
	x := g.executor(s.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	g.forward(time.Hour)
	g.recover(x)
	ann := settle.WithOperator(g.ctx, settle.Operator{Name: "ann"})
	if err := x.Queue().Take(ann, out.Operation); err != nil {
		t.Fatal(err)
	}
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	g.eventually("the late answer", func() bool { return slices.Contains(g.kinds(g.row(out)), "late_success") })
	if row := g.row(out); row.State != store.Manual {
		t.Errorf("it is %s: the person who has it decides", row.State)
	}
}

func TestR25ALateSuccessReopensAFailedOperation(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{VisibilityDelay: settle.Immediately, StaleAfter: time.Hour})
	s.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.NotHappened(), nil
	}
	x := g.executor(s.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	g.forward(2 * time.Hour)
	g.recover(x) // not happened
	g.forward(2 * time.Hour)
	g.recover(x) // stale
	if row := g.row(out); row.State != store.Failed || row.Reason != "stale" {
		t.Fatalf("it is %s (%s), want failed (stale)", row.State, row.Reason)
	}
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	g.eventually("the late answer", func() bool { return g.row(out).State == store.Manual })
	if row := g.row(out); row.Reason != "late_success" {
		t.Errorf("the reason is %q", row.Reason)
	}
}

// What settled a unique tool's identity meanwhile stays; the late effect is a
// person's to see.
func TestR14ALateSuccessDoesNotBreakUniqueness(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{Unique: true, VisibilityDelay: settle.Immediately, StaleAfter: time.Hour})
	s.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.NotHappened(), nil
	}
	whole := s.attempt
	var first atomic.Bool
	s.attempt = func(ctx context.Context, op settle.Op, in payArgs, act func() paid) (paid, error) {
		if first.CompareAndSwap(false, true) {
			return whole(ctx, op, in, act)
		}
		return act(), nil
	}
	x := g.executor(s.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	for range 2 {
		g.forward(2 * time.Hour)
		g.recover(x)
	}
	if row := g.row(out); row.State != store.Failed {
		t.Fatalf("it is %s (%s)", row.State, row.Reason)
	}
	g.wantStatus(g.do(g.inTask("another"), x, payCall("A-1", 5)), settle.StatusCompleted)
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	g.eventually("the late answer", func() bool { return slices.Contains(g.kinds(g.row(out)), "late_success") })
	if row := g.row(out); row.State != store.Failed || row.Reason != "stale" {
		t.Errorf("it is %s (%s), beside another one that is completed", row.State, row.Reason)
	}
}

// runTwice is an operation whose first attempt is still at work when a second
// one was made, because the far side said that nothing had happened.
func runTwice(g *rig, s *stuck) (*settle.Executor, settle.Outcome) {
	g.Helper()
	s.contract.VisibilityDelay = settle.Immediately
	asked := false
	s.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		if asked {
			return q.Inconclusive("the far side is busy"), nil
		}
		asked = true
		return q.NotHappened(), nil
	}
	x := g.executor(s.tool())
	g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	g.forward(time.Minute)
	return x, g.do(g.ctx, x, payCall("A-1", 5))
}

func TestR25ALateSuccessAfterAnotherOneIsAnIncident(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{})
	_, out := runTwice(g, s)
	g.wantStatus(out, settle.StatusCompleted)
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	g.eventually("the late answer", func() bool { return slices.Contains(g.kinds(g.row(out)), "late_success") })
	if row := g.row(out); row.State != store.Completed || row.Resource != "payment-1" {
		t.Errorf("it is %s with %q; a settled operation stays as it is", row.State, row.Resource)
	}
}

// Two effects that name no resource are two effects all the same.
func TestR25ALateSuccessWithoutAResourceIsAnIncidentToo(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{})
	s.later = func(act func() paid) (paid, error) { act(); return paid{}, nil }
	_, out := runTwice(g, s)
	g.wantStatus(out, settle.StatusCompleted)
	s.release <- func(act func() paid) (paid, error) { act(); return paid{}, nil }
	g.eventually("the late answer", func() bool { return slices.Contains(g.kinds(g.row(out)), "late_success") })
}

func TestR25TheSameResourceTwiceIsNoDuplicate(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{})
	x, out := runTwice(g, s)
	read := g.lateReading()
	s.release <- func(func() paid) (paid, error) { return paid{"payment-1"}, nil }
	after(g, "the late answer", read)
	pause(50 * time.Millisecond)
	if kinds := g.kinds(g.row(out)); slices.Contains(kinds, "late_success") {
		t.Errorf("the journal is %v", kinds)
	}
	_ = x
}

// lateReading tells when a late answer has read the row that it may change.
func (g *rig) lateReading() <-chan struct{} {
	read := make(chan struct{})
	g.ledger.next("get", func(call func() error) error {
		defer close(read)
		return call()
	})
	return read
}

// Shutdown says that all is recorded: it waits for the record of a late answer,
// and what comes after it isn't recorded.
func TestR25ShutdownWaitsForTheRecordOfALateAnswer(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{NoLookup: true})
	x := g.executor(s.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	reading, read := make(chan struct{}), make(chan struct{})
	g.ledger.next("get", func(call func() error) error {
		close(reading)
		<-read
		return call()
	})
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	after(g, "the late answer", reading)
	short, cancel := context.WithTimeout(g.ctx, 20*time.Millisecond)
	defer cancel()
	if err := x.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown while a late answer is being recorded: %v", err)
	}
	close(read)
	if err := x.Shutdown(g.ctx); err != nil {
		t.Fatal(err)
	}
	if state := g.row(out).State; state != store.Completed {
		t.Errorf("after shutdown the operation is %s", state)
	}
}

// The doubt that the row counts is the second attempt's. What the first one
// says late takes nothing from it: the call would run a third time.
func TestR23ALateRefusalSettlesItsOwnAttemptOnly(t *testing.T) {
	for name, said := range map[string]error{"not sent": settle.NotSent(errors.New("no route")), "rejected": settle.Rejected(errors.New("no such order"))} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			s := newStuck(settle.Contract{})
			s.later = func(act func() paid) (paid, error) { act(); return paid{}, errors.New("connection reset") }
			x, out := runTwice(g, s)
			g.wantStatus(out, settle.StatusUnknown)
			read := g.lateReading()
			s.release <- func(func() paid) (paid, error) { return paid{}, said }
			after(g, "the late answer", read)
			pause(50 * time.Millisecond)
			g.want(x, payCall("A-1", 5), settle.StatusUnknown)
			g.did(&s.pay, 1)
		})
	}
}

func TestR23ALateRefusalOfTheOnlyAttemptSettlesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		said error
		want store.State
	}{
		"not sent": {settle.NotSent(errors.New("no route")), store.Retryable},
		"rejected": {settle.Rejected(errors.New("no such order")), store.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			s := newStuck(unsafeContract())
			x := g.executor(s.tool())
			out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
			s.release <- func(func() paid) (paid, error) { return paid{}, tc.said }
			g.eventually("the late answer", func() bool { return g.row(out).State == tc.want })
		})
	}
}

// Until its handler returned, an attempt could still act.
func TestR21AHandlerThatReturnsLateMovesTheMoment(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{VisibilityDelay: time.Minute})
	s.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.NotHappened(), nil
	}
	x := g.executor(s.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	before := g.row(out).Moment
	g.forward(2 * time.Minute)
	s.release <- func(act func() paid) (paid, error) { act(); return paid{}, errors.New("connection reset") }
	g.eventually("the late return", func() bool { return g.row(out).Moment.After(before) })
	if row := g.row(out); row.Moment.Before(row.Read.Add(50 * time.Second)) {
		t.Errorf("the moment is %v after the return, want the visibility delay of 1 min", row.Moment.Sub(row.Read))
	}
	g.recover(x)
	if row := g.row(out); row.State != store.Unknown || row.Verdict == "not_happened" {
		t.Errorf("an absence before the moment left it %s (%s)", row.State, row.Verdict)
	}
}

func TestR21TheMomentIsTheEndOfTheLeaseWhileAHandlerMayBeAtWork(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{NoLookup: true, VisibilityDelay: time.Minute})
	x := g.executor(s.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	row := g.row(out)
	if end := row.FirstSent.Add(2*time.Second + 20*time.Millisecond + time.Minute); row.Moment.Before(end) {
		t.Errorf("the moment is %v before the end of lease and visibility delay", end.Sub(row.Moment))
	}
	s.release <- func(func() paid) (paid, error) { return paid{}, settle.NotSent(errors.New("no")) }
}

func TestR21AHandlerThatReturnedInTimeEndsItsAttempt(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, VisibilityDelay: time.Minute}}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		return paid{}, errors.New("connection reset")
	}
	x := g.executor(p.tool())
	row := g.row(g.want(x, payCall("A-1", 5), settle.StatusUnknown))
	if got := row.Moment.Sub(row.Read); got > time.Minute {
		t.Errorf("the moment is %v ahead; the handler has returned and the visibility delay is 1 min", got)
	}
}

// The attempt's goroutine and the one that went on without it share no more than
// what the ledger says: the race detector watches.
func TestR27AHandlerMayPanicLate(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true, Timeout: 20 * time.Millisecond}}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		if op.Attempt() == 1 {
			_ = op.Key()
			pause(700 * time.Millisecond) // beyond its time and half a second to end
			panic("late")
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	pause(300 * time.Millisecond)
	g.did(p, 1)
}

// An attempt before may have acted, also where the ledger can't take the last one.
func TestR23WhatIsNotRecordedIsUnknownAfterADoubt(t *testing.T) {
	for name, last := range map[string]error{
		"refused": settle.Rejected(errors.New("no")), "not sent": settle.NotSent(errors.New("no route")),
		"interrupted": settle.Interrupted(errors.New("asks")),
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: keyedContract()}
			p.contract.Attempts = 2
			x := g.executor(p.tool())
			p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
				_ = op.Key()
				if op.Attempt() == 1 {
					act()
					return paid{}, errors.New("the answer was lost")
				}
				g.ledger.next("apply", down)
				return paid{}, last
			}
			if out := g.want(x, payCall("A-1", 5), settle.StatusUnknown); out.Recorded || out.Reason != "not_recorded" {
				t.Errorf("got %+v", out)
			}
			g.did(p, 1)
		})
	}
}
