package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/settle-go/settle/internal/canonical"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden is a schema as it is kept under testdata.
type golden struct {
	Strict   bool             `json:"strict"`
	Offered  json.RawMessage  `json:"offered"`
	Accepted json.RawMessage  `json:"accepted"`
	Shape    *canonical.Shape `json:"shape"`
}

func TestSchemasAreAsRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range typeCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.schema(t)
			var got bytes.Buffer
			e := json.NewEncoder(&got)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			if err := e.Encode(golden{s.Strict, s.Offered, s.Accepted, s.Shape}); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c.name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs; if that is meant, write it anew with -update. Got:\n%s", file, got.Bytes())
			}
		})
	}
}

// What every provider takes, written down a second time so that the code can't
// vouch for itself.
var (
	allowedKeywords = []string{"type", "title", "description", "enum", "format", "pattern", "properties", "required", "additionalProperties", "items", "anyOf"}
	allowedTypes    = []any{"object", "array", "string", "number", "integer", "boolean", "null"}
	allowedFormats  = []any{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

func TestOfferedSchemasFitTheStrictModes(t *testing.T) {
	t.Parallel()
	for _, c := range typeCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.schema(t)
			if s.Strict != c.strict {
				t.Errorf("Strict = %v, want %v", s.Strict, c.strict)
			}
			var top map[string]any
			if err := json.Unmarshal(s.Offered, &top); err != nil {
				t.Fatal(err)
			}
			if top["type"] != "object" || top["additionalProperties"] != false {
				t.Errorf("the top level is no closed object")
			}
			walkOffered(t, top, "", c.strict)
		})
	}
}

// walkOffered asserts what is promised of every place in an offered schema.
func walkOffered(t *testing.T, s map[string]any, path string, strict bool) {
	for keyword := range s {
		if !slices.Contains(allowedKeywords, keyword) {
			t.Errorf("%q: keyword %s is offered", path, keyword)
		}
	}
	if typ, ok := s["type"]; ok && !slices.Contains(allowedTypes, typ) {
		t.Errorf("%q: type %v", path, typ)
	}
	if format, ok := s["format"]; ok && !slices.Contains(allowedFormats, format) {
		t.Errorf("%q: format %v is on no provider's list", path, format)
	}
	if enum, ok := s["enum"].([]any); ok {
		for _, v := range enum {
			if _, ok := v.(string); !ok {
				t.Errorf("%q: enum holds %v, which Gemini refuses", path, v)
			}
		}
	}
	alternatives, _ := s["anyOf"].([]any)
	if strict && s["type"] == nil && alternatives == nil {
		t.Errorf("%q: neither type nor anyOf", path)
	}
	for _, a := range alternatives {
		walkOffered(t, a.(map[string]any), path+"|", strict)
	}
	if s["type"] == "array" {
		items, ok := s["items"].(map[string]any)
		if !ok {
			t.Errorf("%q: an array without items", path)
		}
		walkOffered(t, items, path+"[]", strict)
	}
	if s["type"] == "object" {
		walkOfferedObject(t, s, path, strict)
	}
}

func walkOfferedObject(t *testing.T, s map[string]any, path string, strict bool) {
	properties, ok := s["properties"].(map[string]any)
	if !ok && strict {
		t.Errorf("%q: an object without properties", path)
	}
	if strict && s["additionalProperties"] != false {
		t.Errorf("%q: an open object", path)
	}
	required, _ := s["required"].([]any)
	if len(required) != len(properties) || strict && required == nil {
		t.Errorf("%q: %d of %d properties are required", path, len(required), len(properties))
	}
	for name, p := range properties {
		if !slices.Contains(required, any(name)) {
			t.Errorf("%q: %s isn't required", path, name)
		}
		walkOffered(t, p.(map[string]any), path+"."+name, strict)
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok {
		walkOffered(t, more, path+"{}", strict)
	}
}

func TestRequiredFieldsAreOfferedInDeclaredOrder(t *testing.T) {
	t.Parallel()
	for _, c := range typeCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.schema(t)
			var names []string
			for _, f := range s.Fields {
				names = append(names, f.Name)
			}
			members, err := membersOf(s.Offered)
			if err != nil {
				t.Fatal(err)
			}
			properties, err := membersOf(members[find(members, "properties")].value)
			if err != nil {
				t.Fatal(err)
			}
			var offered []string
			for _, p := range properties {
				offered = append(offered, p.name)
			}
			var required []string
			if err := json.Unmarshal(members[find(members, "required")].value, &required); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(offered, names) || !slices.Equal(required, names) && len(names) > 0 {
				t.Errorf("fields %v, offered %v, required %v", names, offered, required)
			}
		})
	}
}

// documented is the type that docs/schema.md shows.
type documented struct {
	OrderID string          `json:"order_id" settle:"identity" jsonschema:"description=The order to refund"`
	Amount  decimal.Decimal `json:"amount"`
	Note    string          `json:"note,omitempty" settle:"ignore"`
}

func TestTheDocumentedSchemaIsTheOneOffered(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "schema.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(example)); err != nil {
		t.Fatal(err)
	}
	if got := schemaOf[documented](t).Offered; string(got) != want.String() {
		t.Errorf("got  %s\nwant %s", got, want.String())
	}
}
