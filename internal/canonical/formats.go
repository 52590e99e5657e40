package canonical

import (
	"strings"
	"time"
)

// dateTime returns the one spelling of an RFC 3339 date-time: in UTC, with 'T'
// and 'Z', without trailing zeros of the fraction. Offsets are whole minutes, so
// seconds and fraction are the same in UTC, a leap second's included.
func dateTime(s string) (string, bool) {
	const shortest = len("2006-01-02T15:04:05Z")
	if len(s) < shortest || !isDate(s[:10]) || s[10]|' ' != 't' || s[13] != ':' || s[16] != ':' {
		return "", false
	}
	hour, minute, second := pair(s[11:], 23), pair(s[14:], 59), pair(s[17:], 60)
	fraction, zone, ok := cutFraction(s[19:])
	if hour < 0 || minute < 0 || second < 0 || !ok {
		return "", false
	}
	east, ok := offset(zone)
	if !ok {
		return "", false
	}
	year := 100*pair(s, 99) + pair(s[2:], 99)
	at := time.Date(year, time.Month(pair(s[5:], 12)), pair(s[8:], 31), hour, minute-east, 0, 0, time.UTC)
	if at.Year() < 0 || at.Year() > 9999 {
		return "", false
	}
	// RFC 3339 section 5.7: a leap second is the last of a month, in UTC.
	if second == 60 && (at.Hour() != 23 || at.Minute() != 59 || at.AddDate(0, 0, 1).Day() != 1) {
		return "", false
	}
	var room [48]byte
	text := at.AppendFormat(room[:0], "2006-01-02T15:04:")
	text = append(text, s[17:19]...)
	if fraction != "" {
		text = append(append(text, '.'), fraction...)
	}
	text = append(text, 'Z')
	if string(text) == s {
		return s, true
	}
	return string(text), true
}

// cutFraction splits what comes after the seconds into the digits of the
// fraction, without trailing zeros, and the offset.
func cutFraction(s string) (fraction, zone string, ok bool) {
	if s[0] != '.' {
		return "", s, true
	}
	n := digits(s[1:])
	return strings.TrimRight(s[1:1+n], "0"), s[1+n:], n > 0
}

// offset reads an RFC 3339 time-offset, in minutes east of UTC. -00:00 is UTC too:
// section 4.3 gives it another meaning about the place, not about the instant.
func offset(s string) (minutes int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != len("+00:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hour, minute := pair(s[1:], 23), pair(s[4:], 59)
	if hour < 0 || minute < 0 {
		return 0, false
	}
	minutes = 60*hour + minute
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

// isDate reports whether s is an RFC 3339 full-date of a day that exists. It has
// one spelling only.
func isDate(s string) bool {
	if len(s) != len("2006-01-02") || s[4] != '-' || s[7] != '-' {
		return false
	}
	century, year, month, day := pair(s, 99), pair(s[2:], 99), pair(s[5:], 12), pair(s[8:], 31)
	if century < 0 || year < 0 || month < 1 || day < 1 {
		return false
	}
	// time.Date carries a day that the month doesn't have into the next one.
	return time.Date(100*century+year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() == day
}

// pair reads the two digits that s begins with, or returns -1 where there are
// none or they are more than most.
func pair(s string, most int) int {
	if digits(s[:2]) != 2 {
		return -1
	}
	n := 10*int(s[0]-'0') + int(s[1]-'0')
	if n > most {
		return -1
	}
	return n
}

// isDecimal reports whether s is a decimal number within the bounds: an optional
// sign, digits with at most one point and at least one digit, an optional exponent.
// That is what decimal types read, and each of it stands for one number only, so
// that two spellings of an amount can't become two effects.
func isDecimal(s string) bool {
	rest := s
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	whole := digits(rest)
	rest = rest[whole:]
	part := 0
	if rest != "" && rest[0] == '.' {
		part = digits(rest[1:])
		rest = rest[1+part:]
	}
	if whole+part == 0 {
		return false
	}
	if rest != "" {
		if rest[0]|' ' != 'e' {
			return false
		}
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		if rest == "" || digits(rest) != len(rest) {
			return false
		}
	}
	limit, _ := splitNumber(s).exceeded()
	return limit == ""
}

// uuid returns the one spelling of a UUID, 8-4-4-4-12 in lower case. It reads what
// UUID types read: any case (RFC 9562 section 4), a urn:uuid: before it, braces
// around it, and 32 digits without hyphens. Version and variant aren't looked at.
func uuid(s string) (string, bool) {
	const withHyphens, without, urn = 36, 32, "urn:uuid:"
	switch {
	case len(s) == len(urn)+withHyphens && strings.EqualFold(s[:len(urn)], urn):
		s = s[len(urn):]
	case len(s) == withHyphens+2 && s[0] == '{' && s[37] == '}':
		s = s[1:37]
	case len(s) != withHyphens && len(s) != without:
		return "", false
	}
	var room [withHyphens]byte
	text := room[:0]
	for i := range len(s) {
		c := s[i]
		place := len(text)
		if place == 8 || place == 13 || place == 18 || place == 23 {
			text = append(text, '-')
			if len(s) == withHyphens {
				if c != '-' {
					return "", false
				}
				continue
			}
		}
		switch {
		case 'A' <= c && c <= 'F':
			c |= ' '
		case '0' <= c && c <= '9' || 'a' <= c && c <= 'f':
		default:
			return "", false
		}
		text = append(text, c)
	}
	if string(text) == s {
		return s, true
	}
	return string(text), true
}
