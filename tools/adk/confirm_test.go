package settleadk_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleadk "github.com/settle-go/settle/tools/adk"
	"github.com/settle-go/settle/tools/adk/example/chatmodel"
)

// confirmations are the ways in which a tool of adk asks before it acts.
func (w *world) confirmations() map[string]tool.Tool {
	asks := w.pay(functiontool.Config{}, func(ctx agent.Context) error {
		if ctx.ToolConfirmation() != nil {
			return nil
		}
		w.acted.Add(-1) // it only asks
		return errors.Join(ctx.RequestConfirmation("really?", nil), tool.ErrConfirmationRequired)
	})
	waits, err := functiontool.New(functiontool.Config{Name: "pay"}, func(ctx agent.Context, _ payArgs) (map[string]any, error) {
		if ctx.ToolConfirmation() == nil {
			return map[string]any{"status": "asked"}, ctx.RequestConfirmation("really?", nil)
		}
		w.acted.Add(1)
		return map[string]any{"id": "pay_1"}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return map[string]tool.Tool{
		"by its configuration": w.pay(functiontool.Config{RequireConfirmation: true}, nil), "by the tool, with adk's error": asks, "by the tool, with a result": waits,
	}
}

// The framework runs the tool as often as the approval is delivered.
func TestS37OneConfirmationOnePaymentHoweverOftenItIsDelivered(t *testing.T) {
	for _, name := range []string{"by its configuration", "by the tool, with adk's error", "by the tool, with a result"} {
		for _, wrapped := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."), scripted.Say("Was paid."))
				w.model.Otherwise(scripted.Say("Yes."))
				x, pay := w.executor(settle.WithGuarded(contract("pay"))), w.confirmations()[name]
				plugins := []*plugin.Plugin{w.plugin(x)}
				if wrapped {
					pay, plugins = w.tool(x, pay), nil
				}
				a := w.start(llmagent.Config{Tools: []tool.Tool{pay}}, plugins...)
				a.say("Pay order 7.")
				w.wantActed(0)
				if rows := w.rows("acme"); len(rows) != 1 || rows[0].State.String() != "retryable" {
					t.Fatalf("before the confirmation the ledger has %+v", rows)
				}
				if asked := a.results("pay")[0]; asked["error"] == nil && asked["status"] != "asked" || asked["operation"] != nil {
					t.Errorf("adk was told %v instead of the tool's own answer", asked)
				}
				yes := a.confirmation(true)
				for range 2 {
					if err := a.send(w.ctx, yes); err != nil {
						t.Fatal(err)
					}
				}
				w.wantActed(1)
				a.wantResult("pay", 1, "id", "pay_1")
				a.wantResult("pay", 2, "settle_note", "replayed")
			})
		}
	}
}

func (w *world) tool(x *settle.Executor, t tool.Tool, options ...settleadk.Option) tool.Tool {
	w.Helper()
	guarded, err := settleadk.Tool(x, t, options...)
	if err != nil {
		w.Fatal(err)
	}
	return guarded
}

func TestARejectedConfirmationSendsNothingAndIsAdksOwnError(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("I see."))
	w.model.Otherwise(scripted.Say("I see."))
	a := w.guarded(w.executor(settle.WithGuarded(contract("pay"))), w.pay(functiontool.Config{RequireConfirmation: true}, nil))
	a.say("Pay order 7.")
	if err := a.send(w.ctx, a.confirmation(false)); err != nil {
		t.Fatal(err)
	}
	w.wantActed(0)
	a.wantResult("pay", 1, "error", tool.ErrConfirmationRejected.Error())
	if rows := w.rows("acme"); len(rows) != 1 || rows[0].State.String() != "retryable" {
		t.Errorf("the ledger has %+v", rows)
	}
}

// set is a toolset that adk wraps with a confirmation.
type set []tool.Tool

func (set) Name() string                                       { return "set" }
func (s set) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return s, nil }

func TestAToolsetsConfirmationMayStandAroundGuardedTools(t *testing.T) {
	for name, inner := range map[string]func(*world, *settle.Executor) tool.Tool{
		"one of the executor": func(_ *world, x *settle.Executor) tool.Tool { return offered(t, x, "refund")[0] },
		"one that is wrapped": func(w *world, x *settle.Executor) tool.Tool {
			return w.tool(x, w.pay(functiontool.Config{Name: "own"}, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := w.executor(settle.WithTools(w.refund()), settle.WithGuarded(contract("own")))
			tools, err := tool.WithConfirmation(set{inner(w, x)}, true, nil).Tools(nil)
			if err != nil {
				t.Fatal(err)
			}
			called := tools[0].Name()
			script := scripted.New(scripted.CallTools(scripted.Use(called, `{"order":7}`)), scripted.Say("Asked."), scripted.Say("Done."))
			t.Cleanup(script.Close)
			w.model = script
			a := w.guarded(x, tools[0])
			a.say("Do it.")
			w.wantActed(0)
			if err := a.send(w.ctx, a.confirmation(true)); err != nil {
				t.Fatal(err)
			}
			w.wantActed(1)
			if last := a.results(called)[1]; last["id"] == nil {
				t.Errorf("it was answered %v", last)
			}
		})
	}
}

type refundArgs struct {
	Order int64 `json:"order" settle:"identity"`
}

type refunded struct {
	ID string `json:"id" settle:"resource"`
}

// refund is a tool that the executor runs.
func (w *world) refund() settle.AnyTool { return w.refundWith(nil) }

func streamOf(pieces ...string) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, p := range pieces {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// watch is a streaming tool.
func (w *world) watch(run func(agent.Context) iter.Seq2[string, error]) tool.Tool {
	w.Helper()
	t, err := functiontool.NewStreaming(functiontool.Config{Name: "watch"}, func(ctx agent.Context, _ payArgs) iter.Seq2[string, error] {
		w.acted.Add(1)
		return run(ctx)
	})
	if err != nil {
		w.Fatal(err)
	}
	return t
}

func TestAStreamIsRecordedAtItsEndAndReplayedAsOneChunk(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("watch", `{"order":7}`)), scripted.CallTools(scripted.Use("watch", `{"order":7}`)), scripted.Say("Seen."))
	x := w.executor(settle.WithGuarded(contract("watch")))
	watch := w.tool(x, w.watch(func(agent.Context) iter.Seq2[string, error] { return streamOf("on its way, ", "delivered") }))
	a := w.guarded(x, watch)
	a.say("Watch.")
	w.wantActed(1)
	a.wantResult("watch", 0, "result", "on its way, delivered")
	a.wantResult("watch", 1, "result", "[completed, replayed;")
	a.wantResult("watch", 1, "result", "\non its way, delivered")
}

