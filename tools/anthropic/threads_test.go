package settleanthropic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// threads keeps conversations as the API does, so that a runner sends only what
// is new; the model behind it is asked with the whole of them.
type threads struct {
	mu   sync.Mutex
	kept map[string]body // by the id of the reply
}

// body is a request, by the names of its fields.
type body map[string]json.RawMessage

func (t *threads) serve(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var request body
	if err := json.Unmarshal(sent, &request); err != nil {
		return nil, err
	}
	var thread struct {
		Previous string `json:"previous_message_id"`
	}
	if err := json.Unmarshal(request["thread"], &thread); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(request, "thread")
	if before, ok := t.kept[thread.Previous]; ok {
		request["system"], request["tools"] = before["system"], before["tools"]
		request["messages"] = joined(before["messages"], request["messages"])
	}
	whole, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(whole)), int64(len(whole))
	response, err := next(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	var reply struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, err
	}
	said := json.RawMessage(`[{"role":"assistant","content":` + string(reply.Content) + `}]`)
	request["messages"] = joined(request["messages"], said)
	if t.kept == nil {
		t.kept = map[string]body{}
	}
	t.kept[reply.ID] = request
	return response, nil
}

// joined is one JSON array of two that aren't empty.
func joined(a, b json.RawMessage) json.RawMessage {
	all := append(bytes.TrimSuffix(bytes.Clone(a), []byte("]")), ',')
	return append(all, bytes.TrimPrefix(b, []byte("["))...)
}
