package settlemcp_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
)

func (w *world) offerAll() {
	w.Helper()
	if err := w.guard.Offer(w.server); err != nil {
		w.Fatal(err)
	}
}

func ownTool(w *world, name string, c settle.Contract) settle.AnyTool {
	return settle.Tool[bookArgs, booked]{Name: name, Description: "The " + name + ".", Contract: c,
		Do: func(_ context.Context, op settle.Op, _ bookArgs) (booked, error) {
			w.act(op.Key())
			w.act(name)
			return booked{"b1"}, nil
		}}
}

// A host that makes a server for each session mustn't fill the guard's memory.
func TestEveryServerIsOfferedTheSameTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.restart(settle.WithTools(ownTool(w, "own", settle.Contract{Identity: []string{"seat"}, NoLookup: true})))
	shown := map[*mcp.Tool]bool{}
	for range 3 {
		w.server = mcp.NewServer(&mcp.Implementation{Name: "bookings", Version: "v1"}, nil)
		w.server.AddReceivingMiddleware(w.guard.Receiving)
		w.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				if list, ok := result.(*mcp.ListToolsResult); ok {
					shown[list.Tools[0]] = true
				}
				return result, err
			}
		})
		w.offerAll()
		session := w.connect(links["http"], nil)
		if _, err := session.ListTools(w.ctx, nil); err != nil {
			t.Fatal(err)
		}
		w.call(session, "own", `{"seat":1}`)
	}
	w.wantActs("own", 1)
	if len(shown) != 1 {
		t.Errorf("the servers have %d tools", len(shown))
	}
}

func TestOfferedToolsAreShownWithWhatTheirContractSays(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t)
		by := []string{"seat"}
		classes := map[string]settle.Contract{
			"read": {Class: settle.Read}, "idempotent": {Class: settle.Idempotent, Identity: by},
			"keyed": {Class: settle.Keyed, Identity: by, KeyWindow: settle.Permanent, NoLookup: true}, "unsafe": {Identity: by, NoLookup: true},
		}
		var tools []settle.AnyTool
		for name, c := range classes {
			tools = append(tools, ownTool(w, name, c))
		}
		w.restart(settle.WithTools(tools...), settle.WithGuarded(seat))
		w.offerAll()
		session := w.connect(l, nil)
		list, err := session.ListTools(w.ctx, nil)
		if err != nil || len(list.Tools) != len(classes) {
			t.Fatalf("the client is shown %d tools, %v", len(list.Tools), err)
		}
		for _, tool := range list.Tools {
			a := tool.Annotations
			if a.ReadOnlyHint != (tool.Name == "read") || a.IdempotentHint != (tool.Name == "idempotent") || a.DestructiveHint != nil || tool.Description != "The "+tool.Name+"." {
				t.Errorf("%s is shown as %+v, %+v", tool.Name, tool, a)
			}
			first := w.call(session, tool.Name, `{"seat":1,"note":null}`)
			w.wantAnswer(first, settle.StatusCompleted)
			if got := first.StructuredContent.(map[string]any)["result"]; got.(map[string]any)["id"] != "b1" {
				t.Errorf("%s: the structured content is %v", tool.Name, first.StructuredContent)
			}
			w.call(session, tool.Name, `{"seat":1}`)
			if tool.Name != "read" {
				w.wantActs(tool.Name, 1)
			}
		}
		if err := w.guard.Offer(w.server, "book"); err == nil {
			t.Error("a contract without a schema was offered")
		}
	})
}

func TestOfferTakesTheNamedOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := settle.Contract{Identity: []string{"seat"}, NoLookup: true}
	w.restart(settle.WithTools(ownTool(w, "one", c), ownTool(w, "two", c)))
	if err := w.guard.Offer(w.server, "two"); err != nil {
		t.Fatal(err)
	}
	list, err := w.connect(links["http"], nil).ListTools(w.ctx, nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "two" {
		t.Errorf("got %v, %v", list, err)
	}
}

// Without the middleware the offered tools are guarded all the same; what then
// takes an offered one's place is not.
func TestAnOfferedToolThatIsReplacedIsGuardedAsTheServersOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.restart(settle.WithTools(ownTool(w, "book", settle.Contract{Identity: []string{"seat"}, NoLookup: true})))
	w.offerAll()
	w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			w.act("replaced")
			return &mcp.CallToolResult{}, nil
		})
	session := w.connect(links["http"], nil)
	w.call(session, "book", `{"seat":1}`)
	w.call(session, "book", `{"seat":1}`)
	w.wantActs("replaced", 1)
	w.wantActs("book", 0)
}
