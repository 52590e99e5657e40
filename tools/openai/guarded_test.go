package settleopenai_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"

	"github.com/settle-go/settle"
	settleopenai "github.com/settle-go/settle/tools/openai"
)

// own is a tool of the host that counts its runs.
func (w *world) own(run func(ctx context.Context, args json.RawMessage) (string, error)) settleopenai.Guarded {
	return settleopenai.Guarded{Definition: seat("book"), Run: func(ctx context.Context, args json.RawMessage) (string, error) {
		w.notes.Add(1)
		return run(ctx, args)
	}}
}

// say answers one turn and returns what the model is told.
func (w *world) say(tools *settleopenai.Tools, calls ...string) []string {
	w.Helper()
	results, err := tools.AnswerChat(w.ctx, turn(w.T, calls...))
	if err != nil {
		w.Fatal(err)
	}
	return answers(w.T, results)
}

func TestAGuardedToolsOwnWordsPassOnceAndAReplaySaysSo(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleopenai.Guarded{w.own(func(_ context.Context, args json.RawMessage) (string, error) {
		return "seat booked: " + string(args), nil
	})})
	if got := w.say(tools, call("1", "book", `{"seat":1}`)); got[0] != `seat booked: {"seat":1}` {
		t.Errorf("the first run was answered %q", got)
	}
	again := w.say(tools, call("2", "book", `{"seat":1.0}`))
	if !strings.HasPrefix(again[0], "[completed, replayed; operation ") || !strings.Contains(again[0], "seat booked") {
		t.Errorf("the replay was answered %q", again)
	}
	w.wantEffects(1)
}

// Models leave the arguments of a tool without parameters out.
func TestAGuardedToolIsGivenAnObjectWhereTheModelSentNothing(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleopenai.Guarded{{Definition: openai.FunctionDefinitionParam{Name: "wave"}, Run: func(_ context.Context, args json.RawMessage) (string, error) {
		return "given " + string(args), nil
	}}})
	if got := w.say(tools, call("1", "wave", ``)); got[0] != "given {}" {
		t.Errorf("got %q", got)
	}
}

func TestR01AGuardedToolWithoutAContractIsUnsafe(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleopenai.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) {
		return "", errors.New("connection reset")
	})})
	for _, step := range []struct{ args, want string }{
		{`{"seat":1}`, "[unknown;"}, {`{"seat":1}`, "[unknown;"}, {`{"seat":2}`, "[held]"},
	} {
		if got := w.say(tools, call("1", "book", step.args)); !strings.HasPrefix(got[0], step.want) || strings.Contains(got[0], "reset") {
			t.Errorf("%s was answered %q, want %s", step.args, got, step.want)
		}
	}
	w.wantEffects(1)
	if rows := w.rows(); len(rows) != 1 || rows[0].Class != settle.Unsafe {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestR27AGuardedToolSaysWhatItsErrorProves(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"not sent": {settle.NotSent(errors.New("no route")), "[not_done;"},
		"rejected": {settle.Rejected(errors.New("sold out")), "[failed;"},
		"unknown":  {context.DeadlineExceeded, "[unknown;"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tools := w.start([]settleopenai.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) { return "", tc.err })})
			if got := w.say(tools, call("1", "book", `{"seat":1}`)); !strings.HasPrefix(got[0], tc.want) {
				t.Errorf("got %q, want %s", got, tc.want)
			}
		})
	}
}

func TestAPanicOfAGuardedToolIsUnknown(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleopenai.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) { panic("seat map") })})
	if got := w.say(tools, call("1", "book", `{"seat":1}`)); !strings.HasPrefix(got[0], "[unknown;") {
		t.Errorf("got %q", got)
	}
}

func TestAKeyedGuardedToolTakesItsKeyFromTheContext(t *testing.T) {
	w := newWorld(t)
	var keys []string
	tools := w.start([]settleopenai.Guarded{w.own(func(ctx context.Context, _ json.RawMessage) (string, error) {
		key, _ := settle.KeyFrom(ctx)
		if keys = append(keys, key); len(keys) == 1 {
			return "", errors.New("connection reset")
		}
		return "booked", nil
	})}, settle.WithGuarded(settle.RawTool{Name: "book", Contract: settle.Contract{
		Class: settle.Keyed, KeyWindow: settle.Permanent, Identity: []string{"seat"}, NoLookup: true}}))
	if got := w.say(tools, call("1", "book", `{"seat":1}`)); got[0] != "booked" {
		t.Errorf("got %q", got)
	}
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("the attempts had the keys %q", keys)
	}
}

