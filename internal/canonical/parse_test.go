package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestR16SyntaxErrorsSayWhereAndWhy(t *testing.T) {
	t.Parallel()
	many := manyMembers(40, "name0")
	for _, c := range []struct {
		input  string
		offset int64
		reason string
	}{
		{``, 0, reasonEnd},
		{` `, 1, reasonEnd},
		{`{"a":1`, 6, reasonEnd},
		{`{"a"`, 4, reasonEnd},
		{`{"a":`, 5, reasonEnd},
		{`["a`, 3, reasonEnd},
		{"\xef\xbb\xbf{}", 0, reasonBOM},
		{`{} {}`, 3, reasonTrailing},
		{`1x`, 1, reasonTrailing},
		{`[nul]`, 1, reasonValue},
		{`[,1]`, 1, reasonValue},
		{`{1:2}`, 1, reasonFirstName},
		{`{"a":1,}`, 7, reasonName},
		{`{"a",1}`, 4, reasonColon},
		{`{"a":1]`, 6, reasonMember},
		{`[1}`, 2, reasonElement},
		{`{"a":1,"b":2, "\u0061":3}`, 14, reasonTwice},
		{many, int64(strings.LastIndex(many, `"name0"`)), reasonTwice},
		{`[01]`, 1, reasonNumber},
		{`[1.e5]`, 3, reasonNumber},
		{`[1e+]`, 4, reasonNumber},
		{"[\"a\nb\"]", 3, reasonControl},
		{"[\"\\t\nb\"]", 4, reasonControl},
		{"[\"ab\xff\"]", 4, reasonUTF8},
		{"[\"\\n\xe2\x82\"]", 4, reasonUTF8},
		{`["ab\q"]`, 4, reasonEscape},
		{`["\u00g0"]`, 2, reasonEscape},
		{`["x\ud800\ud800"]`, 3, reasonSurrogate},
		{`["x\udc00\ud800"]`, 3, reasonSurrogate},
		{`["x\ud800"]`, 3, reasonSurrogate},
	} {
		_, err := Parse([]byte(c.input), Limits{})
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok || e.Offset != c.offset || e.Reason != c.reason {
			t.Errorf("Parse(%q) = %v, want byte %d: %s", c.input, err, c.offset, c.reason)
		}
	}
}

// manyMembers writes an object of n members and one more at its end.
func manyMembers(n int, last string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&b, `"name%d":%d,`, i, i)
	}
	fmt.Fprintf(&b, `"%s":0}`, last)
	return b.String()
}

