package canonical

// AppendJSON appends v as plain JSON: members in document order, no white space,
// each number without exponent where it has at most 400 digits so, since
// encoding/json takes 100 into an int and refuses 1e2 and 1.0. Nothing is lost or
// rounded: what it writes reads back as a value with the same canonical bytes.
//
// Decode the value that was read and not the normalised one: of that, instants
// come out in UTC, decimals as strings, and null members may be missing. A value
// that is absent comes out as null.
//
// A number grows to at most 403 bytes, all else to at most six times its size.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case Bool:
		return append(dst, v.text...)
	case Number:
		return splitNumber(v.text).appendPlain(dst)
	case Decimal:
		return append(splitNumber(v.text).appendPlain(append(dst, '"')), '"')
	case String, DateTime, Date, UUID:
		return appendQuoted(dst, v.text)
	case Array:
		dst = append(dst, '[')
		for i := range v.list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.list[i].value.AppendJSON(dst)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i := range v.list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, v.list[i].name), ':')
			dst = v.list[i].value.AppendJSON(dst)
		}
		return append(dst, '}')
	default:
		return append(dst, "null"...)
	}
}

// appendQuoted appends a string with the escapes that RFC 8259 section 7 demands
// and no others.
func appendQuoted(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	done := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, text[done:]...), '"')
}
