package settlemcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	settlemcp "github.com/settle-go/settle/tools/mcp"
)

// world is a server whose tools are guarded, and the far side that they act on.
type world struct {
	*testing.T
	ctx    context.Context
	ledger store.Ledger
	server *mcp.Server
	ex     *settle.Executor
	guard  *settlemcp.Guard

	mu   sync.Mutex
	acts map[string]int
}

var (
	caller = settle.Principal{Tenant: "acme", Subject: "ada"}
	task   = settle.Task{ID: "case-42", Goal: "late-parcel"}
	// seat identifies a booking; nobody can be asked whether it was made.
	seat = settle.RawTool{Name: "book", Contract: settle.Contract{Identity: []string{"seat"}, NoLookup: true}}
)

// newWorld is a server without tools. Its ledger outlives its processes.
func newWorld(t *testing.T, options ...settle.Option) *world {
	t.Helper()
	w := &world{T: t, ledger: memory.New(), acts: map[string]int{}}
	w.ctx = settle.WithTask(t.Context(), task)
	w.restart(options...)
	return w
}

// restart is another process on the same ledger.
func (w *world) restart(options ...settle.Option) {
	w.Helper()
	w.ex = w.executor(w.ledger, options...)
	w.server = mcp.NewServer(&mcp.Implementation{Name: "bookings", Version: "v1"}, nil)
	w.guarded(settlemcp.Options{Tenant: caller.Tenant})
}

func (w *world) executor(ledger store.Ledger, options ...settle.Option) *settle.Executor {
	w.Helper()
	ex, err := settle.New(ledger, append(options, settle.Volatile(), settle.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := ex.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
	})
	return ex
}

func (w *world) guarded(options settlemcp.Options) {
	w.Helper()
	guard, err := settlemcp.New(w.ex, options)
	if err != nil {
		w.Fatal(err)
	}
	w.guard = guard
	w.server.AddReceivingMiddleware(guard.Receiving)
}

// act is the far side: it does what it is told, each time it is told.
func (w *world) act(label string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts[label]++
}

func (w *world) wantActs(label string, want int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.acts[label]; got != want {
		w.Errorf("%s happened %d times, want %d", label, got, want)
	}
}

func (w *world) rows() []store.Entry {
	w.Helper()
	rows, err := w.ledger.List(w.ctx, store.Filter{Tenant: caller.Tenant})
	if err != nil {
		w.Fatal(err)
	}
	return rows
}

type bookArgs struct {
	Seat int64  `json:"seat"`
	Note string `json:"note,omitempty"`
}

type booked struct {
	ID string `json:"id"`
}

// addBook adds a typed tool, which has an output schema.
func (w *world) addBook(run func(ctx context.Context, req *mcp.CallToolRequest, in bookArgs) (*mcp.CallToolResult, booked, error)) {
	mcp.AddTool(w.server, &mcp.Tool{Name: "book", Description: "Book a seat."},
		func(ctx context.Context, req *mcp.CallToolRequest, in bookArgs) (*mcp.CallToolResult, booked, error) {
			w.act("book")
			return run(ctx, req, in)
		})
}

func bookIt(_ context.Context, _ *mcp.CallToolRequest, _ bookArgs) (*mcp.CallToolResult, booked, error) {
	return nil, booked{"b1"}, nil
}

// link is a way from a client to the server.
type link struct {
	// over makes the client's end; the server's is running then.
	over func(w *world) mcp.Transport
	old  bool
}

// links are the transports, with the protocol that a pair of SDKs speaks today and
// the one before.
var links = map[string]link{
	"in memory":         {over: inMemory},
	"http":              {over: overHTTP},
	"http, 2025-11-25":  {over: overSessions, old: true},
	"in memory, before": {over: inMemory, old: true},
}

// everyLink runs a test over each of them.
func everyLink(t *testing.T, test func(t *testing.T, l link)) {
	t.Helper()
	t.Parallel()
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

// inMemory has no tokens: the principal comes with the session's context.
func inMemory(w *world) mcp.Transport {
	here, there := mcp.NewInMemoryTransports()
	session, err := w.server.Connect(settle.WithPrincipal(context.Background(), caller), there, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = session.Close() })
	return here
}

// overHTTP has no sessions, which 2026-07-28 did away with.
func overHTTP(w *world) mcp.Transport { return httpTransport(w.serve(w.server, true), "ada") }

func overSessions(w *world) mcp.Transport { return httpTransport(w.serve(w.server, false), "ada") }

// serve runs a server over HTTP; a bearer token is its user's name.
func (w *world) serve(server *mcp.Server, stateless bool) *httptest.Server {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: stateless})
	known := auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: strings.TrimPrefix(token, "nobody"), Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)
	s := httptest.NewServer(known(handler))
	w.Cleanup(s.Close)
	w.Cleanup(s.CloseClientConnections)
	return s
}

func httpTransport(s *httptest.Server, token string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &http.Client{Transport: bearer{token}}}
}

type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// connect is a client that sends its tasks.
func (w *world) connect(l link, options *mcp.ClientOptions) *mcp.ClientSession {
	w.Helper()
	return w.client(l.over(w), l.old, options, settlemcp.SendTask)
}

func (w *world) client(over mcp.Transport, old bool, options *mcp.ClientOptions, middleware ...mcp.Middleware) *mcp.ClientSession {
	w.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "v1"}, options)
	client.AddSendingMiddleware(middleware...)
	var how *mcp.ClientSessionOptions
	if old {
		how = &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
	}
	session, err := client.Connect(context.Background(), over, how)
	if err != nil {
		w.Fatal(err)
	}
	if spoken := session.InitializeResult().ProtocolVersion; (spoken == "2025-11-25") != old {
		w.Fatalf("client and server speak %s", spoken)
	}
	w.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool with the exact bytes.
func (w *world) call(session *mcp.ClientSession, tool, args string) *mcp.CallToolResult {
	w.Helper()
	result, err := session.CallTool(w.ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		w.Fatalf("the call of %s is a protocol error: %v", tool, err)
	}
	return result
}

// texts are a result's text blocks.
func texts(r *mcp.CallToolResult) string {
	var all []string
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}

// wantAnswer checks that a result is the outcome's own, in text and structure.
func (w *world) wantAnswer(r *mcp.CallToolResult, status settle.Status) {
	w.Helper()
	structured, _ := r.StructuredContent.(map[string]any)
	outcome, _ := r.Meta["io.github.settle-go/outcome"].(map[string]any)
	if !strings.HasPrefix(texts(r), "["+string(status)) || structured["status"] != string(status) || outcome["status"] != string(status) {
		w.Errorf("want the answer %s, got %q, %v, %v", status, texts(r), r.StructuredContent, r.Meta)
	}
	if structured["message"] != texts(r) {
		w.Errorf("the structured content says %q and the text %q", structured["message"], texts(r))
	}
	if r.IsError != (status == settle.StatusInvalidArguments) {
		w.Errorf("the answer %s is marked isError=%v", status, r.IsError)
	}
}

// wantReplay checks that a result is the recorded one, and says so.
func (w *world) wantReplay(r *mcp.CallToolResult, structured string) {
	w.Helper()
	got, err := json.Marshal(r.StructuredContent)
	if err != nil {
		w.Fatal(err)
	}
	if !strings.HasPrefix(texts(r), "[completed, replayed;") || string(got) != structured || r.IsError {
		w.Errorf("want a replay with %s, got %q with %s", structured, texts(r), got)
	}
}
