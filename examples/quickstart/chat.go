package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/settle-go/settle"
)

// chat speaks the OpenAI chat-completions protocol, as much of it as an agent
// loop needs.
type chat struct {
	url   string
	tools []object
}

type object = map[string]any

type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// newChat makes a client that offers the tools to the model.
func newChat(url string, tools []settle.Declaration) chat {
	c := chat{url: url + "/v1/chat/completions"}
	for _, t := range tools {
		c.tools = append(c.tools, object{"type": "function", "function": object{
			"name": t.Name, "description": t.Description, "parameters": t.Schema, "strict": t.Strict,
		}})
	}
	return c
}

// next asks the model for the next message of the conversation.
func (c chat) next(ctx context.Context, conversation []message) (message, error) {
	body, err := json.Marshal(object{"model": "scripted", "messages": conversation, "tools": c.tools})
	if err != nil {
		return message{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return message{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return message{}, fmt.Errorf("ask the model: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return message{}, fmt.Errorf("ask the model: status %d: %s", resp.StatusCode, said)
	}
	var answer struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return message{}, fmt.Errorf("read the model's answer: %w", err)
	}
	if len(answer.Choices) == 0 {
		return message{}, fmt.Errorf("the model's answer has no choice")
	}
	return answer.Choices[0].Message, nil
}
