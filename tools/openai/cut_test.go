package settleopenai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

// note takes no argument that it needs: where nothing of a call has arrived, {}
// would be a valid one.
func TestATurnThatWasCutOffRunsNothing(t *testing.T) {
	for name, choice := range map[string]string{
		"out of tokens":  `{"finish_reason":"length","message":{"tool_calls":[` + call("1", "refund", `{"order":7,"cents":1}`) + `,` + call("2", "note", ``) + `]}}`,
		"filtered":       `{"finish_reason":"content_filter","message":{"tool_calls":[` + call("1", "note", `{"text":"a"}`) + `,` + call("2", "note", ``) + `]}}`,
		"no word of why": `{"finish_reason":null,"message":{"tool_calls":[` + call("1", "note", `{"text":"a"}`) + `,` + call("2", "note", `{"te`) + `]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			results, err := w.start(nil).AnswerChat(w.ctx, choiceOf(t, choice))
			if err != nil {
				t.Fatal(err)
			}
			w.wantCutOff(answers(t, results))
		})
	}
}

func (w *world) wantCutOff(said []string) {
	w.Helper()
	if len(said) != 2 {
		w.Fatalf("got %d answers, want one for each call", len(said))
	}
	for _, text := range said {
		if !strings.HasPrefix(text, "[invalid_arguments]") || !strings.Contains(text, "cut off") {
			w.Errorf("got %q", text)
		}
	}
	w.wantEffects(0)
	if rows := w.rows(); len(rows) != 0 {
		w.Errorf("the ledger has %d rows", len(rows))
	}
}

func TestAStreamThatBreaksOffRunsNothing(t *testing.T) {
	w := newWorld(t)
	var whole openai.ChatCompletionAccumulator
	for _, delta := range []string{
		`{"role":"assistant","content":""}`,
		`{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"note","arguments":"{}"}}]}`,
		`{"tool_calls":[{"index":1,"id":"2","type":"function","function":{"name":"note","arguments":""}}]}`,
	} {
		var chunk openai.ChatCompletionChunk
		if err := json.Unmarshal([]byte(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":`+delta+`,"finish_reason":null}]}`), &chunk); err != nil {
			t.Fatal(err)
		}
		if !whole.AddChunk(chunk) {
			t.Fatal("the accumulator refused a chunk")
		}
	}
	results, err := w.start(nil).AnswerChat(w.ctx, whole.Choices[0])
	if err != nil {
		t.Fatal(err)
	}
	w.wantCutOff(answers(t, results))
}

// Servers have words of their own, and a forced call ends with "stop".
func TestATurnThatEndedInOtherWordsRuns(t *testing.T) {
	for _, reason := range []string{"tool_calls", "stop", "function_call", "eos"} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			choice := `{"finish_reason":"` + reason + `","message":{"tool_calls":[` + call("1", "note", ``) + `]}}`
			results, err := w.start(nil).AnswerChat(w.ctx, choiceOf(t, choice))
			if err != nil || !strings.HasPrefix(answers(t, results)[0], "[completed;") {
				t.Errorf("got %v, %v", results, err)
			}
			w.wantEffects(1)
		})
	}
}

func responseOf(t *testing.T, status, output string) responses.Response {
	t.Helper()
	var r responses.Response
	if err := json.Unmarshal([]byte(`{"id":"r","status":"`+status+`","output":[`+output+`]}`), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func item(id, status, more string) string {
	return `{"type":"function_call","id":"fc_` + id + `","call_id":"` + id + `","name":"note","arguments":"{}","status":"` + status + `"` + more + `}`
}

func TestAResponseThatIsNotCompleteRunsNothing(t *testing.T) {
	for name, response := range map[string][2]string{
		"incomplete":   {"incomplete", item("1", "completed", "") + "," + item("2", "incomplete", "")},
		"failed":       {"failed", item("1", "completed", "") + "," + item("2", "completed", "")},
		"cancelled":    {"cancelled", item("1", "completed", "") + "," + item("2", "in_progress", "")},
		"still going":  {"in_progress", item("1", "completed", "") + "," + item("2", "completed", "")},
		"an open item": {"completed", item("1", "completed", "") + "," + item("2", "incomplete", "")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			results, err := w.start(nil).AnswerResponse(w.ctx, responseOf(t, response[0], response[1]))
			if err != nil {
				t.Fatal(err)
			}
			w.wantCutOff(outputs(t, results))
		})
	}
}

func outputs(t *testing.T, results responses.ResponseInputParam) []string {
	t.Helper()
	var all []string
	for _, r := range results {
		if r.OfFunctionCallOutput == nil {
			t.Fatalf("got an item that is no output: %+v", r)
		}
		all = append(all, r.OfFunctionCallOutput.Output.OfString.Value)
	}
	return all
}

// Some servers send the arguments as an object instead of a string.
func TestArgumentsThatAreNoStringAreNotTakenForNone(t *testing.T) {
	w := newWorld(t)
	tools := w.start(nil)
	results, err := tools.AnswerResponse(w.ctx, responseOf(t, "completed",
		`{"type":"function_call","call_id":"1","name":"note","arguments":{"text":7}}`))
	if err != nil || !strings.HasPrefix(outputs(t, results)[0], "[invalid_arguments]") {
		t.Errorf("got %v, %v", results, err)
	}
	chat := choiceOf(t, `{"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"1","type":"function","function":{"name":"note","arguments":{"text":7}}}]}}`)
	said, err := tools.AnswerChat(w.ctx, chat)
	if err != nil || !strings.HasPrefix(answers(t, said)[0], "[invalid_arguments]") {
		t.Errorf("got %v, %v", said, err)
	}
	w.wantEffects(0)
}

func TestCallsThatAreNotOursAreLeftToTheHost(t *testing.T) {
	w := newWorld(t)
	tools := w.start(nil)
	chat := choiceOf(t, `{"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"1","type":"custom","custom":{"name":"note","input":"late"}}]}}`)
	if results, err := tools.AnswerChat(w.ctx, chat); err != nil || results != nil {
		t.Errorf("a custom tool's call was answered %v, %v", results, err)
	}
	response := responseOf(t, "completed", item("1", "completed", `,"namespace":"crm"`)+`,{"type":"custom_tool_call","id":"c","call_id":"2","name":"note","input":"late"}`)
	if results, err := tools.AnswerResponse(w.ctx, response); err != nil || results != nil {
		t.Errorf("a call in another namespace was answered %v, %v", results, err)
	}
	w.wantEffects(0)
}
