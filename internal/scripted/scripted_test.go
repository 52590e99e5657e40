package scripted_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/settle-go/settle/internal/scripted"
)

func newModel(t *testing.T, turns ...scripted.Turn) *scripted.Server {
	t.Helper()
	m := scripted.New(turns...)
	t.Cleanup(m.Close)
	return m
}

// post sends the body on a connection of its own.
func post(t *testing.T, m *scripted.Server, path, body string) (int, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b, nil
}

// ask posts a chat request with the messages and returns the answer's message.
func ask(t *testing.T, m *scripted.Server, messages string) chatMessage {
	t.Helper()
	status, body, err := post(t, m, "/v1/chat/completions", `{"model":"m","messages":[`+messages+`]}`)
	if err != nil || status != http.StatusOK {
		t.Fatalf("expected an answer, got status %d, %v: %s", status, err, body)
	}
	var answer struct {
		Choices []struct{ Message chatMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Choices[0].Message
}

type chatMessage struct {
	Content   string
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func ids(m chatMessage) []string {
	var all []string
	for _, c := range m.ToolCalls {
		all = append(all, c.ID)
	}
	return all
}

const hello = `{"role":"user","content":"hello"}`

func TestTurnsAreTakenInOrderAndTheScriptEnds(t *testing.T) {
	t.Parallel()
	m := newModel(t, scripted.Say("one"))
	m.Then(scripted.Say("two"))
	for i, want := range []string{"one", "two"} {
		if left := m.Remaining(); left != 2-i {
			t.Fatalf("expected %d turns to be left, got %d", 2-i, left)
		}
		if got := ask(t, m, hello).Content; got != want {
			t.Fatalf("expected %s, got %s", want, got)
		}
	}
	status, body, err := post(t, m, "/v1/chat/completions", `{"messages":[`+hello+`]}`)
	if err != nil || status != http.StatusBadRequest || !bytes.Contains(body, []byte("script is over")) {
		t.Fatalf("expected the end of the script, got %d, %v: %s", status, err, body)
	}
	m.Otherwise(scripted.Say("more"))
	if got := ask(t, m, hello).Content; got != "more" {
		t.Fatalf("expected the turn for the time after, got %s", got)
	}
	if m.Overrun() != 2 || len(m.Requests()) != 4 {
		t.Fatalf("expected 2 of 4 requests after the end, got %d of %d", m.Overrun(), len(m.Requests()))
	}
}

func TestCallIDs(t *testing.T) {
	t.Parallel()
	turn := scripted.CallTools(
		scripted.Use("a", "{}"), scripted.Use("a", "{}"), scripted.Use("b", "{}").As("x"), scripted.Use("c", "{}").As("x"),
		scripted.Use("d", "{}").As(""),
	)
	m := newModel(t, turn, turn) // the same turn twice
	first, second := ids(ask(t, m, hello)), ids(ask(t, m, hello))
	if !slices.Equal(first[2:], []string{"x", "x", ""}) || !slices.Equal(second[2:], first[2:]) {
		t.Fatalf("expected the given ids, got %q and %q", first, second)
	}
	fresh := slices.Concat(first[:2], second[:2])
	slices.Sort(fresh)
	if len(slices.Compact(fresh)) != 4 || fresh[0] == "" {
		t.Fatalf("expected four fresh ids, got %q and %q", first, second)
	}
}

func TestArgumentsAreSentAsGiven(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args any
		want string
	}{
		{`{"id": 9007199254740993,  "s":"<é>"}`, `{"id": 9007199254740993,  "s":"<é>"}`},
		{json.RawMessage(`{"n":1.0}`), `{"n":1.0}`},
		{[]byte(`{"cut": `), `{"cut": `},
		{"", ""},
		{map[string]any{"a": 1}, `{"a":1}`},
		{nil, "null"},
	}
	for _, tt := range tests {
		m := newModel(t, scripted.CallTools(scripted.Use("tool", tt.args)))
		if got := ask(t, m, hello).ToolCalls[0].Function.Arguments; got != tt.want {
			t.Errorf("expected %s, got %s", tt.want, got)
		}
	}
}

func TestIfResultLooksAtTheLastResult(t *testing.T) {
	t.Parallel()
	turn := scripted.IfResult("completed", scripted.Say("yes"), scripted.Say("no"))
	result := func(text string) string {
		return `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"c","content":"` + text + `"}`
	}
	tests := map[string]string{
		hello:                           "no",
		hello + "," + result("unknown"): "no",
		hello + "," + result("status: completed"):                            "yes",
		hello + "," + result("completed") + "," + result("unknown"):          "no",
		hello + "," + result("completed") + `,{"role":"user","content":"?"}`: "yes",
	}
	for messages, want := range tests {
		if got := ask(t, newModel(t, turn), messages).Content; got != want {
			t.Errorf("expected %s, got %s after %s", want, got, messages)
		}
	}
}

func TestFailAndDrop(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/v1/messages"} {
		m := newModel(t, scripted.Fail(529), scripted.Drop())
		status, body, err := post(t, m, path, `{}`)
		if err != nil || status != 529 || !bytes.Contains(body, []byte(`"overloaded_error"`)) {
			t.Errorf("%s: expected an API error, got %d, %v: %s", path, status, err, body)
		}
		if status, _, err := post(t, m, path, `{}`); err == nil {
			t.Errorf("%s: expected a broken connection, got status %d", path, status)
		}
		if status, _, err := post(t, m, path, `{"messages":7,"input":7}`); err != nil || status != 400 {
			t.Errorf("%s: expected 400 for what is no request, got %d, %v", path, status, err)
		}
		if len(m.Requests()) != 2 {
			t.Errorf("%s: expected two recorded requests, got %d", path, len(m.Requests()))
		}
	}
}

// conversation is the same one in each protocol: a turn with two calls, both answered.
var conversation = map[string]string{
	"/v1/chat/completions": `"messages":[
		{"role":"developer","content":[{"type":"text","text":"Be"},{"type":"text","text":"brief."}]},
		{"role":"user","content":"Refund A1"},
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"refund","arguments":"{\"n\": 1.0}"}},
			{"id":"c2","type":"function","function":{"name":"mail","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"sent"}]},
		{"role":"tool","tool_call_id":"c1","content":"completed"}],
		"tools":[{"type":"function","function":{"name":"refund","description":"Refund.","parameters":{"type":"object"},"strict":true}}]`,
	"/v1/responses": `"instructions":"Be\nbrief.","input":[
		{"role":"user","content":"Refund A1"},
		{"type":"reasoning","id":"rs_1","summary":[]},
		{"type":"function_call","call_id":"c1","name":"refund","arguments":"{\"n\": 1.0}"},
		{"type":"function_call","call_id":"c2","name":"mail","arguments":"{}"},
		{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"sent"}]},
		{"type":"function_call_output","call_id":"c1","output":"completed"}],
		"tools":[{"type":"function","name":"refund","description":"Refund.","parameters":{"type":"object"},"strict":true},{"type":"web_search"}]`,
	"/v1/messages": `"system":[{"type":"text","text":"Be"},{"type":"text","text":"brief."}],"messages":[
		{"role":"user","content":"Refund A1"},
		{"role":"assistant","content":[
			{"type":"tool_use","id":"c1","name":"refund","input":{"n": 1.0}},
			{"type":"tool_use","id":"c2","name":"mail","input":{}}]},
		{"role":"user","content":[
			{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"sent"}]},
			{"type":"tool_result","tool_use_id":"c1","content":"completed"}]}],
		"tools":[{"name":"refund","description":"Refund.","input_schema":{"type":"object"},"strict":true}]`,
}

func TestRequestsAreAlikeInAllProtocols(t *testing.T) {
	t.Parallel()
	wantMessages := []scripted.Message{
		{Role: scripted.System, Text: "Be\nbrief."},
		{Role: scripted.User, Text: "Refund A1"},
		{Role: scripted.Assistant, Calls: []scripted.Call{
			{ID: "c1", Name: "refund", Args: json.RawMessage(`{"n": 1.0}`)}, {ID: "c2", Name: "mail", Args: json.RawMessage(`{}`)},
		}},
		{Role: scripted.ToolRole, Text: "sent", CallID: "c2"},
		{Role: scripted.ToolRole, Text: "completed", CallID: "c1"},
	}
	wantTools := []scripted.Tool{{Name: "refund", Description: "Refund.", Schema: json.RawMessage(`{"type":"object"}`), Strict: true}}
	for path, body := range conversation {
		m := newModel(t, scripted.Say("ok"))
		status, answer, err := post(t, m, path, `{"model":"m-1",`+body+`}`)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: expected an answer, got %d, %v: %s", path, status, err, answer)
		}
		got := m.Requests()[0]
		if !reflect.DeepEqual(got.Messages, wantMessages) || !reflect.DeepEqual(got.Tools, wantTools) || got.Model != "m-1" {
			t.Errorf("%s: got %+v", path, got)
		}
		if r := got.Results(); len(r) != 2 || r[1].Text != "completed" {
			t.Errorf("%s: expected the two new results, got %+v", path, r)
		}
		if !json.Valid(got.Raw) {
			t.Errorf("%s: the raw body wasn't kept", path)
		}
	}
}

