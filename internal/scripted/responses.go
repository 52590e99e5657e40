package scripted

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// responses is the OpenAI responses protocol.
type responses struct{}

type responsesRequest struct {
	Model              string `json:"model"`
	Stream             bool   `json:"stream"`
	Instructions       text   `json:"instructions"`
	PreviousResponseID string `json:"previous_response_id"`
	Input              items  `json:"input"`
	Tools              []struct {
		chatTool
		Type string `json:"type"`
	} `json:"tools"`
}

type item struct {
	Type      string `json:"type"`
	Role      string `json:"role"`
	Content   text   `json:"content"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Output    text   `json:"output"`
}

// items is the input as a list; a string stands for one message of the user.
type items []item

func (l *items) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		return json.Unmarshal(raw, (*[]item)(l))
	}
	var s text
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	*l = items{{Role: "user", Content: s}}
	return nil
}

func (responses) read(s *Server, body []byte) (Request, error) {
	var in responsesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, invalid("the body must be a responses request in JSON")
	}
	req := Request{Protocol: Responses, Model: in.Model, Stream: in.Stream}
	if in.PreviousResponseID != "" {
		before, ok := s.conversation(in.PreviousResponseID)
		if !ok {
			return Request{}, invalid("previous_response_id names no response of this server")
		}
		req.Messages = slices.Clone(before)
	}
	if in.Instructions != "" {
		req.Messages = slices.Insert(withoutSystem(req.Messages), 0, Message{Role: System, Text: string(in.Instructions)})
	}
	for i, it := range in.Input {
		if err := req.add(it); err != nil {
			return Request{}, invalid(fmt.Sprintf("input item %d: %v", i, err))
		}
	}
	for _, t := range in.Tools {
		if t.Type == "function" {
			req.Tools = append(req.Tools, Tool{t.Name, t.Description, t.Parameters, t.Strict})
		}
	}
	return req, nil
}

// withoutSystem: instructions replace those of the response before.
func withoutSystem(all []Message) []Message {
	return slices.DeleteFunc(all, func(m Message) bool { return m.Role == System })
}

// add appends an item: calls join the assistant's message before them, items of
// other types (reasoning, references) have no bearing on a script.
func (r *Request) add(it item) error {
	switch it.Type {
	case "", "message":
		role, ok := roles[it.Role]
		if !ok {
			return fmt.Errorf("expected role system, developer, user or assistant")
		}
		r.Messages = append(r.Messages, Message{Role: role, Text: string(it.Content)})
	case "function_call":
		n := len(r.Messages)
		if n == 0 || r.Messages[n-1].Role != Assistant {
			r.Messages = append(r.Messages, Message{Role: Assistant})
			n++
		}
		last := &r.Messages[n-1]
		last.Calls = append(slices.Clone(last.Calls), Call{it.CallID, it.Name, json.RawMessage(it.Arguments)})
	case "function_call_output":
		r.Messages = append(r.Messages, Message{Role: ToolRole, Text: string(it.Output), CallID: it.CallID})
	}
	return nil
}

func (responses) write(id string, r Request, reply Reply) (any, error) {
	return response(id, r, reply, "completed", outputItems(id, reply)), nil
}

func response(id string, r Request, reply Reply, status string, output []object) object {
	in, out := tokens(len(r.Raw)), tokens(reply.size())
	return object{
		"id": id, "object": "response", "created_at": created, "model": r.Model, "status": status,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{},
		"parallel_tool_calls": true, "temperature": 1, "top_p": 1, "tool_choice": "auto", "tools": []object{},
		"output": output,
		"usage": object{
			"input_tokens": in, "output_tokens": out, "total_tokens": in + out,
			"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
		},
	}
}

func outputItems(id string, reply Reply) []object {
	output := []object{}
	if reply.Text != "" {
		output = append(output, object{
			"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
			"content": []object{outputText(reply.Text)},
		})
	}
	for i, c := range reply.Calls {
		output = append(output, object{
			"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", id, i), "call_id": c.ID,
			"name": c.Name, "arguments": string(c.Args), "status": "completed",
		})
	}
	return output
}

func outputText(s string) object {
	return object{"type": "output_text", "text": s, "annotations": []object{}}
}

func (responses) stream(id string, r Request, reply Reply) ([]event, error) {
	var events []event
	emit := func(name string, data object) {
		data["type"] = name
		data["sequence_number"] = len(events)
		events = append(events, event{name, data})
	}
	emit("response.created", object{"response": response(id, r, reply, "in_progress", []object{})})
	output := outputItems(id, reply)
	for i, it := range output {
		begun := maps.Clone(it)
		begun["status"] = "in_progress"
		at := func(data object) object {
			data["output_index"], data["item_id"] = i, it["id"]
			return data
		}
		if it["type"] == "message" {
			begun["content"] = []object{}
			emit("response.output_item.added", object{"output_index": i, "item": begun})
			streamText(emit, at, reply.Text)
		} else {
			begun["arguments"] = ""
			emit("response.output_item.added", object{"output_index": i, "item": begun})
			streamArguments(emit, at, it["arguments"].(string))
		}
		emit("response.output_item.done", object{"output_index": i, "item": it})
	}
	emit("response.completed", object{"response": response(id, r, reply, "completed", output)})
	return events, nil
}

func streamText(emit func(string, object), at func(object) object, s string) {
	emit("response.content_part.added", at(object{"content_index": 0, "part": outputText("")}))
	for _, piece := range halves(s) {
		emit("response.output_text.delta", at(object{"content_index": 0, "delta": piece, "logprobs": []object{}}))
	}
	emit("response.output_text.done", at(object{"content_index": 0, "text": s, "logprobs": []object{}}))
	emit("response.content_part.done", at(object{"content_index": 0, "part": outputText(s)}))
}

func streamArguments(emit func(string, object), at func(object) object, args string) {
	for _, piece := range halves(args) {
		emit("response.function_call_arguments.delta", at(object{"delta": piece}))
	}
	emit("response.function_call_arguments.done", at(object{"arguments": args}))
}

func (responses) fail(status int, message string) any { return openAIError(status, message) }
