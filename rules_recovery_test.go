package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// How recovery goes about its work, and how attempts are joined and bounded.
func TestR36RecoveryIsFairAndBounded(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: time.Second}}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		return paid{}, errors.New("connection reset")
	}
	x := g.executorWith(settle.WithTools(p.tool("a"), p.tool("b")), settle.WithConcurrency(2))
	for _, tenant := range []string{"acme", "other"} {
		ctx := settle.WithPrincipal(g.ctx, settle.Principal{Tenant: tenant, Subject: "bot"})
		for _, tool := range []string{"a", "b"} {
			for i := range 5 {
				call := payCall(fmt.Sprint("A-", i), 5)
				call.Tool = tool
				g.wantStatus(g.do(ctx, x, call), settle.StatusUnknown)
			}
		}
	}
	g.forward(time.Minute)
	for pass, want := range []int{8, 8, 4, 0} {
		if report := g.recover(x); report.Taken != want || report.States["manual"] != want {
			t.Errorf("pass %d took %+v, want %d: two of each tool and tenant", pass, report, want)
		}
	}
}

func TestR36AToolIsAskedByFewAtOnce(t *testing.T) {
	g := onFile(t)
	var looking, most atomic.Int64
	p := doubtful(nil)
	p.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		n := looking.Add(1)
		defer looking.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		pause(20 * time.Millisecond)
		return q.StillRunning(), nil
	}
	x := g.executorWith(settle.WithTools(p.tool()), settle.WithConcurrency(3))
	for i := range 12 {
		ctx := settle.WithPrincipal(g.ctx, settle.Principal{Tenant: fmt.Sprint("tenant-", i%4), Subject: "bot"})
		g.wantStatus(g.do(ctx, x, payCall(fmt.Sprint("A-", i), 5)), settle.StatusUnknown)
	}
	g.forward(time.Minute)
	if report := g.recover(x); report.Taken != 12 || most.Load() != 3 {
		t.Errorf("%d operations were worked on, %d at once; want 12 and 3", report.Taken, most.Load())
	}
}

func TestR36ASlowToolDelaysNoOther(t *testing.T) {
	g := onFile(t)
	var recovering atomic.Bool
	var looking, looked atomic.Int64
	release := make(chan struct{})
	looks := func(wait func()) *pay {
		return doubtful(func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
			if !recovering.Load() {
				return q.StillRunning(), nil
			}
			wait()
			return q.Happened("payment-of-"+q.Reference(), paid{"payment-of-" + q.Reference()}), nil
		})
	}
	slow := looks(func() { looking.Add(1); <-release })
	quick := looks(func() { looked.Add(1) })
	x := g.executorWith(settle.WithTools(slow.tool("a_slow"), quick.tool("b_quick")), settle.WithConcurrency(2))
	for i := range 10 {
		for _, tool := range []string{"a_slow", "b_quick"} {
			call := payCall(fmt.Sprint("A-", i), 5)
			call.Tool = tool
			g.wantStatus(g.do(g.ctx, x, call), settle.StatusUnknown)
		}
	}
	g.forward(time.Minute)
	recovering.Store(true)
	ctx, cancel := context.WithCancel(g.ctx)
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx) }()
	g.eventually("the quick tool's operations are settled while the slow one's lookups hang", func() bool { return looked.Load() == 10 })
	if n := looking.Load(); n != 2 {
		t.Errorf("%d lookups of the slow tool hang, want 2", n)
	}
	left := slices.DeleteFunc(g.all(), func(e store.Entry) bool { return e.Tool != "a_slow" || e.DueAt.After(e.Read) })
	if len(left) < 7 {
		t.Errorf("%d operations of the slow tool are left to other processes, want all but the 2 that are worked on and 1 that waits", len(left))
	}
	close(release)
	g.eventually("the slow tool's operations are settled too", func() bool {
		return !slices.ContainsFunc(g.all(), func(e store.Entry) bool { return e.State != store.Completed })
	})
	cancel()
	if err := after(g, "the end of Run", ended); err != nil {
		t.Error(err)
	}
}

