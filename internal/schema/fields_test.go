package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
)

type (
	A struct {
		X string `json:"x"`
		Y string
	}
	B struct {
		X string `json:"x"`
		Z string `json:"z"`
	}
	Tagged struct {
		Y string `json:"Y"`
	}
	Untagged struct{ Y int }
	Left     struct{ Common }
	Right    struct{ Common }
	Common   struct {
		C string `json:"c"`
	}
	Word   string
	hidden struct {
		Seen   string `json:"seen"`
		unseen string
	}
)

// TestFieldsAreThoseOfEncodingJSON compares names and order with what
// encoding/json writes.
func TestFieldsAreThoseOfEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		struct{ A }{},
		struct {
			*B
			*A
		}{&B{}, &A{}},
		struct {
			*B
			*A
			X string `json:"x"`
		}{B: &B{}, A: &A{}},
		struct {
			A
			X int `json:"x"`
		}{},
		struct {
			Tagged
			Untagged
		}{},
		struct {
			Untagged
			Tagged
			Z int `json:",omitzero"`
		}{Z: 1},
		struct {
			*Tagged
			Y int
		}{&Tagged{}, 1},
		struct {
			Deep struct{ A }
			A    `json:"a"`
			*B
		}{B: &B{}},
		struct {
			*Left
			*Right
			W Word
		}{Left: &Left{}, Right: &Right{}},
		struct {
			*Left
			*Common
		}{Left: &Left{}, Common: &Common{}},
		struct {
			Word
			hidden
			*A
		}{A: &A{}},
		struct {
			Word `json:"renamed"`
			D    string `json:"d"`
			E    string `json:"-"`
			F    string `json:",omitempty"`
			g    string
		}{F: "f", g: "g"},
		wholeNumbers{},
		promoted{Extra: &Extra{"w", 1}},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		members, err := membersOf(text)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, m := range members {
			want = append(want, m.name)
		}
		fields, _ := fieldsOf(reflect.TypeOf(value))
		for _, f := range fields {
			got = append(got, f.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%T: got %v, encoding/json writes %v", value, got, want)
			continue
		}
		for i, f := range fields {
			alone, err := json.Marshal(reflect.ValueOf(value).FieldByIndex(f.index).Interface())
			if err != nil || string(alone) != string(members[i].value) {
				t.Errorf("%T: the index of %s leads to %s, encoding/json writes %s", value, f.name, alone, members[i].value)
			}
		}
	}
	_ = hidden{}.unseen
}

func TestTheOptionStringIsForPlainKinds(t *testing.T) {
	t.Parallel()
	one := func(typ reflect.Type, tag reflect.StructTag) reflect.StructField {
		return reflect.StructField{Name: "F" + typ.Name(), Type: typ, Tag: tag}
	}
	typ := reflect.StructOf([]reflect.StructField{
		one(reflect.TypeFor[time.Time](), `json:"at,string"`),
		one(reflect.TypeFor[[]int](), `json:"list,string"`),
		one(reflect.TypeFor[inner](), `json:"in,string"`),
		one(reflect.TypeFor[int](), `json:"n,string"`),
	})
	s, err := Of(typ)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(reflect.New(typ).Interface())
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"at":"0001-01-01T00:00:00Z","list":null,"in":{"name":"","depth":null},"n":"0"}`; string(text) != want {
		t.Fatalf("encoding/json writes %s", text)
	}
	if err := s.Validate(text); err != nil {
		t.Error(err)
	}
	if err := Decode(text, reflect.New(typ).Interface()); err != nil {
		t.Error(err)
	}
}

func TestFieldsLeftOutAreNeitherOfferedNorAccepted(t *testing.T) {
	t.Parallel()
	type leftOut struct {
		Shown  string `json:"shown"`
		Never  string `json:"-"`
		Hidden string `json:"hidden,omitempty" jsonschema:"-"`
	}
	s := schemaOf[leftOut](t)
	if len(s.Fields) != 1 || s.Fields[0].Name != "shown" {
		t.Errorf("fields %+v", s.Fields)
	}
	if err := s.Validate([]byte(`{"shown":"x"}`)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{`{"shown":"x","hidden":"y"}`, `{"shown":"x","Never":"y"}`, `{"shown":"x","-":"y"}`} {
		if s.Validate([]byte(text)) == nil {
			t.Errorf("%s is valid", text)
		}
	}
	// What encoding/json names "-" can't be offered: providers refuse the name.
	dash := reflect.StructOf([]reflect.StructField{{Name: "D", Type: reflect.TypeFor[string](), Tag: `json:"-,"`}})
	_, err := Of(dash)
	assertProblem(t, err, "-", "providers refuse")
}
