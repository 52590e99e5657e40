package schema

import (
	"encoding/json"
	"testing"
)

const occurrence = `{"type":"integer","description":"1 for the first time"}`

func TestR9APropertyIsOfferedAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   *Schema
		want string
	}{
		{"beside others", schemaOf[field[string]](t), `{"properties":{"field":{"type":"string"},"occurrence":{"description":"1 for the first time","anyOf":[{"type":"integer"},{"type":"null"}]}},"additionalProperties":false,"type":"object","required":["field","occurrence"]}`},
		{"alone", schemaOf[struct{}](t), `{"properties":{"occurrence":{"description":"1 for the first time","anyOf":[{"type":"integer"},{"type":"null"}]}},"additionalProperties":false,"type":"object","required":["occurrence"]}`},
		{"in a given schema with optional fields", parsed(t, `{"type":"object","properties":{"a":{}}}`), `{"type":"object","properties":{"a":{},"occurrence":` + occurrence + `}}`},
		{"in a given schema without fields", parsed(t, `{"type":"object"}`), `{"type":"object","properties":{"occurrence":` + occurrence + `}}`},
	} {
		before := string(c.in.Offered)
		got, err := c.in.WithProperty("occurrence", json.RawMessage(occurrence))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		if string(c.in.Offered) != before {
			t.Errorf("%s: the schema itself changed", c.name)
		}
		if again := parsed(t, string(got)); again.Strict != c.in.Strict {
			t.Errorf("%s: Strict was %v and is %v", c.name, c.in.Strict, again.Strict)
		}
	}
}

func TestAPropertyThatCantBeAddedIsRefused(t *testing.T) {
	t.Parallel()
	s := schemaOf[field[string]](t)
	for name, schema := range map[string]string{"field": occurrence, "a b": occurrence, "": occurrence, "n": `true`, "m": ``} {
		if _, err := s.WithProperty(name, json.RawMessage(schema)); err == nil {
			t.Errorf("%q with %s is added", name, schema)
		}
	}
}
