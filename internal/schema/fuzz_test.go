package schema

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse looks for schemas and arguments at which anything panics or recurses
// without end.
func FuzzParse(f *testing.F) {
	for _, c := range typeCases() {
		f.Add(string(c.schema(f).Offered), `{}`)
	}
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}},"allOf":[{"$ref":"#/properties/a"}],"patternProperties":{"^x":{"not":{}}}}`, `{"a":{"a":[]},"x":1e9}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := Parse([]byte(schema))
		if err != nil {
			if len(problemsOf(err)) == 0 {
				t.Fatalf("an error without a problem: %v", err)
			}
			return
		}
		var invalid *ValidationError
		if err := s.Validate([]byte(args)); err != nil && !errors.As(err, &invalid) {
			t.Fatalf("an error of another type: %v", err)
		}
		holdsFit(t, s, args)
	})
}

// FuzzValidate holds that arguments which are valid can be decoded.
func FuzzValidate(f *testing.F) {
	f.Add(validParcel)
	f.Add(`{"order":"abc","weight":0,"price":"1e400","kind":"letter","items":[{"name":"","count":-9223372036854775808}],"grouping":"x","sent":null}`)
	s, err := Of(reflect.TypeFor[parcel]())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		holdsFit(t, s, text)
		if s.Validate([]byte(text)) != nil {
			return
		}
		var into parcel
		err := Decode([]byte(text), &into)
		var invalid *ValidationError
		if err == nil || !errors.As(err, &invalid) {
			return
		}
		for _, p := range invalid.Problems {
			// Whole numbers are written plainly before they are decoded, and no
			// float64 or decimal holds every exponent.
			if p.Path != "weight" && p.Path != "insured" && p.Path != "price" && !strings.HasSuffix(p.Path, ".count") {
				t.Fatalf("%s is valid, and then: %v", text, err)
			}
		}
	})
}
