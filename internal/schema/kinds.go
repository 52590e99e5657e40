package schema

import "encoding/json"

// kindSet are the kinds of JSON that a value may be of, null aside.
type kindSet uint8

const (
	texts kindSet = 1 << iota
	numerals
	booleans
	arrays
	objects
	anyKind = texts | numerals | booleans | arrays | objects
)

var kindNames = map[kindSet]string{texts: "string", numerals: "number", booleans: "boolean", arrays: "array", objects: "object"}

// kindsOf are those that a schema's type names: 1 and 1.0 are compared as one.
var kindsOf = map[string]kindSet{"string": texts, "number": numerals, "integer": numerals, "boolean": booleans, "array": arrays, "object": objects}

// Kind is the one kind of JSON that the value at a path is of where there is one:
// "string", "number", "boolean", "array" or "object". It is "" where the schema
// leaves that open.
func (s *Schema) Kind(path []string) string {
	var top any
	if json.Unmarshal(s.Accepted, &top) != nil {
		return ""
	}
	object, _ := top.(map[string]any)
	r := kindReader{rawSchema{top: object}, map[string]kindSet{}}
	ways := []any{top}
	for _, name := range path {
		var below []any
		followed := map[string]bool{}
		for _, way := range ways {
			below = append(below, r.members(way, name, followed)...)
		}
		ways = below
	}
	of := anyKind
	for _, way := range ways {
		of &= r.kinds(way)
	}
	return kindNames[of]
}

// kindReader follows a schema's references, each once: they may go round.
type kindReader struct {
	rawSchema
	byReference map[string]kindSet
}

// members are the schemas that a member of an object has to fit, all of them.
func (r *kindReader) members(schema any, name string, followed map[string]bool) (found []any) {
	s, _ := schema.(map[string]any)
	if properties, ok := s["properties"].(map[string]any); ok && properties[name] != nil {
		found = append(found, properties[name])
	}
	if ref, ok := s["$ref"].(string); ok && !followed[ref] {
		followed[ref] = true
		if target, ok := r.lookup(ref); ok {
			found = append(found, r.members(target, name, followed)...)
		}
	}
	for _, part := range listOf(s["allOf"]) {
		found = append(found, r.members(part, name, followed)...)
	}
	return found
}

// referredKinds are those behind a reference; one that goes round says nothing.
func (r *kindReader) referredKinds(ref string) kindSet {
	if of, ok := r.byReference[ref]; ok {
		return of
	}
	r.byReference[ref] = anyKind
	if target, ok := r.lookup(ref); ok {
		r.byReference[ref] = r.kinds(target)
	}
	return r.byReference[ref]
}

func (r *kindReader) kinds(schema any) kindSet {
	s, ok := schema.(map[string]any)
	if !ok {
		return anyKind
	}
	of := anyKind
	if types := typesOf(s); len(types) > 0 {
		var named kindSet
		for _, t := range types {
			named |= kindsOf[t]
		}
		of &= named
	}
	if values, ok := s["enum"].([]any); ok {
		var listed kindSet
		for _, v := range values {
			listed |= kindOf(v)
		}
		of &= listed
	}
	if v, ok := s["const"]; ok {
		of &= kindOf(v)
	}
	if ref, ok := s["$ref"].(string); ok {
		of &= r.referredKinds(ref)
	}
	for _, part := range listOf(s["allOf"]) {
		of &= r.kinds(part)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		var either kindSet
		for _, alternative := range listOf(s[keyword]) {
			either |= r.kinds(alternative)
		}
		if len(listOf(s[keyword])) > 0 {
			of &= either
		}
	}
	return of
}

// kindOf is none for null.
func kindOf(v any) kindSet {
	switch v.(type) {
	case string:
		return texts
	case float64:
		return numerals
	case bool:
		return booleans
	case []any:
		return arrays
	case map[string]any:
		return objects
	}
	return 0
}
