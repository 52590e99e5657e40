package settlemcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
	settlemcp "github.com/settle-go/settle/tools/mcp"
)

// foreign is a server of somebody else's, that nobody guards.
type foreign struct {
	*world
	own *mcp.Server
	// calls is how often tools/call arrived.
	calls atomic.Int32
}

func newForeign(t *testing.T) *foreign {
	f := &foreign{world: newWorld(t), own: mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "v1"}, nil)}
	f.ctx = settle.WithPrincipal(f.ctx, caller)
	f.own.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				f.calls.Add(1)
			}
			return next(ctx, method, req)
		}
	})
	return f
}

const labelSchema = `{"type":"object","properties":{"issue":{"type":"integer"},"label":{"type":"string"}},"required":["issue","label"]}`

// addLabel adds a tool with hints.
func (f *foreign) addLabel(hints *mcp.ToolAnnotations, run func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	f.own.AddTool(&mcp.Tool{Name: "label", Description: "Label an issue.", Annotations: hints, InputSchema: json.RawMessage(labelSchema)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			f.act("label")
			return run(ctx, req)
		})
}

func labelled(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{StructuredContent: map[string]any{"id": "l1"}}, nil
}

func (f *foreign) session(middleware ...mcp.Middleware) *mcp.ClientSession {
	f.Helper()
	return f.client(httpTransport(f.serve(f.own, true), "ada"), false, nil, middleware...)
}

// imports is an executor with the server's tools.
func (f *foreign) imports(r settlemcp.Remote, session *mcp.ClientSession) *settle.Executor {
	f.Helper()
	tools, err := r.Import(f.ctx, session)
	if err != nil {
		f.Fatal(err)
	}
	var options []settle.Option
	for _, t := range tools {
		options = append(options, settle.WithTools(t))
	}
	return f.executor(f.ledger, options...)
}

func (f *foreign) execute(ex *settle.Executor, tool, args string) settle.Outcome {
	f.Helper()
	out, err := ex.Execute(f.ctx, settle.Call{Tool: tool, Args: json.RawMessage(args)})
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// digest is the one that the host has looked at.
func (f *foreign) digest(session *mcp.ClientSession) string {
	f.Helper()
	list, err := session.ListTools(f.ctx, nil)
	if err != nil {
		f.Fatal(err)
	}
	digest, err := settlemcp.SchemaDigest(list.Tools[0])
	if err != nil {
		f.Fatal(err)
	}
	return digest
}

var idempotent = settle.Contract{Class: settle.Idempotent, Identity: []string{"issue"}}

func (f *foreign) mapped(session *mcp.ClientSession, c settle.Contract) settlemcp.Remote {
	f.Helper()
	return settlemcp.Remote{Name: "tracker", Tools: map[string]settlemcp.Mapped{"label": {Contract: c, Schema: f.digest(session), Key: "example.com/key"}}}
}

func TestAnImportedToolRunsAndReplays(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	session := f.session()
	ex := f.imports(settlemcp.Remote{Name: "tracker"}, session)
	declared := ex.Tools()
	if len(declared) != 1 || declared[0].Name != "tracker_label" || declared[0].Description != "Label an issue." || declared[0].Class != settle.Unsafe {
		t.Errorf("the tools are %+v", declared)
	}
	first := f.execute(ex, "tracker_label", `{"issue":7,"label":"late"}`)
	again := f.execute(ex, "tracker_label", `{"label":"late","issue":7.0}`)
	if first.Status != settle.StatusCompleted || string(first.Result) != `{"id":"l1"}` || !again.Replayed || again.Operation != first.Operation {
		t.Errorf("got %+v, then %+v", first, again)
	}
	if bad := f.execute(ex, "tracker_label", `{"issue":"seven"}`); bad.Status != settle.StatusInvalidArguments {
		t.Errorf("got %+v", bad)
	}
	f.wantActs("label", 1)
}

// The SDK's client decodes structured content to float64; the text beside it isn't.
func TestAnImportedToolsResultIsNotRounded(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		const said = `{"id": 9007199254740993, "sum": 42.10}`
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(said), Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
	})
	session := f.session()
	ex := f.imports(f.mapped(session, settle.Contract{Identity: []string{"issue"}, Resource: "id", NoLookup: true}), session)
	for range 2 {
		out := f.execute(ex, "tracker_label", `{"issue":7,"label":"late"}`)
		if out.Resource != "9007199254740993" || !strings.Contains(string(out.Result), `"id":9007199254740993`) {
			t.Errorf("got %q, %s", out.Resource, out.Result)
		}
	}
}

