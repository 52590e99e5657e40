package settlemcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	settlemcp "github.com/settle-go/settle/tools/mcp"
)

// fits checks a value against a schema with the SDK's own validator.
func fits(t *testing.T, schema []byte, value string) bool {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatal(err)
	}
	return resolved.Validate(v) == nil
}

// wantRefused checks that a call was refused as JSON-RPC does, and did nothing.
func (w *world) wantRefused(session *mcp.ClientSession, ctx context.Context, meta mcp.Meta, code int64, says string) {
	w.Helper()
	for _, tool := range []string{"book", "offered"} {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: tool, Arguments: json.RawMessage(`{"seat":1}`)})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != code || !strings.Contains(wire.Message, says) || !strings.Contains(wire.Message, "nothing was done") {
			w.Errorf("%s: got %v, want code %d that says %q", tool, err, code, says)
		}
	}
	w.wantActs("book", 0)
	if rows := w.rows(); len(rows) != 0 {
		w.Errorf("the ledger has %d rows", len(rows))
	}
}

func (w *world) offered() settle.Option {
	return settle.WithTools(settle.Tool[bookArgs, booked]{Name: "offered", Description: "Book a seat.",
		Contract: settle.Contract{Identity: []string{"seat"}, NoLookup: true},
		Do: func(context.Context, settle.Op, bookArgs) (booked, error) {
			w.act("book")
			return booked{"b1"}, nil
		}})
}

// identified is a world whose server has a guarded and an offered tool.
func identified(t *testing.T, options settlemcp.Options) *world {
	w := newWorld(t)
	w.ex = w.executor(w.ledger, settle.WithGuarded(seat), w.offered())
	w.server = mcp.NewServer(&mcp.Implementation{Name: "bookings", Version: "v1"}, nil)
	w.guarded(options)
	w.addBook(bookIt)
	if err := w.guard.Offer(w.server); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestACallWithoutATaskIsRefused(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := identified(t, settlemcp.Options{Tenant: "acme"})
		session := w.connect(l, nil)
		w.wantRefused(session, t.Context(), nil, jsonrpc.CodeInvalidParams, "io.github.settle-go/task")
		for name, sent := range map[string]any{"a string": "case-42", "no goal": map[string]any{"id": "case-42"}, "a number": map[string]any{"id": 42, "goal": "x"}} {
			t.Run(name, func(t *testing.T) {
				w.wantRefused(session, t.Context(), mcp.Meta{"io.github.settle-go/task": sent}, jsonrpc.CodeInvalidParams, "io.github.settle-go/task")
			})
		}
		w.wantRefused(session, settle.WithTask(t.Context(), settle.Task{ID: "case\n42", Goal: "x"}), nil, jsonrpc.CodeInvalidParams, "control character")
	})
}

func TestACallWithoutAPrincipalIsRefused(t *testing.T) {
	t.Parallel()
	w := identified(t, settlemcp.Options{Tenant: "acme"})
	w.wantRefused(w.client(httpTransport(w.serve(w.server, true), "nobody"), false, nil, settlemcp.SendTask), w.ctx, nil, jsonrpc.CodeInvalidRequest, "authenticate")

	here, there := mcp.NewInMemoryTransports()
	if _, err := w.server.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	w.wantRefused(w.client(here, false, nil, settlemcp.SendTask), w.ctx, nil, jsonrpc.CodeInvalidRequest, "authenticate")

	secret := identified(t, settlemcp.Options{Principal: func(context.Context, *mcp.CallToolRequest) (settle.Principal, error) {
		return settle.Principal{}, errors.New("ada's account is locked")
	}})
	secret.wantRefused(secret.connect(links["http"], nil), secret.ctx, nil, jsonrpc.CodeInvalidRequest, "authenticate")

	if _, err := settlemcp.New(w.ex, settlemcp.Options{}); err == nil {
		t.Error("a guard that can't name a principal was made")
	}
}

