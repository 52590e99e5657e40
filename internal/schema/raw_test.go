package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/settle-go/settle/internal/canonical"
)

func parsed(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASchemaGivenAsJSONIsOfferedAsGiven(t *testing.T) {
	t.Parallel()
	text := []byte(`{ "type" : "object", "x-mine": [1, 2], "properties": {"b": {"type": "string"}, "a": {"type": ["integer", "null"]}, "c": {}}, "required": ["b", "a"] }`)
	s := parsed(t, string(text))
	if !bytes.Equal(s.Offered, text) || !bytes.Equal(s.Accepted, text) {
		t.Errorf("offered %s", s.Offered)
	}
	want := []Field{{Name: "b"}, {Name: "a", Optional: true}, {Name: "c", Optional: true}}
	if !reflect.DeepEqual(s.Fields, want) {
		t.Errorf("fields %+v", s.Fields)
	}
	if err := s.Validate([]byte(`{"b":"x","a":null,"more":true}`)); err != nil {
		t.Error(err)
	}
	if s.Validate([]byte(`{"a":1}`)) == nil {
		t.Error("a required field may be missing")
	}
	text[2] = 'X'
	if s.Offered[2] == 'X' {
		t.Error("the schema shares its caller's bytes")
	}
}

func TestSchemasThatCantBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, says string }{
		{"no JSON", `{`, "isn't one JSON value"},
		{"a number without end", `{"type":"object","properties":{"a":{"minimum":1e999999999}}}`, "an exponent beyond 10000"},
		{"no object", `[]`, "isn't an object"},
		{"true", `true`, "isn't an object"},
		{"another type", `{"type":"string"}`, `say "type": "object"`},
		{"no type", `{"properties":{}}`, `say "type": "object"`},
		{"two types", `{"type":["object","null"]}`, `say "type": "object"`},
		{"an unknown type", `{"type":"object","properties":{"a":{"type":"text"}}}`, "metaschema"},
		{"a reference elsewhere", `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`, "put what it refers to under $defs"},
		{"a reference to a file", `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "put what it refers to under $defs"},
		{"a reference relative to an id", `{"$id":"https://example.com/s.json","type":"object","properties":{"a":{"$ref":"b.json"}}}`, "put what it refers to under $defs"},
		{"a dangling reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, "not found"},
		{"another metaschema", `{"$schema":"https://example.com/mine","type":"object"}`, "another document"},
		{"a pattern that is none", `{"type":"object","properties":{"a":{"pattern":"(?=x)"}}}`, "pattern"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(c.text))
			assertProblem(t, err, "", c.says)
		})
	}
}

func TestDraftsAreReadAsTheySay(t *testing.T) {
	t.Parallel()
	tuple := `"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}],"additionalItems":false}}}`
	old := parsed(t, `{"$schema":"http://json-schema.org/draft-07/schema#",`+tuple)
	if err := old.Validate([]byte(`{"a":["x"]}`)); err != nil {
		t.Error(err)
	}
	if old.Validate([]byte(`{"a":["x",1]}`)) == nil {
		t.Error("draft-07's additionalItems is passed over")
	}
	if _, err := Parse([]byte(`{` + tuple)); err == nil {
		t.Error("without $schema it isn't read as draft 2020-12, where items is no list")
	}
}

func TestFormatsOfAGivenSchemaAreChecked(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"object","properties":{"amount":{"type":"string","format":"decimal"},"at":{"type":"string","format":"date-time"},"x":{"type":"string","format":"of-my-own"}}}`)
	for text, valid := range map[string]bool{
		`{"amount":"1.50"}`: true, `{"amount":"-0"}`: true, `{"amount":"1e3"}`: true, `{"amount":"1,5"}`: false, `{"amount":""}`: false, `{"amount":"+1"}`: false, `{"amount":".5"}`: false, `{"amount":"NaN"}`: false,
		`{"at":"2016-12-31T23:59:60Z"}`: true, `{"at":"2026-02-30T00:00:00Z"}`: false,
		`{"x":"anything"}`: true,
	} {
		if err := s.Validate([]byte(text)); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestS84NullAndAbsentDifferInAGivenSchema(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"object","properties":{"note":{"type":["string","null"]},"amount":{"type":"string","format":"decimal"}}}`)
	want := &canonical.Shape{Fields: map[string]*canonical.Shape{"note": {}, "amount": {Format: "decimal"}}}
	if !reflect.DeepEqual(s.Shape, want) {
		t.Errorf("got %s", shapeText(t, s.Shape))
	}
}

