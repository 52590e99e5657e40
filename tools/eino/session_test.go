package settleeino_test

import (
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleeino "github.com/settle-go/settle/tools/eino"
)

// The session's values are saved with a checkpoint: whoever resumes names
// neither principal nor task.
func TestTheSessionCarriesPrincipalAndTaskThroughACheckpoint(t *testing.T) {
	for name, streamed := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scripted.CallTools(scripted.Use("book", `{"seat":1}`), scripted.Use("refund", `{"order":7,"cents":1}`)), scripted.Say("Done."))
			saved := newCheckpoints()
			start := func() *adk.Runner {
				x := w.start(bySeat(nil))
				return w.adkRunner(x, w.guard(x, append(w.executors(x), w.ask(invokable))), saved, streamed)
			}
			_, at, err := finish(start().Run(w.Context(), question, adk.WithCheckPointID("run"),
				adk.WithSessionValues(settleeino.SessionValues(principal("agent"), task))))
			if err != nil || len(at) != 1 {
				t.Fatalf("got %v, %v", at, err)
			}
			targets := &adk.ResumeParams{Targets: map[string]any{at[0].ID: nil}}
			// Under another name than it began with, nothing runs.
			events, err := start().ResumeWithParams(as(w.Context(), "somebody"), "run", targets)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err = finish(events); err == nil || !strings.Contains(err.Error(), "two principals") {
				t.Errorf("got %v", err)
			}
			w.wantRows(2)
			if events, err = start().ResumeWithParams(w.Context(), "run", targets); err != nil {
				t.Fatal(err)
			}
			if said, _, err := finish(events); err != nil || said != "Done." {
				t.Fatalf("got %q, %v", said, err)
			}
			w.wantRows(2)
			for _, row := range w.rows() {
				if row.Of.Subject != "agent" || row.Of.Task != task.ID || row.Of.Goal != task.Goal {
					t.Errorf("%s is of %+v", row.Tool, row.Of)
				}
			}
		})
	}
}

func TestTheContextAndTheSessionNameOneTask(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":1}`)))
	x := w.start()
	runner := w.adkRunner(x, w.guard(x, w.executors(x)), nil, false)
	_, _, err := finish(runner.Run(w.ctx, question, adk.WithSessionValues(settleeino.SessionValues(principal("agent"), settle.Task{ID: "case-43", Goal: "late-parcel"}))))
	if err == nil || !strings.Contains(err.Error(), "two tasks") {
		t.Errorf("got %v", err)
	}
	w.wantRefunds(0)
}

// An agent that another one calls as its tool works on the same task.
func TestAnAgentAsAToolHasTheSession(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("billing", `{"request":"Book it."}`)), // to the agent called support
		scripted.CallTools(scripted.Use("book", `{"seat":1}`)), scripted.Say("Booked."),
		scripted.Say("It is booked."))
	x := w.start(bySeat(nil))
	agent := func(name string, config compose.ToolsNodeConfig) adk.Agent {
		a, err := adk.NewChatModelAgent(w.ctx, &adk.ChatModelAgentConfig{Name: name, Description: name, Model: w.chat,
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: config}, Handlers: []adk.ChatModelAgentMiddleware{settleeino.Handler(x)}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	billing := adk.NewAgentTool(w.ctx, agent("billing", w.guard(x, []tool.BaseTool{invokable(w, booked)})))
	support := agent("support", w.guard(x, []tool.BaseTool{billing}, settleeino.Unguarded("billing")))
	said, _, err := finish(adk.NewRunner(w.ctx, adk.RunnerConfig{Agent: support}).Run(w.Context(), question,
		adk.WithSessionValues(settleeino.SessionValues(principal("agent"), task))))
	if err != nil || said != "It is booked." {
		t.Fatalf("got %q, %v", said, err)
	}
	w.wantRows(1)
	w.wantActs(map[string]int{"book": 1})
}
