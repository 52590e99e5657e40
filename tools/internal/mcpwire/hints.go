package mcpwire

import "github.com/settle-go/settle"

// Hints are a tool's annotations. A nil hint was not given; the defaults that MCP
// has for it count as doubt, not as a word.
type Hints struct{ ReadOnly, Destructive, Idempotent, OpenWorld *bool }

// ClassOf is what the hints of a server that is trusted are worth (R4). What
// contradicts itself or leaves a doubt is Unsafe, and nothing is Keyed: a hint
// names no key. Whether the world is open says nothing about a second call.
//
// A read-only tool that doesn't claim to be idempotent is no contradiction: MCP
// gives that hint a meaning only for tools that write.
func ClassOf(h Hints) settle.Class {
	switch {
	case says(h.ReadOnly) && says(h.Destructive):
		return settle.Unsafe
	case says(h.ReadOnly):
		return settle.Read
	case says(h.Idempotent):
		return settle.Idempotent
	}
	return settle.Unsafe
}

// HintsOf says of a class what MCP has a hint for. A Keyed tool isn't idempotent
// in MCP's sense: without its key it acts again.
func HintsOf(c settle.Class) (readOnly, idempotent bool) {
	return c == settle.Read, c == settle.Idempotent
}

func says(hint *bool) bool { return hint != nil && *hint }
