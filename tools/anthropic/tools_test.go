package settleanthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	settleanthropic "github.com/settle-go/settle/tools/anthropic"
)

// For each way to write the loop.
func everyLoop(t *testing.T, test func(t *testing.T, l loop)) {
	t.Helper()
	t.Parallel()
	for name, l := range loops {
		t.Run(name, func(t *testing.T) { test(t, l) })
	}
}

func TestToolsAreShownAsTheExecutorDeclaresThem(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		w := newWorld(t, scripted.Say("Nothing to do."))
		shown := settle.RawTool{Name: "book", Description: "Book a seat.",
			Schema:   json.RawMessage(`{"type":"object","properties":{"z":{"type":"integer","maximum":9007199254740993},"a":{"type":"string"}},"required":["z"]}`),
			Contract: settle.Contract{Identity: []string{"z"}, NoLookup: true}}
		elsewhere := settle.RawTool{Name: "elsewhere", Contract: settle.Contract{WholeArguments: true, NoLookup: true}}
		nothing := func(context.Context, json.RawMessage) (string, error) { return "", nil }
		tools := w.start([]settleanthropic.Guarded{
			{Definition: anthropic.ToolParam{Name: "book", Description: anthropic.String("Not shown.")}, Run: nothing},
			{Definition: anthropic.ToolParam{Name: "own", Description: anthropic.String("The host's."), InputSchema: seat("").InputSchema}, Run: nothing},
			{Definition: anthropic.ToolParam{Name: "shown_by_the_host"}, Run: nothing},
		}, settle.WithGuarded(shown, elsewhere))
		if _, err := l.run(w, tools); err != nil {
			t.Fatal(err)
		}
		x, err := settle.New(w.ledger, settle.WithTools(w.refund(), w.note()), settle.WithGuarded(shown), settle.Volatile())
		if err != nil {
			t.Fatal(err)
		}
		declared := x.Tools()
		got := w.model.Requests()[0].Tools
		if len(got) != len(declared)+1 {
			t.Fatalf("the model is shown %d tools, want %d", len(got), len(declared)+1)
		}
		for i, d := range declared {
			if got[i].Name != d.Name || got[i].Description != d.Description || got[i].Strict != (d.Strict && l.exact) || string(got[i].Schema) != string(d.Schema) {
				t.Errorf("the model is shown %+v, want %+v", got[i], d)
			}
		}
		own := got[len(declared)]
		if own.Name != "own" || own.Description != "The host's." || own.Strict || string(own.Schema) != `{"properties":{"seat":{"type":"integer"}},"required":["seat"],"type":"object"}` {
			t.Errorf("the host's own tool is shown as %+v", own)
		}
	})
}

func TestTheCallsOfOneTurnRunTogether(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		w := newWorld(t,
			scripted.CallTools(scripted.Use("meet", `{"who":"a"}`), scripted.Use("own", `{"who":"b"}`),
				scripted.Use("meet", `{"who":"c"}`), scripted.Use("own", `{"who":"d"}`)),
			scripted.Say("They met."))
		type args struct {
			Who string `json:"who" settle:"identity"`
		}
		var all sync.WaitGroup
		all.Add(4)
		meet := func(ctx context.Context) error {
			all.Done()
			met := make(chan struct{})
			go func() { all.Wait(); close(met) }()
			select {
			case <-met:
				return nil
			case <-ctx.Done():
				return errors.New("the others didn't come")
			}
		}
		tools := w.start([]settleanthropic.Guarded{{
			Definition: anthropic.ToolParam{Name: "own", Description: anthropic.String("Meet.")},
			Run: func(ctx context.Context, args json.RawMessage) (string, error) {
				return "met by " + string(args), meet(ctx)
			},
		}}, settle.WithTools(settle.Tool[args, string]{
			Name: "meet", Contract: settle.Contract{NoLookup: true},
			Do: func(ctx context.Context, _ settle.Op, in args) (string, error) { return "met by " + in.Who, meet(ctx) },
		}), settle.WithGuarded(settle.RawTool{Name: "own", Contract: settle.Contract{Identity: []string{"who"}, NoLookup: true}}))
		said, err := l.run(w, tools)
		if err != nil || said != "They met." {
			t.Fatalf("got %q, %v", said, err)
		}
		results := w.results(1)
		calls := lastCalls(w.model.Requests()[1])
		for i, want := range []string{`result: "met by a"`, `met by {"who":"b"}`, `result: "met by c"`, `met by {"who":"d"}`} {
			if !strings.Contains(results[i].Text, want) || results[i].CallID != calls[i].ID {
				t.Errorf("result %d is %+v, want %s for call %s", i, results[i], want, calls[i].ID)
			}
		}
	})
}

