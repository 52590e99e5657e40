package settlemcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	settlemcp "github.com/settle-go/settle/tools/mcp"
)

// guardedBy is a middleware that can be told later what it is: a host may add one
// after the session is there too.
type guardedBy struct{ middleware mcp.Middleware }

func (g *guardedBy) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		return g.middleware(next)(ctx, method, req)
	}
}

// contracts registers a server's tools for Sending.
func (f *foreign) contracts(r settlemcp.Remote, session *mcp.ClientSession) *settle.Executor {
	f.Helper()
	tools, err := r.Import(f.ctx, session)
	if err != nil {
		f.Fatal(err)
	}
	var options []settle.Option
	for _, t := range tools {
		t.Do = nil
		options = append(options, settle.WithGuarded(t))
	}
	return f.executor(f.ledger, options...)
}

// sendVia calls the tool through the middleware, before the session's own ones.
func (f *foreign) sendVia(r settlemcp.Remote, session *mcp.ClientSession, args string) *mcp.CallToolResult {
	f.Helper()
	plain := func(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		return session.CallTool(ctx, req.GetParams().(*mcp.CallToolParams))
	}
	result, err := r.Sending(f.contracts(r, session))(plain)(f.ctx, "tools/call",
		&mcp.ClientRequest[*mcp.CallToolParams]{Session: session, Params: &mcp.CallToolParams{Name: "label", Arguments: json.RawMessage(args)}})
	if err != nil {
		f.Fatal(err)
	}
	return result.(*mcp.CallToolResult)
}

// sending is a session whose calls are guarded.
func (f *foreign) sending(r settlemcp.Remote, options *mcp.ClientOptions, more ...mcp.Middleware) *mcp.ClientSession {
	f.Helper()
	later := &guardedBy{func(next mcp.MethodHandler) mcp.MethodHandler { return next }}
	session := f.client(httpTransport(f.serve(f.own, true), "ada"), false, options, append([]mcp.Middleware{later.send}, more...)...)
	later.middleware = r.Sending(f.contracts(r, session))
	return session
}

var tracker = settlemcp.Remote{Name: "tracker"}