func TestR36TheLimitHoldsOverAllPassesOfAProcess(t *testing.T) {
	g := onFile(t)
	var looking, most, looked atomic.Int64
	p := doubtful(nil)
	p.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		n := looking.Add(1)
		defer looking.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		pause(10 * time.Millisecond)
		looked.Add(1)
		return q.StillRunning(), nil
	}
	x := g.executorWith(settle.WithTools(p.tool()), settle.WithConcurrency(2))
	for i := range 16 {
		g.want(x, payCall(fmt.Sprint("A-", i), 5), settle.StatusUnknown)
	}
	looked.Store(0)
	most.Store(0)
	g.forward(time.Minute)
	ctx, cancel := context.WithCancel(g.ctx)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if err := x.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if _, err := x.Recover(g.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	g.eventually("all lookups", func() bool { return looked.Load() == 16 })
	cancel()
	group.Wait()
	if most.Load() != 2 {
		t.Errorf("%d lookups at once, want 2", most.Load())
	}
}

func TestR36OneRecovererPerOperation(t *testing.T) {
	g := onFile(t)
	var looked atomic.Int64
	p := doubtful(nil)
	p.contract.Timeout = time.Second
	p.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		looked.Add(1)
		pause(20 * time.Millisecond)
		return q.StillRunning(), nil
	}
	x := g.executorWith(settle.WithTools(p.tool()), settle.WithConcurrency(3))
	for i := range 9 {
		g.want(x, payCall(fmt.Sprint("A-", i), 5), settle.StatusUnknown)
	}
	looked.Store(0)
	g.forward(time.Minute)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 3 {
				if _, err := x.Recover(g.ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if looked.Load() != 9 {
		t.Errorf("%d lookups of 9 operations", looked.Load())
	}
	for _, e := range g.all() {
		if e.Checks != 2 || e.Verdict != "still_running" || !e.DueAt.After(e.Read) {
			t.Errorf("the row shows %d checks, %q, due %v", e.Checks, e.Verdict, e.DueAt)
		}
	}
}

func TestR36ChecksAreSpacedOut(t *testing.T) {
	g := onFile(t)
	p := doubtful(func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.StillRunning(), nil
	})
	p.contract.EscalateAfter = 100 * time.Hour
	p.contract.Retention = 2000 * time.Hour
	x := g.executor(p.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	for check := 1; check < 12; check++ {
		row := g.row(out)
		pause := row.DueAt.Sub(row.Read)
		longest := min(2*time.Second<<(check-1), 5*time.Minute)
		if pause > longest || pause < longest/2-time.Second {
			t.Errorf("after check %d the next is %v away, want %v to %v", check, pause, longest/2, longest)
		}
		g.forward(pause + time.Second)
		g.recover(x)
		if got := g.row(out).Checks; got != check+1 {
			t.Fatalf("%d checks, want %d", got, check+1)
		}
	}
}

func TestR36ABadRowStopsNothingElse(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.contract.Timeout = time.Second
	for i := range 3 {
		g.crashed(p.tool(), payCall(fmt.Sprint("A-", i), 5))
	}
	g.forward(time.Minute)
	effects := p.effects.Load()
	x := g.executor(p.tool())
	g.ledger.next("apply", down)
	report := g.recover(x)
	if report.Failed != 1 || report.Taken != 3 || report.States["completed"] != 2 {
		t.Errorf("the report is %+v", report)
	}
	g.forward(2 * time.Minute)
	if report := g.recover(x); report.States["completed"] != 1 {
		t.Errorf("the next report is %+v", report)
	}
	g.did(p, effects+3)
}

func TestR36TakenByAPassThatDiesItIsDueAgain(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: time.Second}}
	g.crashed(p.tool(), payCall("A-1", 5))
	g.forward(time.Minute)
	if entries, err := g.ledger.Take(g.ctx, store.Take{Lease: time.Minute, Limit: 10}); err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	x := g.executor()
	if report := g.recover(x); report.Taken != 0 {
		t.Error("two passes have one operation")
	}
	g.forward(61 * time.Second)
	if report := g.recover(x); report.Taken != 1 {
		t.Error("what a dead pass had taken isn't due again")
	}
}

func TestRunRecoversUntilTheContextEnds(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	g.abandonedCall(p, settle.NotSent(errors.New("no route")))
	g.forward(time.Minute)
	x := g.executor(p.tool())
	g.ledger.next("take", down) // is logged and asked again
	ctx, cancel := context.WithCancel(g.ctx)
	ended := make(chan error, 1)
	go func() { ended <- x.Run(ctx) }()
	g.eventually("recovery", func() bool { return p.effects.Load() == 1 })
	cancel()
	if err := after(g, "the end of Run", ended); err != nil {
		t.Error(err)
	}
	if err := x.Shutdown(g.ctx); err != nil {
		t.Error(err)
	}
	if err := x.Run(g.ctx); err != nil {
		t.Errorf("Run after Shutdown: %v", err)
	}
}

