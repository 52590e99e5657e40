package settlegenkit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settlegenkit "github.com/settle-go/settle/tools/genkit"
)

func TestAStreamedGenerateIsGuarded(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("It is paid."))
	said, answers := "", 0
	for value, err := range genkit.GenerateStream(w.ctx, w.g, ai.WithPrompt("Pay."), ai.WithTools(w.pay("pay", nil)), ai.WithUse(settlegenkit.New(w.executor()))) {
		switch {
		case err != nil:
			t.Fatal(err)
		case value.Done:
			if got := value.Response.Text(); got != "It is paid." {
				t.Errorf("the response is %q", got)
			}
		default:
			said += value.Chunk.Text()
			for _, part := range value.Chunk.Content {
				if part.IsToolResponse() {
					answers++
				}
			}
		}
	}
	if said != "It is paid." || answers != 1 {
		t.Errorf("the stream said %q and had %d results", said, answers)
	}
	w.wantActed(1)
}

func TestS23ParallelCallsRunSideBySideAndEqualOnesOnce(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`), scripted.Use("pay", `{"order":8}`), scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	inside := make(chan struct{}, 2)
	both := make(chan struct{})
	go func() {
		<-inside
		<-inside
		close(both)
	}()
	pay := w.pay("pay", func(ctx *ai.ToolContext) error {
		inside <- struct{}{}
		select {
		case <-both:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	w.generate(ai.WithTools(pay), ai.WithUse(settlegenkit.New(w.executor(settle.WithGuarded(contract("pay"))))))
	w.wantActed(2)
	w.wantResults(1, `{"id":"pay_1"}`, `{"id":"pay_1"}`, "replayed")
}

// Generate goes when its caller does; the tool doesn't, and the next Generate is
// answered with what it did.
func TestR24ACallersCancellationDoesNotReachTheTool(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Was paid."))
	guard := settlegenkit.New(w.executor(settle.WithGuarded(contract("pay"))))
	begun, gone := make(chan struct{}), make(chan struct{})
	pay := w.pay("pay", func(ctx *ai.ToolContext) error {
		close(begun)
		<-gone
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(w.ctx)
	go func() {
		<-begun
		cancel()
	}()
	if _, err := genkit.Generate(ctx, w.g, ai.WithPrompt("Pay."), ai.WithTools(pay), ai.WithUse(guard)); !errors.Is(err, context.Canceled) {
		t.Errorf("Generate ended with %v", err)
	}
	close(gone)
	w.generate(ai.WithTools(pay), ai.WithUse(guard))
	w.wantActed(1)
	w.wantResults(2, "replayed")
}
