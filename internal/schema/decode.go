package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decode reads arguments that are valid into a value of their Go type. Fields
// that the type doesn't have are refused; a number that goes into an any is a
// json.Number, since a float64 would round the ids beyond 2^53. Whole numbers are
// expected as plain digits: write them with the canonical form's AppendJSON
// first, which turns 1.0 and 1e2 into such.
//
// It comes before the claim, so that what a type can't hold (300 in a uint8, an
// address that is none) is invalid and has had no effect. The error is a
// [*ValidationError]; what into points to is then to be thrown away.
func Decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	d.UseNumber()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return invalid("", "not one JSON value")
	}
	var misuse *json.InvalidUnmarshalError
	if errors.As(err, &misuse) {
		return fmt.Errorf("schema: decode: %w", err)
	}
	if !json.Valid(data) {
		return invalid("", "not one JSON value")
	}
	l := &locator{}
	l.locate(reflect.TypeOf(into).Elem(), data, "")
	if len(l.problems) == 0 {
		return invalid("", "they can't be read as "+typeName(reflect.TypeOf(into).Elem()))
	}
	return invalidFor(l.problems)
}

// Read reads what was recorded, or what a far side answered, into a value of its
// Go type. Fields that the type doesn't have are passed over; a number that goes
// into an any is a json.Number, as with [Decode].
func Read(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return errors.New("schema: read: not one JSON value")
	}
	return err
}

// Admitted returns [Decode] for data that the schema of type t has admitted. That
// has refused unknown fields already, so that a type without an interface in it
// can be read without a decoder of its own for each call.
func Admitted(t reflect.Type) func(data []byte, into any) error {
	if holdsInterface(t, nil) {
		return Decode
	}
	return func(data []byte, into any) error {
		if json.Unmarshal(data, into) == nil {
			return nil
		}
		reflect.ValueOf(into).Elem().SetZero()
		return Decode(data, into)
	}
}

// trusted are packages whose types read themselves and always return.
var trusted = []string{"time", "encoding/json", "math/big", "net/netip", "github.com/google/uuid"}

// RunsCode says whether methods may run of which nobody here knows that they return,
// where something is decoded into the type. above are the types that t is within.
func RunsCode(t reflect.Type, above ...reflect.Type) bool {
	switch {
	case slices.Contains(above, t):
		return false
	case t.Kind() != reflect.Pointer && (has(t, unmarshaler) || has(t, textUnmarshaler)):
		return !slices.Contains(trusted, t.PkgPath())
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return RunsCode(t.Elem(), above...)
	case reflect.Map:
		return RunsCode(t.Key(), above...) || RunsCode(t.Elem(), above...)
	case reflect.Struct:
		for i := range t.NumField() {
			if RunsCode(t.Field(i).Type, above...) {
				return true
			}
		}
	}
	return false
}

// holdsInterface says whether a value of the type can hold an interface that
// encoding/json fills in by itself. above are the types that t is within.
func holdsInterface(t reflect.Type, above []reflect.Type) bool {
	if has(t, unmarshaler) || has(t, textUnmarshaler) || slices.Contains(above, t) {
		return false
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsInterface(t.Elem(), above)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type, above) {
				return true
			}
		}
	}
	return false
}

// locator finds the fields that can't be decoded, by decoding each by itself:
// the errors of encoding/json name no field where a method failed, and quote
// values (R55).
type locator struct {
	problems []Problem
}

func (l *locator) add(path, format string, args ...any) {
	l.problems = append(l.problems, Problem{path, fmt.Sprintf(format, args...)})
}

func (l *locator) locate(t reflect.Type, data json.RawMessage, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	data = bytes.TrimSpace(data)
	if has(t, unmarshaler) || has(t, textUnmarshaler) || len(data) == 0 {
		l.leaf(t, data, path)
		return
	}
	switch {
	case t.Kind() == reflect.Struct && data[0] == '{':
		l.object(t, data, path)
	case t.Kind() == reflect.Map && data[0] == '{':
		l.members(t, data, path)
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && data[0] == '[':
		l.elements(t, data, path)
	default:
		l.leaf(t, data, path)
	}
}

func (l *locator) object(t reflect.Type, data json.RawMessage, path string) {
	fields, _ := fieldsOf(t)
	members, err := membersOf(data)
	if err != nil {
		l.add(path, "can't be read")
		return
	}
	for _, m := range members {
		i := slices.IndexFunc(fields, func(f goField) bool { return f.name == m.name })
		if i < 0 {
			i = slices.IndexFunc(fields, func(f goField) bool { return strings.EqualFold(f.name, m.name) })
		}
		switch {
		case i < 0:
			l.add(path, "has an unknown field; it takes %s", fieldNames(fields))
		case fields[i].quoted:
			l.quoted(fields[i].Type, m.value, join(path, fields[i].name))
		default:
			l.locate(fields[i].Type, m.value, join(path, fields[i].name))
		}
	}
}

func fieldNames(fields []goField) string {
	if len(fields) == 0 {
		return "none"
	}
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// quoted tries a field with the option ",string" in a struct of its own.
func (l *locator) quoted(t reflect.Type, data json.RawMessage, path string) {
	one := reflect.StructOf([]reflect.StructField{{Name: "Field", Type: t, Tag: `json:"field,string"`}})
	text := append(append([]byte(`{"field":`), data...), '}')
	if json.Unmarshal(text, reflect.New(one).Interface()) != nil {
		l.add(path, "must hold, in a string, what the type %s takes", typeName(t))
	}
}

func (l *locator) members(t reflect.Type, data json.RawMessage, path string) {
	members, err := membersOf(data)
	if err != nil {
		l.add(path, "can't be read")
		return
	}
	for _, m := range members {
		before := len(l.problems)
		l.locate(t.Elem(), m.value, join(path, unknownName))
		one, err := object([]member{m})
		if len(l.problems) == before && (err != nil || json.Unmarshal(one, reflect.New(t).Interface()) != nil) {
			l.add(path, "has a member whose name can't be read as %s", typeName(t.Key()))
		}
	}
}

func (l *locator) elements(t reflect.Type, data json.RawMessage, path string) {
	var items []json.RawMessage
	if json.Unmarshal(data, &items) != nil {
		l.add(path, "can't be read")
		return
	}
	for i, item := range items {
		l.locate(t.Elem(), item, path+"["+strconv.Itoa(i)+"]")
	}
}

// leaf tries a value that is decoded as a whole.
func (l *locator) leaf(t reflect.Type, data json.RawMessage, path string) {
	failed := guarded(func() error { return json.Unmarshal(data, reflect.New(t).Interface()) }) != nil
	if !failed {
		return
	}
	switch k := t.Kind(); {
	case has(t, unmarshaler), has(t, textUnmarshaler):
		l.add(path, "can't be read as %s", typeName(t))
	case k >= reflect.Int && k <= reflect.Uintptr:
		b := boundsOf(t)
		l.add(path, "must be a whole number from %s to %s", b.low, b.high)
	case k == reflect.Float32 || k == reflect.Float64:
		l.add(path, "must be a number that a %s holds", k)
	case k == reflect.Bool:
		l.add(path, "must be true or false")
	case k == reflect.String:
		l.add(path, "must be a string")
	default:
		l.add(path, "can't be read as %s", typeName(t))
	}
}