// What the reader takes beyond the few things that it refuses on top of RFC 8259
// is what encoding/json takes.
func TestParseAgreesWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	stricter := map[string]bool{reasonTwice: true, reasonUTF8: true, reasonSurrogate: true}
	for _, input := range []string{
		`null`, `true`, `false`, `0`, `-0`, `-1.5E+3`, `1e-7`, `""`, `"\"\\\/\b\f\n\r\t"`, `"\u0000\uFFFF"`, "\"\u007f\u2028\ufffe\ufffd\"",
		`[]`, ` [ 1 , [ ] , { } ] `, "\t{\r\n\"a\" : 1 }", `{"a":{"b":[]}}`, `{"a":1,"a":2}`, "\"\xff\"", `"\ud800"`, `"\ud834\udd1e"`,
		``, `nul`, `nulll`, `[`, `]`, `{`, `}`, `,`, `:`, `"`, `[1,]`, `[,]`, `{"a"}`, `{"a":}`, `{,}`, `[1 2]`, `01`, `1.`, `.1`, `+1`, `--1`, `1e`, `1ee1`, `0x1`,
		"\"\n\"", `"\x"`, `"\u12"`, `"\`, `'a'`, "\v1", "\u00a01", `1 1`, `NaN`, `-`, `-a`, `tru`, `TRUE`, "1\x00",
	} {
		_, err := Parse([]byte(input), Limits{})
		e, _ := errors.AsType[*SyntaxError](err)
		if valid := json.Valid([]byte(input)); valid != (err == nil) && (!valid || !stricter[e.Reason]) {
			t.Errorf("%q: Parse says %v, encoding/json valid: %v", input, err, valid)
		}
	}
}

func TestR16LimitsAreTakenExactly(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	zeros := func(values int) string { return "[" + strings.Repeat("0,", values-2) + "0]" }
	text := func(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }
	for _, c := range []struct {
		limit     string
		limits    Limits
		max       int
		good, bad string
	}{
		{"depth", Limits{}, 64, nested(64), nested(65)},
		{"depth", Limits{Depth: -1}, 64, nested(64), nested(65)},
		{"depth", Limits{Depth: 2}, 2, `[{"a":1},[]]`, `[[[]]]`},
		{"depth", Limits{Depth: 1 << 30, Members: 1 << 20}, 10_000, nested(10_000), nested(10_001)},
		{"members", Limits{}, 10_000, zeros(10_000), zeros(10_001)},
		{"members", Limits{Members: 1}, 1, `{}`, `{"a":1}`},
		{"members", Limits{Members: 20_000}, 20_000, zeros(20_000), zeros(20_001)},
		{"bytes", Limits{}, 1 << 20, text(1 << 20), text(1<<20 + 1)},
		{"bytes", Limits{Bytes: 2}, 2, `""`, `"a"`},
		{"bytes", Limits{Bytes: 2 << 20}, 2 << 20, text(2 << 20), text(2<<20 + 1)},
		{"digits", Limits{}, MaxDigits, strings.Repeat("9", 1000), strings.Repeat("9", 1001)},
		{"digits", Limits{}, MaxDigits, "-0." + strings.Repeat("0", 999) + "e-007", "-0." + strings.Repeat("0", 1000)},
		{"exponent", Limits{}, MaxExponent, "1e10000", "1e10001"},
		{"exponent", Limits{}, MaxExponent, "1e-10000", "1E-10001"},
		{"exponent", Limits{}, MaxExponent, "10e9999", "10e10000"},
		{"exponent", Limits{}, MaxExponent, "0.1e-9999", "0.1e-10000"},
		{"exponent", Limits{}, MaxExponent, "1e00000000000000000005", "1e18446744073709551617"},
	} {
		if _, err := Parse([]byte(c.good), c.limits); err != nil {
			t.Errorf("at the limit on %s %+v: %v", c.limit, c.limits, err)
		}
		_, err := Parse([]byte(c.bad), c.limits)
		if e, ok := errors.AsType[*LimitError](err); !ok || e.Limit != c.limit || e.Max != c.max {
			t.Errorf("beyond the limit on %s %+v: %v, want max %d", c.limit, c.limits, err, c.max)
		}
	}
}

func TestR55ErrorsHoldNothingOfTheInput(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, input := range []string{
		`{"hunter2":1,"hunter2":2}`, `{"hunter2" 1}`, `["hunter2",]`, `"hunter2`, `"hunter2\ud800"`, "\"hunter2\xff\"", `"hunter2\q"`, `hunter2`,
		`{"hunter2":` + strings.Repeat("7", 2000) + `}`, `{"hunter2":1e99999}`, `{"hunter2":01}`,
	} {
		_, err := Parse([]byte(input), Limits{})
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "777") {
			t.Errorf("Parse(%q): %v", input, err)
		}
	}
	if err := SafeRounded(mustParse(t, `{"hunter2":1e30}`)); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("SafeRounded: %v", err)
	}
	if _, err := ParsePath(`hunter2\x`); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("ParsePath: %v", err)
	}
}

func TestParseKeepsNoReferenceToItsInput(t *testing.T) {
	t.Parallel()
	input := []byte(`{"name":"text","number":12.50}`)
	v, err := Parse(input, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	before := Append(nil, v)
	for i := range input {
		input[i] = 'x'
	}
	if !bytes.Equal(before, Append(nil, v)) {
		t.Error("the value changed with the bytes that it was read from")
	}
}

// An object of many members costs about as much per member as a small one. With
// each name compared with each, these would be 45,000 million comparisons.
func TestManyMembersAreReadInTime(t *testing.T) {
	t.Parallel()
	const members = 300_000
	input := manyMembers(members, "last")
	begin := time.Now()
	v, err := Parse([]byte(input), Limits{Bytes: 1 << 30, Members: 1 << 20})
	if err != nil || v.Len() != members+1 {
		t.Fatalf("read %d members: %v", v.Len(), err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("reading took %v", took)
	}
	if got := Append(nil, v); !bytes.Equal(got, Append(nil, mustReparse(t, v))) {
		t.Error("other canonical bytes after writing and reading again")
	}
}

func mustReparse(t testing.TB, v Value) Value {
	t.Helper()
	again, err := Parse(v.AppendJSON(nil), Limits{Bytes: 1 << 30, Members: 1 << 20})
	if err != nil {
		t.Fatalf("what AppendJSON wrote isn't read: %v", err)
	}
	return again
}
