package settle_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/store/sqlite"
)

// rig is the world of one rule test: a real ledger behind switches that break
// chosen calls, a clock that can be set forward, and executors on both.
type rig struct {
	*testing.T
	ledger *brokenLedger
	clock  *steppedClock
	// ctx acts for a principal in a task.
	ctx context.Context
}

// onFile is a rig on a SQLite file of its own.
func onFile(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	clock := &steppedClock{}
	ledger, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "settle.db"), sqlite.WithClock(clock.now))
	if err != nil {
		t.Fatal(err)
	}
	return newRig(t, ledger, clock)
}

// inMemory is a rig on a ledger in memory, for what the ledger doesn't matter to.
func inMemory(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	clock := &steppedClock{}
	return newRig(t, memory.New(memory.WithClock(clock.now)), clock)
}

func newRig(t *testing.T, ledger store.Ledger, clock *steppedClock) *rig {
	t.Helper()
	g := &rig{T: t, clock: clock, ledger: &brokenLedger{Ledger: ledger}}
	g.ctx = settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "bot"})
	g.ctx = settle.WithTask(g.ctx, settle.Task{ID: "case-1", Goal: "rules"})
	t.Cleanup(func() {
		g.checkJournals()
		if err := ledger.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// executor builds an executor on the rig's ledger. Each one is a process
// incarnation of its own.
func (g *rig) executor(tools ...settle.AnyTool) *settle.Executor {
	g.Helper()
	return g.executorWith(settle.WithTools(tools...))
}

func (g *rig) executorWith(options ...settle.Option) *settle.Executor {
	g.Helper()
	options = append([]settle.Option{settle.Volatile(), settle.WithLogger(slog.New(slog.DiscardHandler))}, options...)
	x, err := settle.New(g.ledger, options...)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := x.Shutdown(ctx); err != nil {
			g.Error(err)
		}
	})
	return x
}

// inTask is a context of the rig's principal in another task.
func (g *rig) inTask(id string) context.Context {
	return settle.WithTask(g.ctx, settle.Task{ID: id, Goal: "rules"})
}

// do makes a call that is no mistake of the host's.
func (g *rig) do(ctx context.Context, x *settle.Executor, call settle.Call) settle.Outcome {
	g.Helper()
	out, err := x.Execute(ctx, call)
	if err != nil {
		g.Fatalf("execute: %v", err)
	}
	return out
}

// want makes a call and requires its status.
func (g *rig) want(x *settle.Executor, call settle.Call, status settle.Status) settle.Outcome {
	g.Helper()
	out := g.do(g.ctx, x, call)
	g.wantStatus(out, status)
	return out
}

func (g *rig) wantStatus(out settle.Outcome, status settle.Status) {
	g.Helper()
	if out.Status != status {
		g.Fatalf("got %s (reason %q, detail %q), want %s", out.Status, out.Reason, out.Detail, status)
	}
}

// background makes a call in a goroutine of the test's.
func (g *rig) background(ctx context.Context, x *settle.Executor, call settle.Call) <-chan settle.Outcome {
	done := make(chan settle.Outcome, 1)
	go func() {
		out, err := x.Execute(ctx, call)
		if err != nil {
			g.Errorf("execute: %v", err)
		}
		done <- out
	}()
	return done
}

// after waits for something that must come, and fails where it takes a time in
// which a blocked test would be noticed.
func after[T any](g *rig, what string, from <-chan T) T {
	g.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	select {
	case v := <-from:
		return v
	case <-deadline.C:
		g.Fatalf("waited 30 s for %s", what)
	}
	panic("unreachable")
}

// pause waits on the real clock, for the budgets that a process counts by its
// own clock.
func pause(d time.Duration) { <-time.After(d) }

// row is the operation that an outcome names.
func (g *rig) row(out settle.Outcome) store.Operation {
	g.Helper()
	id, err := uuid.Parse(out.Operation)
	if err != nil {
		g.Fatalf("the outcome %s names no operation: %v", out.Status, err)
	}
	entry, err := g.ledger.Ledger.Get(context.Background(), "acme", id)
	if err != nil {
		g.Fatal(err)
	}
	return entry.Operation
}

// all are the ledger's operations, in the order of their claims.
func (g *rig) all() []store.Entry {
	g.Helper()
	var entries []store.Entry
	for after := uuid.Nil; ; after = entries[len(entries)-1].ID {
		page, err := g.ledger.Ledger.List(context.Background(), store.Filter{After: after})
		if err != nil {
			g.Fatal(err)
		}
		if entries = append(entries, page...); len(page) == 0 {
			return entries
		}
	}
}

