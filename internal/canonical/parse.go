package canonical

import "strings"

// Parse reads one JSON value (RFC 8259) within the limits. It is stricter than
// the RFC demands, wherever two readers might understand an input differently
// (R16): it refuses a member's name that occurs twice in one object, compared
// after its escapes were read; invalid UTF-8; half surrogate pairs and reversed
// ones; a byte order mark; and anything but white space after the value.
// Strings and names are otherwise kept as they are, without Unicode
// normalisation, U+0000 included where it is escaped.
//
// The error is a *[SyntaxError] or a *[LimitError], and the first one that the
// input meets. Parse keeps no reference to data.
func Parse(data []byte, l Limits) (Value, error) {
	l = l.withDefaults()
	if len(data) > l.Bytes {
		return Value{}, &LimitError{Limit: "bytes", Max: l.Bytes, Offset: int64(l.Bytes)}
	}
	r := reader{text: string(data), limits: l}
	if strings.HasPrefix(r.text, "\xef\xbb\xbf") {
		return Value{}, r.unexpected(reasonBOM)
	}
	v, err := r.value()
	if err != nil {
		return Value{}, err
	}
	r.space()
	if r.pos < len(r.text) {
		return Value{}, r.unexpected(reasonTrailing)
	}
	return v, nil
}

type reader struct {
	text   string
	pos    int
	depth  int
	values int
	limits Limits
	// stack collects the members of the objects and arrays that are open, so that
	// each costs one allocation of its exact size at its end.
	stack []member
}

func (r *reader) unexpected(reason string) error { return r.unexpectedAt(r.pos, reason) }

func (r *reader) unexpectedAt(pos int, reason string) error {
	if pos >= len(r.text) {
		pos, reason = len(r.text), reasonEnd
	}
	return &SyntaxError{Offset: int64(pos), Reason: reason}
}

// space skips the white space of RFC 8259 section 2.
func (r *reader) space() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// next skips white space and returns the byte after it, 0 at the end: no token
// begins with that.
func (r *reader) next() byte {
	r.space()
	if r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

func (r *reader) value() (Value, error) {
	c := r.next()
	if r.values++; r.values > r.limits.Members {
		return Value{}, &LimitError{Limit: "members", Max: r.limits.Members, Offset: int64(r.pos)}
	}
	switch {
	case c == '"':
		text, err := r.quoted()
		return Value{kind: String, text: text}, err
	case c == '{' || c == '[':
		return r.container(c)
	case c == '-' || '0' <= c && c <= '9':
		text, err := r.number()
		return Value{kind: Number, text: text}, err
	case c == 't':
		return r.literal("true", Bool)
	case c == 'f':
		return r.literal("false", Bool)
	case c == 'n':
		return r.literal("null", Null)
	default:
		return Value{}, r.unexpected(reasonValue)
	}
}

func (r *reader) literal(word string, kind Kind) (Value, error) {
	if !strings.HasPrefix(r.text[r.pos:], word) {
		return Value{}, r.unexpected(reasonValue)
	}
	r.pos += len(word)
	return Value{kind: kind, text: word}, nil
}

func (r *reader) container(open byte) (Value, error) {
	if r.depth++; r.depth > r.limits.Depth {
		return Value{}, &LimitError{Limit: "depth", Max: r.limits.Depth, Offset: int64(r.pos)}
	}
	r.pos++
	if r.stack == nil {
		r.stack = make([]member, 0, 8)
	}
	base := len(r.stack)
	var v Value
	var err error
	if open == '{' {
		v.kind, err = Object, r.members()
	} else {
		v.kind, err = Array, r.elements()
	}
	if err != nil {
		return Value{}, err
	}
	r.depth--
	if read := r.stack[base:]; len(read) > 0 {
		v.list = make([]member, len(read))
		copy(v.list, read)
		r.stack = r.stack[:base]
	}
	return v, nil
}

// elements pushes an array's elements, from behind its bracket to its end.
func (r *reader) elements() error {
	if r.next() == ']' {
		r.pos++
		return nil
	}
	for {
		v, err := r.value()
		if err != nil {
			return err
		}
		r.stack = append(r.stack, member{value: v})
		switch r.next() {
		case ',':
			r.pos++
		case ']':
			r.pos++
			return nil
		default:
			return r.unexpected(reasonElement)
		}
	}
}

// members pushes an object's members, from behind its brace to its end.
func (r *reader) members() error {
	if r.next() == '}' {
		r.pos++
		return nil
	}
	var seen nameSet
	base, reason := len(r.stack), reasonFirstName
	for {
		if r.next() != '"' {
			return r.unexpected(reason)
		}
		at := r.pos
		name, err := r.quoted()
		if err != nil {
			return err
		}
		if seen.has(name, r.stack[base:]) {
			return r.unexpectedAt(at, reasonTwice)
		}
		if r.next() != ':' {
			return r.unexpected(reasonColon)
		}
		r.pos++
		v, err := r.value()
		if err != nil {
			return err
		}
		r.stack = append(r.stack, member{name, v})
		switch r.next() {
		case ',':
			r.pos++
		case '}':
			r.pos++
			return nil
		default:
			return r.unexpected(reasonMember)
		}
		reason = reasonName
	}
}

// manyNames is the size from which an object's names are looked up in a map: an
// object of 10,000 members must not cost 10,000 times 10,000 comparisons.
const manyNames = 16

// nameSet finds a name that occurs twice in one object.
type nameSet struct{ index map[string]struct{} }

// has reports whether name is among the earlier members, and takes note of it.
func (s *nameSet) has(name string, earlier []member) bool {
	if len(earlier) < manyNames {
		for i := range earlier {
			if earlier[i].name == name {
				return true
			}
		}
		return false
	}
	if s.index == nil {
		s.index = make(map[string]struct{}, 2*manyNames)
		for i := range earlier {
			s.index[earlier[i].name] = struct{}{}
		}
	}
	if _, twice := s.index[name]; twice {
		return true
	}
	s.index[name] = struct{}{}
	return false
}