// S83: equal tools of two servers are two tools.
func TestS83TwoServersWithOneToolNameAreTwoTools(t *testing.T) {
	t.Parallel()
	here, there := newForeign(t), newForeign(t)
	there.ledger = here.ledger
	here.addLabel(nil, labelled)
	there.addLabel(nil, labelled)
	var options []settle.Option
	for name, f := range map[string]*foreign{"one": here, "two": there} {
		tools, err := settlemcp.Remote{Name: name}.Import(f.ctx, f.session())
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, settle.WithTools(tools[0]))
	}
	ex := here.executor(here.ledger, options...)
	a := here.execute(ex, "one_label", `{"issue":7,"label":"late"}`)
	b := here.execute(ex, "two_label", `{"issue":7,"label":"late"}`)
	if a.Operation == b.Operation || b.Replayed {
		t.Errorf("got %+v and %+v", a, b)
	}
	here.wantActs("label", 1)
	there.wantActs("label", 1)

	if _, err := (settlemcp.Remote{Name: "one_label"}).Import(here.ctx, here.session()); err == nil {
		t.Error("a name that could belong to two servers was taken")
	}
}

// S26: nobody but the host decides a class; a hint counts where the server is trusted.
func TestS26HintsCountForTrustedServersOnly(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, readOnly := range []bool{false, true} {
		for _, idem := range []bool{false, true} {
			for _, destructive := range []*bool{nil, &yes, &no} {
				for _, open := range []*bool{nil, &yes, &no} {
					f := newForeign(t)
					f.addLabel(&mcp.ToolAnnotations{ReadOnlyHint: readOnly, IdempotentHint: idem, DestructiveHint: destructive, OpenWorldHint: open}, labelled)
					session := f.session()
					want := settle.Unsafe
					switch {
					case readOnly && destructive != &yes:
						want = settle.Read
					case !readOnly && idem:
						want = settle.Idempotent
					}
					resources := map[string][]string{"label": {"issue"}}
					for name, tc := range map[string]struct {
						remote settlemcp.Remote
						want   settle.Class
					}{
						"not trusted":      {settlemcp.Remote{Name: "x", Resources: resources}, settle.Unsafe},
						"trusted":          {settlemcp.Remote{Name: "x", Resources: resources, Trusted: true}, want},
						"mapped as unsafe": {settlemcp.Remote{Name: "x", Trusted: true, Tools: map[string]settlemcp.Mapped{"label": {Contract: settle.Contract{WholeArguments: true, NoLookup: true}}}}, settle.Unsafe},
						"which resource is unnamed": {settlemcp.Remote{Name: "x", Trusted: true},
							map[bool]settle.Class{true: want, false: settle.Unsafe}[want == settle.Read]},
					} {
						if got := f.imports(tc.remote, session).Tools()[0].Class; got != tc.want {
							t.Errorf("%s, read-only %v, idempotent %v: got %v, want %v", name, readOnly, idem, got, tc.want)
						}
					}
				}
			}
		}
	}
	f := newForeign(t)
	f.addLabel(nil, labelled)
	if got := f.imports(settlemcp.Remote{Name: "x", Trusted: true}, f.session()).Tools()[0].Class; got != settle.Unsafe {
		t.Errorf("a tool without hints is %v", got)
	}
}

