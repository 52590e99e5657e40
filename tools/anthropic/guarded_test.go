package settleanthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/settle-go/settle"
	settleanthropic "github.com/settle-go/settle/tools/anthropic"
)

// own is a tool of the host that counts its runs.
func (w *world) own(run func(ctx context.Context, args json.RawMessage) (string, error)) settleanthropic.Guarded {
	return settleanthropic.Guarded{Definition: seat("book"), Run: func(ctx context.Context, args json.RawMessage) (string, error) {
		w.notes.Add(1)
		return run(ctx, args)
	}}
}

// say answers one turn and returns what the model is told.
func (w *world) say(tools *settleanthropic.Tools, calls ...string) []string {
	w.Helper()
	results, err := tools.Answer(w.ctx, turn(w.T, calls...))
	if err != nil {
		w.Fatal(err)
	}
	return answers(w.T, results)
}

func TestAGuardedToolsOwnWordsPassOnceAndAReplaySaysSo(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleanthropic.Guarded{w.own(func(_ context.Context, args json.RawMessage) (string, error) {
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

func TestAGuardedToolIsGivenAnObjectWhereThereIsNothing(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleanthropic.Guarded{{Definition: anthropic.ToolParam{Name: "wave"}, Run: func(_ context.Context, args json.RawMessage) (string, error) {
		return "given " + string(args), nil
	}}})
	if got, err := tools.Run(w.ctx, settle.Call{Tool: "wave"}); err != nil || got[0] != "given {}" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestR01AGuardedToolWithoutAContractIsUnsafe(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleanthropic.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) {
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
			tools := w.start([]settleanthropic.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) { return "", tc.err })})
			if got := w.say(tools, call("1", "book", `{"seat":1}`)); !strings.HasPrefix(got[0], tc.want) {
				t.Errorf("got %q, want %s", got, tc.want)
			}
		})
	}
}

func TestAPanicOfAGuardedToolIsUnknown(t *testing.T) {
	w := newWorld(t)
	tools := w.start([]settleanthropic.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) { panic("seat map") })})
	if got := w.say(tools, call("1", "book", `{"seat":1}`)); !strings.HasPrefix(got[0], "[unknown;") {
		t.Errorf("got %q", got)
	}
}

func TestAKeyedGuardedToolTakesItsKeyFromTheContext(t *testing.T) {
	w := newWorld(t)
	var keys []string
	tools := w.start([]settleanthropic.Guarded{w.own(func(ctx context.Context, _ json.RawMessage) (string, error) {
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
	tools := w.start([]settleanthropic.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) {
		if !answered {
			return "", settle.Interrupted(interrupt)
		}
		return "the window", nil
	})})
	results, err := tools.Answer(w.ctx, turn(t, call("1", "note", `{"text":"late"}`), call("2", "book", `{"seat":1}`), call("3", "refund", `{"order":7,"cents":1}`)))
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
	tools := w.start([]settleanthropic.Guarded{w.own(func(ctx context.Context, _ json.RawMessage) (string, error) {
		close(entered)
		<-release
		return "booked", ctx.Err()
	})})
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { <-entered; cancel() }()
	results, err := tools.Answer(ctx, turn(t, call("1", "book", `{"seat":1}`)))
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
	tools := w.start([]settleanthropic.Guarded{w.own(func(context.Context, json.RawMessage) (string, error) { return "booked", nil })},
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
	_, err = settleanthropic.New(x,
		settleanthropic.Guarded{Run: run},
		settleanthropic.Guarded{Definition: seat("idle")},
		settleanthropic.Guarded{Definition: seat("twice"), Run: run}, settleanthropic.Guarded{Definition: seat("twice"), Run: run},
		settleanthropic.Guarded{Definition: anthropic.ToolParam{Name: "odd", InputSchema: anthropic.ToolInputSchemaParam{Properties: func() {}}}, Run: run},
	)
	for _, want := range []string{`"": its definition has no name`, `"idle": it has no Run`, `"twice": it is given twice`, `"odd": its input schema is no JSON Schema`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %s in %v", want, err)
		}
	}
}
