package settleanthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/toolrunner"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleanthropic "github.com/settle-go/settle/tools/anthropic"
)

type block = anthropic.BetaToolResultBlockParamContentUnion

type bookArgs struct {
	Seat int    `json:"seat" jsonschema:"required"`
	Note string `json:"note,omitempty"`
}

// book is a tool as the SDK's users make one. It counts its runs.
func (w *world) book(run func(ctx context.Context, in bookArgs) (block, error)) anthropic.BetaTool {
	w.Helper()
	tool, err := toolrunner.NewBetaToolFromJSONSchema("book", "Book a seat.", func(ctx context.Context, in bookArgs) (block, error) {
		w.notes.Add(1)
		return run(ctx, in)
	})
	if err != nil {
		w.Fatal(err)
	}
	return tool
}

func booked(context.Context, bookArgs) (block, error) { return textOf("booked"), nil }

func textOf(s string) block { return block{OfText: &anthropic.BetaTextBlockParam{Text: s}} }

// guard decorates the tool, for an executor of its own.
func (w *world) guard(tool anthropic.BetaTool, options ...settle.Option) anthropic.BetaTool {
	w.Helper()
	x, err := settle.New(w.ledger, append(options, settle.Volatile())...)
	if err != nil {
		w.Fatal(err)
	}
	tools, err := settleanthropic.Guard(x, tool)
	if err != nil {
		w.Fatal(err)
	}
	return tools[0]
}

// execute calls a tool as the runner does and returns the text of its blocks.
func (w *world) execute(tool anthropic.BetaTool, input string) string {
	w.Helper()
	blocks, err := tool.Execute(w.ctx, json.RawMessage(input))
	if err != nil {
		w.Fatal(err)
	}
	var all []string
	for _, b := range blocks {
		all = append(all, b.OfText.Text)
	}
	return strings.Join(all, "\n")
}

// The SDK's runner runs the tools of a turn, then asks the model; where that
// fails, the next NextMessage runs them again.
func TestNextMessageAfterAnAPIErrorActsOnce(t *testing.T) {
	for name, threaded := range map[string]bool{"whole history": false, "thread": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t,
				scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":4200}`), scripted.Use("book", `{"seat":1}`), scripted.Use("unguarded", `{"seat":1}`)),
				scripted.Fail(529), scripted.Say("Done."))
			unguarded := 0
			plain := toolrunner.NewBetaTool("unguarded", "", anthropic.BetaToolInputSchemaParam{Properties: map[string]any{}},
				func(context.Context, bookArgs) (block, error) { unguarded++; return textOf("booked"), nil })
			tools := append(w.start(nil).BetaTools(), w.guard(w.book(booked)), plain)
			r := w.client.Beta.Messages.NewToolRunner(tools, w.params(threaded), w.options(threaded)...)

			if m, err := r.NextMessage(w.ctx); err != nil || m.StopReason != anthropic.BetaStopReasonToolUse {
				t.Fatalf("got %v, %v", m, err)
			}
			if _, err := r.NextMessage(w.ctx); status(err) != 529 {
				t.Fatalf("expected the API to fail, got %v", err)
			}
			w.wantEffects(2)
			// Without Rewind: two results for one call, which the API refuses.
			if _, err := r.NextMessage(w.ctx); status(err) != 400 {
				t.Fatalf("expected the API to refuse the doubled results, got %v", err)
			}
			r.Params.Messages = settleanthropic.Rewind(r.Params.Messages)
			m, err := r.NextMessage(w.ctx)
			if err != nil || m.Content[0].Text != "Done." {
				t.Fatalf("got %v, %v", m, err)
			}
			w.wantEffects(2)
			if unguarded != 3 {
				t.Errorf("the runner ran an unguarded tool %d times: is there still something to guard?", unguarded)
			}
			for _, r := range w.results(len(w.model.Requests()) - 1)[:2] {
				if !strings.HasPrefix(r.Text, "[completed, replayed;") || r.IsError {
					t.Errorf("the turn was answered %+v", r)
				}
			}
		})
	}
}

func (w *world) params(threaded bool) anthropic.BetaToolRunnerParams {
	return anthropic.BetaToolRunnerParams{DisableThread: !threaded, BetaMessageNewParams: anthropic.BetaMessageNewParams{
		Model: "scripted", MaxTokens: 1024, Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(question))}}}
}

func (w *world) options(threaded bool) []option.RequestOption {
	options := []option.RequestOption{option.WithMaxRetries(0)}
	if threaded {
		options = append(options, option.WithMiddleware((&threads{}).serve))
	}
	return options
}

