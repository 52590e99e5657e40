package settleadk_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/exitlooptool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleadk "github.com/settle-go/settle/tools/adk"
)

func TestS28AReplayIsTheResultWithAWordBesideIt(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("pay", `{"order":7,"note":"late"}`)), scripted.Say("Paid."),
		scripted.CallTools(scripted.Use("pay", `{"order":7,"note":"eight days"}`)), scripted.Say("Was paid."))
	a := w.guarded(w.executor(settle.WithGuarded(contract("pay"))), w.pay(functiontool.Config{}, nil))
	a.say("Pay order 7.")
	a.say("Did you?")
	w.wantActed(1)
	a.wantResult("pay", 0, "id", "pay_1")
	a.wantResult("pay", 1, "id", "pay_1")
	a.wantResult("pay", 1, "settle_note", "[completed, replayed;")
	if _, noted := a.results("pay")[0]["settle_note"]; noted {
		t.Errorf("the first run was answered %v", a.results("pay")[0])
	}
	if rows := w.rows("acme"); len(rows) != 1 || rows[0].Resource != "pay_1" {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestR60AfterARestartTheBriefComesWithEachCallOfTheModel(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."),
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Was paid."))
	for range 2 {
		a := w.guarded(w.executor(settle.WithGuarded(contract("pay"))), w.pay(functiontool.Config{}, nil))
		a.say("Pay order 7.")
	}
	w.wantActed(1)
	for i, r := range w.model.Requests() {
		system := ""
		for _, m := range r.Messages {
			if m.Role == scripted.System {
				system += m.Text + "\n"
			}
		}
		if told := strings.Contains(system, "don't do these again"); told != (i >= 2) || !strings.Contains(system, "You support.") {
			t.Errorf("request %d has the instructions %q", i, system)
		}
	}
}

func TestR27AnErrorOfAToolIsAMapThatSaysWhatIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"not sent": {settle.NotSent(errors.New("no route")), "not_done"},
		"rejected": {settle.Rejected(errors.New("sold out")), "failed"},
		"unknown":  {context.DeadlineExceeded, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("I see."))
			a := w.guarded(w.executor(), w.pay(functiontool.Config{}, func(agent.Context) error { return tc.err }))
			a.say("Pay order 7.")
			a.wantResult("pay", 0, "status", tc.want)
			if _, is := a.results("pay")[0]["error"]; is || a.results("pay")[0]["operation"] == "" {
				t.Errorf("got %v", a.results("pay")[0])
			}
		})
	}
}

func TestR18WhatCannotRunIsAnsweredAndClaimsNothing(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(
			scripted.Use("pay", `{"order":"seven"}`), scripted.Use("pay", `{}`), scripted.Use("pay", `{"order":9007199254740993}`),
			scripted.Use("pay_all", `{"order":7}`)),
		scripted.Say("I see."))
	a := w.guarded(w.executor(settle.WithGuarded(contract("pay"))), w.pay(functiontool.Config{}, nil))
	a.say("Pay.")
	w.wantActed(0)
	for i := range 3 {
		a.wantResult("pay", i, "status", "invalid_arguments")
	}
	a.wantResult("pay_all", 0, "error", "not found")
	if rows := w.rows("acme"); len(rows) != 0 {
		t.Errorf("the ledger has %d rows", len(rows))
	}
}

func TestR01AToolWithoutAContractIsUnsafe(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.CallTools(scripted.Use("pay", `{"order":8}`)), scripted.Say("I see."))
	a := w.guarded(w.executor(), w.pay(functiontool.Config{}, func(agent.Context) error { return errors.New("connection reset") }))
	a.say("Pay.")
	w.wantActed(1)
	a.wantResult("pay", 0, "status", "unknown")
	a.wantResult("pay", 1, "status", "held")
	if rows := w.rows("acme"); len(rows) != 1 || rows[0].Class != settle.Unsafe {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestS23EqualIDsOfParallelCallsIdentifyNothing(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("pay", `{"order":1}`).As("x"), scripted.Use("pay", `{"order":2}`).As("x"), scripted.Use("pay", `{"order":1}`).As("x")),
		scripted.Say("Done."))
	a := w.guarded(w.executor(settle.WithGuarded(contract("pay"))), w.pay(functiontool.Config{}, nil))
	a.say("Pay.")
	w.wantActed(2)
	if got := len(a.results("pay")); got != 3 {
		t.Errorf("%d calls were answered, want 3", got)
	}
}

