// Package canonical holds the strict JSON reader and the one canonical form in
// which arguments are compared (R16).
//
// [Parse] reads one JSON value of RFC 8259 and refuses what two readers could
// understand differently. [Normalize] turns strings of a declared format into
// the values that they stand for. [Append] writes the canonical bytes over which
// identities and fingerprints are digested (R8, R15): equal values give equal
// bytes, and no two different values share theirs. [Value.AppendJSON] writes
// plain JSON again, for decoding into a Go type.
//
// The form is specified byte by byte in docs/canonical-form.md, and
// testdata/vectors.json has test vectors for other implementations.
//
// Nothing in this package puts a value or a member's name into an error's text
// (R55).
package canonical

// Version is the version of the canonical form that this package writes. An
// intent stores the version that it began with and keeps it for ever (R7), so a
// change to the bytes of any value, and to which strings count as values of a
// format, needs a new version beside this one. The bytes themselves don't hold
// the version: whoever digests them adds it.
const Version = 1

// What version 1 takes as a number. The bounds belong to the version and not to
// [Limits]: they also decide which strings under the decimal format are numbers,
// and a form that moved with a setting would compare one call in two ways.
const (
	// MaxDigits is the most digits of a number as it is written, leading and
	// trailing zeros included and those of the exponent not.
	MaxDigits = 1_000
	// MaxExponent bounds the exponent as it is written, and that of the value
	// written as an integer without trailing zeros and a power of ten.
	MaxExponent = 10_000
)
