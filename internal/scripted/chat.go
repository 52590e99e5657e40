package scripted

import (
	"encoding/json"
	"fmt"
)

// chat is the OpenAI chat completions protocol.
type chat struct{}

type chatRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages []chatMessage `json:"messages"`
	Tools    []struct {
		Function chatTool `json:"function"`
	} `json:"tools"`
}

type chatTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    text       `json:"content"`
	ToolCallID string     `json:"tool_call_id"`
	ToolCalls  []chatCall `json:"tool_calls"`
}

type chatCall struct {
	Index    *int         `json:"index,omitempty"` // in streams only
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

func (chat) read(_ *Server, body []byte) (Request, error) {
	var in chatRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, invalid("the body must be a chat completions request in JSON")
	}
	req := Request{Protocol: Chat, Model: in.Model, Stream: in.Stream}
	for i, m := range in.Messages {
		role, ok := roles[m.Role]
		if !ok {
			return Request{}, invalid(fmt.Sprintf("message %d: expected role system, developer, user, assistant or tool", i))
		}
		out := Message{Role: role, Text: string(m.Content), CallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			out.Calls = append(out.Calls, Call{c.ID, c.Function.Name, json.RawMessage(c.Function.Arguments)})
		}
		req.Messages = append(req.Messages, out)
	}
	for _, t := range in.Tools {
		req.Tools = append(req.Tools, Tool{t.Function.Name, t.Function.Description, t.Function.Parameters, t.Function.Strict})
	}
	return req, nil
}

var roles = map[string]Role{
	"system": System, "developer": System, "user": User, "assistant": Assistant, "tool": ToolRole,
}

func (chat) write(id string, r Request, reply Reply) (any, error) {
	message := object{"role": "assistant", "content": nullable(reply.Text), "refusal": nil}
	if len(reply.Calls) > 0 {
		var calls []chatCall
		for _, c := range reply.Calls {
			calls = append(calls, chatCall{ID: c.ID, Type: "function", Function: chatFunction{c.Name, string(c.Args)}})
		}
		message["tool_calls"] = calls
	}
	return object{
		"id": id, "object": "chat.completion", "created": created, "model": r.Model,
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": chatFinish(reply)}},
		"usage":   chatUsage(r, reply),
	}, nil
}

func (chat) stream(id string, r Request, reply Reply) ([]event, error) {
	var events []event
	chunk := func(delta object, finish any) {
		events = append(events, event{data: object{
			"id": id, "object": "chat.completion.chunk", "created": created, "model": r.Model,
			"choices": []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}},
		}})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	if reply.Text != "" {
		for _, piece := range halves(reply.Text) {
			chunk(object{"content": piece}, nil)
		}
	}
	for i, c := range reply.Calls {
		chunk(object{"tool_calls": []chatCall{{&i, c.ID, "function", chatFunction{Name: c.Name}}}}, nil)
		for _, piece := range halves(string(c.Args)) {
			chunk(object{"tool_calls": []object{{"index": i, "function": chatFunction{Arguments: piece}}}}, nil)
		}
	}
	chunk(object{}, chatFinish(reply))
	var in chatRequest
	if json.Unmarshal(r.Raw, &in) == nil && in.StreamOptions.IncludeUsage {
		events = append(events, event{data: object{
			"id": id, "object": "chat.completion.chunk", "created": created, "model": r.Model,
			"choices": []object{}, "usage": chatUsage(r, reply),
		}})
	}
	return append(events, event{data: literal("[DONE]")}), nil
}

func (chat) fail(status int, message string) any { return openAIError(status, message) }

func openAIError(status int, message string) any {
	return object{"error": object{"message": message, "type": errorType(status), "param": nil, "code": nil}}
}

func errorType(status int) string {
	switch {
	case status == 429:
		return "rate_limit_error"
	case status == 529:
		return "overloaded_error"
	case status >= 500:
		return "api_error"
	default:
		return "invalid_request_error"
	}
}

func chatFinish(reply Reply) string {
	if len(reply.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func chatUsage(r Request, reply Reply) object {
	in, out := tokens(len(r.Raw)), tokens(reply.size())
	return object{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}
