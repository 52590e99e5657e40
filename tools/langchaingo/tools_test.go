package settlelangchaingo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/tools"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	"github.com/settle-go/settle/store"
	settlelangchaingo "github.com/settle-go/settle/tools/langchaingo"
)

func TestAResultPassesUntouchedAndIsReplayed(t *testing.T) {
	for name, tc := range map[string]struct{ schema, first, again, other string }{
		"text":   {"", " seat 1", "seat 1\n", "seat 2"},
		"object": {seatSchema, `{"seat":1}`, ` {"seat":1.0} `, `{"seat":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var inputs []string
			book := w.book(func(_ context.Context, input string) (string, error) {
				inputs = append(inputs, input)
				return "booked", nil
			})
			tool := w.guard(w.start(), book, tc.schema)
			if got := w.say(tool, tc.first); got != "booked" {
				t.Errorf("got %q", got)
			}
			for name, again := range map[string]tools.Tool{"same process": tool, "after a restart": w.guard(w.start(), book, tc.schema)} {
				if got := w.say(again, tc.again); !strings.HasPrefix(got, "[completed, replayed; operation ") || !strings.Contains(got, `"booked"`) {
					t.Errorf("%s: got %q", name, got)
				}
			}
			if got := w.say(tool, tc.other); got != "booked" {
				t.Errorf("got %q", got)
			}
			if len(inputs) != 2 || inputs[0] != tc.first {
				t.Errorf("the tool was given %q", inputs)
			}
		})
	}
}

func TestAGuardedToolKeepsItsFace(t *testing.T) {
	w := newWorld(t)
	own := w.book(booked)
	if got := w.guard(w.start(), own, ""); got.Name() != own.Name() || got.Description() != own.Description() {
		t.Errorf("the model is shown %s: %s", got.Name(), got.Description())
	}
}

// An error ends the framework's executor and loses the steps before it.
func TestAnErrorIsContentAndEndsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"unknown":  {errors.New("connection reset"), "[unknown;"},
		"not sent": {settle.NotSent(errors.New("no route")), "[not_done;"},
		"rejected": {settle.Rejected(errors.New("sold out")), "[failed;"},
	} {
		for kind, a := range everyAgent {
			t.Run(name+" "+kind, func(t *testing.T) {
				w := newWorld(t, a.call("refund", `{"order":7,"cents":1}`), a.call("book", "seat 1"), a.say("I see."))
				x := w.start()
				book := w.guard(x, w.book(func(context.Context, string) (string, error) { return "", tc.err }), "")
				said, err := w.run(x, a.of(w, append(w.executors(x), book)))
				if err != nil || said != "I see." {
					t.Fatalf("got %q, %v", said, err)
				}
				if !w.told(2, "[completed; operation ") || !w.told(2, tc.want) || w.told(2, "try again") {
					t.Errorf("the model was told %+v", w.model.Requests()[2].Messages)
				}
				w.wantRefunds(1)
			})
		}
	}
}

func TestAnInterruptPassesThrough(t *testing.T) {
	w := newWorld(t)
	interrupt := errors.New("which seat?")
	tool := w.guard(w.start(), w.book(func(context.Context, string) (string, error) { return "", settle.Interrupted(interrupt) }), "")
	if said, err := tool.Call(w.ctx, "seat 1"); err != interrupt || said != "" { //nolint:errorlint // it has to be the same one
		t.Errorf("got %q, %v", said, err)
	}
	if row := w.rows()[0]; row.State != store.Retryable || row.Reason != "interrupted" {
		t.Errorf("the operation is %v, %s", row.State, row.Reason)
	}
}

func TestR27APanicIsAnUnknownOutcome(t *testing.T) {
	w := newWorld(t)
	if got := w.say(w.guard(w.start(), w.book(func(context.Context, string) (string, error) { panic("seat map") }), ""), "seat 1"); !strings.HasPrefix(got, "[unknown;") {
		t.Errorf("got %q", got)
	}
}

func TestR01AToolWithoutAContractIsUnsafe(t *testing.T) {
	w := newWorld(t)
	tool := w.guard(w.start(), w.book(func(context.Context, string) (string, error) { return "", errors.New("connection reset") }), "")
	for _, step := range []struct{ input, want string }{{"seat 1", "[unknown;"}, {"seat 1", "[unknown;"}, {"seat 2", "[held]"}} {
		if got := w.say(tool, step.input); !strings.HasPrefix(got, step.want) {
			t.Errorf("%q was answered %q, want %s", step.input, got, step.want)
		}
	}
	w.wantActs(map[string]int{"book": 1})
	if rows := w.rows(); len(rows) != 1 || rows[0].Class != settle.Unsafe {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestAContractIsFoundByTheToolsName(t *testing.T) {
	for name, tc := range map[string]struct {
		contract settle.Contract
		schema   string
		inputs   []string
	}{
		"text":   {settle.Contract{Identity: []string{"input"}, NoLookup: true}, "", []string{"seat 1", " seat 1 "}},
		"object": {settle.Contract{Identity: []string{"seat"}, Ignore: []string{"note"}, NoLookup: true}, seatSchema, []string{`{"seat":1,"note":"window"}`, `{"note":"aisle","seat":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tool := w.guard(w.start(settle.WithGuarded(settle.RawTool{Name: "book", Contract: tc.contract})), w.book(booked), tc.schema)
			for i, want := range []string{"booked", "[completed, replayed;"} {
				if got := w.say(tool, tc.inputs[i]); !strings.HasPrefix(got, want) {
					t.Errorf("got %q, want %s", got, want)
				}
			}
			w.wantActs(map[string]int{"book": 1})
		})
	}
}

