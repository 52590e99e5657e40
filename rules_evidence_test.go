package settle_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// What a lookup says, and when it counts.

type lookup = func(ctx context.Context, q settle.Query[paid], in payArgs) (settle.Evidence, error)

// doubtful is an unsafe tool whose answers are lost and whose far side says what
// the test wants.
func doubtful(answer lookup) *pay {
	p := &pay{contract: settle.Contract{VisibilityDelay: 10 * time.Second, EscalateAfter: time.Hour}, lookup: answer}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		act()
		return paid{}, errors.New("connection reset")
	}
	return p
}

func TestR33TheVerdictsOfALookup(t *testing.T) {
	for name, tc := range map[string]struct {
		answer lookup
		// now and later are the states before and after the moment, last past
		// EscalateAfter.
		now, later, last store.State
		verdict          string
	}{
		"happened": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Happened("p-1", paid{"p-1"}), nil
		}, store.Completed, store.Completed, store.Completed, "happened"},
		"not happened": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.NotHappened(), nil
		}, store.Unknown, store.Retryable, store.Failed, "not_happened"},
		"still running": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.StillRunning(), nil
		}, store.Unknown, store.Unknown, store.Manual, "still_running"},
		"inconclusive": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Inconclusive("busy"), nil
		}, store.Unknown, store.Unknown, store.Manual, "inconclusive"},
		"zero evidence": {func(context.Context, settle.Query[paid], payArgs) (settle.Evidence, error) {
			return settle.Evidence{}, nil
		}, store.Unknown, store.Unknown, store.Manual, "inconclusive"},
		"an error": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.NotHappened(), errors.New("503")
		}, store.Unknown, store.Unknown, store.Manual, "lookup_failed"},
		"a panic": {func(context.Context, settle.Query[paid], payArgs) (settle.Evidence, error) { panic("no") }, store.Unknown, store.Unknown, store.Manual, "lookup_failed"},
		"an exit": {func(context.Context, settle.Query[paid], payArgs) (settle.Evidence, error) {
			runtime.Goexit()
			return settle.Evidence{}, nil
		}, store.Unknown, store.Unknown, store.Manual, "lookup_failed"},
		"several": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Several("two of them"), nil
		}, store.Manual, store.Manual, store.Manual, "several"},
		"other amount": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Happened("p-1", paid{"p-1"}).Comparing(map[string]any{"amount": 6}), nil
		}, store.Manual, store.Manual, store.Manual, "happened"},
		"same amount": {func(_ context.Context, q settle.Query[paid], in payArgs) (settle.Evidence, error) {
			return q.Happened("p-1", paid{"p-1"}).Comparing(map[string]any{"amount": 5.0, "order": in.Order}), nil
		}, store.Completed, store.Completed, store.Completed, "happened"},
		"unknown field": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Happened("p-1", paid{"p-1"}).Comparing(map[string]any{"sum": 5}), nil
		}, store.Manual, store.Manual, store.Manual, "happened"},
		"no comparison": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Happened("p-1", paid{"p-1"}).Comparing("p-1"), nil
		}, store.Manual, store.Manual, store.Manual, "happened"},
		"by attribute": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Happened("p-1", paid{"p-1"}).ByAttribute(time.Time{}), nil
		}, store.Completed, store.Completed, store.Completed, "happened"},
		"older one": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Happened("p-1", paid{"p-1"}).ByAttribute(q.FirstSent().Add(-2 * time.Second)), nil
		}, store.Manual, store.Manual, store.Manual, "happened"},
		"no resource": {func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			return q.Happened("", paid{}).ByAttribute(time.Time{}), nil
		}, store.Manual, store.Manual, store.Manual, "happened"},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p := doubtful(tc.answer)
			x := g.executor(p.tool())
			out := g.do(g.ctx, x, payCall("A-1", 5))
			check := func(when string, want store.State) {
				t.Helper()
				if row := g.row(out); row.State != want {
					t.Errorf("%s it is %s (%s, %s), want %s", when, row.State, row.Reason, row.Verdict, want)
				}
			}
			check("before its moment", tc.now)
			g.forward(20 * time.Second)
			g.recover(x)
			check("past its moment", tc.later)
			if verdict := g.row(out).Verdict; verdict != tc.verdict {
				t.Errorf("the verdict is %q, want %q", verdict, tc.verdict)
			}
			g.forward(25 * time.Hour)
			g.recover(x)
			check("in the end", tc.last)
			g.did(p, 1)
		})
	}
}

func TestR33AQueryKnowsTheOperation(t *testing.T) {
	g := onFile(t)
	var key string
	p := doubtful(nil)
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		key = op.Key()
		return paid{}, errors.New("connection reset")
	}
	p.lookup = func(ctx context.Context, q settle.Query[paid], in payArgs) (settle.Evidence, error) {
		who, _ := settle.PrincipalFrom(ctx)
		task, _ := settle.TaskFrom(ctx)
		if q.Key() != key || q.UUID().String() == "" || q.Attempts() != 1 || in.Order != "A-1" || q.Reference() == "" ||
			q.Principal() != who || q.Task() != task || who.Tenant != "acme" || task.ID != "case-1" ||
			q.FirstSent().IsZero() || !q.LastEnd().After(q.FirstSent()) {
			t.Error("the query is incomplete")
		}
		return q.NotHappened(), nil
	}
	g.want(g.executor(p.tool()), payCall("A-1", 5), settle.StatusUnknown)
}