// status is that of an API error, 0 for every other.
func status(err error) int {
	var api *anthropic.Error
	if errors.As(err, &api) {
		return api.StatusCode
	}
	return 0
}

func TestRewindKeepsWhatIsNoResultOfTheLastTurn(t *testing.T) {
	t.Parallel()
	user := anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("hello"))
	said := anthropic.BetaMessageParam{OfAssistant: &anthropic.BetaAssistantMessageParam{}}
	result := anthropic.BetaToolResultBlockParam{ToolUseID: "1"}
	answer := anthropic.NewBetaUserMessage(anthropic.BetaContentBlockParamUnion{OfToolResult: &result})
	for name, tc := range map[string]struct{ before, want []anthropic.BetaMessageParam }{
		"nothing":             {nil, nil},
		"no turn yet":         {[]anthropic.BetaMessageParam{user}, []anthropic.BetaMessageParam{user}},
		"answered":            {[]anthropic.BetaMessageParam{user, said, answer}, []anthropic.BetaMessageParam{user, said}},
		"answered twice":      {[]anthropic.BetaMessageParam{user, said, answer, answer}, []anthropic.BetaMessageParam{user, said}},
		"the turn before":     {[]anthropic.BetaMessageParam{said, answer, said, answer}, []anthropic.BetaMessageParam{said, answer, said}},
		"what the user added": {[]anthropic.BetaMessageParam{said, answer, user}, []anthropic.BetaMessageParam{said, user}},
		"not answered at all": {[]anthropic.BetaMessageParam{user, said}, []anthropic.BetaMessageParam{user, said}},
	} {
		before := append([]anthropic.BetaMessageParam(nil), tc.before...)
		got := settleanthropic.Rewind(tc.before)
		if len(got) != len(tc.want) || (len(got) > 0 && !reflect.DeepEqual(got, tc.want)) || !reflect.DeepEqual(tc.before, before) {
			t.Errorf("%s: got %d messages, want %d", name, len(got), len(tc.want))
		}
	}
}

func TestAGuardedToolsBlocksPassUntouchedAndAReplayHasOneMore(t *testing.T) {
	w := newWorld(t)
	picture := block{OfImage: &anthropic.BetaImageBlockParam{Source: anthropic.BetaImageBlockParamSourceUnion{
		OfBase64: &anthropic.BetaBase64ImageSourceParam{Data: "aGk=", MediaType: "image/png"}}}}
	mine := []block{textOf("booked <seat> 1"), picture}
	tool := tool{w.book(booked), func() ([]block, error) { return mine, nil }}
	guarded := w.guard(tool)
	first, err := guarded.Execute(w.ctx, json.RawMessage(`{"seat":1}`))
	if err != nil || &first[0] != &mine[0] {
		t.Fatalf("the first run came to %v, %v", first, err)
	}
	for name, again := range map[string]anthropic.BetaTool{"same process": guarded, "after a restart": w.guard(tool)} {
		got, err := again.Execute(w.ctx, json.RawMessage(`{"seat":1.0}`))
		if err != nil || len(got) != 3 || !strings.HasPrefix(got[0].OfText.Text, "[completed, replayed; operation ") || strings.Contains(got[0].OfText.Text, "result:") {
			t.Fatalf("%s: the replay came to %v, %v", name, got, err)
		}
		if !sameJSON(t, got[1:], mine) {
			t.Errorf("%s: the replay has the blocks %+v", name, got[1:])
		}
	}
}

// tool is a tool with another Execute.
type tool struct {
	anthropic.BetaTool
	run func() ([]block, error)
}

func (t tool) Execute(context.Context, json.RawMessage) ([]block, error) { return t.run() }

func sameJSON(t *testing.T, a, b any) bool {
	t.Helper()
	left, err := json.Marshal(a)
	right, other := json.Marshal(b)
	if err != nil || other != nil {
		t.Fatal(err, other)
	}
	return string(left) == string(right)
}

func TestAGuardedToolKeepsItsFace(t *testing.T) {
	w := newWorld(t)
	plain := w.book(booked)
	guarded := w.guard(plain)
	// Not as JSON: the SDK writes a schema's fields in no fixed order.
	if guarded.Name() != plain.Name() || guarded.Description() != plain.Description() || !reflect.DeepEqual(guarded.InputSchema(), plain.InputSchema()) {
		t.Error("the model is shown another tool")
	}
}