func TestR03ARenamedToolFindsItsOperations(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."),
		scripted.CallTools(scripted.Use("pay_order", `{"order":7}`)), scripted.Say("Was paid."))
	w.guarded(w.executor(settle.WithGuarded(contract("pay"))), w.pay(functiontool.Config{}, nil)).say("Pay order 7.")
	renamed := contract("pay_order")
	renamed.Formerly = []string{"pay"}
	a := w.guarded(w.executor(settle.WithGuarded(renamed)), w.pay(functiontool.Config{Name: "pay_order"}, nil))
	a.say("Pay order 7.")
	w.wantActed(1)
	a.wantResult("pay_order", 0, "settle_note", "replayed")
}

func TestS43ACallerWhoGoesLeavesTheAttemptToItsEnd(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Was paid."))
	entered, release := make(chan struct{}), make(chan struct{})
	tools := w.pay(functiontool.Config{}, func(ctx agent.Context) error {
		close(entered)
		<-release
		return errors.Join(ctx.Err(), ctx.State().Set("paid", true))
	})
	x := w.executor(settle.WithGuarded(contract("pay")))
	a := w.guarded(x, tools)
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { <-entered; cancel() }()
	_ = a.send(ctx, genai.NewPartFromText("Pay.")) // how adk reports its caller's own cancellation is adk's
	close(release)
	w.sessions = session.InMemoryService() // the old one may hold a call without an answer
	a = w.guarded(x, tools)
	a.say("Did you?")
	w.wantActed(1)
	a.wantResult("pay", 0, "id", "pay_1")
	a.wantResult("pay", 0, "settle_note", "replayed")
}

func TestAKeyedToolTakesItsKeyFromTheContext(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	var keys []string
	keyed := contract("pay")
	keyed.Contract.Class, keyed.Contract.KeyWindow = settle.Keyed, settle.Permanent
	a := w.guarded(w.executor(settle.WithGuarded(keyed)), w.pay(functiontool.Config{}, func(ctx agent.Context) error {
		key, _ := settle.KeyFrom(ctx)
		if keys = append(keys, key); len(keys) == 1 {
			return errors.New("connection reset")
		}
		return nil
	}))
	a.say("Pay.")
	a.wantResult("pay", 0, "id", "pay_1")
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("the attempts had the keys %q", keys)
	}
}