// lastCalls are the calls that a request's last results answer.
func lastCalls(r scripted.Request) []scripted.Call {
	return r.Messages[len(r.Messages)-len(r.Results())-1].Calls
}

func TestS11ATurnThatIsPlayedAgainActsOnce(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		again := scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":4200}`), scripted.Use("note", `{"text":"late"}`))
		w := newWorld(t, again, again, again, scripted.Say("Done."))
		if _, err := l.run(w, w.start(nil)); err != nil {
			t.Fatal(err)
		}
		w.wantEffects(2)
		if keys := w.pay.Keys(); len(keys) != 1 {
			t.Errorf("the far side saw the keys %q", keys)
		}
		for n := 1; n <= 3; n++ {
			for _, r := range w.results(n) {
				if strings.HasPrefix(r.Text, "[completed, replayed;") != (n > 1) {
					t.Errorf("turn %d was answered %q", n, r.Text)
				}
			}
		}
	})
}

func TestS22ToS24CallIDsIdentifyNothing(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		w := newWorld(t,
			scripted.CallTools(scripted.Use("refund", `{"order":1,"cents":1}`).As("x"), scripted.Use("refund", `{"order":2,"cents":1}`).As("x")),
			scripted.CallTools(scripted.Use("refund", `{"order":3,"cents":1}`).As("x")),
			scripted.CallTools(scripted.Use("refund", `{"order":3,"cents":1}`).As("x"), scripted.Use("refund", `{"order":3,"cents":1}`).As("x")),
			scripted.Say("Done."))
		if _, err := l.run(w, w.start(nil)); err != nil {
			t.Fatal(err)
		}
		w.wantEffects(3)
		for n, want := range map[int][]string{1: {"re_0001", "re_0002"}, 2: {"re_0003"}, 3: {"re_0003", "re_0003"}} {
			got := ""
			for _, r := range w.results(n) {
				got += r.Text
			}
			for _, resource := range want {
				if !strings.Contains(got, resource) || len(w.results(n)) != len(want) {
					t.Errorf("turn %d was answered %q, want %q", n, got, want)
				}
			}
		}
	})
}

func TestS28R60AfterARestartTheBriefComesFirstAndTheRefundIsReplayed(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		w := newWorld(t,
			scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":4200,"note":"late parcel"}`)), scripted.Say("Refunded."),
			scripted.CallTools(scripted.Use("refund", `{"cents":4.2e3,"order":7,"note":"eight days"}`)), scripted.Say("Was refunded."))
		for range 2 {
			if _, err := l.run(w, w.start(nil)); err != nil {
				t.Fatal(err)
			}
		}
		w.wantEffects(1)
		if got := w.results(3)[0].Text; !strings.HasPrefix(got, "[completed, replayed;") || !strings.Contains(got, "re_0001") {
			t.Errorf("after the restart the refund was answered %q", got)
		}
		requests := w.model.Requests()
		if got := requests[0].Messages[0].Text; got != instructions {
			t.Errorf("a fresh task begins with %q", got)
		}
		begin := requests[2].Messages
		if len(begin) != 2 || begin[0].Role != scripted.System || begin[1].Text != question {
			t.Fatalf("after the restart the model was told %+v", begin)
		}
		if brief, ok := strings.CutPrefix(begin[0].Text, instructions+"\n"); !ok || !strings.Contains(brief, "don't do these again") || !strings.Contains(brief, `"re_0001"`) {
			t.Errorf("the system prompt is %q", begin[0].Text)
		}
	})
}

