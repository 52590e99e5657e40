package canonical

import (
	"errors"
	"slices"
)

// Names of the formats that are compared as values: Shape.Format.
const (
	FormatDateTime = "date-time"
	FormatDate     = "date"
	FormatDecimal  = "decimal"
	FormatUUID     = "uuid"
)

var errAbsent = errors.New("canonical: expected a value to normalise, met an absent one; leave it out, or pass what Parse returned")

// Normalize returns v with each string of a declared format turned into the value
// that it stands for, and without the null members that the handler can't tell
// from missing ones (R16). The shape follows the document: Fields and Additional
// where there is an object, Items where there is an array, Format where there is
// a string (a number too, under "decimal"); what doesn't fit the value there is
// passed over. A nil shape changes nothing.
//
//   - date-time: RFC 3339, compared as an instant whatever the offset, with every
//     digit of its fraction. A leap second is an instant of its own, where RFC
//     3339 allows one: 23:59:60 UTC on the last day of a month. An instant whose
//     year in UTC isn't 0000 to 9999 is left as it was.
//   - date: RFC 3339 full-date, a day that exists.
//   - decimal: an exact decimal number within MaxDigits and MaxExponent, where
//     "+1", ".5", "5." and "007" are read too. A JSON number is the same as the
//     string.
//   - uuid: any case, with or without hyphens, also in braces or as a urn:uuid:.
//
// A string that isn't of its format stays a string and is compared as the bytes
// that it is: whether it may be there is the schema's to say. NullIsAbsent counts
// for members of objects only.
//
// The result is for comparing: Append its bytes. It is the only one in which 42.1
// and "42.1" are one, so decode v and not the result. Normalising twice changes
// nothing more. The only error is that v is absent.
func Normalize(v Value, s *Shape) (Value, error) {
	if v.kind == Absent {
		return Value{}, errAbsent
	}
	v, _ = s.normalize(v)
	return v, nil
}

// normalize reports whether it changed v, so that what stays as it was isn't
// copied.
func (s *Shape) normalize(v Value) (Value, bool) {
	if s == nil {
		return v, false
	}
	switch v.kind {
	case String:
		return s.scalar(v)
	case Number:
		if s.Format == FormatDecimal {
			return Value{kind: Decimal, text: v.text}, true
		}
	case Array:
		return s.list(v, func(string) *Shape { return s.Items })
	case Object:
		return s.list(v, s.field)
	}
	return v, false
}

func (s *Shape) scalar(v Value) (Value, bool) {
	read := Value{kind: v.kind, text: v.text}
	ok := false
	switch s.Format {
	case FormatDateTime:
		read.kind = DateTime
		read.text, ok = dateTime(v.text)
	case FormatDate:
		read.kind, ok = Date, isDate(v.text)
	case FormatDecimal:
		read.kind, ok = Decimal, isDecimal(v.text)
	case FormatUUID:
		read.kind = UUID
		read.text, ok = uuid(v.text)
	}
	if !ok {
		return v, false
	}
	return read, true
}

// field returns the shape of a member.
func (s *Shape) field(name string) *Shape {
	if f, ok := s.Fields[name]; ok {
		return f
	}
	return s.Additional
}

func (s *Shape) list(v Value, shape func(name string) *Shape) (Value, bool) {
	changed, dropped := false, false
	list := v.list
	for i := range v.list {
		name, inner := v.list[i].name, shape(v.list[i].name)
		drop := v.kind == Object && inner != nil && inner.NullIsAbsent && v.list[i].value.kind == Null
		to, differs := inner.normalize(v.list[i].value)
		if drop {
			to, differs, dropped = Value{}, true, true
		}
		if !differs {
			continue
		}
		if !changed {
			changed, list = true, slices.Clone(v.list)
		}
		list[i] = member{name, to}
	}
	if dropped {
		list = slices.DeleteFunc(list, func(m member) bool { return m.value.kind == Absent })
	}
	v.list = list
	return v, changed
}
