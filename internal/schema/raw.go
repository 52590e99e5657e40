package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/settle-go/settle/internal/canonical"
)

const givenAsJSON = "the schema given as JSON"

// Parse takes a schema that is given as JSON: that of a raw tool, or of one that
// came from elsewhere. It has to describe an object, and is read as draft
// 2020-12 unless its $schema says otherwise. Formats are checked, "decimal" among
// them. References stay within the document; nothing is ever loaded.
//
// Offered and Accepted are the schema as given. An absent field and null are two
// things (S84), since nothing is known of who reads them. The error joins a
// [*TypeError] for each problem.
func Parse(raw json.RawMessage) (*Schema, error) {
	wrong := func(reason string) error { return &TypeError{Type: givenAsJSON, Reason: reason} }
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, wrong("it isn't one JSON value: " + err.Error())
	}
	if _, found := oversized(doc); found {
		return nil, wrong(fmt.Sprintf("it holds a number with more than %d digits or an exponent beyond %d; write a smaller one", canonical.MaxDigits, canonical.MaxExponent))
	}
	top, ok := doc.(map[string]any)
	if !ok {
		return nil, wrong("it isn't an object; give a schema of type object")
	}
	if types := typesOf(top); len(types) != 1 || types[0] != "object" {
		return nil, wrong(`arguments are an object; say "type": "object" at the top`)
	}
	s := &Schema{Offered: bytes.Clone(raw), Accepted: bytes.Clone(raw)}
	if err := s.compile(given); err != nil {
		return nil, wrong(err.Error())
	}
	r := &rawSchema{top: top, byPointer: map[string]branch{}}
	s.Shape = r.branch(top).shape
	if s.Shape == nil {
		s.Shape = &canonical.Shape{}
	}
	s.Strict = strictRaw(top, 1)
	s.Fields = r.fields(raw)
	return s, nil
}

// rawSchema reads the shape off a schema that is given as JSON.
type rawSchema struct {
	top       map[string]any
	byPointer map[string]branch
}

// fields lists the properties of the top level in their order.
func (r *rawSchema) fields(raw json.RawMessage) []Field {
	members, err := membersOf(raw)
	if err != nil {
		return nil
	}
	i := find(members, "properties")
	if i < 0 {
		return nil
	}
	properties, err := membersOf(members[i].value)
	if err != nil {
		return nil
	}
	required := stringsOf(r.top["required"])
	schemas, _ := r.top["properties"].(map[string]any)
	fields := make([]Field, 0, len(properties))
	for _, p := range properties {
		optional := !slices.Contains(required, p.name) || r.branch(schemas[p.name]).null
		fields = append(fields, Field{Name: p.name, Optional: optional})
	}
	return fields
}

// branch reads what a schema takes and how it compares.
func (r *rawSchema) branch(schema any) branch {
	s, ok := schema.(map[string]any)
	if !ok {
		return unknown // true, or false, which nothing fits
	}
	b := r.own(s)
	if ref, ok := s["$ref"].(string); ok {
		b = both(b, r.referred(ref))
	}
	for _, part := range listOf(s["allOf"]) {
		b = both(b, r.branch(part))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		alternatives := listOf(s[keyword])
		if len(alternatives) == 0 {
			continue
		}
		branches := make([]branch, 0, len(alternatives))
		for _, alternative := range alternatives {
			branches = append(branches, r.branch(alternative))
		}
		b = both(b, either(branches))
	}
	return b
}

