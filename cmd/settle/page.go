package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// encode writes a JSON document.
func (a *app) encode(w io.Writer, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		text = fmt.Appendf(nil, `{"error":{"code":"failed","exit":1,"message":%q}}`, err)
	}
	_, _ = w.Write(append(printableJSON(text), '\n')) // who closed the pipe has read enough
}

// page writes headings, fields and paragraphs.
type page struct {
	out  stream
	bold bool
}

func (a *app) page() page { return page{a.out, a.bold} }

// heading begins a section.
func (p page) heading(text string) {
	if p.bold {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	fmt.Fprintf(p.out, "\n%s\n", text)
}

// label is the width of a field's name.
const label = 13

// field writes a name and a value, and nothing where there is no value.
func (p page) field(name, value string) {
	if value != "" {
		p.hang(fmt.Sprintf("  %-*s ", label, name), value)
	}
}

// text writes a paragraph, indented.
func (p page) text(indent int, text string) { p.hang(strings.Repeat(" ", indent), text) }

// words writes what people have written, line by line.
func (p page) words(indent int, text string) {
	for l := range strings.Lines(text) {
		l = shown(strings.TrimRight(l, "\r\n"))
		words := strings.TrimLeft(l, " ")
		if words == "" {
			p.line("")
		}
		p.text(indent+len(l)-len(words), words)
	}
}

// quoted writes what people, or a far side, have written, and says that it is theirs (R44).
func (p page) quoted(indent int, text string) { p.words(indent, "“"+text+"”") }

// hang writes a paragraph behind what its first line begins with.
func (p page) hang(first, text string) {
	indent := cells.StringWidth(first)
	room := 0
	if p.out.terminal() {
		room = max(p.out.width-indent, narrowest/2)
	}
	for i, l := range wrap(text, room) {
		fmt.Fprintf(p.out, "%s%s\n", ifElse(i == 0, first, strings.Repeat(" ", indent)), l)
	}
}

// line writes one line as it is.
func (p page) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// command writes a command to be typed: in one piece, so that it can be copied.
func (p page) command(line string) { p.line("    %s", line) }