func TestWhatCannotBeReadIsNeverClaimed(t *testing.T) {
	for input, schema := range map[string]string{
		`{"seat":"first"}`: seatSchema, `{}`: seatSchema, ``: seatSchema, `{"seat":1,"row":2}`: seatSchema, `null`: seatSchema, `[1]`: seatSchema,
		`{"seat":`: seatSchema, "seat 1": seatSchema, "```json\n{\"seat\":1}\n```": seatSchema, `{"seat":1,"seat":2}`: seatSchema, "seat \xff": "",
	} {
		t.Run(input, func(t *testing.T) {
			w := newWorld(t)
			if got := w.say(w.guard(w.start(), w.book(booked), schema), input); !strings.HasPrefix(got, "[invalid_arguments]") {
				t.Errorf("got %q", got)
			}
			w.wantActs(nil)
			w.wantRows(0)
		})
	}
}

func TestR16BigNumbersArentRounded(t *testing.T) {
	w := newWorld(t)
	tool := w.guard(w.start(), w.book(func(_ context.Context, input string) (string, error) { return input, nil }), seatSchema)
	for _, input := range []string{`{"seat":9007199254740992}`, `{"seat":9007199254740993}`} {
		if got := w.say(tool, input); got != input {
			t.Errorf("got %q, want %q", got, input)
		}
	}
}

// An input that is left out is {} for the executor, and so for the tool.
func TestAnObjectThatIsLeftOutIsEmpty(t *testing.T) {
	w := newWorld(t)
	tool := w.guard(w.start(), w.book(func(_ context.Context, input string) (string, error) { return input, nil }), `{"type":"object"}`)
	if got := w.say(tool, " \n"); got != "{}" {
		t.Errorf("got %q", got)
	}
}

func TestAKeyedToolTakesItsKeyFromTheContext(t *testing.T) {
	w := newWorld(t)
	var keys []string
	x := w.start(settle.WithGuarded(settle.RawTool{Name: "book", Contract: settle.Contract{
		Class: settle.Keyed, KeyWindow: settle.Permanent, Identity: []string{"input"}, NoLookup: true}}))
	tool := w.guard(x, w.book(func(ctx context.Context, _ string) (string, error) {
		key, _ := settle.KeyFrom(ctx)
		if keys = append(keys, key); len(keys) == 1 {
			return "", errors.New("connection reset")
		}
		return "booked", nil
	}), "")
	if got := w.say(tool, "seat 1"); got != "booked" {
		t.Errorf("got %q", got)
	}
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("the attempts had the keys %q", keys)
	}
}