// own reads a schema's own type, format, properties and items.
func (r *rawSchema) own(s map[string]any) branch {
	b := unknown
	if types := typesOf(s); len(types) > 0 {
		b = branch{
			strings: slices.Contains(types, "string"),
			objects: slices.Contains(types, "object"),
			arrays:  slices.Contains(types, "array"),
			null:    slices.Contains(types, "null"),
		}
	}
	shape := canonical.Shape{}
	if format, ok := s["format"].(string); ok && b.strings && comparedAsValues(format) {
		shape.Format = format
	}
	if properties, ok := s["properties"].(map[string]any); ok && b.objects && len(properties) > 0 {
		shape.Fields = make(map[string]*canonical.Shape, len(properties))
		for name, property := range properties {
			if shape.Fields[name] = r.branch(property).shape; shape.Fields[name] == nil {
				shape.Fields[name] = &canonical.Shape{}
			}
		}
	}
	// Where a pattern of names or a place in an array decides, one shape for all
	// others would be wrong for some.
	if more, ok := s["additionalProperties"]; ok && b.objects {
		b.closed = more == false && s["patternProperties"] == nil
		if s["patternProperties"] == nil {
			shape.Additional = r.branch(more).shape
		}
	}
	if items, ok := s["items"].(map[string]any); ok && b.arrays && s["prefixItems"] == nil {
		shape.Items = r.branch(items).shape
	}
	if shape.Format != "" || shape.Fields != nil || shape.Items != nil || shape.Additional != nil {
		b.shape = &shape
	}
	return b
}

// referred reads what a reference within the document leads to. A schema that
// contains itself has a shape that does.
func (r *rawSchema) referred(ref string) branch {
	if b, ok := r.byPointer[ref]; ok {
		return b
	}
	target, ok := r.lookup(ref)
	if !ok {
		return unknown
	}
	shape := &canonical.Shape{}
	b := unknown
	b.shape = shape
	r.byPointer[ref] = b // for where it contains itself
	b = r.branch(target)
	if b.shape != nil {
		*shape = *b.shape
	}
	b.shape = shape
	r.byPointer[ref] = b
	return b
}

// lookup follows a JSON Pointer (RFC 6901) in a fragment. It doesn't know
// anchors: what they lead to is compared as it is read.
func (r *rawSchema) lookup(ref string) (any, bool) {
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if !strings.HasPrefix(ref, "#") || err != nil || fragment != "" && fragment[0] != '/' {
		return nil, false
	}
	var at any = r.top
	for _, token := range pointerTokens(fragment) {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[token]
			if !ok {
				return nil, false
			}
			at = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}

func pointerTokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens
}

func typesOf(s map[string]any) []string {
	if one, ok := s["type"].(string); ok {
		return []string{one}
	}
	return stringsOf(s["type"])
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

func stringsOf(v any) []string {
	var texts []string
	for _, item := range listOf(v) {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// strictRaw says whether a schema keeps to what [Schema.Offered] is made of
// where it comes from a Go type.
func strictRaw(schema any, depth int) bool {
	s, ok := schema.(map[string]any)
	if !ok || depth > maxDepth {
		return false
	}
	for keyword, value := range s {
		if !strictKeyword(keyword, value, depth) {
			return false
		}
	}
	if alternatives := listOf(s["anyOf"]); len(alternatives) > 0 {
		return s["type"] == nil && !slices.ContainsFunc(alternatives, func(a any) bool { return !strictRaw(a, depth) })
	}
	switch s["type"] {
	case "object":
		properties, _ := s["properties"].(map[string]any)
		required := stringsOf(s["required"])
		for name, property := range properties {
			if !slices.Contains(required, name) || !propertyName.MatchString(name) || !strictRaw(property, depth+1) {
				return false
			}
		}
		return properties != nil && s["additionalProperties"] == false
	case "array":
		return strictRaw(s["items"], depth+1)
	case "string", "number", "integer", "boolean", "null":
		return true
	default:
		return false
	}
}

func strictKeyword(keyword string, value any, depth int) bool {
	switch keyword {
	case "type", "title", "description", "properties", "required", "additionalProperties", "items", "anyOf":
		return true
	case "$schema":
		return depth == 1
	case "format":
		format, _ := value.(string)
		return offeredFormat(format)
	case "pattern":
		pattern, _ := value.(string)
		return plainPattern(pattern)
	case "enum":
		return onlyStrings(listOf(value))
	default:
		return false
	}
}
