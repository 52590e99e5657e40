package settle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Who executes: the claim decides, and nothing else.

func TestR19OneOfManyCallersExecutes(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	executors := []*settle.Executor{g.executor(p.tool()), g.executor(p.tool()), g.executor(p.tool())}
	outs := g.storm(48, func(i int) settle.Outcome {
		return g.do(g.ctx, executors[i%len(executors)], payCall("A-1", 5))
	})
	first := 0
	for _, out := range outs {
		g.wantStatus(out, settle.StatusCompleted)
		if !out.Replayed {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d callers say that they executed, want 1", first)
	}
	g.did(p, 1)
}

// storm runs n calls at once and returns their outcomes.
func (g *rig) storm(n int, call func(i int) settle.Outcome) []settle.Outcome {
	g.Helper()
	outs := make([]settle.Outcome, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			outs[i] = call(i)
		})
	}
	close(start)
	group.Wait()
	return outs
}

// Callers that resume one operation at the same time write the same move. One
// of them wrote it; the others must not take its event for theirs.
func TestR19OneOfManyCallersResumes(t *testing.T) {
	for _, onLedger := range []struct {
		name string
		rig  func(*testing.T) *rig
	}{{"sqlite", onFile}, {"memory", inMemory}} {
		t.Run(onLedger.name, func(t *testing.T) {
			g := onLedger.rig(t)
			refuse := true
			p := &pay{contract: unsafeContract(), attempt: func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
				if refuse {
					return paid{}, settle.NotSent(errors.New("no route"))
				}
				pause(50 * time.Millisecond) // long enough for the others to come
				return act(), nil
			}}
			executors := []*settle.Executor{g.executor(p.tool()), g.executor(p.tool())}
			g.want(executors[0], payCall("A-1", 5), settle.StatusNotDone)
			refuse = false
			for _, out := range g.storm(32, func(i int) settle.Outcome {
				return g.do(g.ctx, executors[i%len(executors)], payCall("A-1", 5))
			}) {
				g.wantStatus(out, settle.StatusCompleted)
			}
			g.did(p, 1)
		})
	}
}

func TestR19ALostClaimAnswerIsAskedForAgain(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	x := g.executor(p.tool())
	g.ledger.next("claim", lostAnswer, lostRequest, lostAnswer)
	out := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if out.Replayed {
		t.Error("the claim's own row was taken for somebody else's")
	}
	g.did(p, 1)
	if got := g.row(out); got.Attempt != 1 || len(g.all()) != 1 {
		t.Errorf("%d operations, %d attempts of the first; want 1 and 1", len(g.all()), got.Attempt)
	}
}

func TestR19ALostAnswerOfATurnsClaimsIsAskedForAgain(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	x := g.executor(p.tool())
	g.ledger.next("claim", lostAnswer)
	outs, err := x.ExecuteAll(g.ctx, payCall("A-1", 1), payCall("A-2", 2), payCall("A-1", 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range outs {
		g.wantStatus(out, settle.StatusCompleted)
	}
	g.did(p, 2)
}

func TestR26WithoutALedgerNothingIsSent(t *testing.T) {
	for name, plan := range map[string]plan{"down": down, "request lost": lostRequest, "answer lost": lostAnswer} {
		for _, method := range []string{"intent", "claim"} {
			t.Run(name+" at "+method, func(t *testing.T) {
				g := onFile(t)
				p := &pay{contract: keyedContract()}
				x := g.executor(p.tool())
				g.ledger.next(method, times(100, plan)...)
				out := g.want(x, payCall("A-1", 5), settle.StatusUnavailable)
				if out.Settled() || out.Recorded || out.Replayed {
					t.Errorf("an unavailable ledger gave %+v", out)
				}
				outs, err := x.ExecuteAll(g.ctx, payCall("A-2", 5), payCall("A-3", 5))
				if err != nil || outs[0].Status != settle.StatusUnavailable {
					t.Errorf("a turn on an unavailable ledger: %v, %v", outs, err)
				}
				g.did(p, 0)
				if p.entered.Load() != 0 {
					t.Error("an attempt was made without a claim")
				}
				g.ledger.mend(method)
			})
		}
	}
}

func TestR26ReadToolsGoOnWithoutALedger(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{Class: settle.Read}}
	x := g.executor(p.tool())
	if err := g.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	out := g.do(g.ctx, x, payCall("A-1", 5))
	if out.Status != settle.StatusCompleted || out.Recorded || out.Settled() {
		t.Errorf("a read tool on a closed ledger: %+v", out)
	}
	g.ledger.Ledger = reopened{g.ledger.Ledger}
}

// reopened stands in for a closed ledger at the end of a test.
type reopened struct{ store.Ledger }

func (reopened) List(context.Context, store.Filter) ([]store.Entry, error) { return nil, nil }

func TestR26ALedgerThatSurvivesNothingRefusesSideEffects(t *testing.T) {
	g := inMemory(t)
	p := &pay{contract: keyedContract()}
	read := &pay{contract: settle.Contract{Class: settle.Read}}
	_, err := settle.New(g.ledger, settle.WithTools(p.tool()))
	var wrong *settle.ToolError
	if !errors.As(err, &wrong) || wrong.Tool != "pay" {
		t.Errorf("a tool with side effects was accepted on a ledger in memory: %v", err)
	}
	if _, err := settle.New(g.ledger, settle.WithTools(read.tool())); err != nil {
		t.Errorf("a read tool was refused on a ledger in memory: %v", err)
	}
	if _, err := settle.New(g.ledger, settle.WithTools(p.tool()), settle.Volatile()); err != nil {
		t.Errorf("a host that says Volatile was refused: %v", err)
	}
}
