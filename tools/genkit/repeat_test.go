package settlegenkit_test

import (
	"testing"

	"github.com/firebase/genkit/go/ai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settlegenkit "github.com/settle-go/settle/tools/genkit"
)

func TestR09ARepeatThatIsMeantRunsTheToolWithoutTheOccurrence(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.CallTools(scripted.Use("pay", `{"order":7}`)),
		scripted.CallTools(scripted.Use("pay", `{"order":7,"settle_occurrence":2}`)), scripted.Say("Paid twice."))
	again := contract("pay")
	again.Contract.Repeatable = true
	w.generate(ai.WithTools(w.pay("pay", nil)), ai.WithUse(settlegenkit.New(w.executor(settle.WithGuarded(again)))))
	w.wantResults(2, "settle_occurrence")
	w.wantResults(3, `{"id":"pay_1"}`)
	w.wantActed(2)
}