func shapeText(t testing.TB, s *canonical.Shape) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestR16ShapesAreReadThroughASchemasConnectives(t *testing.T) {
	t.Parallel()
	dec, day := &canonical.Shape{Format: "decimal"}, &canonical.Shape{Format: "date"}
	plain := &canonical.Shape{}
	object := func(fields map[string]*canonical.Shape) *canonical.Shape { return &canonical.Shape{Fields: fields} }
	for _, c := range []struct {
		name, property string
		want           *canonical.Shape
	}{
		{"format", `{"type":"string","format":"decimal"}`, dec},
		{"format without a type", `{"format":"date"}`, day},
		{"a format that isn't compared as a value", `{"type":"string","format":"email"}`, plain},
		{"a format on a number", `{"type":"number","format":"decimal"}`, plain},
		{"a list of types", `{"type":["string","null"],"format":"date"}`, day},
		{"nullable by anyOf", `{"anyOf":[{"type":"string","format":"decimal"},{"type":"null"}]}`, dec},
		{"beside a number", `{"oneOf":[{"type":"string","format":"decimal"},{"type":"number"}]}`, dec},
		{"beside any string", `{"anyOf":[{"type":"string","format":"decimal"},{"type":"string","maxLength":3}]}`, plain},
		{"beside another format", `{"anyOf":[{"type":"string","format":"decimal"},{"type":"string","format":"date"}]}`, plain},
		{"beside anything", `{"anyOf":[{"type":"string","format":"decimal"},true]}`, plain},
		{"twice the same", `{"anyOf":[{"type":"string","format":"date"},{"type":"string","format":"date","maxLength":10}]}`, day},
		{"allOf", `{"type":"string","allOf":[{"maxLength":9},{"format":"decimal"}]}`, dec},
		{"allOf that disagrees", `{"allOf":[{"format":"date"},{"format":"decimal"}]}`, plain},
		{"reference", `{"$ref":"#/$defs/amount"}`, dec},
		{"escaped reference", `{"$ref":"#/$defs/a~1b%20c"}`, day},
		{"reference in anyOf", `{"anyOf":[{"$ref":"#/$defs/amount"},{"type":"null"}]}`, dec},
		{"list", `{"type":"array","items":{"$ref":"#/$defs/amount"}}`, &canonical.Shape{Items: dec}},
		{"tuple", `{"type":"array","prefixItems":[{"type":"string"}],"items":{"format":"decimal"}}`, plain},
		{"map", `{"type":"object","additionalProperties":{"format":"decimal"}}`, &canonical.Shape{Additional: dec}},
		{"map by pattern", `{"type":"object","additionalProperties":{"format":"decimal"},"patternProperties":{"^x":{}}}`, plain},
		{"object", `{"type":"object","properties":{"a":{"format":"date"},"b":{}}}`, object(map[string]*canonical.Shape{"a": day, "b": plain})},
		{"object in two parts", `{"allOf":[{"properties":{"a":{"format":"date"}}},{"properties":{"b":{"format":"decimal"},"a":{"maxLength":20}}}]}`, object(map[string]*canonical.Shape{"a": day, "b": dec})},
		{"closed alternatives", `{"oneOf":[{"type":"object","additionalProperties":false,"properties":{"a":{"format":"date"}}},{"type":"object","additionalProperties":false,"properties":{"b":{"format":"decimal"}}}]}`, object(map[string]*canonical.Shape{"a": day, "b": dec})},
		{"open alternatives", `{"oneOf":[{"type":"object","properties":{"a":{"format":"date"}}},{"type":"object","properties":{"b":{"format":"decimal"}}}]}`, object(map[string]*canonical.Shape{"a": plain, "b": plain})},
		{"alternatives that say they are open", `{"oneOf":[{"type":"object","additionalProperties":true,"properties":{"a":{"format":"date"}}},{"type":"object","additionalProperties":true,"properties":{"b":{"format":"decimal"}}}]}`, object(map[string]*canonical.Shape{"a": plain, "b": plain})},
		{"alternatives that disagree", `{"oneOf":[{"type":"object","additionalProperties":false,"properties":{"a":{"format":"date"}}},{"type":"object","additionalProperties":false,"properties":{"a":{"format":"decimal"}}}]}`, object(map[string]*canonical.Shape{"a": plain})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := parsed(t, `{"type":"object","properties":{"p":`+c.property+`},"$defs":{"amount":{"type":"string","format":"decimal"},"a/b c":{"type":"string","format":"date"}}}`)
			if got := s.Shape.Fields["p"]; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %s\nwant %s", shapeText(t, got), shapeText(t, c.want))
			}
		})
	}
}

