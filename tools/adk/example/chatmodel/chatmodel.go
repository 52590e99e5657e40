// Package chatmodel is a model of adk over the chat completions of a server,
// with what the example, the tests and the program of duplicates need of it:
// text and function calls, not streamed.
package chatmodel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"
)

// New returns the model behind the base address of a server, without /v1.
func New(url string) model.LLM { return llm{url + "/v1/chat/completions"} }

type llm struct{ url string }

// Name is the model's name.
func (llm) Name() string { return "chat" }

type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  any    `json:"parameters,omitempty"`
	Arguments   string `json:"arguments,omitempty"`
}

type declared struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type request struct {
	Model    string     `json:"model"`
	Messages []message  `json:"messages"`
	Tools    []declared `json:"tools,omitempty"`
}

type response struct {
	Choices []struct {
		Message message `json:"message"`
	} `json:"choices"`
}

// GenerateContent asks once; it doesn't stream.
func (m llm) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		answer, err := m.ask(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(&model.LLMResponse{Content: answer}, nil)
	}
}

func (m llm) ask(ctx context.Context, req *model.LLMRequest) (_ *genai.Content, err error) {
	body, err := requestOf(req)
	if err != nil {
		return nil, err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(call)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("chatmodel: the server answered %s", answer.Status)
	}
	var said response
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return nil, fmt.Errorf("chatmodel: read the answer: %w", err)
	}
	if len(said.Choices) == 0 {
		return nil, fmt.Errorf("chatmodel: the answer has no choice")
	}
	return contentOf(said.Choices[0].Message)
}

func requestOf(req *model.LLMRequest) ([]byte, error) {
	r := request{Model: "scripted"}
	if c := req.Config; c != nil {
		if c.SystemInstruction != nil {
			for _, p := range c.SystemInstruction.Parts {
				r.Messages = append(r.Messages, message{Role: "system", Content: p.Text})
			}
		}
		for _, t := range c.Tools {
			for _, d := range t.FunctionDeclarations {
				r.Tools = append(r.Tools, declared{"function", function{Name: d.Name, Description: d.Description, Parameters: d.ParametersJsonSchema}})
			}
		}
	}
	for _, c := range req.Contents {
		more, err := messagesOf(c)
		if err != nil {
			return nil, err
		}
		r.Messages = append(r.Messages, more...)
	}
	return json.Marshal(r)
}

// messagesOf is a content as messages: each function response is one of its own.
func messagesOf(c *genai.Content) ([]message, error) {
	said := message{Role: "user"}
	if c.Role == genai.RoleModel {
		said.Role = "assistant"
	}
	var results []message
	for _, p := range c.Parts {
		switch {
		case p.FunctionCall != nil:
			args, err := json.Marshal(p.FunctionCall.Args)
			if err != nil {
				return nil, err
			}
			said.ToolCalls = append(said.ToolCalls, toolCall{p.FunctionCall.ID, "function", function{Name: p.FunctionCall.Name, Arguments: string(args)}})
		case p.FunctionResponse != nil:
			result, err := json.Marshal(p.FunctionResponse.Response)
			if err != nil {
				return nil, err
			}
			results = append(results, message{Role: "tool", ToolCallID: p.FunctionResponse.ID, Content: string(result)})
		default:
			said.Content += p.Text
		}
	}
	if said.Content != "" || len(said.ToolCalls) > 0 {
		return append([]message{said}, results...), nil
	}
	return results, nil
}

func contentOf(m message) (*genai.Content, error) {
	c := &genai.Content{Role: genai.RoleModel}
	if m.Content != "" {
		c.Parts = append(c.Parts, genai.NewPartFromText(m.Content))
	}
	for _, call := range m.ToolCalls {
		var args map[string]any
		if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil {
			return nil, fmt.Errorf("chatmodel: read the arguments of a call: %w", err)
		}
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Function.Name, Args: args}})
	}
	return c, nil
}