// The host asks a person in the middle of a turn and plays the turn again.
func TestS01AnInterruptPassesThroughAndTheSiblingsAreReplayed(t *testing.T) {
	w := newWorld(t)
	interrupt := errors.New("which seat?")
	answered := false
	tools := w.start([]settleopenai.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) {
		if !answered {
			return "", settle.Interrupted(interrupt)
		}
		return "the window", nil
	})})
	results, err := tools.AnswerChat(w.ctx, turn(t, call("1", "note", `{"text":"late"}`), call("2", "book", `{"seat":1}`), call("3", "refund", `{"order":7,"cents":1}`)))
	if err != interrupt || results != nil { //nolint:errorlint // it has to be the same one
		t.Fatalf("got %v, %v", results, err)
	}
	answered = true
	got := w.say(tools, call("7", "note", `{"text":"late"}`), call("8", "book", `{"seat":1}`), call("9", "refund", `{"order":7,"cents":1}`))
	if got[1] != "the window" || !strings.HasPrefix(got[0], "[completed, replayed;") || !strings.HasPrefix(got[2], "[completed, replayed;") {
		t.Errorf("got %q", got)
	}
	w.wantEffects(1 + 1 + 2) // the note, the refund, both runs of what was interrupted
}

func TestR24ACallerWhoGoesIsToldInProgressAndTheAttemptIsRecorded(t *testing.T) {
	w := newWorld(t)
	entered, release := make(chan struct{}), make(chan struct{})
	tools := w.start([]settleopenai.Guarded{w.own(func(ctx context.Context, _ json.RawMessage) (string, error) {
		close(entered)
		<-release
		return "booked", ctx.Err()
	})})
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { <-entered; cancel() }()
	results, err := tools.AnswerChat(ctx, turn(t, call("1", "book", `{"seat":1}`)))
	if err != nil || !strings.HasPrefix(answers(t, results)[0], "[in_progress;") {
		t.Fatalf("got %v, %v", results, err)
	}
	close(release)
	if got := w.say(tools, call("2", "book", `{"seat":1}`)); !strings.HasPrefix(got[0], "[completed, replayed;") {
		t.Errorf("got %q", got)
	}
	w.wantEffects(1)
}

func TestR43AnApprovalIsWaitedForWithoutAnEffect(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleopenai.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) { return "booked", nil })},
		settle.WithGuarded(settle.RawTool{Name: "book", Contract: settle.Contract{Identity: []string{"seat"}, NoLookup: true, Approval: true}}))
	got := w.say(tools, call("1", "book", `{"seat":1}`), call("2", "note", `{}`))
	if !strings.HasPrefix(got[0], "[awaiting_approval;") || !strings.HasPrefix(got[1], "[completed;") {
		t.Errorf("got %q", got)
	}
	w.wantEffects(1)
}

func TestNewRefusesWhatCannotRun(t *testing.T) {
	w := newWorld(t)
	run := func(context.Context, json.RawMessage) (string, error) { return "", nil }
	x, err := settle.New(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	_, err = settleopenai.New(x,
		settleopenai.Guarded{Run: run},
		settleopenai.Guarded{Definition: seat("idle")},
		settleopenai.Guarded{Definition: seat("twice"), Run: run}, settleopenai.Guarded{Definition: seat("twice"), Run: run},
		settleopenai.Guarded{Definition: openai.FunctionDefinitionParam{Name: "odd", Parameters: openai.FunctionParameters{"type": func() {}}}, Run: run},
	)
	for _, want := range []string{`"": its definition has no name`, `"idle": it has no Run`, `"twice": it is given twice`, `"odd": its parameters are no JSON Schema`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %s in %v", want, err)
		}
	}
}

func TestR09ARepeatThatIsMeantReachesTheToolWithoutTheOccurrence(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleopenai.Guarded{w.own(func(_ context.Context, args json.RawMessage) (string, error) {
		return "given " + string(args), nil
	})}, settle.WithGuarded(settle.RawTool{Name: "book", Contract: settle.Contract{WholeArguments: true, NoLookup: true, Repeatable: true}}))
	for _, args := range []string{`{"seat":1}`, `{"seat":1,"settle_occurrence":2}`} {
		if got := w.say(tools, call("1", "book", args)); got[0] != `given {"seat":1}` {
			t.Errorf("%s came to %q", args, got)
		}
	}
	w.wantEffects(2)
}

func TestNewRefusesParametersThatNothingFits(t *testing.T) {
	w := newWorld(t)
	odd := settleopenai.Guarded{Definition: openai.FunctionDefinitionParam{Name: "odd", Parameters: openai.FunctionParameters{"type": "strange"}},
		Run: func(context.Context, json.RawMessage) (string, error) { return "", nil }}
	x, err := settle.New(w.ledger, settle.Volatile())
	if err != nil {
		t.Fatal(err)
	}
	if tools, err := settleopenai.New(x, odd); err == nil || tools != nil || !strings.Contains(err.Error(), `"odd"`) {
		t.Errorf("got %v, %v", tools, err)
	}
	// Where the contract has a schema, that one is shown and checked.
	x, err = settle.New(w.ledger, settle.Volatile(), settle.WithGuarded(settle.RawTool{Name: "odd", Schema: json.RawMessage(`{"type":"object"}`),
		Contract: settle.Contract{WholeArguments: true, NoLookup: true}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := settleopenai.New(x, odd); err != nil {
		t.Error(err)
	}
}
