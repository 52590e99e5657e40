package canonical

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// A path leads from a value to one inside it, in one of two spellings:
//
//   - dotted: customer.id. A dot or backslash that belongs to a name has a
//     backslash before it: file\.name. No name is empty.
//   - JSON Pointer (RFC 6901), where it begins with a slash: /customer/id, with
//     ~1 for a slash and ~0 for a tilde.
//
// In an array a name counts from 0: items.0.id. The empty path is the whole value.

// ParsePath splits a path into the names that it goes through. The error says
// which part can't be read, and quotes none of it.
func ParsePath(path string) ([]string, error) {
	var names []string
	for rest, more := path, path != ""; more; {
		var name string
		var err error
		if name, rest, more, err = nextName(path, rest); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// Path returns the value at path, as in "customer.id" or "/customer/id" (see
// [ParsePath]). It reports false where nothing is there or the path can't be
// read.
func (v Value) Path(path string) (Value, bool) { return v.follow(path, nil) }

// HasTwin says that a name on the path stands beside one that differs from it by
// case alone and that the shape doesn't know: encoding/json, among others, takes
// either for the other, and then which of them comes last.
func (v Value) HasTwin(path string, shape *Shape) (twin bool) {
	v.follow(path, func(in Value, name string) {
		twin = twin || in.kind == Object && slices.ContainsFunc(in.list, func(m member) bool {
			return m.name != name && strings.EqualFold(m.name, name) && !shape.has(m.name)
		})
		shape = shape.child(in.kind, name)
	})
	return twin
}

// follow goes along a path and passes, if it is to, each container with the name
// that is looked for in it.
func (v Value) follow(path string, pass func(in Value, name string)) (Value, bool) {
	for rest, more := path, path != ""; more; {
		var name string
		var err error
		if name, rest, more, err = nextName(path, rest); err != nil {
			return Value{}, false
		}
		if pass != nil {
			pass(v, name)
		}
		i := v.child(name)
		if i < 0 {
			return Value{}, false
		}
		v = v.list[i].value
	}
	return v, v.kind != Absent
}

// WithoutPath returns v without the member at path (see [ParsePath]). Where
// there is none, or the path can't be read, it returns v as it is. An array's
// element is never dropped, since that would give each later one another
// place: what can't be left out is compared.
func (v Value) WithoutPath(path string) Value {
	names, err := ParsePath(path)
	if err != nil || len(names) == 0 {
		return v
	}
	shorter, _ := v.without(names)
	return shorter
}

func (v Value) without(names []string) (Value, bool) {
	i := v.child(names[0])
	if i < 0 {
		return v, false
	}
	if len(names) == 1 {
		if v.kind == Array {
			return v, false
		}
		v.list = slices.Delete(slices.Clone(v.list), i, i+1)
		return v, true
	}
	inner, changed := v.list[i].value.without(names[1:])
	if !changed {
		return v, false
	}
	v.list = slices.Clone(v.list)
	v.list[i].value = inner
	return v, true
}

// child returns the place in v's list that a path's name means, or -1.
func (v Value) child(name string) int {
	switch v.kind {
	case Object:
		return slices.IndexFunc(v.list, func(m member) bool { return m.name == name })
	case Array:
		return v.element(name)
	default:
		return -1
	}
}

// element reads an index as in RFC 6901 section 4: digits without a leading
// zero, so that one place has one name.
func (v Value) element(name string) int {
	i, err := strconv.ParseUint(name, 10, 31)
	if err != nil || int(i) >= len(v.list) || len(name) > 1 && name[0] == '0' {
		return -1
	}
	return int(i)
}

var (
	errEmptyName    = errors.New("canonical: a dotted path has an empty name; write one name between two dots, or a JSON Pointer")
	errDottedEscape = errors.New(`canonical: a backslash in a dotted path comes before a dot or a backslash; write \. or \\`)
	errTilde        = errors.New("canonical: a tilde in a JSON Pointer comes before 0 or 1; write ~0 for a tilde and ~1 for a slash (RFC 6901)")
)

// nextName takes the first name off rest, a remainder of path that isn't used up:
// more says whether another follows.
func nextName(path, rest string) (name, after string, more bool, err error) {
	if path[0] == '/' {
		return nextPointerName(rest)
	}
	return nextDottedName(rest)
}

func nextPointerName(rest string) (name, after string, more bool, err error) {
	rest = rest[1:] // each name has its slash before it
	end := strings.IndexByte(rest, '/')
	if more = end >= 0; !more {
		end = len(rest)
	}
	name, after = rest[:end], rest[end:]
	if !strings.Contains(name, "~") {
		return name, after, more, nil
	}
	var plain strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '~' {
			plain.WriteByte(name[i])
			continue
		}
		if i++; i == len(name) || name[i] != '0' && name[i] != '1' {
			return "", "", false, errTilde
		}
		plain.WriteByte("~/"[name[i]-'0'])
	}
	return plain.String(), after, more, nil
}

func nextDottedName(rest string) (name, after string, more bool, err error) {
	end := strings.IndexAny(rest, `.\`)
	if end < 0 {
		end = len(rest)
	}
	if end < len(rest) && rest[end] == '\\' {
		return nextEscapedName(rest)
	}
	if end == 0 {
		return "", "", false, errEmptyName
	}
	if end == len(rest) {
		return rest, "", false, nil
	}
	return rest[:end], rest[end+1:], true, nil
}

func nextEscapedName(rest string) (name, after string, more bool, err error) {
	var plain strings.Builder
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '.':
			return plain.String(), rest[i+1:], true, nil
		case '\\':
			if i++; i == len(rest) || rest[i] != '.' && rest[i] != '\\' {
				return "", "", false, errDottedEscape
			}
		}
		plain.WriteByte(rest[i])
	}
	return plain.String(), "", false, nil
}

// appendPointer appends a name to a JSON Pointer.
func appendPointer(pointer []byte, name string) []byte {
	pointer = append(pointer, '/')
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '~':
			pointer = append(pointer, "~0"...)
		case '/':
			pointer = append(pointer, "~1"...)
		default:
			pointer = append(pointer, name[i])
		}
	}
	return pointer
}
