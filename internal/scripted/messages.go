package scripted

import (
	"encoding/json"
	"fmt"
)

// messages is the Anthropic messages protocol.
type messages struct{}

type messagesRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	System   text   `json:"system"`
	Messages []struct {
		Role    string `json:"role"`
		Content blocks `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
		Strict      bool            `json:"strict"`
	} `json:"tools"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   text            `json:"content"`
	IsError   bool            `json:"is_error"`
}

// blocks is content as a list of blocks; a string stands for one of text.
type blocks []block

func (b *blocks) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, (*[]block)(b))
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	*b = blocks{{Type: "text", Text: s}}
	return nil
}

func (messages) read(_ *Server, body []byte) (Request, error) {
	var in messagesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, invalid("the body must be a messages request in JSON")
	}
	req := Request{Protocol: Messages, Model: in.Model, Stream: in.Stream}
	if in.System != "" {
		req.Messages = append(req.Messages, Message{Role: System, Text: string(in.System)})
	}
	for i, m := range in.Messages {
		role := roles[m.Role]
		if role != User && role != Assistant {
			return Request{}, invalid(fmt.Sprintf("message %d: expected role user or assistant", i))
		}
		req.Messages = append(req.Messages, m.Content.messages(role)...)
	}
	for _, t := range in.Tools {
		req.Tools = append(req.Tools, Tool{t.Name, t.Description, t.InputSchema, t.Strict})
	}
	return req, nil
}

// messages takes the tool results apart: each is a message of its own here, and
// comes before the text beside it.
func (b blocks) messages(role Role) []Message {
	var results []Message
	said := Message{Role: role}
	for _, k := range b {
		switch k.Type {
		case "text":
			if said.Text != "" {
				said.Text += "\n"
			}
			said.Text += k.Text
		case "tool_use":
			said.Calls = append(said.Calls, Call{k.ID, k.Name, k.Input})
		case "tool_result":
			results = append(results, Message{Role: ToolRole, Text: string(k.Content), CallID: k.ToolUseID, IsError: k.IsError})
		}
	}
	if said.Text == "" && len(said.Calls) == 0 && len(results) > 0 {
		return results
	}
	return append(results, said)
}

func (messages) write(id string, r Request, reply Reply) (any, error) {
	m, err := messageStart(id, r, reply)
	if err != nil {
		return nil, err
	}
	content := []object{}
	if reply.Text != "" {
		content = append(content, object{"type": "text", "text": reply.Text, "citations": nil})
	}
	for _, c := range reply.Calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Args})
	}
	m["content"] = content
	m["stop_reason"] = messagesStop(reply)
	return m, nil
}

// messageStart is the message without content; its arguments must be JSON, since
// this protocol carries them as JSON and not as a string.
func messageStart(id string, r Request, reply Reply) (object, error) {
	for _, c := range reply.Calls {
		if !json.Valid(c.Args) {
			return nil, invalid("the script's arguments are no JSON, which this protocol can't carry")
		}
	}
	return object{
		"id": id, "type": "message", "role": "assistant", "model": r.Model,
		"content": []object{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": tokens(len(r.Raw)), "output_tokens": tokens(reply.size())},
	}, nil
}

func (messages) stream(id string, r Request, reply Reply) ([]event, error) {
	start, err := messageStart(id, r, reply)
	if err != nil {
		return nil, err
	}
	var events []event
	emit := func(name string, data object) {
		data["type"] = name
		events = append(events, event{name, data})
	}
	index := 0
	block := func(start object, deltas ...object) {
		emit("content_block_start", object{"index": index, "content_block": start})
		for _, d := range deltas {
			emit("content_block_delta", object{"index": index, "delta": d})
		}
		emit("content_block_stop", object{"index": index})
		index++
	}
	emit("message_start", object{"message": start})
	if reply.Text != "" {
		block(object{"type": "text", "text": ""}, deltas("text_delta", "text", reply.Text)...)
	}
	for _, c := range reply.Calls {
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}},
			deltas("input_json_delta", "partial_json", string(c.Args))...)
	}
	emit("message_delta", object{
		"delta": object{"stop_reason": messagesStop(reply), "stop_sequence": nil},
		"usage": object{"output_tokens": tokens(reply.size())},
	})
	emit("message_stop", object{})
	return events, nil
}

func deltas(kind, field, content string) []object {
	var all []object
	for _, piece := range halves(content) {
		all = append(all, object{"type": kind, field: piece})
	}
	return all
}

func (messages) fail(status int, message string) any {
	return object{"type": "error", "error": object{"type": errorType(status), "message": message}}
}

func messagesStop(reply Reply) string {
	if len(reply.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}
