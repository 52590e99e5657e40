package mcpwire

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/settle-go/settle/internal/schema"
)

// Stored is what the ledger keeps of a result, given as its JSON: the structured
// content alone where nothing else says more, which is the business result as a
// contract's Resource and a lookup know it (R47); otherwise all of it.
func Stored(result []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(result, &members); err != nil || members == nil {
		return []byte("null"), err
	}
	delete(members, "resultType")
	ownMeta(members)
	structured := members["structuredContent"]
	var object map[string]json.RawMessage
	if json.Unmarshal(structured, &object) == nil && object != nil && object["content"] == nil && len(members) == 2 {
		if said, ok := business(members["content"], structured); ok {
			return said, nil
		}
	}
	return json.Marshal(members)
}

// ownMeta takes out of a result's _meta what the protocol and settle put there.
func ownMeta(members map[string]json.RawMessage) {
	var meta map[string]json.RawMessage
	if json.Unmarshal(members["_meta"], &meta) != nil {
		return
	}
	maps.DeleteFunc(meta, func(name string, _ json.RawMessage) bool {
		return name == OutcomeKey || strings.HasPrefix(name, "io.modelcontextprotocol/")
	})
	delete(members, "_meta")
	if kept, err := json.Marshal(meta); err == nil && len(meta) > 0 {
		members["_meta"] = kept
	}
}

// business is what the content and the structured one both say, if they do. MCP's
// client libraries decode the one as float64 and leave the other as text, which
// then has the number that the tool returned.
func business(content, structured json.RawMessage) (json.RawMessage, bool) {
	var blocks []map[string]any
	if json.Unmarshal(content, &blocks) != nil || len(blocks) > 1 {
		return nil, false
	}
	if len(blocks) == 0 {
		return structured, true
	}
	text, _ := blocks[0]["text"].(string)
	if blocks[0]["type"] != "text" || len(blocks[0]) != 2 {
		return nil, false
	}
	if sameJSON([]byte(text), structured) {
		return structured, true
	}
	var said, rounded any
	if json.Unmarshal([]byte(text), &said) != nil || json.Unmarshal(structured, &rounded) != nil || !reflect.DeepEqual(said, rounded) {
		return nil, false
	}
	if image, err := json.Marshal(rounded); err != nil || !sameJSON(image, structured) {
		return nil, false // it has more digits itself
	}
	whole, _ := exact([]byte(text))
	unrounded, err := json.Marshal(whole)
	return unrounded, err == nil
}

func sameJSON(a, b []byte) bool {
	left, ok := exact(a)
	right, also := exact(b)
	return ok && also && reflect.DeepEqual(left, right)
}

// exact reads one JSON value without rounding its numbers.
func exact(raw []byte) (v any, ok bool) {
	ok = schema.Read(raw, &v) == nil
	return v, ok
}

// Loaded is the JSON of a result that [Stored], a lookup or a person gave.
func Loaded(stored []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	switch err := json.Unmarshal(stored, &members); {
	case err == nil && members == nil:
		return []byte(`{"content":[]}`), nil
	case err == nil && members["content"] != nil:
		return stored, nil
	case err == nil:
		return json.Marshal(map[string]any{"content": text(string(stored)), "structuredContent": json.RawMessage(stored)})
	}
	var said string
	if json.Unmarshal(stored, &said) != nil {
		said = string(stored)
	}
	return json.Marshal(map[string]any{"content": text(said)})
}

func text(s string) []map[string]string { return []map[string]string{{"type": "text", "text": s}} }