// A lookup is dated by its beginning: one that begins before the moment and
// answers after it doesn't count.
func TestR33ALookupIsDatedByItsBeginning(t *testing.T) {
	g := onFile(t)
	p := doubtful(func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		g.forward(time.Minute)
		return q.NotHappened(), nil
	})
	x := g.executor(p.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	if row := g.row(out); row.Verdict != "not_visible_yet" {
		t.Errorf("the verdict is %q", row.Verdict)
	}
}

func TestR32EvidenceComesBeforeAnotherAttempt(t *testing.T) {
	g := onFile(t)
	var looked atomic.Int64
	p := &pay{contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour}}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		_ = op.Key()
		if looked.Load() != int64(op.Attempt()-1) {
			t.Errorf("attempt %d after %d lookups", op.Attempt(), looked.Load())
		}
		return paid{}, errors.New("connection reset")
	}
	p.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		if looked.Add(1) == 2 {
			return q.Happened("p-1", paid{"p-1"}), nil
		}
		return q.NotHappened(), nil
	}
	out := g.want(g.executor(p.tool()), payCall("A-1", 5), settle.StatusCompleted)
	if out.Resource != "p-1" || p.entered.Load() != 2 {
		t.Errorf("got %q after %d attempts", out.Resource, p.entered.Load())
	}
}

// crashed leaves an operation running under a process that is gone.
func (g *rig) crashed(tool settle.AnyTool, call settle.Call) store.Operation {
	g.Helper()
	x, err := settle.New(g.ledger, settle.WithTools(tool), settle.Volatile())
	if err != nil {
		g.Fatal(err)
	}
	ctx, cancel := context.WithCancel(g.ctx)
	g.ledger.next("claim", func(call func() error) error {
		err := call()
		cancel()
		return err
	})
	g.ledger.next("apply", func(func() error) error { select {} }) // nothing comes of its record
	if out := g.do(ctx, x, call); out.Status != settle.StatusInProgress {
		g.Fatalf("got %s", out.Status)
	}
	g.eventually("the attempt's end", func() bool { return g.ledger.pending() == 0 })
	entries := g.all()
	return entries[len(entries)-1].Operation
}

func TestR32ACallerInvestigatesAnExpiredLeaseOnce(t *testing.T) {
	g := onFile(t)
	p := doubtful(nil)
	var looked atomic.Int64
	happened := false
	p.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		looked.Add(1)
		if happened {
			return q.Happened("p-1", paid{"p-1"}), nil
		}
		return q.Inconclusive("busy"), nil
	}
	g.crashed(p.tool(), payCall("A-1", 5))
	g.forward(15 * time.Second) // past the lease, before the moment
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	if looked.Load() != 1 {
		t.Errorf("%d lookups, want 1", looked.Load())
	}
	g.want(x, payCall("A-1", 5), settle.StatusUnknown) // not due yet
	if looked.Load() != 1 {
		t.Errorf("%d lookups, want 1", looked.Load())
	}
	happened = true
	g.forward(time.Minute)
	out := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if out.Resource != "p-1" || !out.Replayed {
		t.Errorf("got %+v", out)
	}
	g.did(p, 1)
}

func TestR32ManyCallersLookOnce(t *testing.T) {
	g := onFile(t)
	p := doubtful(nil)
	var looked atomic.Int64
	p.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		looked.Add(1)
		pause(50 * time.Millisecond)
		return q.Happened("p-1", paid{"p-1"}), nil
	}
	g.crashed(p.tool(), payCall("A-1", 5))
	g.forward(time.Minute)
	executors := []*settle.Executor{g.executor(p.tool()), g.executor(p.tool())}
	for _, out := range g.storm(16, func(i int) settle.Outcome { return g.do(g.ctx, executors[i%2], payCall("A-1", 5)) }) {
		if out.Status != settle.StatusCompleted && out.Status != settle.StatusUnknown {
			t.Errorf("got %s", out.Status)
		}
	}
	if looked.Load() != 1 {
		t.Errorf("%d lookups, want 1", looked.Load())
	}
	g.did(p, 1)
}

// One effect settles one operation.
func TestR34AnAttributeSettlesOneOperationOnly(t *testing.T) {
	g := onFile(t)
	p := doubtful(func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.Happened("p-1", paid{"p-1"}).ByAttribute(time.Time{}), nil
	})
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	for name, ctx := range map[string]context.Context{
		"another call": g.ctx, "another task": g.inTask("case-2"),
		"another tenant": settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "other", Subject: "bot"}),
	} {
		out := g.do(ctx, x, payCall("B-"+name, 5))
		if out.Status != settle.StatusManual || out.Reason != "resource_settles_another" || out.Resource != "" || len(out.Result) > 0 {
			t.Errorf("%s: got %s (%s) %q", name, out.Status, out.Reason, out.Resource)
		}
		if strings.Contains(out.ForModel(), "p-1") {
			t.Errorf("%s: leaked: %s", name, out.ForModel())
		}
	}
}

