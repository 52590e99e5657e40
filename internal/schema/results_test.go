package schema

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
)

type (
	refunded struct {
		ID   string `json:"id" settle:"resource"`
		Note string `json:"note"`
	}
	// tree is recursive, as a result may be.
	tree struct {
		ID       uint64           `json:"id" settle:"resource"`
		Children []*tree          `json:"children"`
		By       map[string]*tree `json:"by"`
	}
	resultBase struct {
		ID uuid.UUID `json:"id" settle:"resource"`
	}
	spelled    struct{ name string }
	viaPointer struct{ *ResultOf }
	ResultOf   struct {
		Ref spelled `json:"ref" settle:"resource"`
	}
	badText struct{}
)

func (s spelled) String() string { return s.name }

func (badText) MarshalText() ([]byte, error) { return nil, errors.New("secret-value") }

func TestTheResourceOfAResult(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	for _, c := range []struct {
		name   string
		result any
		field  string
		want   string
	}{
		{"a string", refunded{ID: "re_1"}, "id", "re_1"},
		{"a pointer to the result", &refunded{ID: "re_1"}, "id", "re_1"},
		{"a nil result", (*refunded)(nil), "id", ""},
		{"an integer", tree{ID: 1<<64 - 1}, "id", "18446744073709551615"},
		{"a negative integer", struct {
			ID int32 `settle:"resource"`
		}{-3}, "ID", "-3"},
		{"MarshalText", struct {
			At *netip.Addr `json:"at" settle:"resource"`
		}{pointer(netip.MustParseAddr("::1"))}, "at", "::1"},
		{"a nil pointer", struct {
			At *netip.Addr `json:"at" settle:"resource"`
		}{}, "at", ""},
		{"an embedded field", struct{ resultBase }{resultBase{id}}, "id", id.String()},
		{"String", viaPointer{&ResultOf{spelled{"s"}}}, "ref", "s"},
		{"an embedded pointer that is nil", viaPointer{}, "ref", ""},
		{"no resource", struct{ A int }{1}, "", ""},
		{"no struct", []string{"a"}, "", ""},
		{"a list of itself", sliceOfItself{}, "", ""},
		{"raw JSON", json.RawMessage(`{}`), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := Results(reflect.TypeOf(c.result))
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Reference(c.result)
			if err != nil {
				t.Fatal(err)
			}
			if r.Resource != c.field || got != c.want {
				t.Errorf("field %q names %q, want %q and %q", r.Resource, got, c.field, c.want)
			}
		})
	}
}

func TestResultTagsThatCantBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, says string
		typ              reflect.Type
	}{
		{"two resources", "b", "beside a", reflect.TypeFor[struct {
			A string `json:"a" settle:"resource"`
			B string `json:"b" settle:"resource"`
		}]()},
		{"an argument's tag", "a", "takes resource", reflect.TypeFor[struct {
			A string `json:"a" settle:"secret"`
		}]()},
		{"a misspelt tag", "a", `"resuorce"`, reflect.TypeFor[struct {
			A string `json:"a" settle:"resuorce"`
		}]()},
		{"a float", "a", "can't name a resource", reflect.TypeFor[struct {
			A float64 `json:"a" settle:"resource"`
		}]()},
		{"a list", "a", "can't name a resource", reflect.TypeFor[struct {
			A []string `json:"a" settle:"resource"`
		}]()},
		{"a nested one", "in.id", "below the top level", reflect.TypeFor[struct {
			In refunded `json:"in"`
		}]()},
		{"a list of results", "[].id", "below the top level", reflect.TypeFor[[]refunded]()},
		{"on a field left out", "A", "isn't in the schema", reflect.TypeFor[struct {
			A string `json:"-" settle:"resource"`
		}]()},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Results(c.typ)
			assertProblem(t, err, c.path, c.says)
		})
	}
}

func TestR55AFailingTextFormDoesntShowTheValue(t *testing.T) {
	t.Parallel()
	type result struct {
		ID badText `json:"id" settle:"resource"`
	}
	r, err := Results(reflect.TypeFor[result]())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = r.Reference(result{}); err == nil || strings.Contains(err.Error(), "secret-value") {
		t.Errorf("got %v", err)
	}
	if _, err = r.Reference(refunded{ID: "secret-value"}); err == nil || strings.Contains(err.Error(), "secret-value") {
		t.Errorf("a result of another type: %v", err)
	}
}
