package schema

import "testing"

// A schema may lead to itself, by several ways at a time.
func TestTheKindBehindReferencesIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(`{"type":"object","allOf":[{"$ref":"#/$defs/more"},{"$ref":"#"}],"properties":{
		"open":{"$ref":"#/$defs/round"},"text":{"allOf":[{"$ref":"#/$defs/round"},{"type":["string","null"]}]}},
		"$defs":{"more":{"properties":{"n":{"type":"integer"}},"allOf":[{"$ref":"#/$defs/more"},{"$ref":"#"}]},
			"round":{"anyOf":[{"$ref":"#/$defs/other"},{"$ref":"#/$defs/other"},{"$ref":"#/$defs/round"}]},
			"other":{"oneOf":[{"$ref":"#/$defs/round"},{"$ref":"#/$defs/round"},{"type":"number"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"n": "number", "open": "", "text": "string", "elsewhere": ""} {
		if got := s.Kind([]string{path}); got != want {
			t.Errorf("%s is of kind %q, want %q", path, got, want)
		}
	}
}
