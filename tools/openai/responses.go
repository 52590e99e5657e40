package settleopenai

import (
	"context"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/settle-go/settle"
)

// ForResponses returns the tools for the request of a response, strict where
// their schemas allow it. That API is strict unless it is told otherwise.
func (t *Tools) ForResponses() []responses.ToolUnionParam {
	var all []responses.ToolUnionParam
	for _, d := range t.definitions() {
		tool := responses.ToolParamOfFunction(d.Name, d.Parameters, d.Strict.Value)
		tool.OfFunction.Description = d.Description
		all = append(all, tool)
	}
	return all
}

// BeginResponse returns the input that a conversation begins with. Where the
// task has a record already, after a restart, what was done, what is open and
// what not to repeat comes first (R60).
func (t *Tools) BeginResponse(ctx context.Context, input ...responses.ResponseInputItemUnionParam) (responses.ResponseInputParam, error) {
	brief, err := t.executor.Brief(ctx)
	switch {
	case err != nil:
		return nil, err
	case brief == "":
		return input, nil
	}
	first := responses.ResponseInputItemParamOfMessage(brief, responses.EasyInputMessageRoleSystem)
	return append(responses.ResponseInputParam{first}, input...), nil
}

// AnswerResponse runs the function calls of a response and returns an output for
// each, in their order; there are none where the model called nothing. The
// response is that of the call, or of the stream's last event.
//
// Where the response isn't complete (it ran out of tokens, was filtered, failed)
// nothing runs, and each call is answered so. Calls of custom tools, of tools in
// a namespace and of the API's own are left to the host.
func (t *Tools) AnswerResponse(ctx context.Context, response responses.Response) (responses.ResponseInputParam, error) {
	var calls []settle.Call
	cutOff := isOpen(response.Status)
	for _, item := range response.Output {
		if item.Type != "function_call" || item.Namespace != "" {
			continue
		}
		c := item.AsFunctionCall() // the union loses arguments that are no string
		calls = append(calls, callOf(c.Name, c.Arguments, c.CallID))
		cutOff = cutOff || isOpen(responses.ResponseStatus(c.Status))
	}
	said, err := t.answer(ctx, calls, cutOff)
	if err != nil {
		return nil, err
	}
	var results responses.ResponseInputParam
	for i, text := range said {
		output := responses.ResponseInputItemParamOfFunctionCallOutput(text)
		output.OfFunctionCallOutput.CallID = openai.String(calls[i].CallID)
		results = append(results, output)
	}
	return results, nil
}

// isOpen holds for a response, or one of its items, that isn't what the model
// meant to say. Servers that give no status leave it empty.
func isOpen(status responses.ResponseStatus) bool {
	return slices.Contains([]responses.ResponseStatus{
		responses.ResponseStatusIncomplete, responses.ResponseStatusFailed, responses.ResponseStatusCancelled,
		responses.ResponseStatusInProgress, responses.ResponseStatusQueued,
	}, status)
}