func TestRecoverReportsAnUnavailableLedger(t *testing.T) {
	g := onFile(t)
	x := g.executor()
	g.ledger.next("take", down)
	if report, err := x.Recover(g.ctx); err == nil || report.Taken != 0 {
		t.Errorf("got %+v, %v", report, err)
	}
}

func TestR28AttemptsAreBoundedOverCallersAndWorkers(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.contract.Attempts = 4
	p.contract.EscalateAfter = time.Hour
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		if p.entered.Load() == 2 {
			return paid{}, settle.NotSent(errors.New("busy"), settle.RetryAfter(time.Hour))
		}
		return paid{}, errors.New("connection reset")
	}
	p.keys = map[string]bool{}
	tool := p.tool()
	do := tool.Do
	tool.Do = func(ctx context.Context, op settle.Op, in payArgs) (paid, error) {
		_ = op.Key()
		return do(ctx, op, in)
	}
	x := g.executor(tool)
	out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
	for range 5 {
		g.forward(10 * time.Minute)
		g.recover(x)
		g.do(g.ctx, x, payCall("A-1", 5))
	}
	if n := p.entered.Load(); n != 4 {
		t.Errorf("%d attempts, want 4", n)
	}
	g.forward(2 * time.Hour)
	g.recover(x)
	if row := g.row(out); row.State != store.Manual || row.Attempt != 4 {
		t.Errorf("it is %s after %d attempts", row.State, row.Attempt)
	}
}

func TestR23AnOperationIsTheJoinOfItsAttempts(t *testing.T) {
	reset, noRoute, refused := errors.New("connection reset"), settle.NotSent(errors.New("no route")), settle.Rejected(errors.New("sold out"))
	for name, tc := range map[string]struct {
		ends []error
		want store.State
	}{
		"happened":                {[]error{nil}, store.Completed},
		"not sent, happened":      {[]error{noRoute, nil}, store.Completed},
		"unknown, happened":       {[]error{reset, nil}, store.Completed},
		"unknown, not sent":       {[]error{reset, noRoute, noRoute}, store.Unknown},
		"unknown, rejected":       {[]error{reset, refused}, store.Unknown},
		"not sent, rejected":      {[]error{noRoute, refused}, store.Failed},
		"not sent, unknown":       {[]error{noRoute, reset, noRoute}, store.Unknown},
		"not sent until the end":  {[]error{noRoute, noRoute, noRoute}, store.Failed},
		"rejected":                {[]error{refused}, store.Failed},
		"unknown until the end":   {[]error{reset, reset, reset}, store.Unknown},
		"unknown twice, happened": {[]error{reset, reset, nil}, store.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: keyedContract()}
			p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
				_ = op.Key()
				if err := tc.ends[op.Attempt()-1]; err != nil {
					return paid{}, err
				}
				return act(), nil
			}
			out := g.do(g.ctx, g.executor(p.tool()), payCall("A-1", 5))
			if row := g.row(out); row.State != tc.want || row.Attempt != len(tc.ends) {
				t.Errorf("it is %s (%s) after %d attempts, want %s after %d", row.State, row.Reason, row.Attempt, tc.want, len(tc.ends))
			}
		})
	}
}

func TestR20EveryMoveIsInTheTable(t *testing.T) {
	g := onFile(t)
	s := newStuck(settle.Contract{VisibilityDelay: settle.Immediately})
	_, out := runTwice(g, s)
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	g.eventually("the late answer", func() bool { return slices.Contains(g.kinds(g.row(out)), "late_success") })
	events, err := g.ledger.Events(g.ctx, g.row(out).ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		var body map[string]json.RawMessage
		if !e.Move.Allowed() || e.Seq != i+1 || e.Actor == "" || e.Kind == "" {
			t.Errorf("event %d is %+v", i, e)
		}
		if len(e.Body) > 0 {
			if err := json.Unmarshal(e.Body, &body); err != nil {
				t.Errorf("event %d has the body %s", i, e.Body)
			}
			for name := range maps.Keys(body) {
				if !slices.Contains([]string{"attempt", "effect", "at_work", "wait_ms", "verdict", "by_attribute", "resource", "reason"}, name) {
					t.Errorf("event %d has %q in its body", i, name)
				}
			}
		}
	}
}
