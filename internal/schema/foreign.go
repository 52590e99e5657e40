package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
)

// Foreign returns the schema of a tool that somebody else wrote in a form that
// [Parse] takes, in its own order. What isn't JSON comes back as it is.
//
// A pattern that Go's regular expressions don't have, such as one that looks
// ahead, is left out: whoever owns the tool checks it. And as arguments are
// always an object, a schema that doesn't say so, or allows null beside it, does
// then.
func Foreign(raw json.RawMessage) json.RawMessage {
	if string(bytes.TrimSpace(raw)) == "true" {
		return json.RawMessage(`{"type":"object"}`)
	}
	top, err := membersOf(raw)
	if err != nil || !json.Valid(raw) {
		return raw
	}
	own, changed := withoutPatterns(top)
	switch i := find(own, "type"); {
	case i < 0 && find(own, "$ref") < 0:
		own, changed = append(own, member{"type", json.RawMessage(`"object"`)}), true
	case i >= 0:
		var types []string
		if json.Unmarshal(own[i].value, &types) == nil && slices.Contains(types, "object") {
			own, changed = set(own, "type", json.RawMessage(`"object"`)), true
		}
	}
	if !changed {
		return raw
	}
	if read, err := object(own); err == nil {
		return read
	}
	return raw
}

// ParseForeign is [Parse] of the schema of a tool that somebody else wrote.
func ParseForeign(raw json.RawMessage) (*Schema, error) { return Parse(Foreign(raw)) }

// values are the keywords whose values are no schemas.
var values = []string{"const", "enum", "default", "examples"}

// withoutPatterns takes the patterns that can't be read out of a schema, at any
// depth.
func withoutPatterns(members []member) (own []member, changed bool) {
	for _, m := range members {
		switch {
		case m.name == "pattern" && unreadable(m.value):
			changed = true
			continue
		case !slices.Contains(values, m.name):
			if value, other := below(m.value); other {
				m.value, changed = value, true
			}
		}
		own = append(own, m)
	}
	return own, changed
}

func below(raw json.RawMessage) (_ json.RawMessage, changed bool) {
	if members, err := membersOf(raw); err == nil {
		own, changed := withoutPatterns(members)
		if !changed {
			return raw, false
		}
		value, err := object(own)
		return value, err == nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return raw, false
	}
	for i, item := range items {
		if value, other := below(item); other {
			items[i], changed = value, true
		}
	}
	if !changed {
		return raw, false
	}
	value, err := json.Marshal(items)
	return value, err == nil
}

// unreadable says of a pattern that it may be well-formed elsewhere, and isn't
// one of Go's. A property that is called pattern has a schema and no text.
func unreadable(raw json.RawMessage) bool {
	var pattern string
	if json.Unmarshal(raw, &pattern) != nil {
		return false
	}
	_, err := regexp.Compile(pattern)
	var refused *syntax.Error
	if !errors.As(err, &refused) {
		return false
	}
	// Looking around, back references and other escapes, large counts.
	return slices.Contains([]syntax.ErrorCode{syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatSize,
		syntax.ErrInvalidCharRange, syntax.ErrInvalidNamedCapture, syntax.ErrLarge}, refused.Code)
}
