package settletest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/settletest"
)

type mailArgs struct {
	To   string `json:"to" settle:"identity"`
	Text string `json:"text"`
}

type sent struct {
	ID string `json:"id" settle:"resource"`
}

// relay is the far side of the tests' tool: it knows which keys it has acted on.
type relay struct {
	mu   sync.Mutex
	sent map[string]string
}

func (r *relay) send(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		r.sent = map[string]string{}
	}
	r.sent[key] = fmt.Sprint("mail-", len(r.sent)+1)
	return r.sent[key]
}

func (r *relay) find(key string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.sent[key]
	return id, ok
}

func (r *relay) tool(c settle.Contract) settle.Tool[mailArgs, sent] {
	t := settle.Tool[mailArgs, sent]{
		Name: "send_mail", Description: "Send a mail.", Contract: c,
		Do: func(_ context.Context, op settle.Op, _ mailArgs) (sent, error) { return sent{r.send(op.Key())}, nil },
	}
	if !c.NoLookup {
		t.Lookup = func(_ context.Context, q settle.Query[sent], _ mailArgs) (settle.Evidence, error) {
			if id, ok := r.find(q.Key()); ok {
				return q.Happened(id, sent{id}), nil
			}
			return q.NotHappened(), nil
		}
	}
	return t
}

var mail = mailArgs{To: "eve@example.org", Text: "hello"}

func TestACallRunsAndReplays(t *testing.T) {
	t.Parallel()
	tool, count := settletest.Count((&relay{}).tool(settle.Contract{NoLookup: true}))
	ledger := settletest.NewLedger(t)
	ctx := settletest.Context(t)
	for process := range 2 {
		x := settletest.NewExecutorOn(t, ledger, settle.WithTools(tool))
		out := settletest.Execute(t, ctx, x, "send_mail", mail)
		if got := settletest.Completed[sent](t, out); got.ID != "mail-1" || out.Replayed != (process == 1) {
			t.Errorf("process %d got %+v, replayed %v", process, got, out.Replayed)
		}
	}
	if count.Attempts() != 1 || count.Effects() != 1 {
		t.Errorf("%d attempts, %d effects", count.Attempts(), count.Effects())
	}
}

func TestFaultsAreTheThreeThatMatter(t *testing.T) {
	t.Parallel()
	type tool = settle.Tool[mailArgs, sent]
	for name, tc := range map[string]struct {
		breaks  func(tool, int) tool
		lookup  bool
		want    settle.Status
		effects int
	}{
		"answer lost, looked for":  {settletest.LoseAnswer[mailArgs, sent], true, settle.StatusCompleted, 1},
		"answer lost, no lookup":   {settletest.LoseAnswer[mailArgs, sent], false, settle.StatusUnknown, 1},
		"request lost, looked for": {settletest.LoseRequest[mailArgs, sent], true, settle.StatusUnknown, 0},
		"request lost, no lookup":  {settletest.LoseRequest[mailArgs, sent], false, settle.StatusUnknown, 0},
		"refused":                  {settletest.Refuse[mailArgs, sent], false, settle.StatusNotDone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counted, count := settletest.Count((&relay{}).tool(settle.Contract{NoLookup: !tc.lookup}))
			x := settletest.NewExecutor(t, tc.breaks(counted, 1))
			ctx := settletest.Context(t)
			settletest.Want(t, settletest.Execute(t, ctx, x, "send_mail", mail), tc.want)
			if count.Effects() != tc.effects {
				t.Errorf("%d effects, want %d", count.Effects(), tc.effects)
			}
			// The next attempt is whole.
			other := mailArgs{To: "adam@example.org"}
			settletest.Want(t, settletest.Execute(t, ctx, x, "send_mail", other), settle.StatusCompleted)
		})
	}
}

func TestAKeyedToolIsBrokenAsOneThatSendsItsKey(t *testing.T) {
	t.Parallel()
	far := &relay{}
	tool := far.tool(settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true})
	x := settletest.NewExecutor(t, settletest.LoseRequest(settletest.LoseAnswer(tool, 1), 1))
	settletest.Want(t, settletest.Execute(t, settletest.Context(t), x, "send_mail", mail), settle.StatusCompleted)
	if len(far.sent) != 1 {
		t.Errorf("the far side saw %d keys", len(far.sent))
	}
}