func TestR16ArgumentsAreTakenToTheByte(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		w := newWorld(t,
			scripted.CallTools(scripted.Use("refund", `{"order":9007199254740993,"cents":1}`), scripted.Use("refund", `{"order":9007199254740992,"cents":1}`),
				scripted.Use("refund", `{"order":9007199254740991,"cents":1}`)),
			scripted.Say("Done."))
		if _, err := l.run(w, w.start(nil)); err != nil {
			t.Fatal(err)
		}
		var orders []string
		for _, e := range w.pay.Effects() {
			orders = append(orders, e.Fields["order_id"])
		}
		slices.Sort(orders)
		want := []string{"9007199254740991", "9007199254740992", "9007199254740993"}
		if !l.exact { // two of the three may have become one
			want = want[:1]
			for _, r := range w.results(1)[:2] {
				if !strings.HasPrefix(r.Text, "[invalid_arguments]") || r.IsError {
					t.Errorf("a rounded call was answered %+v", r)
				}
			}
		}
		if !slices.Equal(orders, want) {
			t.Errorf("the far side refunded %q, want %q", orders, want)
		}
		if rows := w.rows(); len(rows) != len(want) {
			t.Errorf("the ledger has %d rows, want %d", len(rows), len(want))
		}
	})
}

func TestAGuardedToolIsGivenTheModelsBytes(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		args := `{"text":"<b>&","n":1.0,"big":9007199254740993}`
		if !l.exact {
			args = `{"n":1,"text":"b"}`
		}
		w := newWorld(t, scripted.CallTools(scripted.Use("own", args)), scripted.Say("Done."))
		got := make(chan string, 1)
		tools := w.start([]settleanthropic.Guarded{{Definition: anthropic.ToolParam{Name: "own", Description: anthropic.String("The host's.")},
			Run: func(_ context.Context, args json.RawMessage) (string, error) { got <- string(args); return "ok", nil }}})
		if _, err := l.run(w, tools); err != nil {
			t.Fatal(err)
		}
		if given := <-got; given != args {
			t.Errorf("the host's tool was given %s", given)
		}
	})
}

func TestR18WhatCannotRunIsAnsweredAndClaimsNothing(t *testing.T) {
	bad := []struct{ name, args, want string }{
		{"refund", `[7,4200]`, "[invalid_arguments]"},
		{"refund", `{"order":7,"cents":"4200"}`, "[invalid_arguments]"},
		{"refund", `{"cents":4200}`, "[invalid_arguments]"},
		{"refund", `{}`, "[invalid_arguments]"},
		{"note", `null`, "[invalid_arguments]"},
		{"note", `"late"`, "[invalid_arguments]"},
		{"own", `{"seat":"first"}`, "[invalid_arguments]"},
		{"own", `{}`, "[invalid_arguments]"},
	}
	everyLoop(t, func(t *testing.T, l loop) {
		bad := bad
		if l.exact {
			bad = append(bad[:len(bad):len(bad)], []struct{ name, args, want string }{
				{"refund", `{"order":7,"cents":1,"order":8}`, "[invalid_arguments]"},
				{"refund_all", `{}`, "[no_such_tool]"},
			}...)
		}
		var calls []scripted.Call
		for _, b := range bad {
			calls = append(calls, scripted.Use(b.name, b.args))
		}
		w := newWorld(t, scripted.CallTools(calls...), scripted.Say("I see."))
		tools := w.start([]settleanthropic.Guarded{{Definition: seat("own"), Run: func(context.Context, json.RawMessage) (string, error) {
			w.notes.Add(1)
			return "booked", nil
		}}})
		if said, err := l.run(w, tools); err != nil || said != "I see." {
			t.Fatalf("got %q, %v", said, err)
		}
		w.wantEffects(0)
		if rows := w.rows(); len(rows) != 0 {
			t.Errorf("the ledger has %d rows", len(rows))
		}
		for i, r := range w.results(1) {
			if !strings.HasPrefix(r.Text, bad[i].want) || r.IsError {
				t.Errorf("%s(%s) was answered %+v, want %s", bad[i].name, bad[i].args, r, bad[i].want)
			}
		}
	})
}