func TestR24ACallerWhoGoesIsToldInProgressAndTheAttemptIsRecorded(t *testing.T) {
	w := newWorld(t)
	entered, release := make(chan struct{}), make(chan struct{})
	tool := w.guard(w.start(), w.book(func(ctx context.Context, _ string) (string, error) {
		close(entered)
		<-release
		return "booked", ctx.Err()
	}), "")
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { <-entered; cancel() }()
	if said, err := tool.Call(ctx, "seat 1"); err != nil || !strings.HasPrefix(said, "[in_progress;") {
		t.Fatalf("got %q, %v", said, err)
	}
	close(release)
	if got := w.say(tool, "seat 1"); !strings.HasPrefix(got, "[completed, replayed;") {
		t.Errorf("got %q", got)
	}
	w.wantActs(map[string]int{"book": 1})
}

func TestAHostThatForgetsItsNamesIsTold(t *testing.T) {
	w := newWorld(t)
	x := w.start()
	for _, tool := range append(w.executors(x), w.guard(x, w.book(booked), "")) {
		if said, err := tool.Call(t.Context(), `{"order":7,"cents":1}`); !errors.Is(err, settle.ErrNoPrincipal) || said != "" {
			t.Errorf("%s: got %q, %v", tool.Name(), said, err)
		}
	}
	if _, err := chains.Run(settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "acme", Subject: "agent"}),
		settlelangchaingo.Chain(x, agents.NewExecutor(agents.NewOneShotAgent(w.llm, nil))), "?"); !errors.Is(err, settle.ErrNoTask) {
		t.Errorf("got %v", err)
	}
	w.wantActs(nil)
	w.wantRefunds(0)
}

// The framework finds a tool by its name in upper case; the ledger knows it by
// its own.
func TestTheModelsSpellingOfANameIsNotIdentity(t *testing.T) {
	for kind, a := range everyAgent {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, a.call("book", "seat 1"), a.call("BOOK", "seat 1"), a.call("Book", "seat 1"), a.say("Booked."))
			x := w.start()
			if said, err := w.run(x, a.of(w, []tools.Tool{w.guard(x, w.book(booked), "")})); err != nil || said != "Booked." {
				t.Fatalf("got %q, %v", said, err)
			}
			w.wantActs(map[string]int{"book": 1})
			w.wantRows(1)
		})
	}
}

// The framework has words of its own for a name that it doesn't know.
func TestANameThatTheFrameworkDoesNotKnowIsNeverClaimed(t *testing.T) {
	for kind, a := range everyAgent {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, a.call("refund_all", "{}"), a.say("I see."))
			x := w.start()
			if _, err := w.run(x, a.of(w, w.executors(x))); err != nil || !w.told(1, "refund_all is not a valid tool") {
				t.Errorf("got %v", err)
			}
			w.wantRows(0)
		})
	}
}

func TestGuardRefusesWhatCannotRun(t *testing.T) {
	w := newWorld(t)
	idle := func(context.Context, string) (string, error) { return "", nil }
	all, err := settlelangchaingo.Guard(w.start(),
		settlelangchaingo.Guarded{}, settlelangchaingo.Guarded{Tool: plain{"", idle}},
		settlelangchaingo.Guarded{Tool: plain{"pay", idle}}, settlelangchaingo.Guarded{Tool: plain{"Pay", idle}},
		settlelangchaingo.Guarded{Tool: plain{"odd", idle}, Schema: json.RawMessage(`{"type":7}`)})
	for _, want := range []string{`tool 0 is nil`, `"": it has no name`, `"Pay": its name is given twice`, `"odd": `} {
		if err == nil || all != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %s in %v", want, err)
		}
	}
}