func TestHistoriesThatTheRealAPIsRefuse(t *testing.T) {
	t.Parallel()
	calls := func(ids ...string) string {
		var all []string
		for _, id := range ids {
			all = append(all, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"t","arguments":"{}"}}`, id))
		}
		return `{"role":"assistant","tool_calls":[` + strings.Join(all, ",") + `]}`
	}
	result := func(id string) string { return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"r"}`, id) }
	tests := []struct {
		name string
		all  []string
		ok   bool
	}{
		{"answered", []string{calls("a", "b"), result("b"), result("a"), hello}, true},
		{"empty ids", []string{calls("", ""), result(""), result("")}, true},
		{"repeated ids", []string{calls("x"), result("x"), calls("x", "x"), result("x"), result("x")}, true},
		{"no result at the end", []string{calls("a", "b"), result("a")}, false},
		{"no result before the next message", []string{calls("a"), hello}, false},
		{"two results for one call", []string{calls("a"), result("a"), result("a")}, false},
		{"a result without a call", []string{hello, result("a")}, false},
		{"a result for an older call", []string{calls("a"), result("a"), hello, result("a")}, false},
		{"an unknown role", []string{`{"role":"robot"}`}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, scripted.Say("ok"))
			status, body, err := post(t, m, "/v1/chat/completions", `{"messages":[`+strings.Join(tt.all, ",")+`]}`)
			if err != nil || (status == http.StatusOK) != tt.ok {
				t.Fatalf("got status %d, %v: %s", status, err, body)
			}
			if taken := m.Remaining() == 0; taken != tt.ok {
				t.Fatalf("a refused request must take no turn; taken: %v", taken)
			}
		})
	}
}