// R4: a mapping is for the schema that the host looked at.
func TestR4AMappingIsForOneSchema(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	session := f.session()
	r := f.mapped(session, idempotent)
	if got := f.imports(r, session).Tools()[0].Class; got != settle.Idempotent {
		t.Errorf("the tool is %v", got)
	}
	pinned := r.Tools["label"].Schema
	for name, tc := range map[string]struct {
		mapped settlemcp.Mapped
		says   string
	}{
		"no schema named":       {settlemcp.Mapped{Contract: idempotent}, pinned},
		"nothing sends the key": {settlemcp.Mapped{Contract: settle.Contract{Class: settle.Keyed, Identity: []string{"issue"}, KeyWindow: settle.Permanent, NoLookup: true}, Schema: pinned}, "Key"},
	} {
		_, err := settlemcp.Remote{Name: "tracker", Tools: map[string]settlemcp.Mapped{"label": tc.mapped}}.Import(f.ctx, session)
		if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "tracker_label") {
			t.Errorf("%s: got %v", name, err)
		}
	}

	changed := newForeign(t)
	changed.own.AddTool(&mcp.Tool{Name: "label", InputSchema: json.RawMessage(strings.Replace(labelSchema, `"string"`, `["string","null"]`, 1))}, labelled)
	for name, c := range map[string]settle.Contract{
		"idempotent": idempotent, "read": {Class: settle.Read},
		"keyed": {Class: settle.Keyed, Identity: []string{"issue"}, KeyWindow: settle.Permanent, NoLookup: true, Attempts: 2},
	} {
		c.Approval = true
		changed.ledger = memory.New()
		r.Tools["label"] = settlemcp.Mapped{Contract: c, Schema: pinned, Key: "example.com/key"}
		ex := changed.imports(r, changed.session())
		if got := ex.Tools()[0].Class; got != settle.Unsafe {
			t.Errorf("%s: after its schema changed the tool is %v", name, got)
		}
		if out := changed.execute(ex, "tracker_label", `{"issue":7,"label":"`+name+`"}`); out.Status != settle.StatusAwaitingApproval {
			t.Errorf("%s: an approval was dropped: %+v", name, out)
		}
	}
	changed.wantActs("label", 0)
}

func TestAToolThatSaysItIsDestructiveIsNotReadOnly(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	yes := true
	f.addLabel(&mcp.ToolAnnotations{DestructiveHint: &yes}, labelled)
	session := f.session()
	if got := f.imports(f.mapped(session, settle.Contract{Class: settle.Read}), session).Tools()[0].Class; got != settle.Unsafe {
		t.Errorf("the tool is %v", got)
	}
}

func TestAKeyedToolIsSentItsKey(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	var keys []any
	f.addLabel(nil, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		keys = append(keys, req.Params.Meta["example.com/key"])
		if len(keys) == 1 {
			return nil, context.DeadlineExceeded
		}
		return &mcp.CallToolResult{}, nil
	})
	session := f.session()
	keyed := settle.Contract{Class: settle.Keyed, Identity: []string{"issue"}, KeyWindow: settle.Permanent, NoLookup: true}
	out := f.execute(f.imports(f.mapped(session, keyed), session), "tracker_label", `{"issue":7,"label":"late"}`)
	if out.Status != settle.StatusCompleted || len(keys) != 2 || keys[0] == nil || keys[0] != keys[1] {
		t.Errorf("got %+v with the keys %v", out, keys)
	}
}

// S19: the server acts and the stream is cut.
func TestS19ACutStreamIsNotSentAgainUnlessTheHostMappedTheTool(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mapped bool
		calls  int32
		status settle.Status
	}{
		"annotated only":       {false, 1, settle.StatusUnknown},
		"mapped as idempotent": {true, 2, settle.StatusCompleted},
	} {
		for form, run := range map[string]func(f *foreign, r settlemcp.Remote, session *mcp.ClientSession) settle.Status{
			"imported": importedCall, "sending": sendingCall,
		} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				f := newForeign(t)
				server := f.serve(f.own, true)
				// The cut is of the call alone: no other request finds a connection
				// that was cut while it lay idle.
				server.Config.SetKeepAlivesEnabled(false)
				f.addLabel(&mcp.ToolAnnotations{IdempotentHint: true}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if f.calls.Load() == 1 {
						server.CloseClientConnections()
					}
					return labelled(ctx, req)
				})
				session := f.client(httpTransport(server, "ada"), false, nil)
				r := settlemcp.Remote{Name: "tracker"}
				if tc.mapped {
					r = f.mapped(session, idempotent)
				}
				if status := run(f, r, session); status != tc.status {
					t.Errorf("the call came to %s, want %s", status, tc.status)
				}
				if got := f.calls.Load(); got != tc.calls {
					t.Errorf("the server was called %d times, want %d", got, tc.calls)
				}
				rows := f.rows()
				if len(rows) != 1 || int32(rows[0].Attempt) != tc.calls {
					t.Errorf("the ledger has %d rows, %d attempts", len(rows), rows[0].Attempt)
				}
				// The model calls again: nothing more is sent.
				run(f, r, session)
				if got := f.calls.Load(); got != tc.calls {
					t.Errorf("the server was called again: %d times", got)
				}
			})
		}
	}
}

