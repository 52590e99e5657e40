package canonical

import "strconv"

// RoundedError says that a number may have lost digits before it was read.
type RoundedError struct {
	// Path leads to the number, as a JSON Pointer that Value.Path takes. Its names
	// are the input's, and one that no schema knows may be a caller's data: so it
	// isn't in the error's text (R55).
	Path string
}

func (e *RoundedError) Error() string {
	return "canonical: an integer of 2^53 or more went through a floating-point number, which can't tell it from its neighbours; pass the arguments as the bytes that the caller sent, or send the number as a string"
}

// SafeRounded returns a *[RoundedError] for the first number in v, in document
// order, that is an integer n with |n| ≥ 2^53. It is for callers that say that
// their numbers went through float64 before they were written as JSON: there
// 2^53+1 arrives as 2^53, so that two ids could share a key and the second's
// effect be swallowed. 2^53-1 and all below arrive as they were sent. Pass the
// value as it was read: a decimal that Normalize made of a string counts as a
// number here.
func SafeRounded(v Value) error {
	if pointer, found := rounded(v, nil); found {
		return &RoundedError{Path: string(pointer)}
	}
	return nil
}

func rounded(v Value, pointer []byte) ([]byte, bool) {
	switch v.kind {
	case Number, Decimal:
		return pointer, splitNumber(v.text).beyondFloat64()
	case Array:
		for i := range v.list {
			if at, found := rounded(v.list[i].value, strconv.AppendInt(append(pointer, '/'), int64(i), 10)); found {
				return at, true
			}
		}
	case Object:
		for i := range v.list {
			if at, found := rounded(v.list[i].value, appendPointer(pointer, v.list[i].name)); found {
				return at, true
			}
		}
	}
	return pointer, false
}

// beyondFloat64 reports whether n is an integer of 2^53 or more, either sign.
func (n number) beyondFloat64() bool {
	const first = "9007199254740992" // 2^53, the first that a neighbour is rounded to
	size := n.size() + n.exponent
	if n.size() == 0 || n.exponent < 0 || size < len(first) {
		return false
	}
	if size > len(first) {
		return true
	}
	n.negative = false
	return string(n.appendPlain(nil)) >= first
}
