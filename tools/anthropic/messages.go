package settleanthropic

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/settle-go/settle"
)

// ForMessages returns the tools for a request, strict where their schemas allow it.
func (t *Tools) ForMessages() []anthropic.ToolUnionParam {
	var all []anthropic.ToolUnionParam
	for _, d := range t.definitions() {
		all = append(all, anthropic.ToolUnionParam{OfTool: &d})
	}
	return all
}

// ForBeta is [Tools.ForMessages] for the beta API. Of the definition of a tool
// of the host's own it takes name, description, input schema and strictness.
func (t *Tools) ForBeta() []anthropic.BetaToolUnionParam {
	var all []anthropic.BetaToolUnionParam
	for _, d := range t.definitions() {
		all = append(all, anthropic.BetaToolUnionParam{OfTool: &anthropic.BetaToolParam{
			Name: d.Name, Description: d.Description, Strict: d.Strict,
			InputSchema: anthropic.BetaToolInputSchemaParam(d.InputSchema),
		}})
	}
	return all
}

// System returns the system prompt that a conversation begins with. Where the
// task has a record already, after a restart, it ends with what was done, what
// is open and what not to repeat (R60). It stays for the whole conversation.
func (t *Tools) System(ctx context.Context, blocks ...anthropic.TextBlockParam) ([]anthropic.TextBlockParam, error) {
	brief, err := t.executor.Brief(ctx)
	switch {
	case err != nil:
		return nil, err
	case brief == "":
		return blocks, nil
	}
	return append(blocks[:len(blocks):len(blocks)], anthropic.TextBlockParam{Text: brief}), nil
}

// BetaSystem is [Tools.System] for the beta API and for the tool runner.
func (t *Tools) BetaSystem(ctx context.Context, blocks ...anthropic.BetaTextBlockParam) ([]anthropic.BetaTextBlockParam, error) {
	brief, err := t.executor.Brief(ctx)
	switch {
	case err != nil:
		return nil, err
	case brief == "":
		return blocks, nil
	}
	return append(blocks[:len(blocks):len(blocks)], anthropic.BetaTextBlockParam{Text: brief}), nil
}

// Answer runs the tool calls of the model's message and returns a tool result
// for each, in their order, for one message of the user; there are none where
// the model called nothing. The message is that of the call, or what the stream
// was accumulated into.
//
// Where the turn was cut off (stop_reason "max_tokens", a stream that broke off,
// anything but "tool_use" and "end_turn") nothing runs, and each call is answered
// so. There are no results for a turn that is paused, since it goes on as it is,
// nor for one that was refused, since it can't go on.
func (t *Tools) Answer(ctx context.Context, message anthropic.Message) ([]anthropic.ContentBlockParamUnion, error) {
	var calls []settle.Call
	for _, block := range message.Content {
		if block.Type == "tool_use" {
			calls = append(calls, callOf(block.Name, block.Input, block.ID))
		}
	}
	said, err := t.answer(ctx, calls, string(message.StopReason))
	if err != nil {
		return nil, err
	}
	var results []anthropic.ContentBlockParamUnion
	for i, text := range said {
		results = append(results, anthropic.NewToolResultBlock(calls[i].CallID, text, false))
	}
	return results, nil
}

// AnswerBeta is [Tools.Answer] for a loop over the beta API without the runner.
// Calls before a fallback to another model were dropped with the attempt that
// made them, and are not answered.
func (t *Tools) AnswerBeta(ctx context.Context, message anthropic.BetaMessage) ([]anthropic.BetaContentBlockParamUnion, error) {
	var calls []settle.Call
	for _, block := range message.Content {
		switch block.Type {
		case "fallback":
			calls = nil
		case "tool_use":
			calls = append(calls, callOf(block.Name, block.Input, block.ID))
		}
	}
	said, err := t.answer(ctx, calls, string(message.StopReason))
	if err != nil {
		return nil, err
	}
	var results []anthropic.BetaContentBlockParamUnion
	for i, text := range said {
		result := anthropic.NewBetaToolResultTextBlockParam(calls[i].CallID, text, false)
		results = append(results, anthropic.BetaContentBlockParamUnion{OfToolResult: &result})
	}
	return results, nil
}

// callOf is a tool call of the model. Its id is correlation and nothing else
// (R11). An input that is missing or null is empty here, which the executor
// would read as {}; the API writes {} where it means that.
func callOf(name string, input json.RawMessage, id string) settle.Call {
	if len(input) == 0 {
		input = json.RawMessage("null")
	}
	return settle.Call{Tool: name, Args: input, CallID: id}
}

// answer runs a turn's calls, unless the turn was cut off: whether they are
// complete is not known then, and the SDK makes {} of an input that ends early.
func (t *Tools) answer(ctx context.Context, calls []settle.Call, stopReason string) ([]string, error) {
	switch stopReason {
	case "tool_use", "end_turn":
		return t.Run(ctx, calls...)
	case "pause_turn", "compaction", "refusal":
		return nil, nil
	}
	said := make([]string, len(calls))
	for i, call := range calls {
		said[i] = settle.Outcome{
			Status: settle.StatusInvalidArguments, Tool: call.Tool,
			Detail: "the turn was cut off before its calls were complete",
		}.ForModel()
	}
	return said, nil
}