func TestCallbacksAndStateWorkAsBefore(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`), scripted.Use("blocked", `{"order":7}`)), scripted.Say("Paid."))
	pay := w.pay(functiontool.Config{}, func(ctx agent.Context) error { return ctx.State().Set("paid", "7") })
	a := w.start(llmagent.Config{
		Tools: []tool.Tool{pay, w.pay(functiontool.Config{Name: "blocked"}, nil)},
		BeforeToolCallbacks: []llmagent.BeforeToolCallback{func(_ agent.Context, t tool.Tool, _ map[string]any) (map[string]any, error) {
			if t.Name() == "blocked" {
				return map[string]any{"by": "guardrail"}, nil
			}
			return nil, nil
		}},
		AfterToolCallbacks: []llmagent.AfterToolCallback{func(_ agent.Context, t tool.Tool, args, result map[string]any, err error) (map[string]any, error) {
			if t.Name() == "pay" && args["order"] == 7.0 && result["id"] == "pay_1" && err == nil {
				return map[string]any{"id": "pay_1", "seen": "yes"}, nil
			}
			return nil, nil
		}},
	}, w.plugin(w.executor(settle.WithGuarded(contract("pay")))))
	a.say("Pay.")
	w.wantActed(1)
	a.wantResult("blocked", 0, "by", "guardrail")
	a.wantResult("pay", 0, "seen", "yes")
	if rows := w.rows("acme"); len(rows) != 1 {
		t.Errorf("the ledger has %d rows: what a guardrail answers must not be claimed", len(rows))
	}
	set := false
	for _, event := range a.events {
		set = set || event.Actions.StateDelta["paid"] == "7"
	}
	if !set {
		t.Errorf("the state that the tool set reached no event")
	}
}

func TestALongRunningToolMayAnswerNothing(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("order", `{}`)), scripted.Say("Ordered."))
	order, err := functiontool.New(functiontool.Config{Name: "order", IsLongRunning: true}, func(agent.Context, struct{}) (map[string]any, error) {
		w.acted.Add(1)
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a := w.guarded(w.executor(), order)
	bare := newApp(w, order)
	a.say("Order.")
	w.wantActed(1)
	if got := len(a.results("order")); got != bare {
		t.Errorf("it was answered %d times, without settle %d times", got, bare)
	}
}

// newApp tells how often adk itself answers such a tool.
func newApp(w *world, t tool.Tool) int {
	w.Helper()
	model := scripted.New(scripted.CallTools(scripted.Use(t.Name(), `{}`)), scripted.Say("Ordered."))
	w.Cleanup(model.Close)
	alone := &world{T: w.T, ctx: w.ctx, model: model, sessions: session.InMemoryService()}
	a := alone.start(llmagent.Config{Tools: []tool.Tool{t}})
	if err := a.send(w.ctx, genai.NewPartFromText("Order.")); err != nil {
		w.Fatal(err)
	}
	w.acted.Store(0)
	return len(a.results(t.Name()))
}

// A replay of what steers the framework would steer nothing.
func TestWhatSteersTheFrameworkIsNotGuarded(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("exit_loop", `{}`)), scripted.CallTools(scripted.Use("exit_loop", `{}`)),
		scripted.CallTools(scripted.Use("wave", `{"order":1}`)), scripted.CallTools(scripted.Use("wave", `{"order":1}`)), scripted.Say("Done."))
	exit, err := exitlooptool.New()
	if err != nil {
		t.Fatal(err)
	}
	a := w.start(llmagent.Config{Tools: []tool.Tool{exit, w.pay(functiontool.Config{Name: "wave"}, nil)}},
		w.plugin(w.executor(), settleadk.Unguarded("wave")))
	a.say("Leave.")
	a.say("Leave.")
	a.say("Wave.")
	w.wantActed(2)
	escalated := 0
	for _, event := range a.events {
		if event.Actions.Escalate {
			escalated++
		}
	}
	if escalated != 2 || len(w.rows("acme")) != 0 {
		t.Errorf("%d loops were left, want 2; the ledger has %d rows", escalated, len(w.rows("acme")))
	}
}

func TestS18EvidenceAnswersAlsoWhereItHasNoResult(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	seen := contract("pay")
	seen.Contract.NoLookup = false
	seen.Lookup = func(_ context.Context, q settle.Query[json.RawMessage], _ json.RawMessage) (settle.Evidence, error) {
		return q.Happened("pay_1", nil), nil
	}
	a := w.guarded(w.executor(settle.WithGuarded(seen)), w.pay(functiontool.Config{}, func(agent.Context) error { return errors.New("i/o timeout") }))
	a.say("Pay.")
	w.wantActed(1)
	a.wantResult("pay", 0, "status", "completed")
	a.wantResult("pay", 0, "message", "pay_1")
}

// functiontool checks the arguments once more, after the claim.
func TestR09ARepeatThatIsMeantReachesTheToolWithoutTheOccurrence(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)),
		scripted.CallTools(scripted.Use("pay", `{"order":7,"settle_occurrence":2}`)), scripted.Say("Paid twice."))
	again := contract("pay")
	again.Contract.Repeatable = true
	a := w.guarded(w.executor(settle.WithGuarded(again)), w.pay(functiontool.Config{}, nil))
	a.say("Pay order 7 twice.")
	w.wantActed(2)
	a.wantResult("pay", 1, "id", "pay_1")
}
