package canonical

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"unicode/utf8"
)

// Kind says what a [Value] is.
type Kind uint8

const (
	// Absent is the kind of the zero Value: a member that isn't there. It differs
	// from Null, and Parse never returns it.
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
	// DateTime, Date, Decimal and UUID are strings of a declared format that
	// Normalize has turned into values. A number under the format "decimal" is
	// a Decimal too.
	DateTime
	Date
	Decimal
	UUID
)

var kindNames = [...]string{
	Absent: "absent", Null: "null", Bool: "bool", Number: "number", String: "string", Array: "array", Object: "object",
	DateTime: "date-time", Date: "date", Decimal: "decimal", UUID: "uuid",
}

// String returns the kind's name, as "number" or "date-time".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Value is one JSON value. It is immutable and may be shared between goroutines;
// it keeps the text that it was read from alive. The zero Value is Absent.
type Value struct {
	kind Kind
	// text is a string's characters, a Bool's literal, a number or decimal as it
	// was written, or a date-time, date or UUID in its one spelling.
	text string
	// list holds an object's members in document order, or an array's elements
	// without names.
	list []member
}

type member struct {
	name  string
	value Value
}

// NewString returns the String value of s, for a caller that computes one: a
// normaliser of an identity field (R16). It reports false where s isn't UTF-8.
func NewString(s string) (Value, bool) {
	if !utf8.ValidString(s) {
		return Value{}, false
	}
	return Value{kind: String, text: s}, true
}

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether v is the literal null. An absent value isn't.
func (v Value) IsNull() bool { return v.kind == Null }

// Bool returns v's truth. It is false where v isn't a Bool.
func (v Value) Bool() bool { return v.kind == Bool && v.text == "true" }

// String returns the characters of a string or of a value that Normalize made
// of one, and the digits of a number as AppendJSON writes them. It is empty for
// the other kinds.
func (v Value) String() string {
	switch v.kind {
	case String, DateTime, Date, UUID:
		return v.text
	case Number, Decimal:
		return string(splitNumber(v.text).appendPlain(nil))
	default:
		return ""
	}
}

// Literal returns a number as it was written. It is empty for the other kinds.
func (v Value) Literal() string {
	if v.kind != Number {
		return ""
	}
	return v.text
}

// Format writes v's kind and never its content, whatever the verb, so that a
// value that reaches a log or an error's text leaks nothing (R55).
func (v Value) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "canonical.Value("+v.kind.String()+")")
}

// Len returns the number of an object's members or an array's elements, and 0
// for the other kinds.
func (v Value) Len() int { return len(v.list) }

// Member returns an object's member. It reports false where v is no object or
// has no such member.
func (v Value) Member(name string) (Value, bool) {
	if v.kind != Object {
		return Value{}, false
	}
	for i := range v.list {
		if v.list[i].name == name {
			return v.list[i].value, true
		}
	}
	return Value{}, false
}

// Members yields an object's members in document order, and nothing for other
// kinds.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.kind != Object {
			return
		}
		for i := range v.list {
			if !yield(v.list[i].name, v.list[i].value) {
				return
			}
		}
	}
}

// Elements yields an array's elements in order, and nothing for other kinds.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.kind != Array {
			return
		}
		for i := range v.list {
			if !yield(v.list[i].value) {
				return
			}
		}
	}
}

// Without returns v without the named top-level members: fields that stay out of
// the fingerprint (R15), and the parameter that carries the occurrence (R9).
// Names that aren't there are skipped; a value that is no object comes back as
// it is. It costs the length of the object times the number of names.
func (v Value) Without(names ...string) Value {
	if v.kind != Object {
		return v
	}
	named := func(m member) bool { return slices.Contains(names, m.name) }
	if !slices.ContainsFunc(v.list, named) {
		return v
	}
	kept := make([]member, 0, len(v.list)-1)
	for _, m := range v.list {
		if !named(m) {
			kept = append(kept, m)
		}
	}
	v.list = kept
	return v
}
