package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	invopop "github.com/invopop/jsonschema"
	"github.com/shopspring/decimal"
)

type (
	selfPointer struct {
		Name string       `json:"name"`
		Next *selfPointer `json:"next"`
	}
	selfSlice struct {
		Children []selfSlice `json:"children"`
	}
	selfMap struct {
		By map[string]selfMap `json:"by"`
	}
	mutualA struct {
		B mutualB `json:"b"`
	}
	mutualB struct {
		As []*mutualA `json:"as"`
	}
	sliceOfItself      []sliceOfItself
	mapOfItself        map[string]mapOfItself
	genericTree[T any] struct {
		Value T                 `json:"value"`
		Left  *genericTree[T]   `json:"left"`
		More  [2]genericList[T] `json:"more"`
	}
	genericList[T any] []genericTree[T]
	selfEmbedded       struct {
		*Deeper
		Name string `json:"name"`
	}
	Deeper struct {
		In *selfEmbedded `json:"in"`
	}

	writesObject struct{}
	writesArray  struct{}
	writesNull   struct{}
	panics       struct{}
	writesOnly   struct{}
	textOnly     int
	readsOnly    int
	takenOverBy  struct {
		decimal.Decimal
		Currency string `json:"currency"`
	}
	unreadableNull struct{ v int }
	embedsHidden   struct{ *hiddenBase }
	hiddenBase     struct {
		ID string `json:"id"`
	}
	OneSame struct {
		A string `json:"same"`
	}
	OtherSame struct {
		B string `json:"same"`
	}
)

func (writesObject) MarshalJSON() ([]byte, error)     { return []byte(`{"a":1}`), nil }
func (*writesObject) UnmarshalJSON([]byte) error      { return nil }
func (writesArray) MarshalJSON() ([]byte, error)      { return []byte(`[1]`), nil }
func (*writesArray) UnmarshalJSON([]byte) error       { return nil }
func (writesNull) MarshalJSON() ([]byte, error)       { return []byte(`null`), nil }
func (*writesNull) UnmarshalJSON([]byte) error        { return nil }
func (panics) MarshalJSON() ([]byte, error)           { panic("zero") }
func (*panics) UnmarshalJSON([]byte) error            { return nil }
func (writesOnly) MarshalJSON() ([]byte, error)       { return []byte(`"x"`), nil }
func (textOnly) MarshalText() ([]byte, error)         { return []byte("x"), nil }
func (*readsOnly) UnmarshalText([]byte) error         { return nil }
func (u unreadableNull) MarshalJSON() ([]byte, error) { return json.Marshal(u.v) }
func (u *unreadableNull) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return errors.New("no null")
	}
	return json.Unmarshal(text, &u.v)
}

// Types whose description of themselves can't be offered.
type (
	saysRef     struct{}
	saysAllOf   struct{}
	saysNothing struct{}
	saysEndless struct{}
	saysUnknown struct {
		A string `json:"a"`
	}
	describedTag struct {
		A string `json:"a" settle:"secret"`
	}
	saysTuple  struct{}
	saysFalse  struct{}
	aliasOfNil struct{}
	aliasLoop  struct{}
)

func (saysRef) JSONSchema() *invopop.Schema { return &invopop.Schema{Ref: "#/$defs/x"} }
func (saysAllOf) JSONSchema() *invopop.Schema {
	return &invopop.Schema{Type: "string", AllOf: []*invopop.Schema{{MinLength: new(uint64)}}, Extras: map[string]any{"minLength": 3, "x-order": 1}}
}
func (saysNothing) JSONSchema() *invopop.Schema { return nil }
func (saysEndless) JSONSchema() *invopop.Schema {
	s := &invopop.Schema{Type: "array"}
	s.Items = s
	return s
}
func (saysUnknown) JSONSchema() *invopop.Schema {
	p := invopop.NewProperties()
	p.Set("a", &invopop.Schema{Type: "string"})
	p.Set("b", &invopop.Schema{Type: "string"})
	return &invopop.Schema{Type: "object", Properties: p, Required: []string{"a", "c"}}
}
func (describedTag) JSONSchema() *invopop.Schema {
	p := invopop.NewProperties()
	p.Set("a", &invopop.Schema{Type: "string"})
	return &invopop.Schema{Type: "object", Properties: p}
}
func (saysTuple) JSONSchema() *invopop.Schema {
	return &invopop.Schema{Type: "array", PrefixItems: []*invopop.Schema{{Type: "string"}}}
}
func (saysFalse) JSONSchema() *invopop.Schema { return invopop.FalseSchema }
func (aliasOfNil) JSONSchemaAlias() any       { return nil }
func (aliasLoop) JSONSchemaAlias() any        { return []aliasLoop{} }

