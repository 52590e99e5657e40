package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settleopenai "github.com/settle-go/settle/tools/openai"
)

// rawLoop is the loop that openai-go's users write. It has no tool runner.
func rawLoop() []situation {
	return []situation{
		{"openai-go v3.99.0", "the agent is run again after an error at the model", effects{"pay": 1}, agentRetry},
		{"openai-go v3.99.0", "a payment that is meant twice", effects{"pay": 2}, meantTwice},
	}
}

var payDefinition = openai.FunctionDefinitionParam{Name: "pay", Parameters: openai.FunctionParameters{
	"type": "object", "additionalProperties": false, "required": []string{"order"},
	"properties": map[string]any{"order": map[string]any{"type": "integer"}},
}}

// agent is such a loop: answer runs the calls of a turn.
type agent struct {
	client openai.Client
	answer func(ctx context.Context, choice openai.ChatCompletionChoice) ([]openai.ChatCompletionMessageParamUnion, error)
}

func newAgent(ctx context.Context, w *world, model *scripted.Server, contract settle.Contract) (agent, error) {
	a := agent{client: openai.NewClient(option.WithBaseURL(model.URL()+"/v1/"), option.WithAPIKey("none"), option.WithMaxRetries(0))}
	pay := func(context.Context, json.RawMessage) (string, error) {
		w.act("pay")
		return "paid", nil
	}
	if !w.guarded {
		a.answer = func(ctx context.Context, choice openai.ChatCompletionChoice) ([]openai.ChatCompletionMessageParamUnion, error) {
			var results []openai.ChatCompletionMessageParamUnion
			for _, call := range choice.Message.ToolCalls {
				said, err := pay(ctx, json.RawMessage(call.Function.Arguments))
				if err != nil {
					return nil, err
				}
				results = append(results, openai.ToolMessage(said, call.ID))
			}
			return results, nil
		}
		return a, nil
	}
	ex, err := w.executor(ctx, settle.WithGuarded(settle.RawTool{Name: "pay", Contract: contract}))
	if err != nil {
		return agent{}, err
	}
	tools, err := settleopenai.New(ex, settleopenai.Guarded{Definition: payDefinition, Run: pay})
	if err != nil {
		return agent{}, err
	}
	a.answer = tools.AnswerChat
	return a, nil
}

// run asks the model until it calls nothing more.
func (a agent) run(ctx context.Context) error {
	params := openai.ChatCompletionNewParams{
		Model:    "scripted",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Pay order 7.")},
		Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(payDefinition)},
	}
	for {
		completion, err := a.client.Chat.Completions.New(ctx, params)
		if err != nil {
			return err
		}
		results, err := a.answer(ctx, completion.Choices[0])
		if err != nil || len(results) == 0 {
			return err
		}
		params.Messages = append(params.Messages, completion.Choices[0].Message.ToParam())
		params.Messages = append(params.Messages, results...)
	}
}

// agentRetry: the model fails once the payment is made, and the whole agent is
// run again, as a queue's worker would.
func agentRetry(ctx context.Context, w *world) error {
	model := scripted.New(
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)),
		scripted.Fail(500),
		scripted.CallTools(scripted.Use("pay", `{"order":7}`)),
		scripted.Say("It is paid."))
	defer model.Close()
	a, err := newAgent(ctx, w, model, settle.Contract{WholeArguments: true, NoLookup: true})
	if err != nil {
		return err
	}
	if err := a.run(ctx); err == nil {
		return errors.New("the model didn't fail")
	}
	return a.run(ctx)
}

// meantTwice: two equal calls, of which the model says that both are meant. A
// guard that goes by the arguments alone swallows one.
func meantTwice(ctx context.Context, w *world) error {
	first, second := `{"order":7}`, `{"order":7}`
	if w.guarded {
		second = `{"order":7,"settle_occurrence":2}`
	}
	model := scripted.New(
		scripted.CallTools(scripted.Use("pay", first)), scripted.CallTools(scripted.Use("pay", second)),
		scripted.Say("It is paid twice."))
	defer model.Close()
	a, err := newAgent(ctx, w, model, settle.Contract{Repeatable: true, WholeArguments: true, NoLookup: true})
	if err != nil {
		return err
	}
	return a.run(ctx)
}
