package settlemcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/settle-go/settle"
	settlemcpgo "github.com/settle-go/settle/tools/mcpgo"
)

type bookArgs struct {
	Seat int64   `json:"seat" settle:"identity"`
	Note *string `json:"note,omitempty"`
}

func ownTool(w *world, name string, c ...settle.Contract) settle.Option {
	contract := settle.Contract{NoLookup: true}
	if len(c) > 0 {
		contract = c[0]
	}
	return settle.WithTools(settle.Tool[bookArgs, booked]{Name: name, Description: "The " + name + ".", Contract: contract,
		Do: func(_ context.Context, op settle.Op, _ bookArgs) (booked, error) {
			_ = op.Key()
			w.act(name)
			return booked{"b1"}, nil
		}})
}

func TestOfferedToolsAreShownWithWhatTheirContractSays(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t)
		classes := map[string]settle.Contract{
			"read": {Class: settle.Read}, "idempotent": {Class: settle.Idempotent},
			"keyed": {Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true}, "unsafe": {NoLookup: true},
		}
		options := []settle.Option{settle.WithGuarded(seat)}
		for name, c := range classes {
			options = append(options, ownTool(w, name, c))
		}
		w.restart(options...)
		if err := w.guard.Offer(w.server); err != nil {
			t.Fatal(err)
		}
		c := to(w)
		list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
		if err != nil || len(list.Tools) != len(classes) {
			t.Fatalf("the client is shown %d tools, %v", len(list.Tools), err)
		}
		for _, tool := range list.Tools {
			a := tool.Annotations
			if *a.ReadOnlyHint != (tool.Name == "read") || *a.IdempotentHint != (tool.Name == "idempotent") || a.DestructiveHint != nil || tool.Description != "The "+tool.Name+"." {
				t.Errorf("%s is shown as %+v", tool.Name, tool)
			}
			first := w.call(c, tool.Name, `{"seat":1,"note":null}`)
			w.wantAnswer(first, settle.StatusCompleted)
			if result, _ := first.StructuredContent.(map[string]any)["result"].(map[string]any); result["id"] != "b1" {
				t.Errorf("%s: the structured content is %v", tool.Name, first.StructuredContent)
			}
			w.call(c, tool.Name, `{"seat":1}`)
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
	w.restart(ownTool(w, "one"), ownTool(w, "two"))
	if err := w.guard.Offer(w.server, "two"); err != nil || len(w.server.ListTools()) != 1 || w.server.GetTool("two") == nil {
		t.Errorf("the server has %v, %v", w.server.ListTools(), err)
	}
}

func TestAnOfferedToolThatIsReplacedIsGuardedAsTheServersOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.restart(ownTool(w, "book"))
	if err := w.guard.Offer(w.server); err != nil {
		t.Fatal(err)
	}
	w.addBook(bookIt)
	c := w.began(links["http"](w))
	w.call(c, "book", `{"seat":1}`)
	w.call(c, "book", `{"seat":1}`)
	w.wantActs("book", 1)
}

// Servers and clients check structured content: what stands in a result's place
// has to fit, or to be left out.
func TestAnAnswerPassesTheServersOwnCheckOfItsOutput(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.guarded(settlemcpgo.Options{}, server.WithOutputSchemaValidation())
		fails := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("reset")
		}
		narrow := mcp.NewTool("narrow", mcp.WithOutputSchema[booked]())
		wide := settlemcpgo.Widen(mcp.NewTool("wide", mcp.WithOutputSchema[booked]()))
		w.add(narrow, fails)
		w.add(wide, fails)
		wide.Name = "fine"
		w.add(wide, bookIt)
		wide.Name = "wrong"
		w.add(wide, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultStructuredOnly(map[string]any{"id": 7}), nil
		})
		c := to(w)
		if r := w.call(c, "narrow", `{}`); r.IsError || r.StructuredContent != nil || outcomeOf(r.Meta) != "unknown" || !strings.HasPrefix(texts(r.Content), "[unknown;") {
			t.Errorf("narrow: got %+v", r)
		}
		w.wantAnswer(w.call(c, "wide", `{}`), settle.StatusUnknown)
		if r := w.call(c, "fine", `{}`); r.IsError || texts(r.Content) != `{"id":"b1"}` {
			t.Errorf("fine: got %+v", r)
		}
		if r := w.call(c, "wrong", `{}`); !r.IsError {
			t.Errorf("wrong: the server's own check is gone: %+v", r)
		}
	})
}

func TestWidenLeavesOrDropsWhatItCannotWiden(t *testing.T) {
	t.Parallel()
	plain := mcp.NewTool("plain")
	if got := settlemcpgo.Widen(plain); got.RawOutputSchema != nil {
		t.Errorf("got %s", got.RawOutputSchema)
	}
	points := mcp.NewTool("points", mcp.WithRawOutputSchema(json.RawMessage(`{"$ref":"#"}`)))
	if got := settlemcpgo.Widen(points); got.RawOutputSchema != nil {
		t.Errorf("got %s", got.RawOutputSchema)
	}
	once := settlemcpgo.Widen(mcp.NewTool("wide", mcp.WithOutputSchema[booked]()))
	if twice := settlemcpgo.Widen(once); string(twice.RawOutputSchema) != string(once.RawOutputSchema) {
		t.Errorf("got %s", twice.RawOutputSchema)
	}
}
