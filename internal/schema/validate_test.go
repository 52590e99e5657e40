package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
)

// parcel is validated in most tests below.
type parcel struct {
	Order    string            `json:"order" jsonschema:"minLength=3"`
	Weight   uint8             `json:"weight"`
	Price    decimal.Decimal   `json:"price"`
	Kind     string            `json:"kind" jsonschema:"enum=letter,enum=box"`
	Items    []parcelItem      `json:"items" jsonschema:"minItems=1"`
	Headers  map[string]string `json:"headers,omitempty"`
	Sent     *time.Time        `json:"sent,omitempty"`
	Insured  float64           `json:"insured,omitempty" jsonschema:"minimum=0.5"`
	Grouping any               `json:"grouping,omitempty" jsonschema:"anyof_type=string;integer"`
}

type parcelItem struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

const validParcel = `{"order":"abc","weight":200,"price":"1.50","kind":"box","items":[{"name":"n","count":1}]}`

func schemaOf[T any](t testing.TB) *Schema {
	t.Helper()
	s, err := Of(reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestInvalidArgumentsAreNamedByFieldAndRule(t *testing.T) {
	t.Parallel()
	s := schemaOf[parcel](t)
	if err := s.Validate([]byte(validParcel)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, replace, with string
		want                string
	}{
		{"wrong type", `"abc"`, `17`, "order: must be a string, not a number"},
		{"null", `"abc"`, `null`, "order: must be a string, not null"},
		{"too short", `"abc"`, `"ab"`, "order: must have at least 3 characters"},
		{"missing", `"order":"abc",`, ``, "order: is required"},
		{"out of range", `200`, `300`, "weight: must be a whole number from 0 to 255"},
		{"no whole number", `200`, `1.5`, "weight: must be a whole number, not a number"},
		{"a decimal as a number", `"1.50"`, `1.5`, "price: must be a string, not a number"},
		{"no decimal", `"1.50"`, `"1,50"`, `price: must be a decimal number in a string, as in "12.50"`},
		{"not in the enum", `"box"`, `"crate"`, `kind: must be one of "letter", "box"`},
		{"empty list", `[{"name":"n","count":1}]`, `[]`, "items: must have at least 1 element"},
		{"nested", `"count":1`, `"count":"one"`, "items[0].count: must be a whole number, not a string"},
		{"nested and missing", `,"count":1`, ``, "items[0].count: is required"},
		{"unknown field", `"kind"`, `"x":1,"kind"`, "has an unknown field; it takes order, weight, price, kind, items, headers, sent, insured, grouping"},
		{"another case", `"kind"`, `"Kind"`, "kind: is required"},
		{"nested and unknown", `"count":1`, `"count":1,"x":1`, "items[0]: has an unknown field; it takes name, count"},
		{"a map's value", `"kind"`, `"headers":{"X-Secret":1},"kind"`, "headers.*: must be a string, not a number"},
		{"an optional time", `"kind"`, `"sent":"yesterday","kind"`, "sent: must be a date and time with its offset"},
		{"an optional type", `"kind"`, `"sent":5,"kind"`, "sent: must be null or a string, not a number"},
		{"a bound", `"kind"`, `"insured":0.25,"kind"`, "insured: must be at least 0.5"},
		{"alternatives", `"kind"`, `"grouping":true,"kind"`, "grouping: must be a whole number or a string, not true or false"},
		{"no object", validParcel, `[]`, "must be an object, not an array"},
		{"no JSON", `"abc"`, `abc`, "not one JSON value"},
		{"two values", validParcel, `{} {}`, "not one JSON value"},
		{"nothing", validParcel, ``, "not one JSON value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(validParcel, c.replace, c.with, 1)
			err := s.Validate([]byte(text))
			var invalid *ValidationError
			if !errors.As(err, &invalid) {
				t.Fatalf("%s: got %v", text, err)
			}
			if !slices.ContainsFunc(invalid.Problems, func(p Problem) bool { return strings.HasPrefix(p.String(), c.want) }) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestR55ErrorsHoldNoValues puts a marker everywhere a caller can put one.
func TestR55ErrorsHoldNoValues(t *testing.T) {
	t.Parallel()
	const marker = "s3cr3t"
	s := schemaOf[parcel](t)
	raw, err := Parse([]byte(`{"type":"object","properties":{"a":{"const":"x"},"b":{"not":{"type":"string"}},"c":{"type":"array","uniqueItems":true},
		"d":{"oneOf":[{"type":"string"},{"type":"string","minLength":1}]},"e":{"anyOf":[{"pattern":"^x"},{"pattern":"^y"}]},"f":{"type":"string","format":"uri"}},
		"propertyNames":{"maxLength":6},"dependentRequired":{"a":["b"]},"patternProperties":{"^s3":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schema *Schema
		text   string
	}{
		{s, `{"order":"s","weight":"s3cr3t","price":"s3cr3t","kind":"s3cr3t","items":["s3cr3t",{"s3cr3t":"s3cr3t"}],"headers":{"s3cr3t":{"s3cr3t":1}},"sent":"s3cr3t","grouping":["s3cr3t"],"s3cr3t":1}`},
		{s, `{"headers":{"s3cr3t":1e99999}}`},
		{s, `s3cr3t`},
		{s, `{"s3cr3t`},
		{s, `"s3cr3t"`},
		{raw, `{"a":"s3cr3t","b":"s3cr3t","c":["s3cr3t","s3cr3t"],"d":"s3cr3t","e":"s3cr3t","f":"s3cr3t %","s3cr3t":"s3cr3t","s3cr3t2":1}`},
	} {
		err := c.schema.Validate([]byte(c.text))
		if err == nil {
			t.Errorf("%s is valid", c.text)
			continue
		}
		if strings.Contains(err.Error(), marker) || strings.Contains(fmt.Sprintf("%+v %#v", err, err), marker) {
			t.Errorf("a value is in the error: %v", err)
		}
		var into parcel
		if err := Decode([]byte(c.text), &into); err == nil || strings.Contains(fmt.Sprintf("%+v %#v", err, err), marker) {
			t.Errorf("%s: a value is in the error of Decode, or there is none: %v", c.text, err)
		}
	}
}

func TestR16NumbersAreValidatedExactly(t *testing.T) {
	t.Parallel()
	s := schemaOf[wholeNumbers](t)
	with := func(field, value string) []byte {
		fields := membersOfSample(t, &wholeNumbers{})
		fields[field] = []byte(value)
		return []byte(written(t, fields))
	}
	for _, c := range []struct {
		field, value string
		valid        bool
	}{
		{"u8", "255", true}, {"u8", "256", false}, {"u8", "-1", false}, {"u8", "-0", true}, {"u8", "2.55e2", true}, {"u8", "255.5", false},
		{"i8", "-128", true}, {"i8", "-129", false}, {"i8", "127", true}, {"i8", "128", false},
		{"i64", "9223372036854775807", true}, {"i64", "9223372036854775808", false}, {"i64", "9223372036854775807.0", true}, {"i64", "9.223372036854775808e18", false},
		{"u64", "18446744073709551615", true}, {"u64", "18446744073709551616", false},
		{"i", "1.0", true}, {"i", "1e2", true}, {"i", "1e-2", false}, {"i", "1e18", true}, {"i", "1e19", false},
	} {
		if err := s.Validate(with(c.field, c.value)); (err == nil) != c.valid {
			t.Errorf("%s = %s: %v", c.field, c.value, err)
		}
	}
}

// An exact comparison of such a number would take minutes, or all memory.
func TestHugeExponentsAreRefusedBeforeTheyAreComputed(t *testing.T) {
	t.Parallel()
	s := schemaOf[exactNumbers](t)
	for _, value := range []string{"1e10001", "1e-10001", "1e999999999", "-1E+99999999999999999999", strings.Repeat("9", 1001)} {
		for _, field := range []string{"int", "number"} {
			fields := membersOfSample(t, &exactNumbers{Number: "1"})
			fields[field] = []byte(value)
			err := s.Validate([]byte(written(t, fields)))
			if err == nil || !strings.Contains(err.Error(), field+": a number may have 1000 digits and an exponent up to 10000") {
				t.Errorf("%.20s: %v", value, err)
			}
		}
	}
	fields := membersOfSample(t, &exactNumbers{Number: "1"})
	fields["decimal"] = []byte(`"1e999999999"`)
	if s.Validate([]byte(written(t, fields))) == nil {
		t.Error("a decimal with a huge exponent is valid")
	}
}

func TestManyProblemsAreCutShort(t *testing.T) {
	t.Parallel()
	s := schemaOf[parcel](t)
	text := `{"items":[` + strings.Repeat(`{"name":1,"count":1},`, 99) + `{}]}`
	err := s.Validate([]byte(text))
	var invalid *ValidationError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	// 99 names, two fields of the last item, four fields of the parcel.
	if len(invalid.Problems) != 32 || invalid.More != 99+2+4-32 {
		t.Errorf("%d problems and %d more", len(invalid.Problems), invalid.More)
	}
	if !strings.HasSuffix(err.Error(), "; and 73 more") {
		t.Errorf("the end isn't told: %v", err)
	}
}

func TestValidateIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := schemaOf[parcel](t)
	done := make(chan error)
	for range 8 {
		go func() {
			for range 50 {
				if err := s.Validate([]byte(validParcel)); err != nil {
					done <- err
					return
				}
				if s.Validate([]byte(`{}`)) == nil {
					done <- errors.New("an empty parcel is valid")
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
