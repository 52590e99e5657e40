package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type decoded struct {
	Small  uint8                 `json:"small"`
	Addr   netip.Addr            `json:"addr"`
	List   []int8                `json:"list"`
	Two    [2]bool               `json:"two"`
	By     map[int]*float32      `json:"by"`
	In     decodedInner          `json:"in"`
	Ptr    **string              `json:"ptr"`
	When   time.Time             `json:"when"`
	Quoted int8                  `json:"quoted,string"`
	Any    any                   `json:"any"`
	Raw    json.RawMessage       `json:"raw"`
	Addrs  map[netip.Addr]string `json:"addrs"`
	*Promoted
}

type decodedInner struct {
	Color color `json:"color"`
}

type Promoted struct {
	Deep bool `json:"deep"`
}

func TestWhatCantBeDecodedIsNamedByField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{`{"small":300}`, "small: must be a whole number from 0 to 255"},
		{`{"small":-1}`, "small: must be a whole number from 0 to 255"},
		{`{"small":"1"}`, "small: must be a whole number from 0 to 255"},
		{`{"addr":"localhost"}`, "addr: can't be read as netip.Addr"},
		{`{"addr":5}`, "addr: can't be read as netip.Addr"},
		{`{"list":[1,200,3]}`, "list[1]: must be a whole number from -128 to 127"},
		{`{"list":{}}`, "list: can't be read as []int8"},
		{`{"two":[true,1]}`, "two[1]: must be true or false"},
		{`{"by":{"1":1e39}}`, "by.*: must be a number that a float32 holds"},
		{`{"by":{"one":1}}`, "by: has a member whose name can't be read as int"},
		{`{"addrs":{"x":"y"}}`, "addrs: has a member whose name can't be read as netip.Addr"},
		{`{"in":{"color":"blue"}}`, "in.color: can't be read as schema.color"},
		{`{"in":{"colour":"red"}}`, "in: has an unknown field; it takes color"},
		{`{"in":[]}`, "in: can't be read as schema.decodedInner"},
		{`{"ptr":1}`, "ptr: must be a string"},
		{`{"when":"2026-02-30T00:00:00Z"}`, "when: can't be read as time.Time"},
		{`{"quoted":"200"}`, "quoted: must hold, in a string, what the type int8 takes"},
		{`{"deep":"x"}`, "deep: must be true or false"},
		{`{"extra":1}`, "has an unknown field; it takes small, addr"},
		{`{"small":300,"two":"x"}`, "small: must be a whole number from 0 to 255; two: can't be read as [2]bool"},
		{`{} {}`, "not one JSON value"},
		{`{"small":1`, "not one JSON value"},
		{``, "not one JSON value"},
		{`[]`, "can't be read as schema.decoded"},
	} {
		var into decoded
		err := Decode([]byte(c.text), &into)
		var invalid *ValidationError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		}
	}
}

func TestDecodeKeepsIdsBeyondFloat64(t *testing.T) {
	t.Parallel()
	var into decoded
	text := `{"any":{"id":9007199254740993},"raw":[9007199254740993],"list":null,"ptr":"p"}`
	if err := Decode([]byte(text), &into); err != nil {
		t.Fatal(err)
	}
	if id := into.Any.(map[string]any)["id"]; id != json.Number("9007199254740993") {
		t.Errorf("the id in an any is %v", id)
	}
	if string(into.Raw) != `[9007199254740993]` || into.List != nil || **into.Ptr != "p" {
		t.Errorf("decoded %+v", into)
	}
}

func TestDecodeIntoNoPointerIsTheCallersMistake(t *testing.T) {
	t.Parallel()
	var invalid *ValidationError
	for _, into := range []any{decoded{}, nil, (*decoded)(nil)} {
		if err := Decode([]byte(`{}`), into); err == nil || errors.As(err, &invalid) {
			t.Errorf("into %T: %v", into, err)
		}
	}
}

type withoutInterface struct {
	Small uint8              `json:"small"`
	By    map[string]*int64  `json:"by"`
	When  time.Time          `json:"when"`
	More  []withoutInterface `json:"more"`
}

// TestWhatIsAdmittedIsDecodedAlike compares the short way with Decode, also for
// what a schema admits and the type doesn't hold.
func TestWhatIsAdmittedIsDecodedAlike(t *testing.T) {
	t.Parallel()
	texts := []string{`{}`, `null`, `{"small":255,"by":{"a":9007199254740993,"b":null},"when":"2026-01-02T03:04:05.6Z"}`,
		`{"more":[{"small":1,"more":[]},{}]}`, `{"small":7,"by":{"a":1},"when":"2026-02-30T00:00:00Z"}`, `{"by":{"a":1},"small":300}`,
		`{"any":[9007199254740993,{"id":1}],"quoted":"5","ptr":"p"}`, `{"small":1,"two":[true,1]}`}
	alike(t, func() any { return new(withoutInterface) }, texts)
	alike(t, func() any { return new(*withoutInterface) }, texts)
	alike(t, func() any { return new(decoded) }, texts)
	alike(t, func() any { return new([]any) }, []string{`[1e2,9007199254740993]`, `{}`})
}

func alike(t *testing.T, room func() any, texts []string) {
	t.Helper()
	for _, text := range texts {
		want, got := room(), room()
		admitted := Admitted(reflect.TypeOf(got).Elem())
		wanted, err := Decode([]byte(text), want), admitted([]byte(text), got)
		if wanted != nil && strings.Contains(wanted.Error(), "unknown field") {
			continue // a schema doesn't admit it
		}
		if fmt.Sprint(err) != fmt.Sprint(wanted) || wanted == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%T from %s: got %+v and %v, want %+v and %v", got, text, got, err, want, wanted)
		}
	}
}