func TestTheClockStandsUntilItIsSetForward(t *testing.T) {
	t.Parallel()
	clock := settletest.NewClock()
	before := clock.Now()
	clock.Advance(time.Hour)
	clock.Advance(-time.Minute) // a ledger's clock never runs backwards
	if got := clock.Now().Sub(before); got != time.Hour {
		t.Errorf("it moved by %v", got)
	}

	tool, count := settletest.Count((&relay{}).tool(settle.Contract{VisibilityDelay: time.Hour, EscalateAfter: 24 * time.Hour}))
	x := settletest.NewExecutorOn(t, clock.Ledger(), settle.WithTools(settletest.LoseRequest(tool, 1)))
	ctx := settletest.Context(t)
	call := func(want settle.Status) {
		t.Helper()
		settletest.Want(t, settletest.Execute(t, ctx, x, "send_mail", mail), want)
	}
	call(settle.StatusUnknown)
	call(settle.StatusUnknown)
	clock.Advance(2 * time.Hour) // now "not found" counts
	call(settle.StatusCompleted)
	if count.Effects() != 1 {
		t.Errorf("%d effects", count.Effects())
	}
}

// failing stands in for the test that a helper fails.
type failing struct {
	testing.TB
	ctx    context.Context
	failed string
	end    []func()
}

func (f *failing) Helper()                  {}
func (f *failing) Context() context.Context { return f.ctx }
func (f *failing) Cleanup(end func())       { f.end = append(f.end, end) }
func (f *failing) Error(args ...any)        { f.failed += fmt.Sprint(args...) }
func (f *failing) Fatal(args ...any)        { f.failed += fmt.Sprint(args...); runtime.Goexit() }
func (f *failing) Fatalf(format string, args ...any) {
	f.failed += fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fails runs a helper that must fail its test, and returns what it said.
func fails(t *testing.T, helper func(testing.TB)) string {
	t.Helper()
	f := &failing{TB: t, ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		helper(f)
	}()
	<-done
	for _, end := range f.end {
		end()
	}
	if f.failed == "" {
		t.Error("the helper let it pass")
	}
	return f.failed
}

func TestHelpersFailTheTest(t *testing.T) {
	t.Parallel()
	x := settletest.NewExecutor(t, (&relay{}).tool(settle.Contract{NoLookup: true}))
	ctx := settletest.Context(t)
	unknown := settle.Outcome{Status: settle.StatusUnknown, Tool: "send_mail", Reason: "timeout"}
	if said := fails(t, func(t testing.TB) { settletest.Want(t, unknown, settle.StatusCompleted) }); !strings.Contains(said, "want completed, got unknown") {
		t.Errorf("Want said %s", said)
	}
	fails(t, func(t testing.TB) { settletest.Completed[sent](t, unknown) })
	fails(t, func(t testing.TB) { settletest.Completed[sent](t, settle.Outcome{Status: settle.StatusCompleted}) })
	fails(t, func(t testing.TB) { settletest.Execute(t, ctx, x, "send_mail", make(chan int)) })
	if said := fails(t, func(t testing.TB) { settletest.Execute(t, context.Background(), x, "send_mail", mail) }); !strings.Contains(said, settle.ErrNoPrincipal.Error()) {
		t.Errorf("Execute said %s", said)
	}
	if said := fails(t, func(t testing.TB) {
		settletest.NewExecutor(t, (&relay{}).tool(settle.Contract{Attempts: 7, NoLookup: true}))
	}); !strings.Contains(said, "retry policy") {
		t.Errorf("NewExecutor said %s", said)
	}
}

func TestLostErrorsProveNothing(t *testing.T) {
	t.Parallel()
	for _, err := range []error{settletest.ErrLost, settletest.ErrRefused} {
		if errors.Is(err, context.Canceled) || err.Error() == "" {
			t.Errorf("%v", err)
		}
	}
}