func TestAClientsCallsAreGuarded(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	session := f.sending(tracker, nil)
	params := &mcp.CallToolParams{Name: "label", Arguments: json.RawMessage(`{"issue":7,"label":"late"}`), Meta: mcp.Meta{"mine": 1}}
	first, err := session.CallTool(f.ctx, params)
	if err != nil || first.Meta["io.github.settle-go/outcome"] != nil {
		t.Fatalf("got %v, %v", first, err)
	}
	again, err := session.CallTool(f.ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	f.wantReplay(again, `{"id":"l1"}`)
	f.wantActs("label", 1)
	if rows := f.rows(); len(rows) != 1 || rows[0].Tool != "tracker_label" {
		t.Errorf("the ledger has %+v", rows)
	}
	if string(params.Arguments.(json.RawMessage)) != `{"issue":7,"label":"late"}` || params.Meta["mine"] != 1 || params.Meta["example.com/key"] != nil {
		t.Errorf("the caller's params have become %+v", params)
	}
}

func TestArgumentsThatWereRoundedAreRefused(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	session := f.sending(tracker, nil)
	for name, tc := range map[string]struct {
		issue any
		want  bool
	}{
		"float64 that may be another": {float64(1 << 53), false}, "float64": {float64(8), true},
		"int64": {int64(1<<53 + 1), true}, "json.Number": {json.Number("9007199254740993"), true},
	} {
		r, err := session.CallTool(f.ctx, &mcp.CallToolParams{Name: "label", Arguments: map[string]any{"issue": tc.issue, "label": name}})
		if err != nil || r.IsError == tc.want {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
	if r := f.call(session, "label", `{"issue":"seven","label":"late"}`); !r.IsError || !strings.HasPrefix(texts(r), "[invalid_arguments") {
		t.Errorf("arguments that don't fit the listed schema came to %q", texts(r))
	}
	f.wantActs("label", 3)
}

func TestACallOfAHostThatNamesNobodyIsItsMistake(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	session := f.sending(tracker, nil)
	params := &mcp.CallToolParams{Name: "label", Arguments: json.RawMessage(`{"issue":7,"label":"late"}`)}
	if _, err := session.CallTool(t.Context(), params); !errors.Is(err, settle.ErrNoPrincipal) {
		t.Errorf("got %v", err)
	}
	if _, err := session.CallTool(settle.WithPrincipal(t.Context(), caller), params); !errors.Is(err, settle.ErrNoTask) {
		t.Errorf("got %v", err)
	}
	f.wantActs("label", 0)
}

// The task travels where the host wants it to, the principal never.
func TestTheTaskIsSentWhereTheHostWantsIt(t *testing.T) {
	t.Parallel()
	for name, middleware := range map[string][]mcp.Middleware{"sent": {settlemcp.SendTask}, "kept": nil} {
		f := newForeign(t)
		var meta string
		f.addLabel(nil, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			sent, err := json.Marshal(req.Params.Meta)
			meta = string(sent)
			if err != nil {
				return nil, err
			}
			return labelled(ctx, req)
		})
		f.call(f.sending(tracker, nil, middleware...), "label", `{"issue":7,"label":"late"}`)
		if sent := strings.Contains(meta, `"io.github.settle-go/task":{"goal":"late-parcel","id":"case-42"}`); sent != (name == "sent") {
			t.Errorf("%s: the server saw %s", name, meta)
		}
		if strings.Contains(meta, caller.Subject) || strings.Contains(meta, caller.Tenant) {
			t.Errorf("%s: the principal travelled: %s", name, meta)
		}
	}
}

// The SDK sends a call again with what the server asked for: all legs are one call.
func TestTheSDKsLegsAreOneAttempt(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.server = f.own
	f.addConfirmed()
	session := f.sending(tracker, accepting())
	f.call(session, "book", `{"seat":1}`)
	f.wantReplay(f.call(session, "book", `{"seat":1}`), `{"id":"b1"}`)
	f.wantActs("book", 1)
	if rows := f.rows(); len(rows) != 1 || rows[0].Attempt != 1 || f.calls.Load() != 3 {
		t.Errorf("%d rows, %d calls", len(rows), f.calls.Load())
	}
}

func TestAHostThatPlaysTheLegsItselfHasOneOperation(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.server = f.own
	f.addConfirmed()
	session := f.sending(tracker, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}})
	first := f.call(session, "book", `{"seat":1}`)
	if !first.NeedsInput() || first.RequestState != "r" {
		t.Fatalf("got %+v", first)
	}
	last, err := session.CallTool(f.ctx, &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(`{"seat":1}`), RequestState: "rr"})
	if err != nil || last.NeedsInput() {
		t.Fatalf("got %+v, %v", last, err)
	}
	if rows := f.rows(); len(rows) != 1 || rows[0].State != store.Completed {
		t.Errorf("the ledger has %d rows", len(rows))
	}
	f.wantActs("book", 1)
}

// An unguarded server acts on a call whose client has given up; the client that
// asks again is told what came of the first.
func TestR24ACallThatItsClientGaveUpIsNotSentAgain(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	entered, release := make(chan struct{}), make(chan struct{})
	f.addLabel(nil, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(entered)
		<-release
		return labelled(ctx, req)
	})
	session := f.sending(tracker, nil)
	ctx, gone := context.WithCancel(f.ctx)
	go func() { <-entered; gone() }()
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "label", Arguments: json.RawMessage(`{"issue":7,"label":"late"}`)})
	if err != nil {
		t.Fatal(err)
	}
	f.wantAnswer(jsonAgain(t, r), settle.StatusInProgress)
	close(release)
	f.wantReplay(f.call(session, "label", `{"issue":7,"label":"late"}`), `{"id":"l1"}`)
	f.wantActs("label", 1)
}

// jsonAgain is a result as it looks to whoever reads its JSON.
func jsonAgain(t *testing.T, r *mcp.CallToolResult) *mcp.CallToolResult {
	t.Helper()
	encoded, err := json.Marshal(r)
	var again mcp.CallToolResult
	if err := errors.Join(err, json.Unmarshal(encoded, &again)); err != nil {
		t.Fatal(err)
	}
	return &again
}

