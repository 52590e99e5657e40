package settle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Idempotent writes on a resource.

// label is a tool that sets an amount on an order, and remembers what stands.
type label struct {
	pay
	mu     sync.Mutex
	stands map[string]int
	fails  func(in payArgs, op settle.Op) error
}

func newLabel() *label {
	l := &label{stands: map[string]int{}}
	l.contract = settle.Contract{Class: settle.Idempotent}
	l.attempt = func(_ context.Context, op settle.Op, in payArgs, act func() paid) (paid, error) {
		if l.fails != nil {
			if err := l.fails(in, op); err != nil {
				return paid{}, err
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stands[in.Order] = in.Amount
		return act(), nil
	}
	return l
}

func (l *label) standing(order string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stands[order]
}

func TestR31AnotherStateIsAnotherOperation(t *testing.T) {
	g := onFile(t)
	l := newLabel()
	x := g.executor(l.tool())
	one := g.want(x, payCall("A-1", 1), settle.StatusCompleted)
	two := g.want(x, payCall("A-1", 2), settle.StatusCompleted)
	if a, b := g.row(one), g.row(two); a.ResourceKey != b.ResourceKey || a.ResourceSeq+1 != b.ResourceSeq || a.Slot == b.Slot {
		t.Error("two states on one resource aren't numbered one after the other")
	}
	if again := g.want(x, payCall("A-1", 2), settle.StatusCompleted); !again.Replayed {
		t.Error("the newest write ran again")
	}
	g.did(&l.pay, 2)
}

func TestR31AnOvertakenWriteIsReplayedAndSaysWhatStands(t *testing.T) {
	g := onFile(t)
	l := newLabel()
	x := g.executor(l.tool())
	g.want(x, payCall("A-1", 1), settle.StatusCompleted)
	newer := g.want(x, payCall("A-1", 2), settle.StatusCompleted)
	out := g.want(x, payCall("A-1", 1), settle.StatusSuperseded)
	if !out.Replayed || out.Reason != "overtaken" || len(out.Related) != 1 || out.Related[0].Operation != newer.Operation {
		t.Errorf("got %+v", out)
	}
	text := out.ForModel()
	if !strings.Contains(text, newer.Operation) || !strings.Contains(text, newer.Resource) {
		t.Errorf("the text doesn't say what stands: %s", text)
	}
	if strings.Contains(text, "Nothing was written: a newer") {
		t.Errorf("the older write was made: %s", text)
	}
	if got := l.standing("A-1"); got != 2 {
		t.Errorf("%d stands", got)
	}
	// Writing it again takes an occurrence.
	call := payCall("A-1", 1)
	call.Occurrence = 2
	g.want(x, call, settle.StatusCompleted)
	if got := l.standing("A-1"); got != 1 {
		t.Errorf("%d stands", got)
	}
	g.did(&l.pay, 3)
}

func TestR31AWriteWaitsForTheOlderOne(t *testing.T) {
	g := onFile(t)
	l := newLabel()
	entered, release := make(chan struct{}), make(chan struct{})
	l.fails = func(in payArgs, _ settle.Op) error {
		if in.Amount == 1 {
			close(entered)
			<-release
		}
		return nil
	}
	x, elsewhere := g.executor(l.tool()), g.executor(l.tool())
	first := g.background(g.ctx, x, payCall("A-1", 1))
	after(g, "the first", entered)
	other := settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "acme", Subject: "another bot"})
	second := g.background(other, elsewhere, payCall("A-1", 2))
	g.eventually("the second", func() bool { return len(g.all()) == 2 })
	if l.entered.Load() != 1 {
		t.Error("the second started beside the first")
	}
	close(release)
	g.wantStatus(after(g, "the first", first), settle.StatusCompleted)
	g.wantStatus(after(g, "the second", second), settle.StatusCompleted)
	if got := l.standing("A-1"); got != 2 {
		t.Errorf("%d stands", got)
	}
}

func TestR31AnUnknownWriteIsOvertakenPastItsMoment(t *testing.T) {
	g := onFile(t)
	l := newLabel()
	l.contract.Attempts = 1
	l.contract.Timeout = 100 * time.Millisecond
	l.fails = func(in payArgs, _ settle.Op) error {
		if in.Amount == 1 {
			return errors.New("connection reset")
		}
		return nil
	}
	x := g.executor(l.tool())
	old := g.want(x, payCall("A-1", 1), settle.StatusUnknown)
	g.want(x, payCall("A-1", 2), settle.StatusInProgress) // recorded, and waits
	g.did(&l.pay, 0)
	g.forward(time.Minute)
	g.recover(x)
	if got := l.standing("A-1"); got != 2 {
		t.Fatalf("%d stands: a worker goes on with what waited", got)
	}
	if row := g.row(old); row.State != store.Superseded {
		t.Errorf("the older write is %s", row.State)
	}
	g.want(x, payCall("A-1", 1), settle.StatusSuperseded)
	g.want(x, payCall("A-1", 2), settle.StatusCompleted)
	g.did(&l.pay, 1)
}

