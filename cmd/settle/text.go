package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// cells measures text as terminals show it, whatever the locale.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// sealedName begins a name that can't be read without the codec's keys (R56).
const sealedName = "\x1a"

// errKeyless is what a command says that needs SETTLE_KEYS.
var errKeyless = fmt.Errorf("the ledger's values are sealed, and SETTLE_KEYS isn't set: set it to the codec's keys (R56)")

// shown is a name or a text from the ledger as it may be shown: nothing in it
// can move a cursor, hide text or reorder it (R44).
func shown(text string) string {
	if strings.HasPrefix(text, sealedName) {
		return "(sealed)"
	}
	return printable(text)
}

// printable escapes what isn't a printable character, and what isn't UTF-8.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		text = text[size:]
	}
	return b.String()
}

// printableJSON is the same JSON with escapes for what terminals might act on.
func printableJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || strconv.IsPrint(r) && !(r == utf8.RuneError && size == 1):
			out = append(out, text[:size]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}

// cut shortens text to a number of cells.
func cut(text string, width int) string { return cells.Truncate(text, width, "…") }

// wrap breaks text between words into lines of at most width cells; 0 breaks
// nothing. Line breaks of the text stay.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.Lines(text) {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			switch {
			case line == "":
				line = word
			case width > 0 && cells.StringWidth(line)+1+cells.StringWidth(word) > width:
				lines = append(lines, line)
				line = word
			default:
				line += " " + word
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// stamp is an instant to the second, in UTC.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// when is an instant, absolute and relative.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return stamp(t) + " (" + a.relative(t) + ")"
}

func (a *app) relative(t time.Time) string {
	d := a.now().Sub(t)
	switch {
	case d >= time.Second:
		return span(d) + " ago"
	case d <= -time.Second:
		return "in " + span(-d)
	}
	return "now"
}

// span is a duration in its two largest units.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// countOf is "1 case", "2 cases".
func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// quote makes one word of text for a shell.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+=,", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
