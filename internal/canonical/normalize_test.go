package canonical

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestS84RawToolComparesNullAndDecimals(t *testing.T) {
	t.Parallel()
	shape := &Shape{Fields: map[string]*Shape{"amount": {Format: FormatDecimal}, "note": {}}}
	absent, null := canonicalBytes(t, `{"amount":"42.1"}`, shape), canonicalBytes(t, `{"amount":"42.1","note":null}`, shape)
	if bytes.Equal(absent, null) {
		t.Error("null and absent are one without NullIsAbsent")
	}
	for _, same := range []string{`{"amount":"42.10"}`, `{"amount":"4.21e1"}`, `{"amount":42.1}`} {
		if !bytes.Equal(absent, canonicalBytes(t, same, shape)) {
			t.Errorf("%s isn't the same as 42.1", same)
		}
	}
}

func TestR16NormalisedValuesAreNoStringsAndNoNumbers(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, c := range []struct{ input, format string }{
		{`"42"`, ""}, {`"42"`, FormatDecimal}, {`42`, ""},
		{`"2026-03-01"`, ""}, {`"2026-03-01"`, FormatDate},
		{`"2026-03-01T00:00:00Z"`, ""}, {`"2026-03-01T00:00:00Z"`, FormatDateTime},
		{`"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"`, ""}, {`"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"`, FormatUUID},
	} {
		got := string(canonicalBytes(t, c.input, &Shape{Format: c.format}))
		if other, twice := seen[got]; twice {
			t.Errorf("%s under %q shares its bytes with %s", c.input, c.format, other)
		}
		seen[got] = c.input + " under " + c.format
	}
}

func TestR16NormalizeLeavesWhatHasNoShape(t *testing.T) {
	t.Parallel()
	const input = `{"a":["42.10",1.50,null,true],"b":{"c":"2026-03-01T01:00:00+01:00"}}`
	v := mustParse(t, input)
	for name, shape := range map[string]*Shape{
		"nil":                     nil,
		"empty":                   {},
		"format on an object":     {Format: FormatDecimal},
		"items of an object":      {Items: &Shape{Format: FormatDecimal}},
		"fields that aren't here": {Fields: map[string]*Shape{"c": {Format: FormatDateTime, NullIsAbsent: true}}},
		"a nil field":             {Fields: map[string]*Shape{"a": nil, "b": nil}, Additional: &Shape{Items: &Shape{Format: FormatDecimal}}},
		"fields of an array":      {Fields: map[string]*Shape{"a": {Additional: &Shape{Format: FormatDecimal, NullIsAbsent: true}}}},
		"null in an array":        {NullIsAbsent: true, Fields: map[string]*Shape{"a": {Items: &Shape{NullIsAbsent: true}}}},
	} {
		got, err := Normalize(v, shape)
		if err != nil || !bytes.Equal(Append(nil, got), Append(nil, v)) {
			t.Errorf("%s: %s (%v)", name, got.AppendJSON(nil), err)
		}
	}
}

func TestR16NormalizeKeepsItsArgument(t *testing.T) {
	t.Parallel()
	const input = `{"list":["1.0",{"at":"2026-03-01T01:00:00+01:00","gone":null}],"gone":null,"kept":null}`
	v := mustParse(t, input)
	gone := &Shape{NullIsAbsent: true}
	item := &Shape{Format: FormatDecimal, Fields: map[string]*Shape{"at": {Format: FormatDateTime}, "gone": gone}}
	got, err := Normalize(v, &Shape{Fields: map[string]*Shape{"list": {Items: item}, "gone": gone}})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got.AppendJSON(nil)); text != `{"list":["1",{"at":"2026-03-01T00:00:00Z"}],"kept":null}` {
		t.Errorf("normalised to %s", text)
	}
	if text := string(v.AppendJSON(nil)); text != input {
		t.Errorf("the argument became %s", text)
	}
	list, _ := got.Member("list")
	for e := range list.Elements() {
		if e.Kind() == Decimal && e.String() != "1" || e.Kind() == String {
			t.Errorf("element of kind %v reads as %q", e.Kind(), e.String())
		}
	}
}

