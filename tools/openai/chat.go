package settleopenai

import (
	"context"
	"slices"

	"github.com/openai/openai-go/v3"

	"github.com/settle-go/settle"
)

// ForChat returns the tools for the request of a chat completion, strict where
// their schemas allow it.
func (t *Tools) ForChat() []openai.ChatCompletionToolUnionParam {
	var all []openai.ChatCompletionToolUnionParam
	for _, d := range t.definitions() {
		all = append(all, openai.ChatCompletionFunctionTool(d))
	}
	return all
}

// BeginChat returns the messages that a conversation begins with. Where the task
// has a record already, after a restart, what was done, what is open and what
// not to repeat is told before anything that user and model say (R60): in a
// system message behind the instructions.
func (t *Tools) BeginChat(ctx context.Context, messages ...openai.ChatCompletionMessageParamUnion) ([]openai.ChatCompletionMessageParamUnion, error) {
	brief, err := t.executor.Brief(ctx)
	switch {
	case err != nil:
		return nil, err
	case brief == "":
		return messages, nil
	}
	at := slices.IndexFunc(messages, func(m openai.ChatCompletionMessageParamUnion) bool {
		return m.OfSystem == nil && m.OfDeveloper == nil
	})
	if at < 0 {
		at = len(messages)
	}
	return slices.Insert(slices.Clone(messages), at, openai.SystemMessage(brief)), nil
}

// AnswerChat runs the function calls of an assistant's message and returns a
// tool message for each, in their order; there are none where the model called
// nothing. The choice is the completion's, or that of the SDK's accumulator once
// the stream has ended.
//
// Where the turn was cut off (finish_reason "length" or "content_filter", or a
// stream that broke off before one came) nothing runs, and each call is answered
// so. Calls of custom tools are left to the host.
func (t *Tools) AnswerChat(ctx context.Context, choice openai.ChatCompletionChoice) ([]openai.ChatCompletionMessageParamUnion, error) {
	var calls []settle.Call
	for _, c := range choice.Message.ToolCalls {
		if c.Type != "custom" {
			calls = append(calls, callOf(c.Function.Name, c.Function.Arguments, c.ID))
		}
	}
	said, err := t.answer(ctx, calls, endsEarly(choice.FinishReason))
	if err != nil {
		return nil, err
	}
	var results []openai.ChatCompletionMessageParamUnion
	for i, text := range said {
		results = append(results, openai.ToolMessage(text, calls[i].CallID))
	}
	return results, nil
}

// endsEarly: a forced call ends with "stop", and other servers have words of
// their own, so that only these are refused.
func endsEarly(finishReason string) bool {
	return slices.Contains([]string{"", "length", "content_filter"}, finishReason)
}
