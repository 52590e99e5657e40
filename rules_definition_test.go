package settle_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
)

// What identifies a call changes while a task is under way (R3).

func TestR03AChangedIdentityIsHeld(t *testing.T) {
	type byOrder struct {
		Order  string `json:"order" settle:"identity"`
		Amount int    `json:"amount"`
	}
	type byBoth struct {
		Order  string `json:"order" settle:"identity"`
		Amount int    `json:"amount" settle:"identity"`
	}
	g := onFile(t)
	before := g.executor(settle.Tool[byOrder, paid]{Name: "pay", Contract: unsafeContract(), Do: does[byOrder, paid]()})
	g.want(before, payCall("A-1", 5), settle.StatusCompleted)
	after := g.executor(settle.Tool[byBoth, paid]{Name: "pay", Contract: unsafeContract(), Do: does[byBoth, paid]()})
	for _, call := range []settle.Call{payCall("A-1", 5), payCall("A-2", 1)} {
		out := g.want(after, call, settle.StatusHeld)
		if out.Reason != "contract_changed" {
			t.Errorf("the reason is %q", out.Reason)
		}
	}
	if out := g.do(g.inTask("another"), after, payCall("A-1", 5)); out.Status != settle.StatusCompleted {
		t.Errorf("another intent has no earlier operation, and gave %s", out.Status)
	}
}

// The same order in another kind of JSON, or compared by another format, has
// another node: with a definition that looked the same it would be acted on twice.
func TestR03AnIdentityOfAnotherTypeIsHeld(t *testing.T) {
	type one[T any] struct {
		Order T `json:"order" settle:"identity"`
	}
	type part[T any] struct {
		ID T `json:"id"`
	}
	const id = `"6ba7b810-9dad-11d1-80b4-00c04fd430c8"`
	text, number := payOrder[one[string]](), payOrder[one[int]]()
	for name, c := range map[string]struct {
		before, after settle.AnyTool
		was, is       string
		held          bool
	}{
		"text to number":        {text, number, `"17"`, `17`, true},
		"number to text":        {number, text, `17`, `"17"`, true},
		"text to truth":         {text, payOrder[one[bool]](), `"true"`, `true`, true},
		"text to UUID":          {text, payOrder[one[uuid.UUID]](), id, id, true},
		"list of UUIDs":         {payOrder[one[[2]string]](), payOrder[one[[2]uuid.UUID]](), `[` + id + `,` + id + `]`, `[` + id + `,` + id + `]`, true},
		"object with a UUID":    {payOrder[one[part[string]]](), payOrder[one[part[uuid.UUID]]](), `{"id":` + id + `}`, `{"id":` + id + `}`, true},
		"text to list":          {text, payOrder[one[[]string]](), `"17"`, `["17"]`, true},
		"text to map":           {text, payOrder[one[map[string]string]](), `"17"`, `{"id":"17"}`, true},
		"a type in a list":      {rawOrder(`{"type":["string"]}`), rawOrder(`{"type":["integer"]}`), `"17"`, `17`, true},
		"alternatives":          {rawOrder(`{"anyOf":[{"type":"string"},{"type":"string","const":"x"}]}`), rawOrder(`{"anyOf":[{"type":"integer"},{"type":"number"}]}`), `"17"`, `17`, true},
		"a reference":           {rawOrder(`{"$ref":"#/$defs/text"}`), rawOrder(`{"$ref":"#/$defs/number"}`), `"17"`, `17`, true},
		"a part of all":         {rawOrder(`{"allOf":[{"$ref":"#/$defs/text"}]}`), rawOrder(`{"allOf":[{"$ref":"#/$defs/number"}]}`), `"17"`, `17`, true},
		"values":                {rawOrder(`{"type":["string","integer"],"enum":["17","18"]}`), rawOrder(`{"type":["string","integer"],"enum":[17,18]}`), `"17"`, `17`, true},
		"the same by reference": {rawOrder(`{"type":"integer"}`), rawOrder(`{"$ref":"#/$defs/number","description":"An order."}`), `17`, `17`, false},
		"no longer open":        {rawOrder(`{"type":["string","boolean"]}`), rawOrder(`{"type":"string"}`), `"17"`, `"17"`, false},
		"a wider number":        {number, payOrder[one[int64]](), `17`, `17`, false},
		"a number with a point": {number, payOrder[one[float64]](), `17`, `17.0`, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := inMemory(t)
			g.want(g.executor(c.before), settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":` + c.was + `}`)}, settle.StatusCompleted)
			out := g.do(g.ctx, g.executor(c.after), settle.Call{Tool: "pay", Args: json.RawMessage(`{"order":` + c.is + `}`)})
			if held := out.Status == settle.StatusHeld && out.Reason == "contract_changed"; held != c.held || !held && !out.Replayed {
				t.Errorf("it is %s (%s), replayed %v", out.Status, out.Reason, out.Replayed)
			}
		})
	}
}

// payOrder is a tool that is identified by what In says.
func payOrder[In any]() settle.AnyTool {
	return settle.Tool[In, paid]{Name: "pay", Contract: unsafeContract(), Do: does[In, paid]()}
}

// rawOrder is a tool of somebody else's, which says of its order what is given.
func rawOrder(order string) settle.AnyTool {
	return settle.RawTool{Name: "pay", Contract: settle.Contract{NoLookup: true, Identity: []string{"order"}},
		Schema: json.RawMessage(`{"type":"object","properties":{"order":` + order + `},"required":["order"],"$defs":{
			"text":{"type":"string"},"number":{"type":"integer"}}}`),
		Do: func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{}`), nil
		}}
}
