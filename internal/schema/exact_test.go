package schema

import (
	"encoding/json"
	"reflect"
	"testing"
)

type anyID struct{ ID any }

type anyIn struct {
	anyID
	Any     any
	Named   json.Number
	Slice   []any
	Structs []anyID
	Array   [1]any
	Map     map[string]any
	ByName  map[string]anyID
	Pointer *anyID
	Float   float64
	Whole   int64
	Raw     json.RawMessage
	Own     readsItself
	Again   *anyIn
}

// readsItself has numbers of its own.
type readsItself struct{ it any }

func (r *readsItself) UnmarshalJSON(data []byte) error { return Read(data, &r.it) }

// Whatever the type around an any, it gets what encoding/json gives it, unless
// that would be another number.
func TestR16ExactReadsWhatAFloatDoesntHold(t *testing.T) {
	t.Parallel()
	const id = int64(9007199254740993)
	raw := `{"ID":9007199254740993,"Any":9007199254740993,"Named":1,"Slice":[1,9007199254740993,{"a":9007199254740993}],"Structs":[{"ID":9007199254740993}],
		"Array":[9007199254740993],"Map":{"a":9007199254740993,"b":0.5},"ByName":{"x":{"ID":9007199254740993}},"Pointer":{"ID":18446744073709551615},
		"Float":1,"Whole":9007199254740993,"Raw":9007199254740993,"Own":9007199254740993,"Again":{"Any":9007199254740993},"hidden":1}`
	var got anyIn
	if err := Exact([]byte(raw), &got); err != nil {
		t.Fatal(err)
	}
	want := anyIn{
		anyID: anyID{id}, Any: id, Named: "1", Slice: []any{1.0, id, map[string]any{"a": id}}, Structs: []anyID{{id}},
		Array: [1]any{id}, Map: map[string]any{"a": id, "b": 0.5}, ByName: map[string]anyID{"x": {id}}, Pointer: &anyID{json.Number("18446744073709551615")},
		Float: 1, Whole: id, Raw: json.RawMessage("9007199254740993"), Own: readsItself{json.Number("9007199254740993")}, Again: &anyIn{Any: id},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v,\nwant %#v", got, want)
	}
	for _, raw := range []string{``, `{`, `{} {}`, `{"Whole":1.5}`} {
		if err := Exact([]byte(raw), new(anyIn)); err == nil {
			t.Errorf("%q is read", raw)
		}
	}
}
