package scripted_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/settle-go/settle/internal/scripted"
)

// Wire tests hold the answers, byte for byte where it matters, against what the
// three APIs document.

func both(scripted.Request) scripted.Reply {
	return scripted.Reply{Text: "Wait <é>.", Calls: []scripted.Call{{ID: "c1", Name: "refund", Args: json.RawMessage(`{"id":9007199254740993}`)}}}
}

func TestAnswersOnTheWire(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"/v1/chat/completions": {
			`"object":"chat.completion"`,
			`"finish_reason":"tool_calls"`,
			`"message":{"content":"Wait <é>.","refusal":null,"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"refund","arguments":"{\"id\":9007199254740993}"}}]}`,
			`"usage":{"completion_tokens":10,"prompt_tokens":4,"total_tokens":14}`,
		},
		"/v1/responses": {
			`"object":"response"`, `"status":"completed"`,
			`"content":[{"annotations":[],"text":"Wait <é>.","type":"output_text"}]`,
			`{"arguments":"{\"id\":9007199254740993}","call_id":"c1","id":"fc_responses_1_0","name":"refund","status":"completed","type":"function_call"}`,
		},
		"/v1/messages": {
			`"type":"message"`, `"stop_reason":"tool_use"`,
			`"content":[{"citations":null,"text":"Wait <é>.","type":"text"},{"id":"c1","input":{"id":9007199254740993},"name":"refund","type":"tool_use"}]`,
		},
	}
	for path, want := range tests {
		m := newModel(t, both)
		status, body, err := post(t, m, path, `{"model":"m"}`)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: expected an answer, got %d, %v: %s", path, status, err, body)
		}
		for _, part := range want {
			if !strings.Contains(string(body), part) {
				t.Errorf("%s: expected %s in %s", path, part, body)
			}
		}
	}
}

func TestTextAloneEndsTheTurn(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"/v1/chat/completions": `"finish_reason":"stop"`,
		"/v1/messages":         `"stop_reason":"end_turn"`,
	}
	for path, want := range tests {
		_, body, err := post(t, newModel(t, scripted.Say("Done.")), path, `{}`)
		if err != nil || !strings.Contains(string(body), want) || strings.Contains(string(body), "tool") {
			t.Errorf("%s: expected %s and no tool call, got %v: %s", path, want, err, body)
		}
	}
}

// sse is one event of a stream.
type sse struct {
	name string
	data map[string]any
}

func stream(t *testing.T, path string) (events []sse, done bool) {
	t.Helper()
	m := newModel(t, both)
	status, body, err := post(t, m, path, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`)
	if err != nil || status != http.StatusOK {
		t.Fatalf("%s: expected a stream, got %d, %v: %s", path, status, err, body)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(body)), "\n\n") {
		var e sse
		for _, line := range strings.Split(block, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch {
			case field == "event":
				e.name = value
			case value == "[DONE]":
				return events, true
			default:
				if err := json.Unmarshal([]byte(value), &e.data); err != nil {
					t.Fatalf("%s: %v in %s", path, err, line)
				}
			}
		}
		events = append(events, e)
	}
	return events, false
}

func names(events []sse) string {
	var all []string
	for _, e := range events {
		all = append(all, e.name)
	}
	return strings.Join(all, " ")
}

// at walks into decoded JSON: at(v, "choices", 0, "delta").
func at(v any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[key]
		case int:
			list, _ := v.([]any)
			if key >= len(list) {
				return nil
			}
			v = list[key]
		}
	}
	return v
}

func TestChatStreams(t *testing.T) {
	t.Parallel()
	events, done := stream(t, "/v1/chat/completions")
	var said, args, finish string
	for _, e := range events {
		delta := at(e.data, "choices", 0, "delta")
		if s, ok := at(delta, "content").(string); ok {
			said += s
		}
		if s, ok := at(delta, "tool_calls", 0, "function", "arguments").(string); ok {
			args += s
		}
		if s, ok := at(e.data, "choices", 0, "finish_reason").(string); ok {
			finish = s
		}
	}
	if said != "Wait <é>." || args != `{"id":9007199254740993}` || finish != "tool_calls" || !done {
		t.Fatalf("got %q, %q, %q, done %v", said, args, finish, done)
	}
	if at(events[len(events)-1].data, "usage", "total_tokens") == nil {
		t.Fatal("expected the usage in the last chunk")
	}
}

func TestResponsesStream(t *testing.T) {
	t.Parallel()
	events, _ := stream(t, "/v1/responses")
	want := "response.created" +
		" response.output_item.added response.content_part.added response.output_text.delta response.output_text.delta" +
		" response.output_text.done response.content_part.done response.output_item.done" +
		" response.output_item.added response.function_call_arguments.delta response.function_call_arguments.delta" +
		" response.function_call_arguments.done response.output_item.done response.completed"
	if got := names(events); got != want {
		t.Fatalf("got %s", got)
	}
	for i, e := range events {
		if at(e.data, "sequence_number") != float64(i) || at(e.data, "type") != e.name {
			t.Fatalf("event %d is out of order: %+v", i, e)
		}
	}
	last := events[len(events)-1].data
	if at(last, "response", "output", 1, "arguments") != `{"id":9007199254740993}` || at(last, "response", "status") != "completed" {
		t.Fatalf("expected the whole response at the end, got %+v", last)
	}
}

func TestMessagesStream(t *testing.T) {
	t.Parallel()
	events, _ := stream(t, "/v1/messages")
	block := " content_block_start content_block_delta content_block_delta content_block_stop"
	if got := names(events); got != "message_start"+block+block+" message_delta message_stop" {
		t.Fatalf("got %s", got)
	}
	var args string
	for _, e := range events {
		if s, ok := at(e.data, "delta", "partial_json").(string); ok {
			args += s
		}
	}
	if args != `{"id":9007199254740993}` || at(events[9].data, "delta", "stop_reason") != "tool_use" {
		t.Fatalf("got %s and %+v", args, events[9])
	}
}

func TestMessagesCannotCarryBrokenArguments(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"stream":true}`} {
		m := newModel(t, scripted.CallTools(scripted.Use("tool", `{"cut":`)))
		if status, answer, err := post(t, m, "/v1/messages", body); err != nil || status != 400 {
			t.Errorf("expected 400, got %d, %v: %s", status, err, answer)
		}
	}
}
