package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
)

// decoded validates and decodes arguments into a new value of the case's type.
func (c typeCase) decoded(t *testing.T, s *Schema, text []byte) any {
	t.Helper()
	if err := s.Validate(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	into := reflect.New(reflect.TypeOf(c.value)).Interface()
	if err := Decode(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return into
}

func TestWhatATypeWritesIsAcceptedAndReadBack(t *testing.T) {
	t.Parallel()
	for _, c := range typeCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.schema(t)
			for _, sample := range c.samples {
				text, err := json.Marshal(sample)
				if err != nil {
					t.Fatal(err)
				}
				again, err := json.Marshal(c.decoded(t, s, text))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(text, again) {
					t.Errorf("wrote %s\nread  %s", text, again)
				}
			}
		})
	}
}

// oddities are what each field in turn is set to: of every kind of JSON, and on
// the edges of what Go's types hold.
var oddities = []string{
	`null`, `true`, `""`, `"x"`, `"12"`, `"1.50"`, `"-1"`, `"a b"`, `"2026-02-30"`, `"2026-03-01T00:00:00Z"`, `"2026-03-01t00:00:00z"`,
	`"6BA7B810-9DAD-11D1-80B4-00C04FD430C8"`, `"6ba7b8109dad11d180b400c04fd430c8"`, `"aGk="`, `"!"`, `"::1"`, `"green"`,
	`0`, `-1`, `7`, `128`, `256`, `70000`, `5000000000`, `9223372036854775808`, `18446744073709551616`, `-9223372036854775809`, `1.5`, `1e400`,
	`[]`, `[1]`, `[1,2]`, `[1,2,3]`, `["x"]`, `[null]`, `[[1]]`, `{}`, `{"x":1}`, `{"name":"n"}`, `{"1":"b"}`, `{"x":{}}`, `{"01":true}`,
}

// TestWhatIsAcceptedCanBeDecoded sets every field of every sample to every
// oddity, and leaves each out in turn. What then validates has to decode, except
// for the types that alone know what they read.
func TestWhatIsAcceptedCanBeDecoded(t *testing.T) {
	t.Parallel()
	picky := []string{
		"addr", "addr_port", "prefix", "ip", "color", "code", "rat", "by_addr", // their own UnmarshalText
		"single", "double", "depth", "gaps", "pair", "structs", // 1e400 in a float64
		"int", "int_ptr", // 1e400 in a big.Int, which wants plain digits
	}
	valid := 0
	for _, c := range typeCases() {
		s := c.schema(t)
		for text, field := range mutations(t, c) {
			if s.Validate([]byte(text)) != nil {
				continue
			}
			valid++
			into := reflect.New(reflect.TypeOf(c.value)).Interface()
			if err := Decode([]byte(text), into); err != nil && !slices.Contains(picky, field) {
				t.Errorf("%s: %s is valid, and then: %v", c.name, text, err)
			}
		}
	}
	if valid < 300 {
		t.Errorf("only %d mutations were valid", valid)
	}
}

// mutations are samples with one field changed or left out, and that field.
func mutations(t *testing.T, c typeCase) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, sample := range c.samples {
		fields := membersOfSample(t, sample)
		for name := range fields {
			changed := maps.Clone(fields)
			delete(changed, name)
			all[written(t, changed)] = name
			for _, oddity := range oddities {
				changed[name] = json.RawMessage(oddity)
				all[written(t, changed)] = name
			}
		}
	}
	return all
}

func membersOfSample(t *testing.T, sample any) map[string]json.RawMessage {
	t.Helper()
	text, err := json.Marshal(sample)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func written(t *testing.T, fields map[string]json.RawMessage) string {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestR16NullIsAbsentExactlyWhereTheHandlerCantTell decodes each field as null
// and left out, and compares what the handler gets with what the shape says.
func TestR16NullIsAbsentExactlyWhereTheHandlerCantTell(t *testing.T) {
	t.Parallel()
	told := 0
	for _, c := range typeCases() {
		s := c.schema(t)
		for _, sample := range c.samples {
			fields := membersOfSample(t, sample)
			for _, f := range s.Fields {
				null, absent := reflect.New(reflect.TypeOf(c.value)), reflect.New(reflect.TypeOf(c.value))
				changed := maps.Clone(fields)
				if f.Name == "why" || f.Name == "rank" {
					// Promoted through a pointer: alone they tell whether it is nil.
					delete(changed, "why")
					delete(changed, "rank")
				}
				delete(changed, f.Name)
				errAbsent := json.Unmarshal([]byte(written(t, changed)), absent.Interface())
				changed[f.Name] = json.RawMessage(`null`)
				if errNull := json.Unmarshal([]byte(written(t, changed)), null.Interface()); errNull != nil || errAbsent != nil {
					continue
				}
				same := reflect.DeepEqual(null.Interface(), absent.Interface())
				if has(reflect.TypeOf(c.value), unmarshaler) && same {
					continue // its own UnmarshalJSON could tell, for all that is known
				}
				if shape := s.Shape.Fields[f.Name]; shape.NullIsAbsent != same {
					t.Errorf("%s.%s: NullIsAbsent is %v, and the handler gets the same: %v", c.name, f.Name, shape.NullIsAbsent, same)
				}
				if !same {
					told++
				}
			}
		}
	}
	if told == 0 {
		t.Error("no type can tell null from absent, so nothing was tested")
	}
}

func TestOptionalFieldsMayBeAbsentOrNull(t *testing.T) {
	t.Parallel()
	for _, c := range typeCases() {
		s := c.schema(t)
		fields := membersOfSample(t, c.samples[0])
		for _, f := range s.Fields {
			absent, null := maps.Clone(fields), maps.Clone(fields)
			delete(absent, f.Name)
			null[f.Name] = json.RawMessage(`null`)
			errAbsent, errNull := s.Validate([]byte(written(t, absent))), s.Validate([]byte(written(t, null)))
			if f.Optional && errNull != nil {
				t.Errorf("%s.%s is optional and null is refused: %v", c.name, f.Name, errNull)
			}
			if !f.Optional && errAbsent == nil {
				t.Errorf("%s.%s isn't optional and may be absent", c.name, f.Name)
			}
		}
	}
}
