package settlegenkit_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/firebase/genkit/go/ai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settlegenkit "github.com/settle-go/settle/tools/genkit"
)

// The model is told a number of 2^53 or more as the executor's tool returned it.
func TestNumbersOfAResultAreNotRounded(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Done."))
	guard := settlegenkit.New(w.executor(settle.WithTools(settle.RawTool{Name: "pay", Contract: contract("pay").Contract,
		Schema: json.RawMessage(`{"type":"object","required":["order"],"properties":{"order":{"type":"integer"},"note":{"type":"string"}}}`),
		Do: func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"id":9007199254740993}`), nil
		}})))
	w.generate(ai.WithTools(guard.Tools()...), ai.WithUse(guard))
	if got := w.results(1); got[0] != `{"id":9007199254740993}` {
		t.Errorf("the first run was answered %s", got)
	}
	w.wantResults(2, `"id":9007199254740993,"settle_note":"[completed, replayed;`)
}
