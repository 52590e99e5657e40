package canonical

import (
	"encoding/binary"
	"slices"
	"strings"
)

// The first byte of each value in version 1. docs/canonical-form.md has the form
// in full.
const (
	tagAbsent   = '-'
	tagNull     = 'n'
	tagTrue     = 't'
	tagFalse    = 'f'
	tagNumber   = '#'
	tagString   = 's'
	tagArray    = '['
	tagObject   = '{'
	tagDateTime = 'D'
	tagDate     = 'd'
	tagDecimal  = 'm'
	tagUUID     = 'u'
)

// Append appends the canonical bytes of v in version 1. Each value is a tag, a
// length or count, and its content, with an object's members in the order of the
// bytes of their names: so the bytes can be read back unambiguously, equal values
// have equal bytes, and no two different values share theirs, nor is one a
// beginning of another's. Append takes v as it is: apply [Normalize] first where
// there is a shape.
func Append(dst []byte, v Value) []byte {
	switch v.kind {
	case Null:
		return append(dst, tagNull)
	case Bool:
		if v.text == "true" {
			return append(dst, tagTrue)
		}
		return append(dst, tagFalse)
	case Number:
		return appendNumber(append(dst, tagNumber), v.text)
	case Decimal:
		return appendNumber(append(dst, tagDecimal), v.text)
	case String:
		return appendText(append(dst, tagString), v.text)
	case DateTime:
		return appendText(append(dst, tagDateTime), v.text)
	case Date:
		return appendText(append(dst, tagDate), v.text)
	case UUID:
		return appendText(append(dst, tagUUID), v.text)
	case Array:
		dst = appendLength(append(dst, tagArray), len(v.list))
		for i := range v.list {
			dst = Append(dst, v.list[i].value)
		}
		return dst
	case Object:
		return appendObject(appendLength(append(dst, tagObject), len(v.list)), v.list)
	default:
		return append(dst, tagAbsent)
	}
}

func appendLength(dst []byte, n int) []byte {
	return binary.AppendUvarint(dst, uint64(n))
}

func appendText(dst []byte, text string) []byte {
	return append(appendLength(dst, len(text)), text...)
}

func appendNumber(dst []byte, text string) []byte {
	var room [64]byte
	spelling := splitNumber(text).appendScientific(room[:0])
	return append(appendLength(dst, len(spelling)), spelling...)
}

func appendObject(dst []byte, members []member) []byte {
	var room [32]uint32
	order := room[:0]
	for i := range members {
		order = append(order, uint32(i))
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return strings.Compare(members[a].name, members[b].name)
	})
	for _, i := range order {
		dst = appendText(dst, members[i].name)
		dst = Append(dst, members[i].value)
	}
	return dst
}
