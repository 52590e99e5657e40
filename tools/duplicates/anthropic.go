package main

import (
	"context"
	"errors"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/toolrunner"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleanthropic "github.com/settle-go/settle/tools/anthropic"
)

// anthropicRunner is the tool runner of Anthropic's SDK.
func anthropicRunner() []situation {
	return []situation{
		{"anthropic-sdk-go v2.15.0", "the tool runner is asked again after an API error", effects{"pay": 1}, nextAfterError},
	}
}

// nextAfterError: NextMessage runs the last turn's tools, then asks the model,
// which fails; the next NextMessage begins with the tools.
func nextAfterError(ctx context.Context, w *world) error {
	type args struct {
		Order int `json:"order"`
	}
	pay, err := toolrunner.NewBetaToolFromJSONSchema("pay", "Pay an order.", func(context.Context, args) (anthropic.BetaToolResultBlockParamContentUnion, error) {
		w.act("pay")
		return anthropic.BetaToolResultBlockParamContentUnion{OfText: &anthropic.BetaTextBlockParam{Text: "paid"}}, nil
	})
	if err != nil {
		return err
	}
	tools := []anthropic.BetaTool{pay}
	if w.guarded {
		ex, err := w.executor(ctx, settle.WithGuarded(payByOrder()))
		if err != nil {
			return err
		}
		if tools, err = settleanthropic.Guard(ex, pay); err != nil {
			return err
		}
	}
	model := scripted.New(scripted.CallTools(scripted.Use("pay", `{"order":7}`)), scripted.Fail(529), scripted.Say("It is paid."))
	defer model.Close()
	client := anthropic.NewClient(option.WithBaseURL(model.URL()), option.WithAPIKey("none"), option.WithMaxRetries(0))
	runner := client.Beta.Messages.NewToolRunner(tools, anthropic.BetaToolRunnerParams{DisableThread: true, BetaMessageNewParams: anthropic.BetaMessageNewParams{
		Model: "scripted", MaxTokens: 1024, Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock("Pay order 7."))}}})
	if _, err := runner.NextMessage(ctx); err != nil {
		return err
	}
	if _, err := runner.NextMessage(ctx); err == nil {
		return errors.New("the model didn't fail")
	}
	runner.Params.Messages = settleanthropic.Rewind(runner.Params.Messages) // or the API refuses two results for one call
	_, err = runner.NextMessage(ctx)
	return err
}

// payByOrder is a contract of a payment that its order identifies.
func payByOrder() settle.RawTool {
	return settle.RawTool{Name: "pay", Contract: settle.Contract{Identity: []string{"order"}, NoLookup: true}}
}
