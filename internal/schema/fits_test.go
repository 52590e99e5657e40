package schema

import (
	"fmt"
	"testing"

	"github.com/settle-go/settle/internal/canonical"
)

// fits parses arguments and says whether they fit; parsed is false where they
// can't be parsed.
func fits(s *Schema, args string) (fits, parsed bool) {
	v, err := canonical.Parse([]byte(args), canonical.Limits{})
	return err == nil && s.Fits(v), err == nil
}

// holdsFit fails the test where arguments fit that aren't valid.
func holdsFit(t *testing.T, s *Schema, args string) {
	t.Helper()
	v, err := canonical.Parse([]byte(args), canonical.Limits{})
	if err != nil || !s.Fits(v) {
		return
	}
	if err := s.Validate(v.AppendJSON(nil)); err != nil {
		t.Fatalf("%s fits and isn't valid: %v", args, err)
	}
}

func TestWhatFitsIsValid(t *testing.T) {
	t.Parallel()
	values := []string{
		`null`, `true`, `false`, `0`, `-0`, `1`, `7`, `-3`, `300`, `1.0`, `1e2`, `2.5`, `9223372036854775807`, `9223372036854775808`, `1e999`,
		`0.1234567890123456789012345678901234567890123456789012345678901234567890`,
		`""`, `"a"`, `"abc"`, `"abcd"`, `"äöü"`, `"2024-02-30"`, `"2024-02-28"`, `"1.50"`, `"x@example.com"`,
		`[]`, `[1]`, `[1,2]`, `[1,2,3]`, `["a",1]`, `[null]`, `{}`, `{"a":1}`, `{"a":"b","c":2}`, `{"b":[{"a":1}]}`, `{"a":{"a":{"a":1}}}`,
	}
	schemas := []string{
		`{}`, `true`, `false`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":"number"}`, `{"type":["integer","null"]}`, `{"type":"boolean"}`,
		`{"type":"string","enum":["a","abc"]}`, `{"enum":["a",1]}`, `{"enum":[null]}`, `{"const":"a"}`, `{"not":{"type":"string"}}`,
		`{"minLength":2,"maxLength":3}`, `{"pattern":"^a"}`, `{"format":"date"}`, `{"format":"email"}`, `{"format":"decimal"}`,
		`{"minimum":1}`, `{"maximum":7}`, `{"minimum":0.5}`, `{"exclusiveMinimum":1}`, `{"multipleOf":7}`, `{"type":"integer","minimum":-3,"maximum":300}`,
		`{"items":{"type":"integer"}}`, `{"minItems":1,"maxItems":2}`, `{"uniqueItems":true}`, `{"prefixItems":[{"type":"string"}]}`, `{"contains":{"type":"null"}}`,
		`{"required":["a"]}`, `{"properties":{"a":{"type":"integer"}}}`, `{"properties":{"a":{"type":"integer"}},"additionalProperties":false}`,
		`{"additionalProperties":{"type":"integer"}}`, `{"patternProperties":{"^a":{"type":"string"}}}`, `{"propertyNames":{"maxLength":0}}`,
		`{"minProperties":1}`, `{"maxProperties":1}`, `{"dependentRequired":{"a":["b"]}}`, `{"unevaluatedProperties":false}`,
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"anyOf":[{"type":"string"},{"not":{}}],"maxLength":3}`, `{"oneOf":[{"type":"integer"},{"type":"number"}]}`,
		`{"allOf":[{"type":"string"}]}`, `{"if":{"type":"string"},"then":{"minLength":3}}`, `{"$ref":"#/$defs/a"}`,
		`{"type":"array","items":{"$ref":"#/$defs/a"}}`,
	}
	admitted := 0
	for _, below := range schemas {
		s, err := Parse([]byte(`{"type":"object","properties":{"v":` + below + `},"$defs":{"a":{"type":"string"}}}`))
		if err != nil {
			t.Fatalf("%s: %v", below, err)
		}
		for _, value := range values {
			args := fmt.Sprintf(`{"v":%s}`, value)
			holdsFit(t, s, args)
			if fit, _ := fits(s, args); fit {
				admitted++
			}
		}
	}
	if admitted < len(values) {
		t.Errorf("only %d of %d pairs of schema and value fit", admitted, len(schemas)*len(values))
	}
}

// What tools usually take must be among what fits, or nothing is gained.
func TestUsualArgumentsFit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schema *Schema
		args   string
	}{
		"a parcel":        {schemaOf[parcel](t), validParcel},
		"the benchmark's": {schemaOf[benchArgs](t), benchText},
		"nulls":           {schemaOf[parcel](t), `{"order":"abc","weight":0,"price":"-1","kind":"letter","items":[{"name":"","count":-1}],"sent":null,"headers":null}`},
		"a time":          {schemaOf[parcel](t), `{"order":"abc","weight":0,"price":"0","kind":"box","items":[{"name":"","count":1}],"sent":"2025-01-02T03:04:05+01:00"}`},
	} {
		if fit, parsed := fits(tc.schema, tc.args); !fit || !parsed {
			t.Errorf("%s: valid arguments don't fit (parsed: %v)", name, parsed)
		}
		holdsFit(t, tc.schema, tc.args)
	}
}
