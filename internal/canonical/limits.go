package canonical

import "fmt"

// Limits bounds what [Parse] takes. A field that is zero or less stands for its
// default. The bounds on numbers are [MaxDigits] and [MaxExponent].
type Limits struct {
	// Bytes is the longest input, in bytes with white space. Default: 1 MiB.
	Bytes int
	// Depth is the most arrays and objects around one another: 1 allows [1] and
	// refuses [[1]]. Default: 64. More than 10,000 counts as 10,000, beyond which
	// encoding/json wouldn't decode what was accepted here.
	Depth int
	// Members is the most values in all: each scalar, array and object counts
	// as one, at whatever depth. Default: 10,000.
	Members int
}

const (
	defaultBytes   = 1 << 20
	defaultDepth   = 64
	defaultMembers = 10_000
	mostDepth      = 10_000
)

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	if l.Members <= 0 {
		l.Members = defaultMembers
	}
	l.Depth = min(l.Depth, mostDepth)
	return l
}

// SyntaxError says that an input isn't one strict JSON value. It holds no part
// of the input.
type SyntaxError struct {
	// Offset is the byte at which the input can't be read on, counted from 0.
	// For a name that occurs twice it is where the second one begins, for an
	// escape its backslash.
	Offset int64
	// Reason says what was expected there, in a sentence without an end.
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("canonical: not strict JSON at byte %d: %s", e.Offset, e.Reason)
}

// The reasons of a SyntaxError. None quotes the input (R55).
const (
	reasonEnd       = "the input ends before its value does; send one whole JSON value"
	reasonValue     = "expected a JSON value"
	reasonTrailing  = "expected nothing after the value; send one JSON value"
	reasonBOM       = "a byte order mark; send UTF-8 without one (RFC 8259 section 8.1)"
	reasonName      = "expected a member's name in double quotes"
	reasonFirstName = "expected a member's name in double quotes, or '}'"
	reasonColon     = "expected ':' after a member's name"
	reasonMember    = "expected ',' or '}' after a member"
	reasonElement   = "expected ',' or ']' after an element"
	reasonTwice     = "a member's name occurs twice in one object; send each name once"
	reasonNumber    = "expected a number as in RFC 8259 section 6: digits without leading zeros, no '+', digits on both sides of the point"
	reasonControl   = "a control character in a string; escape it"
	reasonUTF8      = "invalid UTF-8 in a string; send the text as UTF-8"
	reasonEscape    = "expected an escape as in RFC 8259 section 7"
	reasonSurrogate = "half a surrogate pair, or a pair in reversed order; escape a character beyond U+FFFF as high and low surrogate, or send it as UTF-8"
)

// LimitError says that an input is larger than what is read.
type LimitError struct {
	// Limit names what was exceeded: "bytes", "depth", "members", "digits" or
	// "exponent".
	Limit string
	// Max is the bound that was in force.
	Max int
	// Offset is the byte at which the bound was met, counted from 0.
	Offset int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("canonical: input exceeds the limit on %s (%d) at byte %d; send a smaller input", e.Limit, e.Max, e.Offset)
}
