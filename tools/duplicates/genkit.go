package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai/openai"
	"github.com/openai/openai-go/option"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settlegenkit "github.com/settle-go/settle/tools/genkit"
)

func genkits() []situation {
	return []situation{
		{"genkit v1.7.0", "one of two interrupted calls is approved, then both", effects{"pay 7": 1, "pay 8": 1}, partialApproval},
		{"genkit v1.7.0", "a tool fails while the one beside it pays, and Generate is run again", effects{"pay 7": 1}, siblingError},
		{"genkit v1.7.0", "a payment that is meant twice, by a tool whose arguments genkit checks", effects{"pay 7": 2}, genkitMeantTwice},
	}
}

type genkitPayArgs struct {
	Order int `json:"order"`
}

// genkitUse starts genkit on the model, with the options that guard a Generate.
func genkitUse(ctx context.Context, w *world, model *scripted.Server) (*genkit.Genkit, []ai.GenerateOption, error) {
	g := genkit.Init(ctx, genkit.WithDefaultModel("openai/gpt-4o"), genkit.WithPlugins(&openai.OpenAI{
		APIKey: "none", Opts: []option.RequestOption{option.WithBaseURL(model.URL() + "/v1/"), option.WithMaxRetries(0)}}))
	if !w.guarded {
		return g, nil, nil
	}
	pay := payByOrder()
	pay.Contract.Repeatable = true
	ex, err := w.executor(ctx, settle.WithGuarded(pay))
	if err != nil {
		return nil, nil, err
	}
	return g, []ai.GenerateOption{ai.WithUse(settlegenkit.New(ex))}, nil
}

// partialApproval: genkit runs the approved call and then refuses the restart,
// since the other one isn't resolved.
func partialApproval(ctx context.Context, w *world) error {
	model := scripted.New(scripted.CallTools(scripted.Use("pay", `{"order":7}`), scripted.Use("pay", `{"order":8}`)), scripted.Say("They are paid."))
	defer model.Close()
	g, options, err := genkitUse(ctx, w, model)
	if err != nil {
		return err
	}
	paid := make(chan struct{}, 3)
	pay := ai.NewTool("pay", "Pay an order.", func(ctx *ai.ToolContext, in genkitPayArgs) (string, error) {
		if !ctx.IsResumed() {
			return "", ctx.Interrupt(nil)
		}
		w.act("pay " + strconv.Itoa(in.Order))
		paid <- struct{}{}
		return "paid", nil
	})
	options = append(options, ai.WithTools(pay))
	first, err := genkit.Generate(ctx, g, append(options, ai.WithPrompt("Pay orders 7 and 8."))...)
	if err != nil {
		return err
	}
	var restarts []*ai.Part
	for _, call := range first.Interrupts() {
		restart, err := pay.RestartWith(call)
		if err != nil {
			return err
		}
		restarts = append(restarts, restart)
	}
	options = append(options, ai.WithMessages(first.History()...))
	if _, err := genkit.Generate(ctx, g, append(options, ai.WithToolRestarts(restarts[0]))...); err == nil {
		return errors.New("genkit took the partial approval")
	}
	<-paid // genkit doesn't wait for it
	_, err = genkit.Generate(ctx, g, append(options, ai.WithToolRestarts(restarts...))...)
	return err
}

// siblingError: the error of one tool ends Generate, and what the other returns
// is dropped.
func siblingError(ctx context.Context, w *world) error {
	turn := scripted.CallTools(scripted.Use("pay", `{"order":7}`), scripted.Use("check", `{"order":7}`))
	model := scripted.New(turn, turn, scripted.Say("It is paid."))
	defer model.Close()
	g, options, err := genkitUse(ctx, w, model)
	if err != nil {
		return err
	}
	failing, paid := true, make(chan struct{}, 2)
	pay := ai.NewTool("pay", "Pay an order.", func(_ *ai.ToolContext, in genkitPayArgs) (string, error) {
		w.act("pay " + strconv.Itoa(in.Order))
		paid <- struct{}{}
		return "paid", nil
	})
	check := ai.NewTool("check", "Check an order.", func(*ai.ToolContext, genkitPayArgs) (string, error) {
		if failing {
			return "", errors.New("gateway timeout")
		}
		return "fine", nil
	})
	options = append(options, ai.WithTools(pay, check), ai.WithPrompt("Pay order 7."))
	_, err = genkit.Generate(ctx, g, options...)
	<-paid // genkit may have returned before
	if err == nil {
		return nil
	}
	failing = false
	_, err = genkit.Generate(ctx, g, options...)
	return err
}

// genkitMeantTwice: genkit checks the arguments against a schema that has no
// occurrence, behind the guard.
func genkitMeantTwice(ctx context.Context, w *world) error {
	first, second := `{"order":7}`, `{"order":7}`
	if w.guarded {
		second = `{"order":7,"settle_occurrence":2}`
	}
	model := scripted.New(scripted.CallTools(scripted.Use("pay", first)), scripted.CallTools(scripted.Use("pay", second)), scripted.Say("It is paid twice."))
	defer model.Close()
	g, options, err := genkitUse(ctx, w, model)
	if err != nil {
		return err
	}
	pay := ai.NewTool("pay", "Pay an order.", func(_ *ai.ToolContext, in genkitPayArgs) (string, error) {
		w.act("pay " + strconv.Itoa(in.Order))
		return "paid", nil
	})
	_, err = genkit.Generate(ctx, g, append(options, ai.WithTools(pay), ai.WithPrompt("Pay order 7 twice."))...)
	return err
}