// Two spellings that time.Time can't tell apart must not be two instants: they
// would be one call's two keys.
func TestR16DateTimesAgreeWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	year := []string{"0000", "0001", "1900", "2000", "2024", "2026", "9999"}
	day := []string{"-01-01", "-02-28", "-02-29", "-02-30", "-04-31", "-06-30", "-12-31", "-13-01", "-00-10", "-10-00"}
	clock := []string{"T00:00:00", "T23:59:59.5", "T23:59:60", "T24:00:00", "T12:60:00", "t12:30:30", "T12:30", "T1:30:00", "T12:30:00.123456789", "T12:30:00,5", "T12:30:00."}
	zone := []string{"Z", "z", "+00:00", "-00:00", "+23:59", "-23:59", "+05:30", "-24:00", "+01:60", "+0100", "", "Z "}
	accepted := 0
	for _, y := range year {
		for _, d := range day {
			for _, c := range clock {
				for _, z := range zone {
					accepted += checkDateTime(t, y+d+c+z)
				}
			}
		}
	}
	if accepted < 500 {
		t.Errorf("only %d instants were compared", accepted)
	}
}

// strictDateTime is the grammar of RFC 3339 section 5.6. time.Time reads more: hours of
// one digit, a comma before the fraction, an offset of 24 hours or 60 minutes.
var strictDateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// checkDateTime returns 1 where s is a date-time to both readers.
func checkDateTime(t *testing.T, s string) int {
	t.Helper()
	var want time.Time
	upper := strings.ToUpper(s)
	valid := strictDateTime.MatchString(upper) && want.UnmarshalText([]byte(upper)) == nil
	if valid = valid && want.UTC().Year() >= 0 && want.UTC().Year() <= 9999; !valid {
		if got, ok := dateTime(s); ok && !strings.Contains(s, ":60") {
			t.Errorf("%q was read as %q", s, got)
		}
		return 0
	}
	text, ok := dateTime(s)
	var got time.Time
	if err := got.UnmarshalText([]byte(text)); !ok || err != nil || !got.Equal(want) {
		t.Errorf("%q was read as %q, want the instant %v", s, text, want)
	}
	return 1
}

func TestR16DecimalsAreReadAsDecimalTypesReadThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0e0", "-0": "0e0", "+0.00": "0e0", "000": "0e0", "1": "1e0", "+1": "1e0", "001.500": "15e-1", ".5": "5e-1", "5.": "5e0", "-.5e1": "-5e0",
		"1E+05": "1e5", "120e-1": "12e0", "1e10000": "1e10000", "1" + strings.Repeat("0", 999): "1e999",
		"": "", "+": "", ".": "", "-.": "", "e5": "", ".e5": "", "1e": "", "1e+": "", "1e5.0": "", "1.2.3": "", "--1": "", "1 ": "", " 1": "", "1,5": "", "1_0": "", "0x1": "", "NaN": "", "Infinity": "", "1/2": "", "½": "",
		"1e10001": "", "10e10000": "", "1" + strings.Repeat("0", 1000): "", "1e99999999999999999999999": "",
	} {
		v := Value{kind: String, text: text}
		got, err := Normalize(v, &Shape{Format: FormatDecimal})
		if err != nil {
			t.Fatal(err)
		}
		expected := string(appendText([]byte{tagDecimal}, want))
		if want == "" {
			expected = string(Append(nil, v))
		}
		if string(Append(nil, got)) != expected {
			t.Errorf("%.20q gives %q, want %q", text, Append(nil, got), expected)
		}
	}
}

// What a decoder may do with a number that AppendJSON wrote.
func TestR16PlainNumbersDecodeIntoIntegers(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]int64{"1.0": 1, "1e2": 100, "-1.20e1": -12, "-0": 0, "9007199254740993.0": 9007199254740993, "922337203685477580.7e1": 9223372036854775807} {
		var got int64
		if err := json.Unmarshal(mustParse(t, input).AppendJSON(nil), &got); err != nil || got != want {
			t.Errorf("%s decodes into %d (%v), want %d", input, got, err, want)
		}
	}
	var small uint8
	if err := json.Unmarshal(mustParse(t, "3e2").AppendJSON(nil), &small); err == nil {
		t.Errorf("300 decodes into a uint8 as %d", small)
	}
}

func TestSafeRoundedReportsTheFirstInDocumentOrder(t *testing.T) {
	t.Parallel()
	v := mustParse(t, `{"z":1,"b":{"ids":[1,2e0,9007199254740993]},"a":1e300}`)
	err, _ := SafeRounded(v).(*RoundedError)
	if err == nil || err.Path != "/b/ids/2" {
		t.Errorf("SafeRounded: %+v", err)
	}
	if err := SafeRounded(Value{}); err != nil {
		t.Errorf("an absent value: %v", err)
	}
}
