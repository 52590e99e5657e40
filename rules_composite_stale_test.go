package settle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Composites that can't go on: when a worker runs them again, and when it stops.

// bundle is a Composite over one keyed step.
func bundle(p *pay) settle.Tool[payArgs, paid] {
	step := p.tool("step")
	return settle.Tool[payArgs, paid]{Name: "pay", Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{step},
		Do: func(ctx context.Context, op settle.Op, in payArgs) (paid, error) {
			return settle.Step(ctx, op, "one", step, in)
		}}
}

// unreachable is a step whose far side is out of reach until it is repaired.
func unreachable(met func(), because error) (p *pay, repair func()) {
	p = &pay{contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true}}
	down := true
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		met()
		if _ = op.Key(); down {
			return paid{}, because
		}
		return act(), nil
	}
	return p, func() { down = false }
}

var (
	noRoute    = settle.NotSent(errors.New("no route"))
	asksToWait = settle.NotSent(errors.New("429"), settle.RetryAfter(20*time.Minute))
)

func TestR37ACompositeWithoutEffectIsGivenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		gone    bool // the caller leaves while the step is at work
		because error
		want    string
	}{
		"its caller was told":               {false, noRoute, "stale"},
		"its caller has gone":               {true, noRoute, "exhausted"},
		"its caller was told of a wait":     {false, asksToWait, "stale"},
		"its caller has gone before a wait": {true, asksToWait, "exhausted"},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			ctx, leave := context.WithCancel(g.ctx)
			defer leave()
			p, repair := unreachable(func() {
				if tc.gone {
					leave()
				}
			}, tc.because)
			x := g.executor(bundle(p))
			out := g.do(ctx, x, payCall("A-1", 5))
			g.eventually("the end of the run", func() bool { return g.row(out).State == store.Retryable })
			sent, version := p.entered.Load(), g.row(out).Version
			g.recoverEvery(time.Hour, 30, x)
			row := g.row(out)
			if row.State != store.Failed || row.Reason != tc.want {
				t.Errorf("it is %s (%s)", row.State, row.Reason)
			}
			if more := p.entered.Load() - sent; more > 6 { // two more runs, of three attempts each
				t.Errorf("a worker made %d more attempts of its step", more)
			}
			if written := row.Version - version; written > 6 {
				t.Errorf("its journal has grown by %d events", written)
			}
			repair()
			next := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
			if n := g.row(next).Number; n != 2 {
				t.Errorf("the call after it is number %d", n)
			}
			g.did(p, 1)
		})
	}
}

// A step that nobody can look up waits for a person, for longer than StaleAfter.
// The composite waits with it, and goes on when it is decided.
func TestR13ACompositeOutlivesStaleAfterWithAnOpenStep(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true}}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		act()
		return paid{}, errors.New("lost")
	}
	x := g.executor(bundle(p))
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	g.recoverEvery(10*time.Hour, 5, x)
	if row := g.row(out); row.State != store.Retryable || row.Reason != "step_open" {
		t.Fatalf("it is %s (%s)", row.State, row.Reason)
	}
	ctx := settle.WithOperator(g.ctx, settle.Operator{Name: "ann"})
	for _, e := range g.all() {
		if e.State == store.Manual {
			if _, err := x.Queue().Decide(ctx, settle.Decision{Operation: e.ID.String(), Version: e.Version,
				ID: "0190b3f0-0000-7000-8000-000000000001", Kind: settle.DecideHappened, Reason: "seen", Resource: "p-1"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.forward(10 * time.Minute)
	g.recover(x)
	if row := g.row(out); row.State != store.Completed {
		t.Errorf("it is %s (%s)", row.State, row.Reason)
	}
	g.did(p, 1)
}

// Calls that ask how it stands don't put off the worker that goes on.
func TestR13CallsDoNotPutOffAnOpenComposite(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true}}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		return paid{}, errors.New("lost")
	}
	x := g.executor(bundle(p))
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	for range 12 {
		g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	}
	if row := g.row(out); row.DueAt.Sub(row.Read) > 30*time.Second {
		t.Errorf("it is due in %v, after %v", row.DueAt.Sub(row.Read), row.Read.Sub(row.CreatedAt))
	}
}

// The attempts of a step aren't multiplied by those of its composite.
func TestR28ACompositeDoesNotRetryAnExhaustedStep(t *testing.T) {
	g := onFile(t)
	p, repair := unreachable(func() {}, noRoute)
	x := g.executor(bundle(p))
	for calls := int64(1); calls <= 2; calls++ {
		g.want(x, payCall("A-1", 5), settle.StatusNotDone)
		if n := p.entered.Load(); n != 3*calls {
			t.Errorf("%d calls made %d attempts, want 3 each", calls, n)
		}
	}
	repair()
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	g.did(p, 1)
}

// Nor are they where the composite makes something else of the step's error, tells
// of another step first, or is a step itself.
func TestR28NoCompositeAboveAnExhaustedStepBeginsItAnew(t *testing.T) {
	away := errors.New("not today")
	for name, tc := range map[string]struct {
		class  settle.Class
		nested bool
		told   func(other, spent error) error
	}{
		"it returns another error":     {settle.Keyed, false, func(error, error) error { return away }},
		"another step is told first":   {settle.Keyed, false, func(other, spent error) error { return errors.Join(other, spent) }},
		"it is a step of a composite":  {settle.Keyed, true, func(_, spent error) error { return spent }},
		"it is one, and tells nothing": {settle.Keyed, true, func(error, error) error { return away }},
		"the step changes nothing":     {settle.Read, true, func(_, spent error) error { return spent }},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p, _ := unreachable(func() {}, noRoute)
			if tc.class == settle.Read {
				p.contract = settle.Contract{Class: settle.Read}
			}
			step, other := p.tool("step"), (&pay{contract: unsafeContract(), attempt: func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
				return paid{}, noRoute
			}}).tool("other")
			tool := settle.Tool[payArgs, paid]{Name: "pay", Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{step, other},
				Do: func(ctx context.Context, op settle.Op, in payArgs) (paid, error) {
					_, first := settle.Step(ctx, op, "first", other, in)
					out, err := settle.Step(ctx, op, "one", step, in)
					return out, tc.told(first, err)
				}}
			if tc.nested {
				inner := tool
				inner.Name = "inner"
				tool = settle.Tool[payArgs, paid]{Name: "pay", Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{inner},
					Do: func(ctx context.Context, op settle.Op, in payArgs) (paid, error) {
						return settle.Step(ctx, op, "inner", inner, in)
					}}
			}
			g.want(g.executor(tool), payCall("A-1", 5), settle.StatusNotDone)
			if n := p.entered.Load(); n != 3 {
				t.Errorf("a call made %d attempts of a step that has three", n)
			}
		})
	}
}