func of[T any]() error {
	_, err := Of(reflect.TypeFor[T]())
	return err
}

// field is a struct with one field of a type.
type field[T any] struct {
	Field T `json:"field"`
}

func TestTypesThatCantBeOfferedAreRefusedWithTheirPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		path string // the path of one problem
		says string
	}{
		// Recursion: refused here, since invopop/jsonschema would overflow the stack.
		{"recursion through a pointer", of[selfPointer](), "next", "contains itself"},
		{"recursion through a slice", of[selfSlice](), "children[]", "contains itself"},
		{"recursion through a map", of[selfMap](), "by{}", "contains itself"},
		{"mutual recursion", of[mutualA](), "b.as[]", "contains itself"},
		{"recursion below the top", of[field[[]selfPointer]](), "field[].next", "contains itself"},
		{"a slice of itself", of[field[sliceOfItself]](), "field[]", "contains itself"},
		{"a map of itself", of[field[mapOfItself]](), "field{}", "contains itself"},
		{"a generic tree", of[genericTree[int]](), "left", "contains itself"},
		{"recursion through an array", of[genericTree[int]](), "more[][]", "contains itself"},
		{"recursion through an embedded pointer", of[selfEmbedded](), "in", "contains itself"},
		{"an alias that leads back", of[field[aliasLoop]](), "field[]", "contains itself"},

		{"a channel", of[field[chan int]](), "field", "chan has no form in JSON"},
		{"a function", of[field[func()]](), "field", "func has no form in JSON"},
		{"a complex number", of[field[[]complex128]](), "field[]", "complex128 has no form in JSON"},
		{"a duration", of[field[time.Duration]](), "field", "timeout_seconds"},
		{"a pointer to a duration", of[field[*time.Duration]](), "field", "nanoseconds"},
		{"a URL", of[field[*url.URL]](), "field", "format=uri"},
		{"an interface", of[field[io.Reader]](), "field", "interface io.Reader"},
		{"an interface in a map", of[field[map[string]fmt.Stringer]](), "field{}", "interface fmt.Stringer"},
		{"a map with a bool key", of[field[map[bool]int]](), "field", "no map with bool"},
		{"a map with a struct key", of[field[map[inner]int]](), "field", "MarshalText and UnmarshalText"},

		{"a type that writes an object", of[field[writesObject]](), "field", "JSONSchema method"},
		{"a type that writes an array", of[field[*writesArray]](), "field", "JSONSchema method"},
		{"a type that writes null", of[field[writesNull]](), "field", "JSONSchema method"},
		{"a type that panics", of[field[panics]](), "field", "zero value can't be written"},
		{"a type that only writes JSON", of[field[writesOnly]](), "field", "no UnmarshalJSON"},
		{"a type that only writes text", of[field[textOnly]](), "field", "no UnmarshalText"},
		{"a type that only reads text", of[field[readsOnly]](), "field", "no MarshalText"},
		{"a struct that its embedded field takes over", of[field[takenOverBy]](), "field", "embeds decimal.Decimal"},
		{"an embedded pointer that can't be set", of[embedsHidden](), "hiddenBase", "unexported struct"},
		{"an optional field that can't read null", of[struct {
			Field unreadableNull `json:"field,omitzero"`
		}](), "field", "can't read null"},

		{"a schema with $ref", of[field[saysRef]](), "field", "$ref"},
		{"a schema with allOf and keywords of its own", of[field[saysAllOf]](), "field", "allOf, minLength"},
		{"a schema with a tuple", of[field[saysTuple]](), "field", "prefixItems"},
		{"a schema that is false", of[field[saysFalse]](), "field", "no value fits"},
		{"no schema", of[field[saysNothing]](), "field", "gives nothing"},
		{"a schema that contains itself", of[field[saysEndless]](), "", "contains itself"},
		{"a schema of a field that isn't there", of[field[saysUnknown]](), "field.b", "no field for"},
		{"a schema that requires what it doesn't list", of[field[saysUnknown]](), "field.c", "requires a property"},
		{"an alias of nil", of[field[aliasOfNil]](), "field", "no type"},

		{"no struct", of[string](), "", "closed object"},
		{"a list", of[[]string](), "", "closed object"},
		{"a map", of[map[string]string](), "", "closed object"},
		{"raw JSON", of[json.RawMessage](), "", "raw tool"},
		{"a struct that writes itself", of[struct{ time.Time }](), "", "closed object"},

		{"a name that providers refuse", of[struct {
			A string `json:"größe"`
		}](), "größe", "providers refuse"},
		{"a name with a dot", of[struct {
			A string `json:"a.b"`
		}](), "a.b", "providers refuse"},
		{"two fields of one name", of[struct {
			*OneSame
			*OtherSame
		}](), "same", "encoding/json drops both"},
		{"a string in a string", of[struct {
			A string `json:"a,string"`
		}](), "a", "JSON within a string"},

		{"a quoted type that writes itself", of[struct {
			A *color `json:"a,string"`
		}](), "a", "drop it"},
		{"a struct that exports nothing", of[field[struct{ a, b int }]](), "field", "exports none"},
		{"arguments that export nothing", of[struct{ a, b int }](), "", "exports none"},
		{"a tag below a type that describes itself", of[field[describedTag]](), "field.a", "below the top level"},

		{"a misspelt keyword", of[struct {
			A string `json:"a" jsonschema:"minLenght=3"`
		}](), "a", "minLenght"},
		{"a comma in a description", of[struct {
			A string `json:"a" jsonschema:"description=one, two"`
		}](), "a", "a comma in a text"},
		{"a rule of another type", of[struct {
			A decimal.Decimal `json:"a" jsonschema:"minimum=3"`
		}](), "a", "minimum, which has no meaning for type string"},
		{"a rule without a number", of[struct {
			A int `json:"a" jsonschema:"minimum=few"`
		}](), "a", "a value that it can't have"},
		{"a bound beyond the type", of[struct {
			A uint8 `json:"a" jsonschema:"maximum=300"`
		}](), "a", "from 0 to 255"},
		{"a pattern that is none", of[struct {
			A string `json:"a" jsonschema:"pattern=(x"`
		}](), "a", "pattern"},
		{"a type of its own", of[struct {
			A int `json:"a" jsonschema:"type=string"`
		}](), "a", "the Go type decides"},
		{"another format", of[struct {
			A time.Time `json:"a" jsonschema:"format=date"`
		}](), "a", "format=date"},
		{"a rule for lists of lists", of[struct {
			A [][]int `json:"a" jsonschema:"minimum=1"`
		}](), "a", "array's elements"},
		{"a reference", of[struct {
			A any `json:"a" jsonschema:"oneof_ref=#/x"`
		}](), "a", "oneof_ref"},
		{"keywords of one's own", of[struct {
			A string `json:"a" jsonschema_extras:"x=y"`
		}](), "a", "jsonschema_extras"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assertProblem(t, c.err, c.path, c.says)
		})
	}
}

