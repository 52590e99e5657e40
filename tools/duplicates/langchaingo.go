package main

import (
	"context"
	"errors"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/scripted"
	settlelangchaingo "github.com/settle-go/settle/tools/langchaingo"
)

func langchaingo() []situation {
	const module = "langchaingo v0.1.14"
	return []situation{
		{module, "a later tool fails, the steps are lost, and the agent is run again", effects{"pay": 1}, langchaingoError},
	}
}

// langchaingoTool is a tool as its users write one.
type langchaingoTool struct {
	name string
	run  func() (string, error)
}

func (t langchaingoTool) Name() string                                 { return t.name }
func (t langchaingoTool) Description() string                          { return "Does " + t.name + "." }
func (t langchaingoTool) Call(context.Context, string) (string, error) { return t.run() }

// langchaingoError: an error of a tool ends the executor, and with it goes what
// the run has done.
func langchaingoError(ctx context.Context, w *world) error {
	call := func(tool string) scripted.Turn {
		return scripted.CallTools(scripted.Use(tool, map[string]string{"__arg1": "order 7"}))
	}
	failed := false
	pay := langchaingoTool{"pay", func() (string, error) { w.act("pay"); return "paid", nil }}
	lookup := langchaingoTool{"lookup", func() (string, error) {
		if !failed {
			failed = true
			return "", errors.New("connection refused")
		}
		return "found", nil
	}}
	turns := []scripted.Turn{call("pay"), call("lookup"), call("pay"), call("lookup"), scripted.Say("It is paid.")}
	server := scripted.New(turns...)
	defer server.Close()
	llm, err := openai.New(openai.WithBaseURL(server.URL()+"/v1"), openai.WithToken("none"), openai.WithModel("scripted"))
	if err != nil {
		return err
	}
	all, wrap := []tools.Tool{pay, lookup}, func(c chains.Chain) chains.Chain { return c }
	if w.guarded {
		input := settle.Contract{Identity: []string{"input"}, NoLookup: true}
		ex, err := w.executor(ctx, settle.WithGuarded(settle.RawTool{Name: "pay", Contract: input}, settle.RawTool{Name: "lookup", Contract: settle.Contract{Class: settle.Read}}))
		if err != nil {
			return err
		}
		if all, err = settlelangchaingo.Guard(ex, settlelangchaingo.Guarded{Tool: pay}, settlelangchaingo.Guarded{Tool: lookup}); err != nil {
			return err
		}
		wrap = func(c chains.Chain) chains.Chain { return settlelangchaingo.Chain(ex, c) }
	}
	agent := wrap(agents.NewExecutor(agents.NewOpenAIFunctionsAgent(llm, all)))
	if _, err := chains.Run(ctx, agent, "Pay order 7."); err == nil {
		return nil // with settle the run needn't be repeated
	}
	_, err = chains.Run(ctx, agent, "Pay order 7.")
	return err
}