func TestAStreamThatBreaksIsUnknownAndNoError(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("watch", `{"order":7}`)), scripted.CallTools(scripted.Use("watch", `{"order":7}`)), scripted.Say("I see."))
	x := w.executor(settle.WithGuarded(contract("watch")))
	watch := w.tool(x, w.watch(func(agent.Context) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			if yield("on its way", nil) {
				yield("", errors.New("connection reset"))
			}
		}
	}))
	a := w.guarded(x, watch)
	a.say("Watch.")
	w.wantActed(1)
	a.wantResult("watch", 0, "result", "on its way[unknown;")
	a.wantResult("watch", 1, "result", "[unknown;")
	for _, r := range a.results("watch") {
		if r["error"] != nil {
			t.Errorf("got %v", r)
		}
	}
}

func TestAStreamThatIsClosedEarlyIsUnknown(t *testing.T) {
	w := newWorld(t)
	x := w.executor(settle.WithGuarded(contract("watch")))
	watch := w.tool(x, w.watch(func(agent.Context) iter.Seq2[string, error] { return streamOf("one", "two") })).(interface {
		RunStream(agent.Context, any) iter.Seq2[string, error]
	})
	for range watch.RunStream(w.toolContext(), map[string]any{"order": 7}) {
		break
	}
	if rows := w.rows("acme"); len(rows) != 1 || rows[0].State.String() != "unknown" {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestAnUnguardedStreamingToolStopsTheRunBeforeTheModelIsAsked(t *testing.T) {
	w := newWorld(t)
	a := w.guarded(w.executor(), w.watch(func(agent.Context) iter.Seq2[string, error] { return streamOf() }))
	err := a.send(w.ctx, genai.NewPartFromText("Watch."))
	if err == nil || !strings.Contains(err.Error(), "settleadk.Tool(") || len(w.model.Requests()) != 0 {
		t.Errorf("got %v after %d requests", err, len(w.model.Requests()))
	}
}

// Nil from a BeforeToolCallback would make the framework run the tool.
func TestAConfirmedToolThatReturnsNothingRunsOnce(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("wipe", `{}`)), scripted.Say("Asked."), scripted.Say("Done."))
	wipe, err := functiontool.New(functiontool.Config{Name: "wipe", RequireConfirmation: true}, func(agent.Context, struct{}) (map[string]any, error) {
		w.acted.Add(1)
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a := w.guarded(w.executor(), wipe)
	a.say("Wipe.")
	if err := a.send(w.ctx, a.confirmation(true)); err != nil {
		t.Fatal(err)
	}
	w.wantActed(1)
}

// adk gives an agent that is a tool a runner of its own, without plugins.
func TestAnAgentAsAToolIsRefusedUntilItsToolsAreGuarded(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("cashier", `{"request":"Pay order 7."}`)),
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."),
		scripted.CallTools(scripted.Use("cashier", `{"request":"Please pay 7."}`)),
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Was paid."), scripted.Say("All done."))
	x := w.executor(settle.WithGuarded(contract("pay")))
	cashier := func(tools ...tool.Tool) tool.Tool {
		a, err := llmagent.New(llmagent.Config{Name: "cashier", Model: chatmodel.New(w.model.URL()), Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		return agenttool.New(a, nil)
	}
	pay := w.pay(functiontool.Config{}, nil)
	confirmed, err := tool.WithConfirmation(set{cashier(pay)}, true, nil).Tools(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, agents := range [][]tool.Tool{{cashier(pay)}, confirmed} {
		err := w.guarded(x, agents...).send(w.ctx, genai.NewPartFromText("Pay."))
		if err == nil || !strings.Contains(err.Error(), "settleadk.Tool(") || len(w.model.Requests()) != 0 {
			t.Fatalf("got %v after %d requests", err, len(w.model.Requests()))
		}
	}
	guarded, err := settleadk.Tool(x, pay)
	if err != nil {
		t.Fatal(err)
	}
	a := w.start(llmagent.Config{Tools: []tool.Tool{cashier(guarded)}}, w.plugin(x, settleadk.Unguarded("cashier")))
	a.say("Pay.")
	w.wantActed(1)
	if got := len(w.model.Requests()); got != 7 {
		t.Errorf("the models were asked %d times", got)
	}
}
