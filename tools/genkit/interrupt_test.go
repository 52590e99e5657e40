package settlegenkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settlegenkit "github.com/settle-go/settle/tools/genkit"
)

// asking is a payment that is interrupted until somebody approves it.
func (w *world) asking(name string) ai.Tool {
	return ai.NewTool(name, "Pay an order.", func(ctx *ai.ToolContext, _ payArgs) (paid, error) {
		if !ctx.IsResumed() {
			return paid{}, ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"ask": "really?"}})
		}
		w.acted.Add(1)
		w.done <- struct{}{}
		return paid{"pay_1"}, nil
	})
}

// restart approves interrupted calls.
func restart(t ai.Tool, of *ai.ModelResponse, which ...int) ai.GenerateOption {
	var parts []*ai.Part
	for _, i := range which {
		parts = append(parts, t.Restart(of.Interrupts()[i], nil))
	}
	return ai.WithToolRestarts(parts...)
}

// Genkit runs the approved call and then reports that the other is not approved.
func TestS03APartialApprovalPaysNothingTwice(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`), scripted.Use("pay", `{"order":8}`)), scripted.Say("Paid."))
	guard := settlegenkit.New(w.executor(settle.WithGuarded(contract("pay"))))
	pay := w.asking("pay")
	first := w.generate(ai.WithTools(pay), ai.WithUse(guard))
	if len(first.Interrupts()) != 2 || first.Interrupts()[0].Metadata["interrupt"].(map[string]any)["ask"] != "really?" {
		t.Fatalf("got the interrupts %+v", first.Interrupts())
	}
	w.wantActed(0)
	for _, row := range w.rows() {
		if row.State.String() != "retryable" {
			t.Errorf("an interrupted call is %s", row.State)
		}
	}
	if _, err := genkit.Generate(w.ctx, w.g, ai.WithMessages(first.History()...), ai.WithTools(pay), ai.WithUse(guard), restart(pay, first, 0)); err == nil {
		t.Fatal("genkit took a partial approval")
	}
	<-w.done // genkit doesn't wait for it
	w.wantActed(1)
	if _, err := genkit.Generate(w.ctx, w.g, ai.WithMessages(first.History()...), ai.WithTools(pay), ai.WithUse(guard), restart(pay, first, 0, 1)); err != nil {
		t.Fatal(err)
	}
	w.wantActed(2)
	w.wantResults(1, `"settle_note":"[completed, replayed;`, `{"id":"pay_1"}`)
}

func TestS01ASiblingOfAnInterruptIsNotRepeated(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("ask", `{"order":7}`), scripted.Use("pay", `{"order":7}`)),
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	guard := settlegenkit.New(w.executor(settle.WithGuarded(contract("pay"), contract("ask"))))
	ask := w.asking("ask")
	tools := ai.WithTools(ask, w.pay("pay", nil))
	first := w.generate(tools, ai.WithUse(guard))
	if _, err := genkit.Generate(w.ctx, w.g, ai.WithMessages(first.History()...), tools, ai.WithUse(guard), restart(ask, first, 0)); err != nil {
		t.Fatal(err)
	}
	w.wantActed(2)
	w.wantResults(2, "replayed")
}

