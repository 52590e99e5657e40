package settlemcpgo_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	settlemcpgo "github.com/settle-go/settle/tools/mcpgo"
)

// world is a server whose tools are guarded, and the far side that they act on.
type world struct {
	*testing.T
	ctx    context.Context
	ledger store.Ledger
	ex     *settle.Executor
	guard  *settlemcpgo.Guard
	server *server.MCPServer

	mu   sync.Mutex
	acts map[string]int
}

var (
	caller = settle.Principal{Tenant: "acme", Subject: "ada"}
	task   = settle.Task{ID: "case-42", Goal: "late-parcel"}
	// seat identifies a booking; nobody can be asked whether it was made.
	seat = settle.RawTool{Name: "book", Contract: settle.Contract{Identity: []string{"seat"}, NoLookup: true}}
)

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
	ex, err := settle.New(w.ledger, append(options, settle.Volatile(), settle.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := ex.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
	})
	w.ex = ex
	w.guarded(settlemcpgo.Options{})
}

func (w *world) guarded(options settlemcpgo.Options, more ...server.ServerOption) {
	w.guard = settlemcpgo.New(w.ex, options)
	more = append(more, server.WithToolHandlerMiddleware(w.guard.Middleware), server.WithToolCapabilities(true),
		server.WithTaskCapabilities(true, true, true), server.WithElicitation())
	w.server = server.NewMCPServer("bookings", "v1", more...)
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

type booked struct {
	ID string `json:"id"`
}

var (
	bookTool = mcp.NewTool("book", mcp.WithDescription("Book a seat."), mcp.WithNumber("seat", mcp.Required()), mcp.WithString("note"))
	bookIt   = func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructuredOnly(booked{"b1"}), nil
	}
)

func (w *world) addBook(run server.ToolHandlerFunc) { w.add(bookTool, run) }

func (w *world) add(tool mcp.Tool, run server.ToolHandlerFunc) {
	w.server.AddTool(tool, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		w.act(tool.Name)
		return run(ctx, req)
	})
}

// links are the ways from a client to the server, with the protocol of today and
// the one before.
var links = map[string]func(w *world, options ...client.ClientOption) *client.Client{
	"in process": func(w *world, options ...client.ClientOption) *client.Client {
		c, err := client.NewInProcessClientWithOptions(w.server, options...)
		if err != nil {
			w.Fatal(err)
		}
		return c
	},
	"http": func(w *world, options ...client.ClientOption) *client.Client {
		return w.over(w.serve(), "ada", options...)
	},
	"http, 2025-11-25": func(w *world, options ...client.ClientOption) *client.Client {
		//lint:ignore SA1019 a client of this protocol listens all the time, for what its server asks
		listening := []transport.StreamableHTTPCOption{transport.WithContinuousListening()}
		return w.overWith(w.serve(), "ada", listening, append(options, client.WithProtocolVersion("2025-11-25"))...)
	},
}

// serve runs the server over HTTP; a header names the user.
func (w *world) serve() *httptest.Server {
	s := httptest.NewServer(server.NewStreamableHTTPServer(w.server, server.WithHTTPContextFunc(func(ctx context.Context, r *http.Request) context.Context {
		if user := r.Header.Get("User"); user != "" {
			return settle.WithPrincipal(ctx, settle.Principal{Tenant: caller.Tenant, Subject: user})
		}
		return ctx
	})))
	w.Cleanup(s.Close)
	w.Cleanup(s.CloseClientConnections)
	return s
}

func (w *world) over(s *httptest.Server, user string, options ...client.ClientOption) *client.Client {
	return w.overWith(s, user, nil, options...)
}

func (w *world) overWith(s *httptest.Server, user string, more []transport.StreamableHTTPCOption, options ...client.ClientOption) *client.Client {
	way, err := transport.NewStreamableHTTP(s.URL, append(more, transport.WithHTTPHeaders(map[string]string{"User": user}), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		w.Fatal(err)
	}
	return client.NewClient(way, options...)
}

func everyLink(t *testing.T, test func(t *testing.T, connect func(w *world, options ...client.ClientOption) *client.Client)) {
	t.Helper()
	t.Parallel()
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(w *world, options ...client.ClientOption) *client.Client { return w.began(l(w, options...)) })
		})
	}
}

// began starts a client and shakes hands.
func (w *world) began(c *client.Client) *client.Client {
	w.Helper()
	w.Cleanup(func() { _ = c.Close() })
	if err := c.Start(context.Background()); err != nil {
		w.Fatal(err)
	}
	request := mcp.InitializeRequest{}
	request.Params.ClientInfo = mcp.Implementation{Name: "agent", Version: "v1"}
	if _, err := c.Initialize(context.Background(), request); err != nil {
		w.Fatal(err)
	}
	return c
}

func TestTheLinksSpeakTheProtocolsOfToday(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"in process": "2026-07-28", "http": "2026-07-28", "http, 2025-11-25": "2025-11-25"} {
		w := newWorld(t)
		if got := w.began(links[name](w)).ProtocolVersion(); got != want {
			t.Errorf("%s: client and server speak %s, want %s", name, got, want)
		}
	}
}

func request(tool, args string) mcp.CallToolRequest {
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.RawArguments = tool, json.RawMessage(args)
	return req
}

// try calls a tool with the exact bytes, as ada in process, where the context is
// the server's too.
func (w *world) try(ctx context.Context, c *client.Client, tool, args string) (*mcp.CallToolResult, error) {
	return c.CallTool(settle.WithPrincipal(ctx, caller), settlemcpgo.SendTask(w.ctx, request(tool, args)))
}

func (w *world) call(c *client.Client, tool, args string) *mcp.CallToolResult {
	w.Helper()
	r, err := w.try(w.T.Context(), c, tool, args)
	if err != nil {
		w.Fatalf("the call of %s is a protocol error: %v", tool, err)
	}
	return r
}

func texts(content []mcp.Content) string {
	var all []string
	for _, c := range content {
		if t, ok := mcp.AsTextContent(c); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n")
}

func (w *world) wantAnswer(r *mcp.CallToolResult, status settle.Status) {
	w.Helper()
	structured, _ := r.StructuredContent.(map[string]any)
	if !strings.HasPrefix(texts(r.Content), "["+string(status)) || structured["status"] != string(status) || outcomeOf(r.Meta) != string(status) {
		w.Errorf("want the answer %s, got %q, %v, %v", status, texts(r.Content), r.StructuredContent, r.Meta)
	}
	if structured["message"] != texts(r.Content) || r.IsError != (status == settle.StatusInvalidArguments) {
		w.Errorf("the structured content says %q and the text %q, isError=%v", structured["message"], texts(r.Content), r.IsError)
	}
}

func outcomeOf(meta *mcp.Meta) any {
	if meta == nil {
		return nil
	}
	outcome, _ := meta.AdditionalFields["io.github.settle-go/outcome"].(map[string]any)
	return outcome["status"]
}

func (w *world) wantReplay(r *mcp.CallToolResult, structured string) {
	w.Helper()
	got, err := json.Marshal(r.StructuredContent)
	if err != nil {
		w.Fatal(err)
	}
	if !strings.HasPrefix(texts(r.Content), "[completed, replayed;") || string(got) != structured || r.IsError {
		w.Errorf("want a replay with %s, got %q with %s", structured, texts(r.Content), got)
	}
}