// The host may have both: an imported tool's own call isn't claimed a second time.
func TestAnImportedToolsCallPassesTheMiddleware(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	later := &guardedBy{func(next mcp.MethodHandler) mcp.MethodHandler { return next }}
	session := f.session(later.send)
	ex := f.imports(tracker, session)
	later.middleware = tracker.Sending(ex)
	if out := f.execute(ex, "tracker_label", `{"issue":7,"label":"late"}`); out.Status != settle.StatusCompleted {
		t.Errorf("got %+v", out)
	}
	f.wantActs("label", 1)
}

func TestAKeyedToolsKeyIsSentBesideTheCallersMeta(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	var metas []mcp.Meta
	f.addLabel(nil, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if metas = append(metas, req.Params.Meta); len(metas) == 1 {
			return nil, errors.New("reset")
		}
		return labelled(ctx, req)
	})
	keyed := settle.Contract{Class: settle.Keyed, Identity: []string{"issue"}, KeyWindow: settle.Permanent, NoLookup: true}
	session := f.sending(f.mapped(f.session(), keyed), nil)
	r, err := session.CallTool(f.ctx, &mcp.CallToolParams{Name: "label", Meta: mcp.Meta{"mine": "1"}, Arguments: json.RawMessage(`{"issue":7,"label":"late"}`)})
	if err != nil || len(metas) != 2 || metas[0]["example.com/key"] == nil || metas[0]["example.com/key"] != metas[1]["example.com/key"] || metas[1]["mine"] != "1" {
		t.Errorf("got %v, %v after %v", r, err, metas)
	}
}

// Without any contract the schema is the one that the client has listed.
func TestArgumentsAreCheckedAgainstTheToolsThatWereListed(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	session := f.client(httpTransport(f.serve(f.own, true), "ada"), false, nil, tracker.Sending(f.executor(f.ledger)))
	if _, err := session.ListTools(f.ctx, nil); err != nil {
		t.Fatal(err)
	}
	f.wantAnswer(jsonAgain(t, f.call(session, "label", `{"issue":"seven"}`)), settle.StatusInvalidArguments)
	if f.calls.Load() != 0 || len(f.rows()) != 0 {
		t.Errorf("the server was called %d times, the ledger has %d rows", f.calls.Load(), len(f.rows()))
	}
}

// changing is an argument that encodes itself in another way each time.
type changing struct{ times *int }

func (c changing) MarshalJSON() ([]byte, error) {
	*c.times++
	return json.Marshal(map[string]any{"issue": *c.times, "label": "late"})
}

// R29: every attempt sends the arguments as first accepted.
func TestR29TheArgumentsThatAreSentAreTheOnesThatWereClaimed(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	var sent string
	f.addLabel(nil, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		sent = string(req.Params.Arguments)
		return labelled(ctx, req)
	})
	if _, err := f.sending(tracker, nil).CallTool(f.ctx, &mcp.CallToolParams{Name: "label", Arguments: changing{new(int)}}); err != nil {
		t.Fatal(err)
	}
	if rows := f.rows(); len(rows) != 1 || string(rows[0].Arguments) != sent {
		t.Errorf("%s was sent, and the ledger has %s", sent, rows[0].Arguments)
	}
}

func TestR09ARepeatThatIsMeantReachesTheServerWithoutTheOccurrence(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	var given []string
	f.addLabel(nil, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		given = append(given, string(req.Params.Arguments))
		return labelled(ctx, req)
	})
	remote := settlemcp.Remote{Name: "tracker", Tools: map[string]settlemcp.Mapped{"label": {
		Contract: settle.Contract{Identity: []string{"issue"}, NoLookup: true, Repeatable: true}}}}
	session := f.session()
	f.sendVia(remote, session, `{"issue":1,"label":"late"}`)
	f.sendVia(remote, session, `{"issue":1,"label":"late","settle_occurrence":2}`)
	if len(given) != 2 || given[1] != `{"issue":1,"label":"late"}` {
		t.Errorf("the server was sent %q", given)
	}
}