func TestAnOpenOutcomeMayInterruptGenerateAndARestartIsAnsweredFromTheRecord(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	x := w.executor(settle.WithGuarded(settle.RawTool{Name: "pay", Contract: settle.Contract{Identity: []string{"order"}, NoLookup: true, Approval: true}}))
	guard := settlegenkit.New(x, settlegenkit.InterruptWhileOpen())
	pay := w.pay("pay", nil)
	first := w.generate(ai.WithTools(pay), ai.WithUse(guard))
	if len(first.Interrupts()) != 1 || first.FinishReason != ai.FinishReasonInterrupted {
		t.Fatalf("got %+v", first)
	}
	said := first.Interrupts()[0].Metadata["interrupt"].(map[string]any)
	if said["status"] != "awaiting_approval" || said["operation"] == "" {
		t.Errorf("the interrupt says %v", said)
	}
	w.wantActed(0)
	operator := settle.WithOperator(w.ctx, settle.Operator{Name: "ada", Tenants: []string{"acme"}})
	c, err := x.Queue().Get(operator, said["operation"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Queue().Decide(operator, settle.Decision{Operation: said["operation"].(string), Kind: settle.DecideApprove, Version: c.Version, ID: "0197a3c2-0000-7000-8000-000000000001", Reason: "seen"}); err != nil {
		t.Fatal(err)
	}
	if _, err := genkit.Generate(w.ctx, w.g, ai.WithMessages(first.History()...), ai.WithTools(pay), ai.WithUse(guard), restart(pay, first, 0)); err != nil {
		t.Fatal(err)
	}
	w.wantActed(1)
	w.wantResults(1, `{"id":"pay_1"}`)
}

func TestR47AMultipartResultSurvivesTheRecord(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("chart", `{"order":7}`)), scripted.CallTools(scripted.Use("chart", `{"order":7}`)), scripted.Say("Seen."))
	chart := ai.NewMultipartTool("chart", "Draw.", func(*ai.ToolContext, payArgs) (*ai.MultipartToolResponse, error) {
		w.acted.Add(1)
		return &ai.MultipartToolResponse{Output: map[string]any{"id": "c1"}, Content: []*ai.Part{ai.NewMediaPart("image/png", "data:image/png;base64,AA==")}}, nil
	})
	response := w.generate(ai.WithTools(chart), ai.WithUse(settlegenkit.New(w.executor())))
	w.wantActed(1)
	var parts []*ai.Part
	for _, m := range response.Request.Messages {
		for _, p := range m.Content {
			if p.IsToolResponse() {
				parts = append(parts, p)
			}
		}
	}
	if len(parts) != 2 {
		t.Fatalf("there are %d tool responses", len(parts))
	}
	for i, p := range parts {
		content, err := json.Marshal(p.ToolResponse.Content)
		if err != nil || !strings.Contains(string(content), "data:image/png;base64,AA==") || p.ToolResponse.Output.(map[string]any)["id"] != "c1" {
			t.Errorf("response %d has the output %v and the content %s, %v", i, p.ToolResponse.Output, content, err)
		}
	}
	if note, _ := parts[1].ToolResponse.Output.(map[string]any)["settle_note"].(string); !strings.HasPrefix(note, "[completed, replayed;") {
		t.Errorf("the replay says %q", note)
	}
}

func TestAToolMayReturnNothingOrNoObject(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("none", `{"order":7}`), scripted.Use("text", `{"order":7}`)),
		scripted.CallTools(scripted.Use("none", `{"order":7}`), scripted.Use("text", `{"order":7}`)), scripted.Say("Done."))
	none := ai.NewTool("none", "None.", func(*ai.ToolContext, payArgs) (any, error) { return nil, nil })
	text := ai.NewTool("text", "Text.", func(*ai.ToolContext, payArgs) (string, error) { return "booked", nil })
	w.generate(ai.WithTools(none, text), ai.WithUse(settlegenkit.New(w.executor())))
	w.wantResults(1, `null`, `"booked"`)
	w.wantResults(2, `"status":"completed"`, `{"result":"booked","settle_note":"[completed, replayed;`)
}

func TestEvidenceGivesTheOutputWithoutAnotherRun(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	seen := contract("pay")
	seen.Contract.NoLookup = false
	seen.Lookup = lookup
	w.generate(ai.WithTools(w.pay("pay", func(*ai.ToolContext) error { return errors.New("i/o timeout") })),
		ai.WithUse(settlegenkit.New(w.executor(settle.WithGuarded(seen)))))
	w.wantActed(1)
	w.wantResults(1, `{"id":"pay_1"`)
}

func lookup(_ context.Context, q settle.Query[json.RawMessage], _ json.RawMessage) (settle.Evidence, error) {
	return q.Happened("pay_1", json.RawMessage(`{"id":"pay_1"}`)), nil
}