// An agent would find one of the two by the name, and run it under the contract of
// the other.
func TestAToolOfTheExecutorIsNotGuardedToo(t *testing.T) {
	w := newWorld(t)
	does := func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	reads := func(name string) settle.AnyTool {
		return settle.RawTool{Name: name, Schema: json.RawMessage(`{"type":"object"}`), Contract: settle.Contract{Class: settle.Read}, Do: does}
	}
	x := w.start(settle.WithTools(reads("pay"), reads("ask"), reads("Ask")))
	idle := func(context.Context, string) (string, error) { return "", nil }
	for _, name := range []string{"pay", "Pay"} {
		all, err := settlelangchaingo.Guard(x, settlelangchaingo.Guarded{Tool: plain{name, idle}})
		if err == nil || all != nil || !strings.Contains(err.Error(), "the executor runs a tool of this name itself") {
			t.Errorf("guarding %s: %v", name, err)
		}
	}
	if all, err := settlelangchaingo.Tools(x, []string{"pay", "ask"}); err != nil || len(all) != 2 {
		t.Errorf("got %v, %v", all, err)
	}
	if all, err := settlelangchaingo.Tools(x, nil); err == nil || all != nil || !strings.Contains(err.Error(), `"ask" and "Ask"`) {
		t.Errorf("two tools of one name are offered: %v", err)
	}
}

// R8: text has no fields, so no input of the model's would name the contract's.
func TestAContractWithFieldsNeedsASchema(t *testing.T) {
	w := newWorld(t)
	x := w.start(settle.WithGuarded(settle.RawTool{Name: "book", Contract: settle.Contract{Identity: []string{"order"}, NoLookup: true}}))
	said, err := w.guard(x, w.book(booked), "").Call(w.ctx, `{"order":7}`)
	if err == nil || said != "" || !strings.Contains(err.Error(), "give its Guarded a Schema") || !strings.Contains(err.Error(), "order") {
		t.Errorf("got %q, %v", said, err)
	}
	w.wantActs(nil)
	w.wantRows(0)
}

func TestToolsAreChosenByNameAndTellTheirSchema(t *testing.T) {
	w := newWorld(t)
	x := w.start(settle.WithGuarded(settle.RawTool{Name: "book", Contract: settle.Contract{WholeArguments: true, NoLookup: true}}))
	all, err := settlelangchaingo.Tools(x, []string{"refund"})
	if err != nil || len(all) != 1 || !strings.HasPrefix(all[0].Description(), "Refund an order. ") || !strings.Contains(all[0].Description(), `"order":{"type":"integer"}`) {
		t.Errorf("got %v, %v", all, err)
	}
	if got := w.executors(x); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	if all, err := settlelangchaingo.Tools(x, []string{"refund", "reimburse"}); err == nil || all != nil || !strings.Contains(err.Error(), `"reimburse"`) {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestToolsOfTheExecutor(t *testing.T) {
	w := newWorld(t)
	refund := w.executors(w.start())[0]
	for _, step := range []struct{ input, want string }{
		{`{"order":7,"cents":1}`, "[completed;"}, {` {"order":7,"cents":1}` + "\n", "[completed, replayed;"},
		{`{"order":7,"cents":2}`, "[conflict;"}, {`order 7`, "[invalid_arguments]"}, {``, "[invalid_arguments]"},
	} {
		if got := w.say(refund, step.input); !strings.HasPrefix(got, step.want) {
			t.Errorf("%q was answered %q, want %s", step.input, got, step.want)
		}
	}
	w.wantRefunds(1)
}

func TestALostAnswerIsSettledByEvidenceAndNotByAnotherCall(t *testing.T) {
	for kind, a := range everyAgent {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, a.call("refund", `{"order":7,"cents":4200}`), a.say("Refunded."))
			w.pay.Writes.Next(farside.CommitThenDrop())
			x := w.start()
			if said, err := w.run(x, a.of(w, w.executors(x))); err != nil || said != "Refunded." || !w.told(1, "[completed; operation ") {
				t.Errorf("got %q, %v", said, err)
			}
			w.wantRefunds(1)
		})
	}
}

