package canonical

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestValueGivesAccessByKind(t *testing.T) {
	t.Parallel()
	v := mustParse(t, `{"s":"a\n","n":1.50,"t":true,"f":false,"z":null,"a":[1,"x"],"o":{"k":"v"}}`)
	kinds := map[string]Kind{"s": String, "n": Number, "t": Bool, "f": Bool, "z": Null, "a": Array, "o": Object, "missing": Absent}
	for name, kind := range kinds {
		m, ok := v.Member(name)
		if m.Kind() != kind || ok != (kind != Absent) || m.IsNull() != (kind == Null) || m.Bool() != (name == "t") {
			t.Errorf("member %s: kind %v, there: %v, null: %v, true: %v", name, m.Kind(), ok, m.IsNull(), m.Bool())
		}
	}
	texts := map[string]string{"s": "a\n", "n": "1.5", "t": "", "z": "", "a": "", "o": "", "missing": ""}
	for name, text := range texts {
		if m, _ := v.Member(name); m.String() != text {
			t.Errorf("member %s reads as %q, want %q", name, m.String(), text)
		}
	}
	var names []string
	for name := range v.Members() {
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "s n t f z a o" || v.Len() != 7 {
		t.Errorf("members %s, in number %d; want document order", got, v.Len())
	}
}

func TestElementsAndMembersYieldOnlyTheirOwnKind(t *testing.T) {
	t.Parallel()
	array, object := mustParse(t, `["a","b","c"]`), mustParse(t, `{"a":1,"b":2}`)
	var got []string
	for e := range array.Elements() {
		if got = append(got, e.String()); len(got) == 2 {
			break
		}
	}
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("elements %q", got)
	}
	for name := range object.Members() {
		if name != "a" {
			t.Errorf("first member %q", name)
		}
		break
	}
	for range array.Members() {
		t.Error("an array has no members")
	}
	for range object.Elements() {
		t.Error("an object has no elements")
	}
	if _, ok := array.Member(""); ok {
		t.Error("an array's elements have no name")
	}
}

func TestR15WithoutDropsTopLevelMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		input string
		names []string
		want  string
	}{
		{`{"a":1,"b":2,"c":3}`, []string{"b"}, `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []string{"c", "a"}, `{"b":2}`},
		{`{"a":1}`, []string{"a"}, `{}`},
		{`{"a":1}`, []string{"x"}, `{"a":1}`},
		{`{"a":1}`, nil, `{"a":1}`},
		{`{"x":{"a":1}}`, []string{"a"}, `{"x":{"a":1}}`},
		{`["a"]`, []string{"", "a"}, `["a"]`},
		{`"a"`, []string{"a"}, `"a"`},
	} {
		v := mustParse(t, c.input)
		if got := string(v.Without(c.names...).AppendJSON(nil)); got != c.want {
			t.Errorf("%s without %q is %s, want %s", c.input, c.names, got, c.want)
		}
		if got := string(v.AppendJSON(nil)); got != c.input {
			t.Errorf("Without changed the value itself: %s", got)
		}
	}
}

func TestR55FormattingAValueHidesItsContent(t *testing.T) {
	t.Parallel()
	// Words that no timestamp and no address can hold by chance.
	v := mustParse(t, `{"card":"vierzwei"}`)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("read", "value", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("read", "value", v)
	card, _ := v.Member("card")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&log, verb, v)
		fmt.Fprintf(&log, verb, card)
		fmt.Fprintf(&log, verb, &card)
		fmt.Fprintf(&log, verb, []Value{card})
	}
	for _, content := range []string{"vierzwei", "card", fmt.Sprintf("%x", "vierzwei"), fmt.Sprintf("%x", "card")} {
		if strings.Contains(log.String(), content) {
			t.Errorf("content in a log: %s", log.String())
		}
	}
	if got := fmt.Sprint(card); got != "canonical.Value(string)" {
		t.Errorf("formatted as %q", got)
	}
}

func TestNewStringTakesOnlyUTF8(t *testing.T) {
	t.Parallel()
	if v, ok := NewString("ord_1"); !ok || !bytes.Equal(Append(nil, v), canonicalBytes(t, `"ord_1"`, nil)) {
		t.Errorf("NewString gives another value than Parse: %v", ok)
	}
	if v, ok := NewString("\xff"); ok || v.Kind() != Absent {
		t.Errorf("invalid UTF-8 was taken as %v", v)
	}
}

func TestAbsentIsNoJSONValue(t *testing.T) {
	t.Parallel()
	var absent Value
	if got := Append(nil, absent); string(got) != "-" || bytes.Equal(got, canonicalBytes(t, `null`, nil)) {
		t.Errorf("absent has the bytes %q", got)
	}
	if _, err := Normalize(absent, nil); err == nil {
		t.Error("an absent value was normalised")
	}
	if absent.Kind().String() != "absent" || DateTime.String() != "date-time" || Kind(99).String() != "Kind(99)" {
		t.Errorf("kinds are named %v %v %v", absent.Kind(), DateTime, Kind(99))
	}
}
