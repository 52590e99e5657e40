package schema

import (
	"reflect"
	"testing"
)

type taggedBase struct {
	Tenant string `json:"tenant" settle:"identity"`
}

func TestSettleTagsAreReadOffTheTopLevel(t *testing.T) {
	t.Parallel()
	s, err := Of(reflect.TypeFor[struct {
		taggedBase
		Order  string  `json:"order" settle:"identity,secret"`
		Trace  string  `json:"trace,omitempty" settle:"ignore"`
		Token  *string `json:"token" settle:" secret , ignore"`
		Amount int     `json:"amount"`
	}]())
	if err != nil {
		t.Fatal(err)
	}
	want := []Field{
		{"tenant", false, Tags{Identity: true}, reflect.TypeFor[string]()},
		{"order", false, Tags{Identity: true, Secret: true}, reflect.TypeFor[string]()},
		{"trace", true, Tags{Ignore: true}, reflect.TypeFor[string]()},
		{"token", true, Tags{Ignore: true, Secret: true}, reflect.TypeFor[*string]()},
		{"amount", false, Tags{}, reflect.TypeFor[int]()},
	}
	if !reflect.DeepEqual(s.Fields, want) {
		t.Errorf("got  %+v\nwant %+v", s.Fields, want)
	}
	if f, ok := s.Field("order"); !ok || !f.Tags.Identity {
		t.Error("Field doesn't find order")
	}
	if _, ok := s.Field("Order"); ok {
		t.Error("Field finds a name in another case")
	}
}

func TestR8AnIdentityListIsNeverNull(t *testing.T) {
	t.Parallel()
	s, err := Of(reflect.TypeFor[struct {
		IDs  []string `json:"ids" settle:"identity"`
		Rest []string `json:"rest"`
	}]())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate([]byte(`{"ids":[],"rest":null}`)); err != nil {
		t.Errorf("a nil list that is no identity: %v", err)
	}
	if s.Validate([]byte(`{"ids":null,"rest":[]}`)) == nil {
		t.Error("null is taken for an identity")
	}
}

func TestSettleTagsThatCantBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	type nestedTag struct {
		ID string `json:"id" settle:"identity"`
	}
	for _, c := range []struct {
		name, path, says string
		err              error
	}{
		{"misspelt", "a", `"identiy"`, of[struct {
			A string `json:"a" settle:"identiy"`
		}]()},
		{"empty", "a", `says ""`, of[struct {
			A string `json:"a" settle:""`
		}]()},
		{"twice", "a", "twice", of[struct {
			A string `json:"a" settle:"secret,secret"`
		}]()},
		{"contradictory", "a", "drop one", of[struct {
			A string `json:"a" settle:"identity,ignore"`
		}]()},
		{"a result's tag", "a", "belongs on the result", of[struct {
			A string `json:"a" settle:"resource"`
		}]()},
		{"optional by omitempty", "a", "no identity (R8)", of[struct {
			A string `json:"a,omitempty" settle:"identity"`
		}]()},
		{"optional by omitzero", "a", "no identity (R8)", of[struct {
			A int `json:"a,omitzero" settle:"identity"`
		}]()},
		{"optional as a pointer", "a", "no identity (R8)", of[struct {
			A *string `json:"a" settle:"identity"`
		}]()},
		{"nullable by tag", "a", "no identity (R8)", of[struct {
			A string `json:"a" jsonschema:"nullable" settle:"identity"`
		}]()},
		{"below the top level", "in.id", "below the top level", of[struct {
			In nestedTag `json:"in"`
		}]()},
		{"below a list", "in[].id", "below the top level", of[struct {
			In []nestedTag `json:"in"`
		}]()},
		{"on a field left out", "A", "isn't in the schema", of[struct {
			A string `json:"-" settle:"secret"`
		}]()},
		{"on a field left out of the schema", "A", "isn't in the schema", of[struct {
			A string `json:"a" jsonschema:"-" settle:"secret"`
		}]()},
		{"on an unexported field", "a", "isn't in the schema", of[struct {
			a string `settle:"secret"` //nolint:unused // the tag is what is tested
		}]()},
		{"on an embedded struct", "taggedBase", "fields inside", of[struct {
			taggedBase `settle:"identity"`
		}]()},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assertProblem(t, c.err, c.path, c.says)
		})
	}
}

// A tag that reflect can't read would be passed over in silence. It can't be
// written as a literal here, since go vet knows it as well.
func TestAMalformedStructTagIsRefused(t *testing.T) {
	t.Parallel()
	for _, tag := range []reflect.StructTag{`json:"a",settle:"identity"`, `json:"a" settle:identity`, `json:"a" settle: "identity"`} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[string](), Tag: tag}})
		_, err := Of(typ)
		assertProblem(t, err, "a", "can't be read")
	}
}
