package settleeino_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/scripted"
	settleeino "github.com/settle-go/settle/tools/eino"
)

func TestAnAgentRunsItsToolsAndIsAnsweredOnARestart(t *testing.T) {
	everyAgent(t, func(t *testing.T, run agent) {
		turn := scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":4200}`), scripted.Use("book", `{"seat":1}`))
		w := newWorld(t, turn, scripted.Say("Done."), turn, scripted.Say("Done before."))
		for i, want := range []string{"Done.", "Done before."} {
			x := w.start(bySeat(nil))
			said, err := run(w, x, w.guard(x, append(w.executors(x), invokable(w, booked))))
			if err != nil || said != want {
				t.Fatalf("got %q, %v", said, err)
			}
			got := w.results(2*i + 1)
			if i == 0 && (!strings.HasPrefix(got[0], "[completed;") || got[1] != "booked") ||
				i == 1 && (!strings.HasPrefix(got[0], "[completed, replayed;") || !strings.HasPrefix(got[1], "[completed, replayed;")) {
				t.Errorf("process %d told the model %q", i+1, got)
			}
		}
		w.wantRefunds(1)
		w.wantActs(map[string]int{"book": 1})
	})
}

// R60: the first request of another process begins with the brief, once.
func TestR60TheBriefComesByItselfAfterARestart(t *testing.T) {
	everyAgent(t, func(t *testing.T, run agent) {
		w := newWorld(t,
			scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":4200}`)), scripted.CallTools(scripted.Use("book", `{"seat":1}`)), scripted.Say("Done."),
			scripted.CallTools(scripted.Use("book", `{"seat":2}`)), scripted.Say("Done."))
		for range 2 {
			x := w.start(bySeat(nil))
			if _, err := run(w, x, w.guard(x, append(w.executors(x), invokable(w, booked)))); err != nil {
				t.Fatal(err)
			}
		}
		for n, want := range []int{0, 0, 0, 1, 1} {
			messages := w.request(n).Messages
			if briefs := countBriefs(messages); briefs != want {
				t.Errorf("request %d has %d briefs, want %d: %+v", n, briefs, want, messages)
			}
			if want == 1 && (!isBrief(messages[1]) || messages[0].Text != "You support." || strings.Count(messages[1].Text, "\n") != 3) {
				t.Errorf("request %d begins with %+v", n, messages[:2])
			}
			if strings.Contains(string(w.request(n).Raw), "settle_b") {
				t.Errorf("the marks are sent to the model: %s", w.request(n).Raw)
			}
		}
		for i, m := range question {
			if m.Extra != nil {
				t.Errorf("the host's message %d was changed: %+v", i, m)
			}
		}
	})
}

func isBrief(m scripted.Message) bool {
	return m.Role == scripted.System && strings.HasPrefix(m.Text, "Done already for this task")
}

func countBriefs(messages []scripted.Message) (n int) {
	for _, m := range messages {
		if isBrief(m) {
			n++
		}
	}
	return n
}

// R60: a run that is resumed from its checkpoint in another process is told what
// has been done since.
func TestR60ARunThatIsResumedElsewhereIsBriefedAnew(t *testing.T) {
	for name, streamed := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scripted.CallTools(scripted.Use("ask", `{"seat":1}`)), scripted.Say("Thank you."))
			saved := newCheckpoints()
			start := func() (*settle.Executor, *adk.Runner) {
				x := w.start(bySeat(nil))
				question := must(w)(utils.InferTool("ask", "", approval))
				return x, w.adkRunner(x, w.guard(x, []tool.BaseTool{question, invokable(w, booked)}), saved, streamed)
			}
			_, runner := start()
			_, at, err := finish(runner.Run(w.ctx, question, adk.WithCheckPointID("run")))
			if err != nil || len(at) != 1 {
				t.Fatalf("got %v, %v", at, err)
			}
			// Somebody works on the task in the meantime.
			x, runner := start()
			w.say(w.node(w.guard(x, []tool.BaseTool{invokable(w, booked)})), call("1", "book", `{"seat":1}`))
			events, err := runner.ResumeWithParams(w.ctx, "run", &adk.ResumeParams{Targets: map[string]any{at[0].ID: nil}})
			if err != nil {
				t.Fatal(err)
			}
			if said, _, err := finish(events); err != nil || said != "Thank you." {
				t.Fatalf("got %q, %v", said, err)
			}
			if m := w.request(1).Messages[1]; !isBrief(m) || !strings.Contains(m.Text, "- book (operation ") {
				t.Errorf("the resumed run begins with %+v", m)
			}
			if got := w.results(1); got[0] != "booked" {
				t.Errorf("the model is told %q", got)
			}
		})
	}
}