func TestAGuardedToolsErrorIsContent(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"unknown":  {errors.New("connection reset"), "[unknown;"},
		"not sent": {settle.NotSent(errors.New("no route")), "[not_done;"},
		"rejected": {settle.Rejected(errors.New("sold out")), "[failed;"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scripted.CallTools(scripted.Use("book", `{"seat":1}`)), scripted.Say("I see."))
			tool := w.guard(w.book(func(context.Context, bookArgs) (block, error) { return block{}, tc.err }))
			m, err := w.client.Beta.Messages.NewToolRunner([]anthropic.BetaTool{tool}, w.params(false)).RunToCompletion(w.ctx)
			if err != nil || m.Content[0].Text != "I see." {
				t.Fatalf("got %v, %v", m, err)
			}
			if r := w.results(1)[0]; !strings.HasPrefix(r.Text, tc.want) || r.IsError || strings.Contains(r.Text, "again later") {
				t.Errorf("the model was told %+v, want %s", r, tc.want)
			}
			w.wantEffects(1)
		})
	}
}

func TestAnInterruptOfAGuardedToolPassesThrough(t *testing.T) {
	w := newWorld(t)
	interrupt := errors.New("which seat?")
	tool := w.guard(w.book(func(context.Context, bookArgs) (block, error) { return block{}, settle.Interrupted(interrupt) }))
	if blocks, err := tool.Execute(w.ctx, json.RawMessage(`{"seat":1}`)); err != interrupt || blocks != nil { //nolint:errorlint // it has to be the same one
		t.Errorf("got %v, %v", blocks, err)
	}
}

func TestAGuardedToolWithoutBlocksSaysWhatItCameTo(t *testing.T) {
	w := newWorld(t)
	guarded := w.guard(tool{w.book(booked), func() ([]block, error) { return nil, nil }})
	for _, want := range []string{"[completed;", "[completed, replayed;"} {
		if got := w.execute(guarded, `{"seat":1}`); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %s", got, want)
		}
	}
}

func TestR01AToolWithoutAContractIsUnsafe(t *testing.T) {
	w := newWorld(t)
	tool := w.guard(w.book(func(context.Context, bookArgs) (block, error) { return block{}, errors.New("connection reset") }))
	for _, step := range []struct{ args, want string }{
		{`{"seat":1}`, "[unknown;"}, {`{"seat":1}`, "[unknown;"}, {`{"seat":2}`, "[held]"},
	} {
		if got := w.execute(tool, step.args); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s was answered %q, want %s", step.args, got, step.want)
		}
	}
	w.wantEffects(1)
	if rows := w.rows(); len(rows) != 1 || rows[0].Class != settle.Unsafe {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestAContractIsFoundByTheToolsName(t *testing.T) {
	w := newWorld(t)
	tool := w.guard(w.book(booked), settle.WithGuarded(settle.RawTool{Name: "book",
		Contract: settle.Contract{Identity: []string{"seat"}, Ignore: []string{"note"}, NoLookup: true}}))
	if got := w.execute(tool, `{"seat":1,"note":"window"}`); got != "booked" {
		t.Errorf("got %q", got)
	}
	if got := w.execute(tool, `{"seat":1,"note":"at the window"}`); !strings.HasPrefix(got, "[completed, replayed;") {
		t.Errorf("got %q", got)
	}
	w.wantEffects(1)
}

func TestWhatAGuardedToolWouldRefuseIsNeverClaimed(t *testing.T) {
	for _, args := range []string{`{"seat":"first"}`, `{}`, `{"seat":1,"row":2}`, `null`, `[1]`, `{"seat":9007199254740993}`, `{"seat":1e21}`, `{"seat":`} {
		t.Run(args, func(t *testing.T) {
			w := newWorld(t)
			if got := w.execute(w.guard(w.book(booked)), args); !strings.HasPrefix(got, "[invalid_arguments]") {
				t.Errorf("got %q", got)
			}
			w.wantEffects(0)
			if rows := w.rows(); len(rows) != 0 {
				t.Errorf("the ledger has %d rows", len(rows))
			}
		})
	}
}

func TestARunnerWithoutATaskDoesNothing(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":1}`), scripted.Use("book", `{"seat":1}`)), scripted.Say("I see."))
	tools := append(w.start(nil).BetaTools(), w.guard(w.book(booked)))
	ctx := settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "acme", Subject: "agent"})
	if _, err := w.client.Beta.Messages.NewToolRunner(tools, w.params(false)).RunToCompletion(ctx); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.results(1) {
		if !r.IsError || !strings.Contains(r.Text, "settle.WithTask") {
			t.Errorf("the runner was told %+v", r)
		}
	}
	w.wantEffects(0)
}

