package settleeino_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle/internal/scripted"
	settleeino "github.com/settle-go/settle/tools/eino"
)

// parrot is a model that answers with one message, in whole and in chunks.
type parrot struct {
	model.ToolCallingChatModel
	whole  *schema.Message
	chunks []*schema.Message
}

func (p parrot) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	return p.whole, nil
}

func (p parrot) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return schema.StreamReaderFromArray(p.chunks), nil
}

func TestEveryCallOfATurnHasAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	zero, one, two := 0, 1, 2
	chunk := func(index *int, id, name, args string) *schema.Message {
		c := call(id, name, args)
		c.Index = index
		return &schema.Message{Role: schema.Assistant, ToolCalls: []schema.ToolCall{c}}
	}
	p := parrot{
		whole: schema.AssistantMessage("", []schema.ToolCall{call("", "a", "1"), call("", "b", "2"), call("x", "c", "3"), call("x", "d", "4")}),
		chunks: []*schema.Message{
			schema.AssistantMessage("", nil),
			chunk(&zero, "", "a", ""), chunk(&one, "x", "b", ""), chunk(&two, "x", "c", ""),
			chunk(&zero, "", "", "1"), chunk(&one, "x", "", "2"), chunk(&two, "x", "", "3"), chunk(nil, "", "d", "4"),
		},
	}
	m := settleeino.WithCallIDs(p)
	whole, err := m.Generate(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := m.Stream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	together, err := schema.ConcatMessageStream(chunks)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*schema.Message{"whole": whole, "streamed": together} {
		ids, calls := map[string]bool{}, map[string]string{}
		for _, c := range got.ToolCalls {
			ids[c.ID] = true
			calls[c.Function.Name] = c.Function.Arguments
		}
		if len(ids) != 4 || ids[""] || !ids["x"] || len(calls) != 4 || calls["a"] != "1" || calls["d"] != "4" {
			t.Errorf("%s: got %+v", name, got.ToolCalls)
		}
	}
	if p.whole.ToolCalls[0].ID != "" || p.chunks[1].ToolCalls[0].ID != "" {
		t.Error("the model's own message was changed")
	}
}

// eino keeps the results of an interrupted turn by call id: without ids, what
// was interrupted never runs, and the model is told another call's result.
func TestCallsWithoutIDsKeepTheirResultsApart(t *testing.T) {
	for name, streamed := range map[string]bool{"whole": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scripted.CallTools(scripted.Use("refund", `{"order":7,"cents":1}`).As(""), scripted.Use("book", `{"seat":1}`).As("")), scripted.Say("Done."))
			x := w.start(bySeat(nil))
			runner := w.adkRunner(x, w.guard(x, append(w.executors(x), w.ask(invokable))), newCheckpoints(), streamed)
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
			if got := w.results(1); !strings.HasPrefix(got[0], "[completed;") || got[1] != "booked" {
				t.Errorf("the model is told %q", got)
			}
		})
	}
}