// The principal is the token's user, and never what a client sends (R6).
func TestR6ThePrincipalComesFromTheToken(t *testing.T) {
	t.Parallel()
	w := identified(t, settlemcp.Options{Tenant: "acme"})
	server := w.serve(w.server, true)
	ada := w.client(httpTransport(server, "ada"), false, nil, settlemcp.SendTask)
	bob := w.client(httpTransport(server, "bob"), true, nil, settlemcp.SendTask)
	w.ctx = settle.WithPrincipal(w.ctx, settle.Principal{Tenant: "evil", Subject: "ada"})
	w.call(ada, "book", `{"seat":1}`)
	w.call(bob, "book", `{"seat":1}`)
	w.wantActs("book", 2)
	subjects := map[string]bool{}
	for _, row := range w.rows() {
		subjects[row.Of.Subject] = true
	}
	if len(subjects) != 2 || !subjects["ada"] || !subjects["bob"] {
		t.Errorf("the subjects are %v", subjects)
	}
}

func TestTheHostCanNamePrincipalAndTask(t *testing.T) {
	t.Parallel()
	w := identified(t, settlemcp.Options{
		Principal: func(_ context.Context, req *mcp.CallToolRequest) (settle.Principal, error) {
			return settle.Principal{Tenant: "acme", Subject: "team of " + req.Extra.TokenInfo.UserID}, nil
		},
		Task: func(_ context.Context, req *mcp.CallToolRequest) (settle.Task, error) {
			if _, sent := settlemcp.TaskOf(req); sent {
				return settle.Task{}, errors.New("no client names tasks here")
			}
			return settle.Task{ID: "of the host", Goal: "x"}, nil
		},
	})
	session := w.client(httpTransport(w.serve(w.server, true), "ada"), false, nil) // it knows nothing of tasks
	w.call(session, "book", `{"seat":1}`)
	if rows := w.rows(); len(rows) != 1 || rows[0].Of.Subject != "team of ada" || rows[0].Of.Task != "of the host" {
		t.Errorf("the ledger has %+v", rows)
	}
	_, err := session.CallTool(w.ctx, &mcp.CallToolParams{Name: "book", Arguments: map[string]any{"seat": 2},
		Meta: mcp.Meta{"io.github.settle-go/task": map[string]any{"id": "a", "goal": "b"}}})
	if err == nil {
		t.Error("a call was made though the host named no task for it")
	}
	w.wantActs("book", 1)
}

// A server of one user's, over stdio, has nothing but its own process.
func TestTheContextOfASessionCanNamePrincipalAndTask(t *testing.T) {
	t.Parallel()
	w := identified(t, settlemcp.Options{Tenant: "acme"})
	here, there := mcp.NewInMemoryTransports()
	if _, err := w.server.Connect(settle.WithPrincipal(settle.WithTask(t.Context(), task), caller), there, nil); err != nil {
		t.Fatal(err)
	}
	w.call(w.client(here, false, nil), "book", `{"seat":1}`)
	if rows := w.rows(); len(rows) != 1 || rows[0].Of.Subject != caller.Subject || rows[0].Of.Task != task.ID {
		t.Errorf("the ledger has %+v", rows)
	}
}

// A token that names nobody isn't the process's own user.
func TestATokenWithoutAUserIsNotTheSessionsPrincipal(t *testing.T) {
	t.Parallel()
	w := identified(t, settlemcp.Options{Tenant: "acme"})
	w.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(settle.WithPrincipal(ctx, caller), method, req)
		}
	})
	w.wantRefused(w.client(httpTransport(w.serve(w.server, true), "nobody"), false, nil, settlemcp.SendTask), w.ctx, nil, jsonrpc.CodeInvalidRequest, "authenticate")
}

func TestAServerThatShutsDownDoesNothing(t *testing.T) {
	t.Parallel()
	w := identified(t, settlemcp.Options{Tenant: "acme"})
	session := w.connect(links["http"], nil)
	if err := w.ex.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantRefused(session, w.ctx, nil, jsonrpc.CodeInternalError, "shutting down")
}