// assertProblem wants a problem at that path, or at any where it is empty.
func assertProblem(t *testing.T, err error, path, says string) {
	t.Helper()
	problems := problemsOf(err)
	if len(problems) == 0 {
		t.Fatalf("not refused: %v", err)
	}
	for _, p := range problems {
		if (path == "" || p.Path == path) && strings.Contains(p.Reason, says) {
			return
		}
	}
	t.Errorf("want a problem at %q that says %q, got: %v", path, says, err)
}

func problemsOf(err error) []*TypeError {
	if one := (*TypeError)(nil); errors.As(err, &one) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			var all []*TypeError
			for _, e := range joined.Unwrap() {
				all = append(all, problemsOf(e)...)
			}
			return all
		}
		return []*TypeError{one}
	}
	return nil
}

func TestAllProblemsOfATypeAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	err := of[struct {
		Wait  time.Duration `json:"wait"`
		Self  selfPointer   `json:"self"`
		Done  chan struct{} `json:"done"`
		Order string        `json:"order,omitempty" settle:"identity"`
		Note  string        `json:"note" settle:"ignroe"`
		Size  int           `json:"size" jsonschema:"minimum=x"`
	}]()
	for _, path := range []string{"wait", "self.next", "done", "order", "note", "size"} {
		assertProblem(t, err, path, "")
	}
	if n := len(problemsOf(err)); n != 6 {
		t.Errorf("%d problems: %v", n, err)
	}
	if !strings.HasPrefix(err.Error(), "schema: an unnamed struct: wait: ") {
		t.Errorf("the error doesn't name the type and the path first: %v", err)
	}
}

func TestNoTypeIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Of(nil)
	assertProblem(t, err, "", "struct{} for none")
	_, err = Results(nil)
	assertProblem(t, err, "", "struct{} for none")
}

func TestDeepSchemasArentStrict(t *testing.T) {
	t.Parallel()
	type nest9 = field[field[field[field[field[field[field[field[field[int]]]]]]]]]
	for _, c := range []struct {
		name   string
		typ    reflect.Type
		strict bool
	}{
		{"9 levels", reflect.TypeFor[nest9](), true},
		{"11 levels", reflect.TypeFor[field[field[nest9]]](), false},
	} {
		s, err := Of(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		if s.Strict != c.strict {
			t.Errorf("%s: Strict = %v", c.name, s.Strict)
		}
	}
}
