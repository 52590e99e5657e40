package settlegenkit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"
	"github.com/firebase/genkit/go/genkit"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settlegenkit "github.com/settle-go/settle/tools/genkit"
)

func TestS28AReplayIsTheOutputWithAWordBesideIt(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("pay", `{"order":7,"note":"late"}`)), scripted.Say("Paid."),
		scripted.CallTools(scripted.Use("pay", `{"order":7,"note":"eight days"}`)), scripted.Say("Was paid."))
	guard := settlegenkit.New(w.executor(settle.WithGuarded(contract("pay"))))
	for range 2 {
		w.generate(ai.WithTools(w.pay("pay", nil)), ai.WithUse(guard))
	}
	w.wantActed(1)
	if got := w.results(1); got[0] != `{"id":"pay_1"}` {
		t.Errorf("the first run was answered %q", got)
	}
	w.wantResults(3, `{"id":"pay_1","settle_note":"[completed, replayed;`)
	if rows := w.rows(); len(rows) != 1 || rows[0].Resource != "pay_1" {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestR60AfterARestartTheBriefComesWithEachCallOfTheModel(t *testing.T) {
	w := newWorld(t,
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."),
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Was paid."),
		scripted.Say("Hello."))
	var history []*ai.Message
	for range 2 {
		guard := settlegenkit.New(w.executor(settle.WithGuarded(contract("pay"))))
		history = w.generate(ai.WithSystem("You support."), ai.WithTools(w.pay("pay", nil)), ai.WithUse(guard)).History()
	}
	if _, err := genkit.Generate(w.ctx, w.g, ai.WithMessages(history...), ai.WithPrompt("Hello?"), ai.WithUse(settlegenkit.New(w.executor()))); err != nil {
		t.Fatal(err)
	}
	for i, r := range w.model.Requests() {
		system := ""
		for _, m := range r.Messages {
			if m.Role == scripted.System {
				system += m.Text
			}
		}
		want := 0
		if i >= 2 {
			want = 1
		}
		if got := strings.Count(system, "don't do these again"); got != want || !strings.HasPrefix(system, "You support.") {
			t.Errorf("request %d has the instructions %q", i, system)
		}
	}
	w.wantActed(1)
}

func TestR60WithoutInstructionsTheBriefComesFirst(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."), scripted.Say("Hello."))
	for range 2 {
		w.generate(ai.WithTools(w.pay("pay", nil)), ai.WithUse(settlegenkit.New(w.executor())))
	}
	if first := w.model.Requests()[2].Messages[0]; first.Role != scripted.System || !strings.Contains(first.Text, "don't do these again") {
		t.Errorf("the third request begins with %+v", first)
	}
}

func TestR27AnErrorOfAToolEndsNothingAndSaysWhatIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"not sent": {settle.NotSent(errors.New("no route")), "not_done"},
		"rejected": {settle.Rejected(errors.New("sold out")), "failed"},
		"unknown":  {context.DeadlineExceeded, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scripted.CallTools(scripted.Use("fails", `{"order":7}`), scripted.Use("pay", `{"order":7}`)), scripted.Say("I see."))
			w.generate(ai.WithUse(settlegenkit.New(w.executor())),
				ai.WithTools(w.pay("fails", func(*ai.ToolContext) error { return tc.err }), w.pay("pay", nil)))
			w.wantResults(1, `"status":"`+tc.want+`"`, `{"id":"pay_1"}`)
		})
	}
}

func TestAPanicOfAToolIsUnknown(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("I see."))
	w.generate(ai.WithTools(w.pay("pay", func(*ai.ToolContext) error { panic("till") })), ai.WithUse(settlegenkit.New(w.executor())))
	w.wantResults(1, `"status":"unknown"`)
}

func TestR18WhatCannotRunIsAnsweredAndClaimsNothing(t *testing.T) {
	w := newWorld(t, scripted.CallTools(
		scripted.Use("pay", `{"order":"seven"}`), scripted.Use("pay", `{}`), scripted.Use("pay", `{"order":9007199254740993}`),
		scripted.Use("refund", `{"order":9007199254740993}`), scripted.Use("refund", `{"order":1.5}`)), scripted.Say("I see."),
		scripted.CallTools(scripted.Use("pay_all", `{"order":7}`)))
	guard := settlegenkit.New(w.executor(settle.WithGuarded(contract("pay")), settle.WithTools(w.refund())))
	tools := append(guard.Tools("refund"), w.pay("pay", nil))
	w.generate(ai.WithTools(tools...), ai.WithUse(guard))
	invalid := `"status":"invalid_arguments"`
	w.wantResults(1, invalid, invalid, invalid, invalid, invalid)
	// A name that the model made up ends Generate: genkit asks no middleware.
	if _, err := genkit.Generate(w.ctx, w.g, ai.WithPrompt("Pay."), ai.WithTools(tools...), ai.WithUse(guard)); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("an unknown name ended with %v", err)
	}
	w.wantActed(0)
	if rows := w.rows(); len(rows) != 0 {
		t.Errorf("the ledger has %d rows", len(rows))
	}
}