func TestResponsesContinueByID(t *testing.T) {
	t.Parallel()
	m := newModel(t, scripted.CallTools(scripted.Use("refund", "{}").As("c1")), scripted.Say("done"))
	_, body, err := post(t, m, "/v1/responses", `{"instructions":"first","input":"hello"}`)
	if err != nil {
		t.Fatal(err)
	}
	var first struct{ ID string }
	if err := json.Unmarshal(body, &first); err != nil {
		t.Fatal(err)
	}
	next := `{"previous_response_id":%q,"instructions":"second","input":[{"type":"function_call_output","call_id":"c1","output":"ok"}]}`
	if status, body, err := post(t, m, "/v1/responses", fmt.Sprintf(next, first.ID)); err != nil || status != http.StatusOK {
		t.Fatalf("expected an answer, got %d, %v: %s", status, err, body)
	}
	want := []scripted.Message{
		{Role: scripted.System, Text: "second"},
		{Role: scripted.User, Text: "hello"},
		{Role: scripted.Assistant, Calls: []scripted.Call{{ID: "c1", Name: "refund", Args: json.RawMessage("{}")}}},
		{Role: scripted.ToolRole, Text: "ok", CallID: "c1"},
	}
	if got := m.Requests()[1].Messages; !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
	if status, _, err := post(t, m, "/v1/responses", fmt.Sprintf(next, "other")); err != nil || status != 400 {
		t.Fatalf("expected 400 for an unknown response, got %d, %v", status, err)
	}
}

func TestConcurrentRequestsTakeOneTurnEach(t *testing.T) {
	t.Parallel()
	const callers = 16
	m := newModel(t)
	for i := range callers {
		m.Then(scripted.Say(fmt.Sprint(i)))
	}
	var wg sync.WaitGroup
	said := make([]string, callers)
	for i := range callers {
		wg.Go(func() {
			_, body, err := post(t, m, "/v1/chat/completions", `{"messages":[`+hello+`]}`)
			if err != nil {
				t.Error(err)
			}
			var answer struct {
				Choices []struct{ Message chatMessage }
			}
			if err := json.Unmarshal(body, &answer); err != nil || len(answer.Choices) != 1 {
				t.Errorf("expected one choice, got %s", body)
				return
			}
			said[i] = answer.Choices[0].Message.Content
		})
	}
	wg.Wait()
	slices.Sort(said)
	if len(slices.Compact(said)) != callers || m.Remaining() != 0 {
		t.Fatalf("expected each turn once, got %q", said)
	}
}

func TestCloseWaitsForTheTurn(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	var ended bool
	m := scripted.New(func(scripted.Request) scripted.Reply {
		close(entered)
		<-release
		ended = true
		return scripted.Reply{Text: "late"}
	})
	answered := make(chan error, 1)
	go func() {
		_, _, err := post(t, m, "/v1/chat/completions", `{"messages":[`+hello+`]}`)
		answered <- err
	}()
	<-entered
	go close(release)
	m.Close()
	m.Close()   // again is no change
	if !ended { // the race detector sees it too where Close doesn't wait
		t.Fatal("Close returned before the turn did")
	}
	<-answered // with or without an answer: the connection closes at once
	if _, _, err := post(t, m, "/v1/chat/completions", `{}`); err == nil {
		t.Fatal("a closed model answered")
	}
	if len(m.Requests()) != 1 {
		t.Fatalf("expected the record to stay, got %d requests", len(m.Requests()))
	}
}
