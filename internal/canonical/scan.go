package canonical

import (
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a string from its opening quote to behind its closing one. Without
// escapes the result is a part of the input and costs nothing.
func (r *reader) quoted() (string, error) {
	start := r.pos + 1
	for i := start; i < len(r.text); {
		switch c := r.text[i]; {
		case c == '"':
			r.pos = i + 1
			return r.text[start:i], nil
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ': // RFC 8259 section 7: U+0000 to U+001F are escaped
			return "", r.unexpectedAt(i, reasonControl)
		case c < utf8.RuneSelf:
			i++
		default:
			n := r.runeAt(i)
			if n == 0 {
				return "", r.unexpectedAt(i, reasonUTF8)
			}
			i += n
		}
	}
	return "", r.unexpectedAt(len(r.text), reasonEnd)
}

// runeAt returns the length of the UTF-8 sequence at i, and 0 where it is
// invalid: overlong forms and encoded surrogates included (RFC 3629 section 3).
func (r *reader) runeAt(i int) int {
	c, n := utf8.DecodeRuneInString(r.text[i:])
	if c == utf8.RuneError && n <= 1 {
		return 0
	}
	return n
}

// escaped reads on from the first backslash of a string, at i.
func (r *reader) escaped(start, i int) (string, error) {
	plain := append(make([]byte, 0, i-start+16), r.text[start:i]...)
	for i < len(r.text) {
		switch c := r.text[i]; {
		case c == '"':
			r.pos = i + 1
			return string(plain), nil
		case c == '\\':
			char, n, reason := r.escape(i)
			if reason != "" {
				return "", r.unexpectedAt(i, reason)
			}
			plain = utf8.AppendRune(plain, char)
			i += n
		case c < ' ':
			return "", r.unexpectedAt(i, reasonControl)
		case c < utf8.RuneSelf:
			plain = append(plain, c)
			i++
		default:
			n := r.runeAt(i)
			if n == 0 {
				return "", r.unexpectedAt(i, reasonUTF8)
			}
			plain = append(plain, r.text[i:i+n]...)
			i += n
		}
	}
	return "", r.unexpectedAt(i, reasonEnd)
}

// escape reads the escape at i and returns its character and length, or why it
// is none. A character beyond U+FFFF is a high surrogate and a low one, in that
// order (RFC 8259 section 7); what else has a surrogate in it stands for no
// character, and readers repair it in different ways (section 8.2).
func (r *reader) escape(i int) (char rune, n int, reason string) {
	if i+1 >= len(r.text) {
		return 0, 0, reasonEscape
	}
	switch c := r.text[i+1]; c {
	case '"', '\\', '/':
		return rune(c), 2, ""
	case 'b':
		return '\b', 2, ""
	case 'f':
		return '\f', 2, ""
	case 'n':
		return '\n', 2, ""
	case 'r':
		return '\r', 2, ""
	case 't':
		return '\t', 2, ""
	}
	unit, ok := r.codeUnit(i)
	if !ok {
		return 0, 0, reasonEscape
	}
	if !utf16.IsSurrogate(unit) {
		return unit, 6, ""
	}
	low, ok := r.codeUnit(i + 6)
	if !ok {
		return 0, 0, reasonSurrogate
	}
	if char = utf16.DecodeRune(unit, low); char == utf8.RuneError {
		return 0, 0, reasonSurrogate
	}
	return char, 12, ""
}

// codeUnit reads \uXXXX at i.
func (r *reader) codeUnit(i int) (rune, bool) {
	if i+6 > len(r.text) || r.text[i] != '\\' || r.text[i+1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range []byte(r.text[i+2 : i+6]) {
		switch {
		case '0' <= c && c <= '9':
			unit = unit<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			unit = unit<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			unit = unit<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return unit, true
}

// number reads a number by the grammar of RFC 8259 section 6 and checks its
// bounds.
func (r *reader) number() (string, error) {
	start, i := r.pos, r.pos
	if r.text[i] == '-' {
		i++
	}
	switch n := digits(r.text[i:]); {
	case n == 0, n > 1 && r.text[i] == '0':
		return "", r.unexpectedAt(i, reasonNumber)
	default:
		i += n
	}
	if i < len(r.text) && r.text[i] == '.' {
		n := digits(r.text[i+1:])
		if n == 0 {
			return "", r.unexpectedAt(i+1, reasonNumber)
		}
		i += 1 + n
	}
	if i < len(r.text) && (r.text[i] == 'e' || r.text[i] == 'E') {
		i++
		if i < len(r.text) && (r.text[i] == '+' || r.text[i] == '-') {
			i++
		}
		n := digits(r.text[i:])
		if n == 0 {
			return "", r.unexpectedAt(i, reasonNumber)
		}
		i += n
	}
	text := r.text[start:i]
	if limit, most := splitNumber(text).exceeded(); limit != "" {
		return "", &LimitError{Limit: limit, Max: most, Offset: int64(start)}
	}
	r.pos = i
	return text, nil
}

// digits returns how many decimal digits s begins with.
func digits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}