// R60, S28: a run that ended with an error begins anew, in another process or in
// this one, and is told what is done.
func TestR60TheBriefComesByItselfAfterARestart(t *testing.T) {
	for kind, a := range everyAgent {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, a.call("refund", `{"order":7,"cents":1}`), scripted.Fail(500),
				a.call("refund", `{"order":7,"cents":1}`), a.say("Refunded."))
			x := w.start()
			if _, err := w.run(x, a.of(w, w.executors(x))); err == nil {
				t.Fatal("expected the model to fail")
			}
			x = w.start()
			if said, err := w.run(x, a.of(w, w.executors(x))); err != nil || said != "Refunded." {
				t.Fatalf("got %q, %v", said, err)
			}
			for n, want := range []bool{false, false, true, true} {
				if got := w.told(n, "Done already for this task"); got != want {
					t.Errorf("request %d has a brief: %v, want %v", n, got, want)
				}
			}
			if !w.told(2, "Where is my parcel?") || !w.told(3, "[completed, replayed;") {
				t.Errorf("the model was told %+v", w.model.Requests()[3].Messages)
			}
			w.wantRefunds(1)
		})
	}
}

// The brief is this run's alone: a memory that kept it would tell old news.
func TestTheMemoryKeepsTheInputWithoutTheBrief(t *testing.T) {
	w := newWorld(t, scripted.Say("Refunded."))
	x := w.start()
	w.say(w.executors(x)[0], `{"order":7,"cents":1}`)
	kept := memory.NewConversationBuffer()
	if _, err := chains.Run(w.ctx, settlelangchaingo.Chain(x, agents.NewExecutor(agents.NewOpenAIFunctionsAgent(w.llm, nil), agents.WithMemory(kept))), "And now?"); err != nil {
		t.Fatal(err)
	}
	if !w.told(0, "Done already for this task") {
		t.Error("the model has no brief")
	}
	saved, err := kept.LoadMemoryVariables(w.ctx, nil)
	if text, _ := saved["history"].(string); err != nil || !strings.Contains(text, "And now?") || strings.Contains(text, "Done already") {
		t.Errorf("the memory has %v, %v", saved, err)
	}
}

// heard counts the chains that it hears begin.
type heard struct {
	callbacks.SimpleHandler
	begun *int
}

func (h heard) HandleChainStart(context.Context, map[string]any) { *h.begun++ }

func TestAChainKeepsItsCallbacks(t *testing.T) {
	w := newWorld(t, scripted.Say("Hello."))
	begun := 0
	inner := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(w.llm, nil), agents.WithCallbacksHandler(heard{begun: &begun}))
	if _, err := chains.Run(w.ctx, settlelangchaingo.Chain(w.start(), inner), "Hello?"); err != nil || begun != 1 {
		t.Errorf("it heard %d chains begin, %v", begun, err)
	}
}

func TestAnInputThatIsNoTextIsRefusedWhereThereIsABrief(t *testing.T) {
	w := newWorld(t)
	x := w.start()
	w.say(w.executors(x)[0], `{"order":7,"cents":1}`)
	chain := settlelangchaingo.Chain(x, agents.NewExecutor(agents.NewOneShotAgent(w.llm, nil)))
	if _, err := chain.Call(w.ctx, map[string]any{"question": "?"}); err == nil || !strings.Contains(err.Error(), `"input"`) {
		t.Errorf("got %v", err)
	}
}

func TestR09ARepeatThatIsMeantReachesTheToolWithoutTheOccurrence(t *testing.T) {
	w := newWorld(t)
	var inputs []string
	again := settle.RawTool{Name: "book", Contract: settle.Contract{Identity: []string{"seat"}, NoLookup: true, Repeatable: true}}
	book := w.guard(w.start(settle.WithGuarded(again)), w.book(func(_ context.Context, input string) (string, error) {
		inputs = append(inputs, input)
		return "booked", nil
	}), seatSchema)
	for _, input := range []string{` {"seat":1.0}`, `{"seat":1,"settle_occurrence":2}`} {
		if got := w.say(book, input); got != "booked" {
			t.Errorf("%s came to %q", input, got)
		}
	}
	if len(inputs) != 2 || inputs[0] != ` {"seat":1.0}` || inputs[1] != `{"seat":1}` {
		t.Errorf("the tool was given %q", inputs)
	}
}
