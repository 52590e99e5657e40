package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"charm.land/fantasy"

	"github.com/settle-go/settle"
)

func fantasyLoop() []situation {
	return []situation{
		{"fantasy v0.41.2", "a tool beside it can't be reached, and the framework repeats the step", effects{"pay": 1}, fantasyStepRetry},
	}
}

// fantasyGuard is the executor before a tool of fantasy.
type fantasyGuard struct {
	fantasy.AgentTool
	executor *settle.Executor
}

// Run never returns an error but the host's mistake: any other makes fantasy
// repeat or give up the step.
func (g fantasyGuard) Run(ctx context.Context, call fantasy.ToolCall) (fantasy.ToolResponse, error) {
	response, out, err := settle.Around(ctx, g.executor, settle.Call{Tool: call.Name, Args: json.RawMessage(call.Input), CallID: call.ID},
		func(ctx context.Context) (fantasy.ToolResponse, error) { return g.AgentTool.Run(ctx, call) })
	switch {
	case err != nil:
		return fantasy.ToolResponse{}, err
	case out.Status == settle.StatusCompleted && !out.Replayed:
		return response, nil
	}
	return fantasy.NewTextResponse(out.ForModel()), nil
}

type fantasyArgs struct {
	Order int `json:"order"`
}

// fantasyStepRetry: the agent's retry holds the request to the model and the
// tools. A tool that asks a model itself, which is overloaded, makes it ask for
// the whole step again: new calls, with new ids.
func fantasyStepRetry(ctx context.Context, w *world) error {
	overloaded := true
	tools := []fantasy.AgentTool{
		fantasy.NewAgentTool("pay", "", func(context.Context, fantasyArgs, fantasy.ToolCall) (fantasy.ToolResponse, error) {
			w.act("pay")
			return fantasy.NewTextResponse("paid"), nil
		}),
		fantasy.NewAgentTool("summarise", "", func(context.Context, fantasyArgs, fantasy.ToolCall) (fantasy.ToolResponse, error) {
			if overloaded {
				overloaded = false
				return fantasy.ToolResponse{}, &fantasy.ProviderError{StatusCode: http.StatusServiceUnavailable,
					ResponseHeaders: map[string]string{"retry-after-ms": "1"}}
			}
			return fantasy.NewTextResponse("an order"), nil
		}),
	}
	if w.guarded {
		ex, err := w.executor(ctx, settle.WithGuarded(
			settle.RawTool{Name: "pay", Contract: settle.Contract{Identity: []string{"order"}, NoLookup: true}},
			settle.RawTool{Name: "summarise", Contract: settle.Contract{Class: settle.Read}}))
		if err != nil {
			return err
		}
		for i, t := range tools {
			tools[i] = fantasyGuard{t, ex}
		}
	}
	_, err := fantasy.NewAgent(&fantasyModel{}, fantasy.WithTools(tools...)).Stream(ctx, fantasy.AgentStreamCall{Prompt: "Pay order 7."})
	return err
}

// fantasyModel calls both tools, and is content once it is told results. It is a
// component of its own: fantasy's client for OpenAI isn't made for the version
// of openai-go that is here.
type fantasyModel struct {
	fantasy.LanguageModel
	asked int
}

func (*fantasyModel) Provider() string { return "scripted" }
func (*fantasyModel) Model() string    { return "scripted" }

func (m *fantasyModel) Stream(_ context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	m.asked++
	parts := []fantasy.StreamPart{
		{Type: fantasy.StreamPartTypeToolCall, ID: fmt.Sprintf("call_%d_a", m.asked), ToolCallName: "pay", ToolCallInput: `{"order":7}`},
		{Type: fantasy.StreamPartTypeToolCall, ID: fmt.Sprintf("call_%d_b", m.asked), ToolCallName: "summarise", ToolCallInput: `{"order":7}`},
		{Type: fantasy.StreamPartTypeFinish, FinishReason: fantasy.FinishReasonToolCalls},
	}
	if call.Prompt[len(call.Prompt)-1].Role == fantasy.MessageRoleTool {
		parts = []fantasy.StreamPart{
			{Type: fantasy.StreamPartTypeTextStart, ID: "1"}, {Type: fantasy.StreamPartTypeTextDelta, ID: "1", Delta: "It is paid."},
			{Type: fantasy.StreamPartTypeTextEnd, ID: "1"}, {Type: fantasy.StreamPartTypeFinish, FinishReason: fantasy.FinishReasonStop},
		}
	}
	return slices.Values(parts), nil
}