// kinds are the kinds of an operation's events, in order.
func (g *rig) kinds(o store.Operation) []string {
	g.Helper()
	events, err := g.ledger.Ledger.Events(context.Background(), o.ID, 0)
	if err != nil {
		g.Fatal(err)
	}
	kinds := make([]string, len(events))
	for i, e := range events {
		kinds[i] = e.Kind
	}
	return kinds
}

// recover makes a pass of recovery.
func (g *rig) recover(x *settle.Executor) settle.Report {
	g.Helper()
	report, err := x.Recover(context.Background())
	if err != nil {
		g.Fatal(err)
	}
	return report
}

// recoverEvery makes so many passes of recovery, each after a pause.
func (g *rig) recoverEvery(pause time.Duration, times int, x *settle.Executor) {
	g.Helper()
	for range times {
		g.forward(pause)
		g.recover(x)
	}
}

// checkJournals is what every test ends with: each journal is whole (R57).
func (g *rig) checkJournals() {
	if g.Failed() {
		return
	}
	entries := g.all()
	if len(entries) > 500 {
		return // the storms check what they need
	}
	for _, e := range entries {
		events, err := g.ledger.Ledger.Events(context.Background(), e.ID, 0)
		if err != nil {
			g.Error(err)
			return
		}
		if err := store.VerifyChain(e.Operation, events); err != nil {
			g.Error(err)
		}
	}
}

// steppedClock is the real clock and what a test has set it forward by.
type steppedClock struct{ ahead atomic.Int64 }

func (c *steppedClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// forward sets the ledger's clock forward.
func (g *rig) forward(d time.Duration) { g.clock.ahead.Add(int64(d)) }

// pay is the tool of most rule tests: its effects are counted, and the test says
// what its attempts do.
type pay struct {
	contract settle.Contract
	// attempt replaces what an attempt does beside counting: it gets the number
	// of the effect that it may make, from 1, by calling act.
	attempt func(ctx context.Context, op settle.Op, in payArgs, act func() paid) (paid, error)
	lookup  func(ctx context.Context, q settle.Query[paid], in payArgs) (settle.Evidence, error)

	// entered counts attempts, effects what they did.
	entered, effects atomic.Int64
	mu               sync.Mutex
	keys             map[string]bool
}

type payArgs struct {
	Order  string `json:"order" settle:"identity"`
	Amount int    `json:"amount"`
	Note   string `json:"note,omitempty" settle:"ignore"`
}

type paid struct {
	ID string `json:"id" settle:"resource"`
}

// tool is the tool, under the given name or "pay".
func (p *pay) tool(name ...string) settle.Tool[payArgs, paid] {
	t := settle.Tool[payArgs, paid]{
		Name: "pay", Description: "Pay an order.", Contract: p.contract, Lookup: p.lookup,
		Do: func(ctx context.Context, op settle.Op, in payArgs) (paid, error) {
			p.entered.Add(1)
			act := func() paid {
				n := p.effects.Add(1)
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.keys == nil {
					p.keys = map[string]bool{}
				}
				p.keys[op.Key()] = true
				return paid{"payment-" + strconv.FormatInt(n, 10)}
			}
			if p.attempt == nil {
				return act(), nil
			}
			return p.attempt(ctx, op, in, act)
		},
	}
	if len(name) > 0 {
		t.Name = name[0]
	}
	return t
}

// did requires the number of effects.
func (g *rig) did(p *pay, want int64) {
	g.Helper()
	if got := p.effects.Load(); got != want {
		g.Fatalf("%d effects, want %d", got, want)
	}
}

func unsafeContract() settle.Contract { return settle.Contract{NoLookup: true} }

func keyedContract() settle.Contract {
	return settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true}
}

func payCall(order string, amount int) settle.Call {
	return settle.Call{Tool: "pay", Args: fmt.Appendf(nil, `{"order":%q,"amount":%d}`, order, amount)}
}

// say is a tool without declared identity.
type say struct {
	contract settle.Contract
	attempt  func(ctx context.Context, op settle.Op) error
	effects  atomic.Int64
}

type sayArgs struct {
	Text string `json:"text"`
}

func (s *say) tool() settle.Tool[sayArgs, paid] {
	c := s.contract
	c.WholeArguments = true
	if c.Class == settle.Unsafe {
		c.NoLookup = true
	}
	return settle.Tool[sayArgs, paid]{
		Name: "say", Description: "Say something.", Contract: c,
		Do: func(ctx context.Context, op settle.Op, _ sayArgs) (paid, error) {
			if s.attempt != nil {
				if err := s.attempt(ctx, op); err != nil {
					return paid{}, err
				}
			}
			return paid{fmt.Sprintf("word-%d", s.effects.Add(1))}, nil
		},
	}
}

func sayCall(text string) settle.Call {
	return settle.Call{Tool: "say", Args: fmt.Appendf(nil, `{"text":%q}`, text)}
}