func TestR34WhatThePrincipalMayNotSeeSettlesNothing(t *testing.T) {
	g := onFile(t)
	p := doubtful(func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.Happened("p-1", paid{"p-1"}).ByAttribute(time.Time{}), nil
	})
	p.contract.Authorize = func(_ context.Context, a settle.Authorization) error {
		if a.Purpose == "answer" {
			return errors.New("no")
		}
		return nil
	}
	out := g.want(g.executor(p.tool()), payCall("A-1", 5), settle.StatusManual)
	if row := g.row(out); row.Resource != "" {
		t.Errorf("it settled with %q", row.Resource)
	}
}

func TestR35OnlyTimeEscalates(t *testing.T) {
	g := onFile(t)
	var looked atomic.Int64
	p := doubtful(func(context.Context, settle.Query[paid], payArgs) (settle.Evidence, error) {
		looked.Add(1)
		return settle.Evidence{}, errors.New("503")
	})
	x := g.executor(p.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	for g.row(out).Read.Sub(g.row(out).UnknownSince) < 50*time.Minute {
		g.forward(5 * time.Minute)
		g.recover(x)
		if row := g.row(out); row.State != store.Unknown {
			t.Fatalf("%d failed lookups escalated it after %v", looked.Load(), row.Read.Sub(row.UnknownSince))
		}
	}
	if looked.Load() < 8 {
		t.Errorf("%d lookups in 50 min", looked.Load())
	}
	g.forward(15 * time.Minute)
	g.recover(x)
	if row := g.row(out); row.State != store.Manual || row.Reason != "escalated" {
		t.Errorf("past EscalateAfter it is %s (%s)", row.State, row.Reason)
	}
}

func TestR35WithoutALookupItIsAPersonsAtItsMoment(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, VisibilityDelay: time.Minute}}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		return paid{}, errors.New("connection reset")
	}
	x := g.executor(p.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	g.forward(30 * time.Second)
	g.recover(x)
	g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	if row := g.row(out); row.State != store.Unknown {
		t.Errorf("before its moment it is %s", row.State)
	}
	g.forward(31 * time.Second)
	g.recover(x)
	if row := g.row(out); row.State != store.Manual || row.Reason != "no_evidence_possible" {
		t.Errorf("at its moment it is %s (%s)", row.State, row.Reason)
	}
}

func TestR29PastItsWindowAKeyIsNeverSentAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		end  error
		want settle.Status
	}{
		"unknown":  {errors.New("connection reset"), settle.StatusManual},
		"not sent": {settle.NotSent(errors.New("no route")), settle.StatusCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: settle.Contract{Class: settle.Keyed, KeyWindow: time.Hour, NoLookup: true, Attempts: 1000, StaleAfter: 1000 * time.Hour, EscalateAfter: 1000 * time.Hour, Retention: 2000 * time.Hour}}
			fails := true
			keys := map[string]time.Time{}
			ctx, cancel := context.WithCancel(g.ctx)
			p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
				if _, ok := keys[op.Key()]; !ok {
					keys[op.Key()] = g.clock.now()
				}
				if first := keys[op.Key()]; g.clock.now().Sub(first) > time.Hour-30*time.Second {
					t.Errorf("a key was sent %v after its first attempt", g.clock.now().Sub(first))
				}
				if fails {
					cancel()
					return paid{}, tc.end
				}
				return act(), nil
			}
			x := g.executor(p.tool())
			g.do(ctx, x, payCall("A-1", 5))
			if err := x.Shutdown(g.ctx); err != nil {
				t.Fatal(err)
			}
			fails = false
			g.forward(time.Hour - 10*time.Second)
			x = g.executor(p.tool())
			g.recover(x)
			g.want(x, payCall("A-1", 5), tc.want)
			if wantKeys := map[settle.Status]int{settle.StatusManual: 1, settle.StatusCompleted: 2}[tc.want]; len(keys) != wantKeys {
				t.Errorf("%d keys were sent, want %d", len(keys), wantKeys)
			}
		})
	}
}

func TestR29EveryAttemptSendsTheArgumentsAsFirstAccepted(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	var notes []string
	p.attempt = func(_ context.Context, op settle.Op, in payArgs, act func() paid) (paid, error) {
		if notes = append(notes, in.Note); op.Attempt() == 1 {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	g.want(x, rawCall("pay", `{"order":"A-1","amount":5,"note":"first"}`), settle.StatusNotDone)
	g.want(x, rawCall("pay", `{"order":"A-1","amount":5.0,"note":"second"}`), settle.StatusCompleted)
	if len(notes) != 2 || notes[1] != "first" {
		t.Errorf("the attempts sent %v", notes)
	}
}