func TestARecursiveGivenSchemaHasARecursiveShape(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"object","properties":{"root":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{
		"amount":{"type":"string","format":"decimal"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"all":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`)
	at := s.Shape.Fields["root"]
	for depth := range 10 {
		if at == nil || at.Fields["amount"] == nil || at.Fields["amount"].Format != "decimal" {
			t.Fatalf("at depth %d: %+v", depth, at)
		}
		if at.Fields["all"].Items.Fields["amount"].Format != "decimal" {
			t.Errorf("at depth %d the list isn't compared", depth)
		}
		at = at.Fields["next"]
	}
	if s.Strict {
		t.Error("a schema with $ref is called strict")
	}
	if err := s.Validate([]byte(`{"root":{"amount":"1","next":{"amount":"2","next":null}}}`)); err != nil {
		t.Error(err)
	}
	err := s.Validate([]byte(`{"root":{"amount":"1","next":{"next":{"amount":2}}}}`))
	if err == nil || !strings.Contains(err.Error(), "root.next.next.amount: must be a string, not a number") {
		t.Errorf("got %v", err)
	}
	self := parsed(t, `{"type":"object","properties":{"in":{"$ref":"#"},"loop":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`)
	if self.Shape.Fields["in"] == nil {
		t.Error("a schema that refers to its top has no shape below it")
	}
}

func TestStrictIsComputedForAGivenSchema(t *testing.T) {
	t.Parallel()
	const tail = `,"required":["a"],"additionalProperties":false}`
	for _, c := range []struct {
		name, text string
		strict     bool
	}{
		{"closed", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"string","description":"d","enum":["x"],"pattern":"^x+$","format":"uuid"}}` + tail, true},
		{"nested", `{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"type":"object","properties":{},"additionalProperties":false},{"type":"null"}]}}}` + tail, true},
		{"open", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, false},
		{"optional", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, false},
		{"without properties", `{"type":"object","additionalProperties":false}`, false},
		{"open inside", `{"type":"object","properties":{"a":{"type":"object","properties":{}}}` + tail, false},
		{"without a type", `{"type":"object","properties":{"a":{}}` + tail, false},
		{"a list of types", `{"type":"object","properties":{"a":{"type":["string","null"]}}` + tail, false},
		{"a bound", `{"type":"object","properties":{"a":{"type":"integer","minimum":1}}` + tail, false},
		{"another format", `{"type":"object","properties":{"a":{"type":"string","format":"decimal"}}` + tail, false},
		{"a greedy pattern", `{"type":"object","properties":{"a":{"type":"string","pattern":"x+?"}}` + tail, false},
		{"an enum of numbers", `{"type":"object","properties":{"a":{"type":"integer","enum":[1]}}` + tail, false},
		{"a reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}` + tail, false},
		{"a list without items", `{"type":"object","properties":{"a":{"type":"array"}}` + tail, false},
		{"oneOf", `{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"null"}]}}` + tail, false},
		{"a name that providers refuse", `{"type":"object","properties":{"a b":{"type":"string"}},"required":["a b"],"additionalProperties":false}`, false},
	} {
		if s := parsed(t, c.text); s.Strict != c.strict {
			t.Errorf("%s: Strict = %v", c.name, s.Strict)
		}
	}
}

// What is offered for a Go type is within what is called strict when it is given
// as JSON: the two know the same subset.
func TestOfferedSchemasAreStrictWhenGivenAsJSON(t *testing.T) {
	t.Parallel()
	for _, c := range typeCases() {
		if s := parsed(t, string(c.schema(t).Offered)); s.Strict != c.strict {
			t.Errorf("%s: Strict = %v", c.name, s.Strict)
		}
	}
}