// The runner has a form of its own for a name that it doesn't know.
func TestAToolThatTheRunnerDoesNotKnowIsNeverClaimed(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("refund_all", `{}`)), scripted.Say("I see."))
	if _, err := w.client.Beta.Messages.NewToolRunner(w.start(nil).BetaTools(), w.params(false)).RunToCompletion(w.ctx); err != nil {
		t.Fatal(err)
	}
	if r := w.results(1)[0]; !r.IsError || !strings.Contains(r.Text, "not found") {
		t.Errorf("the model was told %+v", r)
	}
	if rows := w.rows(); len(rows) != 0 {
		t.Errorf("the ledger has %d rows", len(rows))
	}
}

// The runner calls the tools of a turn one by one, so that a call meets its
// sibling at work and waits for it.
func TestR30CallsOfOneTurnThatNameNoIdentityAllRun(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("note", `{"text":"a"}`), scripted.Use("note", `{"text":"b"}`), scripted.Use("note", `{"text":"c"}`)), scripted.Say("Noted."))
	if _, err := w.client.Beta.Messages.NewToolRunner(w.start(nil).BetaTools(), w.params(false)).RunToCompletion(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.wantEffects(3)
}

// What is in Params.Tools is shown instead of the runner's own definition.
func TestARunnerIsStrictWhereItIsGivenTheDefinitions(t *testing.T) {
	w := newWorld(t, scripted.Say("Nothing to do."))
	tools, params := w.start(nil), w.params(false)
	params.Tools = tools.ForBeta()
	if _, err := w.client.Beta.Messages.NewToolRunner(tools.BetaTools(), params).RunToCompletion(w.ctx); err != nil {
		t.Fatal(err)
	}
	shown := w.model.Requests()[0].Tools
	if len(shown) != 2 || !shown[0].Strict || !shown[1].Strict {
		t.Errorf("the model is shown %+v", shown)
	}
}

func TestGuardRefusesASchemaThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	x, err := settle.New(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	odd := toolrunner.NewBetaTool("odd", "", anthropic.BetaToolInputSchemaParam{Properties: func() {}}, booked)
	strange := toolrunner.NewBetaTool("odd", "", anthropic.BetaToolInputSchemaParam{Properties: map[string]any{"a": map[string]any{"type": "strange"}}}, booked)
	for _, tool := range []anthropic.BetaTool{odd, strange} {
		if tools, err := settleanthropic.Guard(x, tool); err == nil || tools != nil || !strings.Contains(err.Error(), `"odd"`) {
			t.Errorf("got %v, %v", tools, err)
		}
	}
}

func TestGuardRefusesToolsThatTheRunnerWouldMixUp(t *testing.T) {
	w := newWorld(t)
	book, nameless := toolrunner.NewBetaTool("book", "", anthropic.BetaToolInputSchemaParam{}, booked), toolrunner.NewBetaTool("", "", anthropic.BetaToolInputSchemaParam{}, booked)
	own := func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	x, err := settle.New(w.ledger, settle.WithTools(settle.RawTool{Name: "ours", Schema: json.RawMessage(`{"type":"object"}`), Contract: settle.Contract{Class: settle.Read}, Do: own}))
	if err != nil {
		t.Fatal(err)
	}
	ours := toolrunner.NewBetaTool("ours", "", anthropic.BetaToolInputSchemaParam{}, booked)
	for says, tools := range map[string][]anthropic.BetaTool{"given twice": {book, book}, "no name": {nameless}, "is nil": {book, nil},
		"the executor runs a tool of this name itself": {ours}} {
		if got, err := settleanthropic.Guard(x, tools...); err == nil || got != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, %v", says, got, err)
		}
	}
}

func TestR09ARepeatThatIsMeantReachesTheToolWithoutTheOccurrence(t *testing.T) {
	w := newWorld(t)
	book := w.guard(w.book(booked), settle.WithGuarded(settle.RawTool{Name: "book",
		Contract: settle.Contract{WholeArguments: true, NoLookup: true, Repeatable: true}}))
	for _, input := range []string{`{"seat":1}`, `{"seat":1,"settle_occurrence":2}`} {
		if got := w.execute(book, input); got != "booked" {
			t.Errorf("%s came to %q", input, got)
		}
	}
	w.wantEffects(2)
}
