package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// width is how many columns the output has.
const width = 100

// page writes the transcript of what model and tools told one another.
type page struct{ out io.Writer }

const transcript = "  %-6s %s\n"

// line writes a text on one line, and cuts what has no room on it.
func (p page) line(who, text string) {
	text = cut(strings.ReplaceAll(shortened(text), "\n", " "), width-9)
	fmt.Fprintf(p.out, transcript, who, text)
}

// text writes all lines of a text, broken at spaces.
func (p page) text(who, text string) {
	for line := range strings.Lines(shortened(text)) {
		for _, piece := range wrap(strings.TrimRight(line, "\n"), width-9) {
			fmt.Fprintf(p.out, transcript, who, piece)
			who = ""
		}
	}
}

var reference = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// shortened leaves of each operation's reference its end, which is random.
func shortened(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string { return "…" + ref[len(ref)-6:] })
}

func cut(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}

// wrap breaks a line at spaces. What follows the first break is indented.
func wrap(line string, columns int) []string {
	var pieces []string
	for utf8.RuneCountInString(line) > columns {
		head := string([]rune(line)[:columns+1])
		at := strings.LastIndexByte(head, ' ')
		if at <= 2 {
			break // a word without end
		}
		pieces = append(pieces, line[:at])
		line = "  " + line[at+1:]
	}
	return append(pieces, line)
}