// seat declares a tool with one number.
func seat(name string) anthropic.ToolParam {
	return anthropic.ToolParam{Name: name, InputSchema: anthropic.ToolInputSchemaParam{
		Properties: map[string]any{"seat": map[string]any{"type": "integer"}}, Required: []string{"seat"},
	}}
}

func TestTheHostsMistakesAreErrorsWithoutAnEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		ctx  func(*world) context.Context
		want error
	}{
		"no principal": {func(w *world) context.Context { return w.Context() }, settle.ErrNoPrincipal},
		"no task": {func(w *world) context.Context {
			return settle.WithPrincipal(w.Context(), settle.Principal{Tenant: "acme", Subject: "agent"})
		}, settle.ErrNoTask},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ctx := tc.ctx(w)
			tools := w.start([]settleanthropic.Guarded{{Definition: seat("own"), Run: func(context.Context, json.RawMessage) (string, error) {
				w.notes.Add(1)
				return "booked", nil
			}}})
			for _, message := range []anthropic.Message{
				turn(t, call("1", "refund", `{"order":7,"cents":1}`)),
				turn(t, call("1", "own", `{"seat":1}`)),
				turn(t, call("1", "note", `{}`), call("2", "own", `{"seat":1}`)),
			} {
				if results, err := tools.Answer(ctx, message); !errors.Is(err, tc.want) || results != nil {
					t.Errorf("got %v, %v; want %v", results, err, tc.want)
				}
			}
			for _, tool := range tools.BetaTools() {
				if blocks, err := tool.Execute(ctx, json.RawMessage(`{"order":7,"cents":1,"seat":1}`)); !errors.Is(err, tc.want) || blocks != nil {
					t.Errorf("%s: got %v, %v; want %v", tool.Name(), blocks, err, tc.want)
				}
			}
			_, err := tools.System(ctx)
			_, beta := tools.BetaSystem(ctx)
			if !errors.Is(err, tc.want) || !errors.Is(beta, tc.want) {
				t.Errorf("the beginnings ended with %v and %v, want %v", err, beta, tc.want)
			}
			w.wantEffects(0)
		})
	}
}

func TestALostAnswerIsSettledByEvidenceAndNotByAnotherCall(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		w := newWorld(t, scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":4200}`)),
			scripted.IfResult("[completed;", scripted.Say("Refunded."), scripted.Say("I can't tell.")))
		w.pay.Writes.Next(farside.CommitThenDrop())
		said, err := l.run(w, w.start(nil))
		if err != nil || said != "Refunded." {
			t.Errorf("got %q, %v", said, err)
		}
		w.wantEffects(1)
	})
}

// The client's own retries of the model's API reach no tool.
func TestAFailingModelRepeatsNoTool(t *testing.T) {
	everyLoop(t, func(t *testing.T, l loop) {
		w := newWorld(t, scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":4200}`)), scripted.Fail(529), scripted.Say("Refunded."))
		if said, err := l.run(w, w.start(nil)); err != nil || said != "Refunded." {
			t.Errorf("got %q, %v", said, err)
		}
		w.wantEffects(1)
	})
}