// The same checkpoint, resumed in the process that saved it, keeps its brief.
func TestR60ARunThatIsResumedHereKeepsItsBrief(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("ask", `{"seat":1}`)), scripted.Say("Thank you."))
	x := w.start(bySeat(nil))
	w.say(w.node(w.guard(x, []tool.BaseTool{invokable(w, booked)})), call("1", "book", `{"seat":1}`))
	runner := w.adkRunner(x, w.guard(x, []tool.BaseTool{must(w)(utils.InferTool("ask", "", approval))}), newCheckpoints(), false)
	_, at, err := finish(runner.Run(w.ctx, question, adk.WithCheckPointID("run")))
	if err != nil || len(at) != 1 {
		t.Fatalf("got %v, %v", at, err)
	}
	events, err := runner.ResumeWithParams(w.ctx, "run", &adk.ResumeParams{Targets: map[string]any{at[0].ID: nil}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := finish(events); err != nil {
		t.Fatal(err)
	}
	if first, then := w.request(0).Messages[1].Text, w.request(1).Messages[1].Text; first != then || countBriefs(w.request(1).Messages) != 1 {
		t.Errorf("the brief was %q and is %q", first, then)
	}
}

func TestBeginPutsTheBriefBehindTheInstructions(t *testing.T) {
	w := newWorld(t)
	x := w.start()
	if got, err := settleeino.Begin(w.ctx, x, question...); err != nil || len(got) != 2 {
		t.Errorf("a task that has done nothing begins with %v, %v", got, err)
	}
	w.say(w.node(w.guard(x, w.executors(x))), call("1", "refund", `{"order":7,"cents":1}`))
	got, err := settleeino.Begin(w.ctx, x, question...)
	if err != nil || len(got) != 3 || got[1].Role != schema.System || !strings.HasPrefix(got[1].Content, "Done already for this task") || len(question) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := settleeino.Begin(w.ctx, x, question[0]); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := settleeino.Begin(w.Context(), x, question...); !errors.Is(err, settle.ErrNoPrincipal) {
		t.Errorf("got %v", err)
	}
}

// A ledger that can't be read: the ReAct flow has no way to say so but to the
// model, and tries again; the ADK ends the run.
func TestABriefThatCannotBeReadIsNotTakenForNone(t *testing.T) {
	w := newWorld(t)
	rewrite := settleeino.MessageRewriter(w.start())
	got := rewrite(w.Context(), question)
	if len(got) != 3 || !strings.Contains(got[1].Content, "can't be read") {
		t.Fatalf("got %v", got)
	}
	if got = rewrite(w.Context(), got); len(got) != 3 {
		t.Errorf("it is told twice: %v", got)
	}
	if got = rewrite(w.ctx, got); len(got) != 2 {
		t.Errorf("it stays when the ledger is back: %v", got)
	}
	h := settleeino.Handler(w.start())
	if _, _, err := h.BeforeModelRewriteState(w.Context(), &adk.ChatModelAgentState{Messages: question}, nil); !errors.Is(err, settle.ErrNoPrincipal) {
		t.Errorf("got %v", err)
	}
}

func TestToolsShowTheModelTheExecutorsSchemas(t *testing.T) {
	w := newWorld(t, scripted.Say("Nothing to do."))
	x := w.start()
	if _, err := reactAgent(w, x, w.guard(x, w.executors(x))); err != nil {
		t.Fatal(err)
	}
	shown, declared := w.request(0).Tools, x.Tools()[0]
	if len(shown) != 1 || shown[0].Name != declared.Name || shown[0].Description != declared.Description || !sameSchema(t, shown[0].Schema, declared.Schema) {
		t.Errorf("the model is shown %s, want %s", shown[0].Schema, declared.Schema)
	}
}

// sameSchema compares schemas of an object. eino's client sorts what is required.
func sameSchema(t *testing.T, a, b []byte) bool {
	t.Helper()
	var schemas [2]struct {
		Type, Properties, AdditionalProperties any
		Required                               []string
	}
	for i, raw := range [][]byte{a, b} {
		if err := json.Unmarshal(raw, &schemas[i]); err != nil {
			t.Fatal(err)
		}
		slices.Sort(schemas[i].Required)
	}
	return reflect.DeepEqual(schemas[0], schemas[1])
}

func TestToolsAreChosenByName(t *testing.T) {
	w := newWorld(t)
	x := w.start(bySeat(nil))
	if tools, err := settleeino.Tools(x, []string{"refund"}); err != nil || len(tools) != 1 {
		t.Errorf("got %v, %v", tools, err)
	}
	if tools, err := settleeino.Tools(x, []string{"refund", "reimburse"}); err == nil || tools != nil || !strings.Contains(err.Error(), `"reimburse"`) {
		t.Errorf("got %v, %v", tools, err)
	}
}

// eino would run the last one, under whichever contract has the name.
func TestTwoToolsOfOneNameAreRefused(t *testing.T) {
	w := newWorld(t)
	x := w.start(bySeat(nil))
	own, err := settleeino.Tools(x, []string{"refund"})
	if err != nil {
		t.Fatal(err)
	}
	theirs := must(w)(utils.InferTool("refund", "", func(context.Context, struct{}) (string, error) { return "", nil }))
	for _, tools := range [][]tool.BaseTool{append(own, theirs), {theirs, theirs}} {
		_, err := settleeino.Middleware(w.ctx, x, compose.ToolsNodeConfig{Tools: tools})
		if err == nil || !strings.Contains(err.Error(), `"refund": its name is given twice`) {
			t.Errorf("got %v", err)
		}
	}
}

// Tools of the executor run without a middleware too.
func TestToolsOfTheExecutorNeedNoMiddleware(t *testing.T) {
	w := newWorld(t)
	n := w.node(compose.ToolsNodeConfig{Tools: w.executors(w.start())})
	for _, want := range []string{"[completed;", "[completed, replayed;", "[conflict;", "[invalid_arguments]"} {
		args := map[string]string{"[conflict;": `{"order":7,"cents":2}`, "[invalid_arguments]": `{"order":"x"}`}[want]
		if args == "" {
			args = `{"order":7,"cents":1}`
		}
		if got := w.say(n, call("call_7", "refund", args)); !strings.HasPrefix(got[0], want) {
			t.Errorf("got %q, want %s", got, want)
		}
	}
	if rows := w.rows(); len(rows) != 1 || rows[0].CallID != "call_7" {
		t.Errorf("the ledger has %+v", rows)
	}
	w.wantRefunds(1)
}

func TestALostAnswerIsSettledByEvidenceAndNotByAnotherCall(t *testing.T) {
	everyAgent(t, func(t *testing.T, run agent) {
		w := newWorld(t, scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":4200}`)),
			scripted.IfResult("[completed;", scripted.Say("Refunded."), scripted.Say("I can't tell.")))
		w.pay.Writes.Next(farside.CommitThenDrop())
		x := w.start()
		if said, err := run(w, x, w.guard(x, w.executors(x))); err != nil || said != "Refunded." {
			t.Errorf("got %q, %v", said, err)
		}
		w.wantRefunds(1)
	})
}

// Handing over to another agent twice in one task is no repeat of an effect.
func TestTheADKsOwnToolsPass(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("transfer_to_agent", `{"agent_name":"billing"}`)),
		scripted.CallTools(scripted.Use("transfer_to_agent", `{"agent_name":"support"}`)),
		scripted.CallTools(scripted.Use("transfer_to_agent", `{"agent_name":"billing"}`)),
		scripted.CallTools(scripted.Use("exit", `{"final_result":"refunded"}`)))
	x := w.start()
	agents := map[string]*adk.ChatModelAgent{}
	for _, name := range []string{"support", "billing"} {
		a, err := adk.NewChatModelAgent(w.ctx, &adk.ChatModelAgentConfig{Name: name, Description: name, Model: w.chat, Exit: &adk.ExitTool{},
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: w.guard(x, nil)}})
		if err != nil {
			t.Fatal(err)
		}
		agents[name] = a
	}
	support, err := adk.SetSubAgents(w.ctx, agents["support"], []adk.Agent{agents["billing"]})
	if err != nil {
		t.Fatal(err)
	}
	said, _, err := finish(adk.NewRunner(w.ctx, adk.RunnerConfig{Agent: support}).Run(w.ctx, question))
	if err != nil || said != "refunded" || w.model.Remaining() != 0 {
		t.Errorf("got %q, %v; %d turns weren't asked for", said, err, w.model.Remaining())
	}
	w.wantRows(0)
}
