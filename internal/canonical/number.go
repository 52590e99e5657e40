package canonical

import (
	"strconv"
	"strings"
)

// number is a decimal number taken apart: (-1)^negative × coefficient × 10^exponent,
// where the coefficient is the digits of head and tail and neither begins nor ends
// with a zero. So one value has one form, with no arithmetic on its digits. Zero
// is the empty coefficient without sign and exponent: -0 = 0 (R16).
type number struct {
	negative   bool
	head, tail string
	exponent   int
	// written and power are the number of digits and the exponent of the literal.
	written, power int
}

// splitNumber takes a literal apart that has been checked: RFC 8259 section 6, or
// what isDecimal allows.
func splitNumber(text string) number {
	var n number
	if text[0] == '-' || text[0] == '+' {
		n.negative = text[0] == '-'
		text = text[1:]
	}
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		n.power = exponent(text[e+1:])
		text = text[:e]
	}
	n.head, n.tail, _ = strings.Cut(text, ".")
	n.written = len(n.head) + len(n.tail)

	n.tail = strings.TrimRight(n.tail, "0")
	n.exponent = n.power - len(n.tail)
	if n.tail == "" {
		whole := len(n.head)
		n.head = strings.TrimRight(n.head, "0")
		n.exponent += whole - len(n.head)
	}
	n.head = strings.TrimLeft(n.head, "0")
	if n.head == "" {
		n.tail = strings.TrimLeft(n.tail, "0")
	}
	if n.size() == 0 {
		n.negative, n.exponent = false, 0
	}
	return n
}

// exponent reads an exponent. One of more than seven digits, leading zeros apart,
// is out of bounds whatever it is, and stays so without an overflow.
func exponent(text string) int {
	negative := text[0] == '-'
	text = strings.TrimLeft(strings.TrimLeft(text, "+-"), "0")
	power := 0
	for i := range min(len(text), 7) {
		power = power*10 + int(text[i]-'0')
	}
	if len(text) > 7 {
		power = 9_999_999
	}
	if negative {
		return -power
	}
	return power
}

// size is the number of digits of the coefficient: 0 for zero.
func (n number) size() int { return len(n.head) + len(n.tail) }

// exceeded names the limit that the number exceeds, or none. The exponent is
// bounded as it was written and as it comes out, so that what AppendJSON writes
// is within the bounds again.
func (n number) exceeded() (limit string, most int) {
	switch {
	case n.written > MaxDigits:
		return "digits", MaxDigits
	case max(n.power, -n.power, n.exponent, -n.exponent) > MaxExponent:
		return "exponent", MaxExponent
	default:
		return "", 0
	}
}

// appendScientific appends the one spelling that the canonical form uses: sign,
// coefficient, e, exponent, as in -421e-1, and 0e0 for zero.
func (n number) appendScientific(dst []byte) []byte {
	dst = n.appendCoefficient(dst)
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, int64(n.exponent), 10)
}

func (n number) appendCoefficient(dst []byte) []byte {
	if n.negative {
		dst = append(dst, '-')
	}
	if n.size() == 0 {
		return append(dst, '0')
	}
	dst = append(dst, n.head...)
	return append(dst, n.tail...)
}

// maxPlain is the most digits that are written without an exponent. Beyond the
// range of float64 and of every integer type nothing is gained by it, and a small
// input would become a large output.
const maxPlain = 400

// appendPlain appends the number as people write it, without an exponent: 1 for
// 1.0, 100 for 1e2, since encoding/json takes only such a number into an integer.
// Where that has more than maxPlain digits it is as appendScientific writes it.
func (n number) appendPlain(dst []byte) []byte {
	whole := n.size() + n.exponent // digits before the point; below 0: zeros after it
	switch {
	case max(whole, n.size(), -n.exponent) > maxPlain:
		return n.appendScientific(dst)
	case n.exponent >= 0:
		return appendZeros(n.appendCoefficient(dst), n.exponent)
	}
	if n.negative {
		dst = append(dst, '-')
	}
	if whole <= 0 {
		dst = appendZeros(append(dst, "0."...), -whole)
		dst = append(dst, n.head...)
		return append(dst, n.tail...)
	}
	if whole < len(n.head) {
		dst = append(append(append(dst, n.head[:whole]...), '.'), n.head[whole:]...)
		return append(dst, n.tail...)
	}
	dst = append(append(dst, n.head...), n.tail[:whole-len(n.head)]...)
	return append(append(dst, '.'), n.tail[whole-len(n.head):]...)
}

func appendZeros(dst []byte, count int) []byte {
	for range count {
		dst = append(dst, '0')
	}
	return dst
}