func TestR01AToolWithoutAContractIsUnsafe(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.CallTools(scripted.Use("pay", `{"order":8}`)), scripted.Say("I see."))
	w.generate(ai.WithTools(w.pay("pay", func(*ai.ToolContext) error { return errors.New("connection reset") })), ai.WithUse(settlegenkit.New(w.executor())))
	w.wantActed(1)
	w.wantResults(1, `"status":"unknown"`)
	w.wantResults(2, `"status":"held"`)
	if rows := w.rows(); len(rows) != 1 || rows[0].Class != settle.Unsafe {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestR03ARenamedToolFindsItsOperations(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."),
		scripted.CallTools(scripted.Use("pay_order", `{"order":7}`)), scripted.Say("Was paid."))
	w.generate(ai.WithTools(w.pay("pay", nil)), ai.WithUse(settlegenkit.New(w.executor(settle.WithGuarded(contract("pay"))))))
	renamed := contract("pay_order")
	renamed.Formerly = []string{"pay"}
	w.generate(ai.WithTools(w.pay("pay_order", nil)), ai.WithUse(settlegenkit.New(w.executor(settle.WithGuarded(renamed)))))
	w.wantActed(1)
	w.wantResults(3, "replayed")
}

func TestAKeyedToolTakesItsKeyFromTheContext(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	var keys []string
	keyed := contract("pay")
	keyed.Contract.Class, keyed.Contract.KeyWindow = settle.Keyed, settle.Permanent
	w.generate(ai.WithUse(settlegenkit.New(w.executor(settle.WithGuarded(keyed)))), ai.WithTools(w.pay("pay", func(ctx *ai.ToolContext) error {
		key, _ := settle.KeyFrom(ctx)
		if keys = append(keys, key); len(keys) == 1 {
			return errors.New("connection reset")
		}
		return nil
	})))
	w.wantResults(1, `{"id":"pay_1"}`)
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("the attempts had the keys %q", keys)
	}
}