func importedCall(f *foreign, r settlemcp.Remote, session *mcp.ClientSession) settle.Status {
	return f.execute(f.imports(r, session), "tracker_label", `{"issue":7,"label":"late"}`).Status
}

// sendingCall guards a session that the client has already.
func sendingCall(f *foreign, r settlemcp.Remote, session *mcp.ClientSession) settle.Status {
	f.Helper()
	result := f.sendVia(r, session, `{"issue":7,"label":"late"}`)
	if status, ok := result.Meta["io.github.settle-go/outcome"].(map[string]any); ok {
		return settle.Status(status["status"].(string))
	}
	return settle.StatusCompleted
}

// A server that can't be reached was sent nothing.
func TestAServerThatIsNotThereWasSentNothing(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	server := f.serve(f.own, true)
	// On a connection that is still there nobody could tell whether it was sent.
	server.Config.SetKeepAlivesEnabled(false)
	session := f.client(httpTransport(server, "ada"), false, nil)
	ex := f.imports(settlemcp.Remote{Name: "tracker"}, session)
	server.Close()
	if out := f.execute(ex, "tracker_label", `{"issue":7,"label":"late"}`); out.Status != settle.StatusNotDone {
		t.Errorf("got %+v", out)
	}
}

// A guarded server's word is taken over: what is unknown there is unknown here.
func TestAGuardedServersOutcomesAreTakenOver(t *testing.T) {
	t.Parallel()
	for there, here := range map[settle.Status]settle.Status{
		settle.StatusCompleted: settle.StatusCompleted, settle.StatusUnknown: settle.StatusUnknown, settle.StatusInProgress: settle.StatusUnknown,
		settle.StatusManual: settle.StatusUnknown, settle.StatusAwaitingApproval: settle.StatusUnknown, settle.StatusAbandoned: settle.StatusUnknown,
		settle.StatusExpired: settle.StatusUnknown, settle.StatusSuperseded: settle.StatusUnknown,
		settle.StatusHeld: settle.StatusNotDone, settle.StatusNotDone: settle.StatusNotDone, settle.StatusUnavailable: settle.StatusNotDone,
		settle.StatusFailed: settle.StatusFailed, settle.StatusDenied: settle.StatusFailed, settle.StatusConflict: settle.StatusFailed,
		settle.StatusInvalidArguments: settle.StatusFailed, settle.StatusNoSuchTool: settle.StatusFailed,
	} {
		f := newForeign(t)
		f.ledger = memory.New()
		f.addLabel(nil, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Meta: mcp.Meta{"io.github.settle-go/outcome": map[string]any{"status": string(there)}}}, nil
		})
		ex := f.imports(settlemcp.Remote{Name: "tracker"}, f.session())
		if out := f.execute(ex, "tracker_label", `{"issue":7,"label":"late"}`); out.Status != here {
			t.Errorf("%s there is %s here, want %s", there, out.Status, here)
		}
	}
}

// S16: the transport's HTTP client sends nothing again by itself, also where the
// server has read a request on a connection that was in use and drops it.
func TestS16TheServerSeesTheAttemptsThatTheLedgerShows(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.addLabel(nil, labelled)
	var posts atomic.Int32
	inner := f.serve(f.own, true)
	target, err := url.Parse(inner.URL)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), `"tools/call"`) {
			if posts.Add(1) < 3 {
				panic(http.ErrAbortHandler)
			}
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		through.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	t.Cleanup(front.CloseClientConnections)
	session := f.client(httpTransport(front, "ada"), false, nil)
	keyed := settle.Contract{Class: settle.Keyed, Identity: []string{"issue"}, KeyWindow: settle.Permanent, NoLookup: true}
	out := f.execute(f.imports(f.mapped(session, keyed), session), "tracker_label", `{"issue":7,"label":"late"}`)
	rows := f.rows()
	if out.Status != settle.StatusCompleted || len(rows) != 1 || rows[0].Attempt != 3 || posts.Load() != 3 {
		t.Errorf("got %+v: %d requests, %d attempts", out, posts.Load(), rows[0].Attempt)
	}
	f.wantActs("label", 1)
}
