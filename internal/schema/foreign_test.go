package schema

import (
	"encoding/json"
	"testing"
)

func TestAForeignSchemaIsReadWithoutWhatGoHasNoPatternFor(t *testing.T) {
	const email = `"^(?!\\.)(?!.*\\.\\.)[a-z.]+@[a-z.]+$"`
	for given, want := range map[string]string{
		`{"type":"object","properties":{"z":{"type":"string","format":"email","pattern":` + email + `},"a":{"pattern":"^a"}}}`: `{"type":"object","properties":{"z":{"type":"string","format":"email"},"a":{"pattern":"^a"}}}`,
		`{"type":"object","anyOf":[{"properties":{"a":{"pattern":"(a)\\1"}}},true]}`:                                           `{"type":"object","anyOf":[{"properties":{"a":{}}},true]}`,
		// What isn't a keyword stays.
		`{"type":"object","properties":{"pattern":{"type":"string","const":{"pattern":"(?=a)"}}}}`: ``,
		`{ "type": "object" }`: ``,
		`{}`:                   `{"type":"object"}`,
		`true`:                 `{"type":"object"}`,
		`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`:  `{"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object"}`,
		`{"type":["null","object"],"properties":{"a":true}}`: `{"type":"object","properties":{"a":true}}`,
	} {
		if want == "" {
			want = given
		}
		got := Foreign(json.RawMessage(given))
		if string(got) != want {
			t.Errorf("%s is read as %s, want %s", given, got, want)
		}
		if _, err := Parse(got); err != nil {
			t.Errorf("%s isn't read: %v", given, err)
		}
	}
	for _, broken := range []string{``, `{"type":`, `{} {}`, `[]`, `"object"`, `{"type":"string"}`, `{"type":"object","properties":{"a":{"pattern":"(a"}}}`} {
		if s, err := Parse(Foreign(json.RawMessage(broken))); err == nil {
			t.Errorf("%q is read as %s", broken, s.Accepted)
		}
	}
}
