package settleanthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

func TestATurnThatWasCutOffRunsNothing(t *testing.T) {
	for _, reason := range []string{`"max_tokens"`, `"model_context_window_exceeded"`, `"stop_sequence"`, `"something_new"`, `null`} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			content := call("1", "refund", `{"order":7,"cents":1}`) + `,` + call("2", "note", `{}`)
			tools := w.start(nil)
			results, err := tools.Answer(w.ctx, messageOf(t, reason, content))
			if err != nil {
				t.Fatal(err)
			}
			w.wantCutOff(answers(t, results))
			beta, err := tools.AnswerBeta(w.ctx, betaOf(t, reason, content))
			if err != nil {
				t.Fatal(err)
			}
			w.wantCutOff(betaAnswers(t, beta))
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

func betaOf(t *testing.T, stopReason, content string) anthropic.BetaMessage {
	t.Helper()
	var m anthropic.BetaMessage
	if err := json.Unmarshal([]byte(`{"id":"m","type":"message","role":"assistant","stop_reason":`+stopReason+`,"content":[`+content+`]}`), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func betaAnswers(t *testing.T, results []anthropic.BetaContentBlockParamUnion) []string {
	t.Helper()
	var all []string
	for _, r := range results {
		if r.OfToolResult == nil || r.OfToolResult.IsError.Value {
			t.Fatalf("got a block that is no result: %+v", r)
		}
		all = append(all, r.OfToolResult.Content[0].OfText.Text)
	}
	return all
}

// The SDK turns an input that ended early into {}, which note would take.
func TestAStreamThatRanOutOfTokensRunsNothing(t *testing.T) {
	for name, end := range map[string][]string{
		"out of tokens": {`{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`},
		"broken off":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var whole anthropic.Message
			for _, e := range append([]string{
				`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"note","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"text\":\"a\"}"}}`,
				`{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"2","name":"note","input":{}}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"text\":\"we re"}}`,
				`{"type":"content_block_stop","index":1}`,
			}, end...) {
				var event anthropic.MessageStreamEventUnion
				if err := json.Unmarshal([]byte(e), &event); err != nil {
					t.Fatal(err)
				}
				if err := whole.Accumulate(event); err != nil {
					t.Fatal(err)
				}
			}
			if got := string(whole.Content[1].Input); got != `{}` {
				t.Fatalf("the SDK makes %s of an input that ended early: is the guard still needed?", got)
			}
			results, err := w.start(nil).Answer(w.ctx, whole)
			if err != nil {
				t.Fatal(err)
			}
			w.wantCutOff(answers(t, results))
		})
	}
}

func TestATurnThatGoesOnOrCannotIsNotAnswered(t *testing.T) {
	for _, reason := range []string{`"pause_turn"`, `"compaction"`, `"refusal"`} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			tools := w.start(nil)
			results, err := tools.Answer(w.ctx, messageOf(t, reason, call("1", "note", `{}`)))
			beta, betaErr := tools.AnswerBeta(w.ctx, betaOf(t, reason, call("1", "note", `{}`)))
			if err != nil || betaErr != nil || results != nil || beta != nil {
				t.Errorf("got %v, %v and %v, %v", results, err, beta, betaErr)
			}
			w.wantEffects(0)
		})
	}
}

func TestCallsBeforeAFallbackAreNotAnswered(t *testing.T) {
	w := newWorld(t)
	results, err := w.start(nil).AnswerBeta(w.ctx, betaOf(t, `"tool_use"`,
		call("1", "refund", `{"order":7,"cents":1}`)+`,{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}},`+call("2", "note", `{}`)))
	if err != nil || len(results) != 1 || results[0].OfToolResult.ToolUseID != "2" {
		t.Errorf("got %v, %v", results, err)
	}
	if len(w.pay.Effects()) != 0 {
		t.Error("the attempt that was given up acted")
	}
	w.wantEffects(1)
}
