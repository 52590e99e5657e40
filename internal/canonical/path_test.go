package canonical

import (
	"slices"
	"testing"
)

func TestR8PathFindsIdentity(t *testing.T) {
	t.Parallel()
	v := mustParse(t, `{"customer":{"id":"c1"},"items":[{"id":"i0"},{"id":"i1"}],"a.b":{"c\\d":"dotted"},"x/y":{"m~n":"pointed"},"":{"":"empty"},"0":"zero","nothing":null}`)
	for _, c := range []struct {
		path string
		want string // "" where nothing is found
	}{
		{"customer.id", "c1"}, {"/customer/id", "c1"},
		{"items.1.id", "i1"}, {"/items/0/id", "i0"},
		{`a\.b.c\\d`, "dotted"}, {`/a.b/c\d`, "dotted"},
		{"/x~1y/m~0n", "pointed"}, {"x/y.m~n", "pointed"},
		{"//", "empty"}, {"0", "zero"}, {"/0", "zero"},
		{"customer.name", ""}, {"customer.id.x", ""}, {"items.2.id", ""}, {"items.01.id", ""}, {"items.-1", ""}, {"items.+1", ""}, {"/items/-", ""}, {"items.99999999999999999999", ""},
		{"a.b", ""}, {".", ""}, {"customer.", ""}, {".customer", ""}, {"customer..id", ""}, {`customer\`, ""}, {`cust\omer`, ""}, {"/x~2y", ""}, {"/x~", ""}, {"customer/id", ""},
	} {
		got, ok := v.Path(c.path)
		if ok != (c.want != "") || got.String() != c.want {
			t.Errorf("path %q finds %q (%v), want %q", c.path, got.String(), ok, c.want)
		}
	}
	if whole, ok := v.Path(""); !ok || whole.Len() != v.Len() {
		t.Error("the empty path isn't the whole value")
	}
	if null, ok := v.Path("nothing"); !ok || !null.IsNull() {
		t.Error("null counts as missing")
	}
	if _, ok := (Value{}).Path(""); ok {
		t.Error("an absent value was found")
	}
}

func TestParsePathSplitsOrRefuses(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][]string{
		"": nil, "a": {"a"}, "a.b.0": {"a", "b", "0"}, `a\.b\\.c`: {`a.b\`, "c"}, `\.`: {"."},
		"/": {""}, "/a/": {"a", ""}, "/a~1b/~0~01": {"a/b", "~~1"}, `/a.b\c`: {`a.b\c`}, "a~b": {"a~b"},
	} {
		got, err := ParsePath(path)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ParsePath(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]error{
		".": errEmptyName, "a.": errEmptyName, ".a": errEmptyName, "a..b": errEmptyName, `a\..`: errEmptyName,
		`a\`: errDottedEscape, `a\b`: errDottedEscape, `a.b\/c`: errDottedEscape,
		"/~": errTilde, "/a~2": errTilde, "/a/~b/c": errTilde,
	} {
		if got, err := ParsePath(path); err != want {
			t.Errorf("ParsePath(%q) = %q, %v; want %v", path, got, err, want)
		}
	}
}

func TestR15WithoutPathDropsOneMember(t *testing.T) {
	t.Parallel()
	const input = `{"a":{"b":1,"c":[{"t":1,"u":2}]},"d":3}`
	v := mustParse(t, input)
	for path, want := range map[string]string{
		"d":          `{"a":{"b":1,"c":[{"t":1,"u":2}]}}`,
		"a.b":        `{"a":{"c":[{"t":1,"u":2}]},"d":3}`,
		"/a/c/0/t":   `{"a":{"b":1,"c":[{"u":2}]},"d":3}`,
		"a.c.0":      input,
		"a.x":        input,
		"a.b.c":      input,
		"":           input,
		"a..b":       input,
		"/a/c/1/t":   input,
		"missing.at": input,
	} {
		if got := string(v.WithoutPath(path).AppendJSON(nil)); got != want {
			t.Errorf("without %q: %s, want %s", path, got, want)
		}
		if got := string(v.AppendJSON(nil)); got != input {
			t.Fatalf("WithoutPath(%q) changed the value itself: %s", path, got)
		}
	}
}