func TestTheHostsMistakesEndGenerateBeforeTheModelIsAsked(t *testing.T) {
	w := newWorld(t)
	guard := settlegenkit.New(w.executor())
	for want, ctx := range map[error]context.Context{
		settle.ErrNoPrincipal: w.Context(),
		settle.ErrNoTask:      settle.WithPrincipal(w.Context(), settle.Principal{Tenant: "acme", Subject: "agent"}),
	} {
		if _, err := genkit.Generate(ctx, w.g, ai.WithPrompt("Pay."), ai.WithTools(w.pay("pay", nil)), ai.WithUse(guard)); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestR06ThePrincipalComesFromTheRequestWhereTheHostSaysSo(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Say("Paid."))
	guard := settlegenkit.New(w.executor(), settlegenkit.PrincipalFromAuth(func(auth map[string]any) (settle.Principal, bool) {
		uid, ok := auth["uid"].(string)
		return settle.Principal{Tenant: "acme", Subject: uid}, ok
	}))
	flow := genkit.DefineFlow(w.g, "payment", func(ctx context.Context, _ struct{}) (string, error) {
		ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
		return genkit.GenerateText(ctx, w.g, ai.WithPrompt("Pay."), ai.WithTools(w.pay("pay", nil)), ai.WithUse(guard))
	})
	if _, err := flow.Run(w.Context(), struct{}{}); !errors.Is(err, settle.ErrNoPrincipal) {
		t.Errorf("without a token the flow ended with %v", err)
	}
	ctx := core.WithActionContext(w.Context(), core.ActionContext{"auth": map[string]any{"uid": "ada"}})
	if said, err := flow.Run(ctx, struct{}{}); err != nil || said != "Paid." {
		t.Fatalf("got %q, %v", said, err)
	}
	if rows := w.rows(); len(rows) != 1 || rows[0].Of.Subject != "ada" {
		t.Errorf("the ledger has %+v", rows)
	}
}

func TestAPromptIsGuardedOnceForAll(t *testing.T) {
	calls := scripted.CallTools(scripted.Use("pay", `{"order":7}`), scripted.Use("refund", `{"order":7}`))
	w := newWorld(t, calls, scripted.Say("Paid."), calls, scripted.Say("Was paid."))
	guard := settlegenkit.New(w.executor(settle.WithGuarded(contract("pay")), settle.WithTools(w.refund())))
	pay := genkit.DefineTool(w.g, "pay", "Pay an order.", func(*ai.ToolContext, payArgs) (paid, error) {
		w.acted.Add(1)
		return paid{"pay_1"}, nil
	})
	prompt := guard.Prompt(genkit.DefinePrompt(w.g, "payer", ai.WithPrompt("Pay order 7."), ai.WithTools(append(guard.Define(w.g), pay)...)))
	if _, err := prompt.Execute(w.ctx); err != nil {
		t.Fatal(err)
	}
	for _, err := range prompt.ExecuteStream(w.ctx) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := prompt.Execute(w.ctx, ai.WithUse(guard)); err == nil {
		t.Error("genkit took two WithUse")
	}
	w.wantActed(2)
	w.wantResults(1, `{"id":"pay_1"}`, `{"id":"re_1"}`)
	w.wantResults(3, `{"id":"pay_1","settle_note":`, `{"id":"re_1","settle_note":`)
}

type refundArgs struct {
	Order int64 `json:"order" settle:"identity"`
}

type refunded struct {
	ID string `json:"id" settle:"resource"`
}

// refund is a tool that the executor runs.
func (w *world) refund() settle.AnyTool {
	return settle.Tool[refundArgs, refunded]{
		Name: "refund", Description: "Refund an order.", Contract: settle.Contract{NoLookup: true},
		Do: func(context.Context, settle.Op, refundArgs) (refunded, error) {
			w.acted.Add(1)
			return refunded{"re_1"}, nil
		},
	}
}

func TestTheExecutorsToolsAreOfferedAndRunWithAndWithoutTheMiddleware(t *testing.T) {
	for _, used := range []bool{true, false} {
		t.Run("", func(t *testing.T) {
			w := newWorld(t, scripted.CallTools(scripted.Use("refund", `{"order":7}`)), scripted.CallTools(scripted.Use("refund", `{"order":7}`)), scripted.Say("Done."))
			guard := settlegenkit.New(w.executor(settle.WithTools(w.refund())))
			options := []ai.GenerateOption{ai.WithTools(guard.Tools()...)}
			if used {
				options = append(options, ai.WithUse(guard))
			}
			w.generate(options...)
			w.wantActed(1)
			if got := w.results(1); got[0] != `{"id":"re_1"}` {
				t.Errorf("the first run was answered %q", got)
			}
			w.wantResults(2, `"settle_note":"[completed, replayed;`)
			offered := w.model.Requests()[0].Tools
			if len(offered) != 1 || offered[0].Description != "Refund an order." || !strings.Contains(string(offered[0].Schema), `"order"`) {
				t.Errorf("the model was offered %+v", offered)
			}
		})
	}
}

// A name that is misspelt mustn't leave the model without its tool.
func TestANameThatTheExecutorDoesntHaveIsAnError(t *testing.T) {
	w := newWorld(t)
	guard := settlegenkit.New(w.executor(settle.WithTools(w.refund())))
	_, err := genkit.Generate(w.ctx, w.g, ai.WithPrompt("Pay."), ai.WithTools(guard.Tools("refund", "reimburse")...), ai.WithUse(guard))
	if err == nil || !strings.Contains(err.Error(), "reimburse") || len(w.model.Requests()) != 0 {
		t.Errorf("Generate said %v", err)
	}
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "reimburse") {
			t.Errorf("Define said %s", said)
		}
	}()
	guard.Define(w.g, "reimburse")
}

func TestAToolThatTakesAnythingIsGuarded(t *testing.T) {
	w := newWorld(t, scripted.CallTools(scripted.Use("log", `{"order":7}`), scripted.Use("note", `{"order":7}`)), scripted.Say("I see."))
	log := ai.NewTool("log", "Log.", func(*ai.ToolContext, any) (string, error) { return "logged", nil })
	note := ai.NewTool("note", "Note.", func(*ai.ToolContext, map[string]any) (string, error) { return "noted", nil })
	w.generate(ai.WithTools(log, note), ai.WithUse(settlegenkit.New(w.executor())))
	w.wantResults(1, "logged", "noted")
}