func TestR31OnlyTheHighestNumberStarts(t *testing.T) {
	g := onFile(t)
	l := newLabel()
	l.contract.Timeout = 50 * time.Millisecond
	l.fails = func(in payArgs, _ settle.Op) error {
		if in.Amount == 0 {
			return errors.New("connection reset")
		}
		return nil
	}
	l.contract.Attempts = 1
	x := g.executor(l.tool())
	g.want(x, payCall("A-1", 0), settle.StatusUnknown)
	for amount := 1; amount <= 4; amount++ {
		g.want(x, payCall("A-1", amount), settle.StatusInProgress)
	}
	g.forward(time.Minute)
	for range 6 {
		g.recover(x)
		g.forward(time.Minute)
	}
	if l.effects.Load() != 1 || l.standing("A-1") != 4 {
		t.Errorf("%d writes, %d stands; want only the newest", l.effects.Load(), l.standing("A-1"))
	}
	for _, e := range g.all() {
		if want := map[bool]store.State{true: store.Completed, false: store.Superseded}[e.ResourceSeq == 5]; e.State != want {
			t.Errorf("number %d is %s, want %s", e.ResourceSeq, e.State, want)
		}
	}
}

func TestR31ManyWritersLeaveTheHighestNumber(t *testing.T) {
	g := onFile(t)
	l := newLabel()
	executors := []*settle.Executor{g.executor(l.tool()), g.executor(l.tool()), g.executor(l.tool())}
	g.storm(18, func(i int) settle.Outcome {
		ctx := settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "acme", Subject: fmt.Sprint("bot ", i%2)})
		return g.do(ctx, executors[i%3], payCall("A-1", i))
	})
	for range 4 {
		g.forward(time.Minute)
		g.recover(executors[0])
	}
	var newest store.Operation
	amounts := map[string]int{}
	for _, e := range g.all() {
		if !e.State.Settled() {
			t.Errorf("number %d is %s", e.ResourceSeq, e.State)
		}
		if e.ResourceSeq > newest.ResourceSeq {
			newest = e.Operation
		}
		amounts[string(e.Arguments)] = int(e.ResourceSeq)
	}
	want := fmt.Sprintf(`{"order":"A-1","amount":%d}`, l.standing("A-1"))
	if string(newest.Arguments) != want || newest.State != store.Completed {
		t.Errorf("the newest write is %s (%s), and %s stands", newest.Arguments, newest.State, want)
	}
	if len(amounts) != 18 {
		t.Errorf("%d operations", len(amounts))
	}
}

func TestR31AFailedWriteOvertakesNothing(t *testing.T) {
	g := onFile(t)
	l := newLabel()
	l.fails = func(in payArgs, _ settle.Op) error {
		if in.Amount == 2 {
			return settle.Rejected(errors.New("no such label"))
		}
		return nil
	}
	x := g.executor(l.tool())
	g.want(x, payCall("A-1", 1), settle.StatusCompleted)
	g.want(x, payCall("A-1", 2), settle.StatusFailed)
	if out := g.want(x, payCall("A-1", 1), settle.StatusCompleted); !out.Replayed {
		t.Error("it ran again")
	}
}

func TestR27AlreadySoCompletesAnIdempotentWriteOnly(t *testing.T) {
	for class, want := range map[settle.Class]settle.Status{settle.Idempotent: settle.StatusCompleted, settle.Unsafe: settle.StatusUnknown} {
		t.Run(class.String(), func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: settle.Contract{Class: class, NoLookup: class == settle.Unsafe}}
			p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
				return paid{"ignored"}, fmt.Errorf("the far side: %w", settle.AlreadySo("label-7"))
			}
			out := g.want(g.executor(p.tool()), payCall("A-1", 5), want)
			if class == settle.Idempotent && (out.Resource != "label-7" || len(out.Result) > 0) {
				t.Errorf("got %+v", out)
			}
		})
	}
}

func TestR31ReferencesOfOthersAreNotShown(t *testing.T) {
	g := onFile(t)
	l := newLabel()
	x := g.executor(l.tool())
	g.want(x, payCall("A-1", 1), settle.StatusCompleted)
	theirs := g.do(settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "acme", Subject: "another"}), x, payCall("A-1", 2))
	out := g.want(x, payCall("A-1", 1), settle.StatusSuperseded)
	if len(out.Related) != 0 || strings.Contains(out.ForModel(), theirs.Operation) {
		t.Errorf("another subject's write is shown: %s", out.ForModel())
	}
	// Other tenants' resources are other resources.
	elsewhere := settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "other", Subject: "bot"})
	g.wantStatus(g.do(elsewhere, x, payCall("A-1", 3)), settle.StatusCompleted)
	if again := g.do(elsewhere, x, payCall("A-1", 3)); again.Status != settle.StatusCompleted || !again.Replayed {
		t.Errorf("another tenant's write gave %s", again.Status)
	}
}
