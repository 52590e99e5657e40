package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// column is one of a table's.
type column struct {
	title string
	// whole columns are never shortened: a piece of a reference or of an instant
	// says nothing.
	whole bool
	// last columns leave first where the terminal is too narrow, the highest
	// first. From extra on they leave before anything is shortened much.
	last int
}

// extra columns are worth less than whole words in the others.
const extra = 10

// table is rows of cells.
type table struct {
	columns []column
	rows    [][]string
}

// thinnest is the width below which a shortened column says nothing.
const thinnest = 8

// readable is the width at which most codes are whole.
const readable = 20

// gap parts two columns.
const gap = 2

// write lays the table out for a terminal, or parts the cells by tabs.
func (t table) write(w stream, bold bool) {
	if !w.terminal() {
		t.plain(w)
		return
	}
	t = t.fitting(w.width)
	widths := t.widths(w.width)
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	header := line(titles, widths)
	if bold {
		header = "\x1b[1m" + header + "\x1b[0m"
	}
	fmt.Fprintln(w, header)
	for _, row := range t.rows {
		fmt.Fprintln(w, line(row, widths))
	}
}

func (t table) plain(w io.Writer) {
	for i, c := range t.columns {
		fmt.Fprint(w, ifElse(i > 0, "\t", ""), c.title)
	}
	fmt.Fprintln(w)
	for _, row := range t.rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
}

func ifElse[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

func line(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		b.WriteString(cells.FillRight(cut(cell, widths[i]), widths[i]))
	}
	return strings.TrimRight(b.String(), " ")
}

// natural is the width that a column takes where nothing is shortened.
func (t table) natural(i int) int {
	widest := cells.StringWidth(t.columns[i].title)
	for _, row := range t.rows {
		widest = max(widest, cells.StringWidth(row[i]))
	}
	return widest
}

// least is the width that a column can be shortened to.
func (t table) least(i int) int { return t.atMost(i, thinnest) }

// atMost is a column's width where what can be shortened is, to a number of cells.
func (t table) atMost(i, width int) int {
	if t.columns[i].whole {
		return t.natural(i)
	}
	return min(t.natural(i), max(width, cells.StringWidth(t.columns[i].title)))
}

// fitting is the table without the columns for which there is no room.
func (t table) fitting(width int) table {
	for {
		leaves := 0
		for i, c := range t.columns {
			if c.last > t.columns[leaves].last {
				leaves = i
			}
		}
		room := ifElse(t.columns[leaves].last >= extra, readable, thinnest)
		sum := -gap
		for i := range t.columns {
			sum += t.atMost(i, room) + gap
		}
		if sum <= width || t.columns[leaves].last == 0 {
			return t
		}
		t = t.without(leaves)
	}
}

func (t table) without(i int) table {
	less := table{columns: slices.Delete(slices.Clone(t.columns), i, i+1)}
	for _, row := range t.rows {
		less.rows = append(less.rows, slices.Delete(slices.Clone(row), i, i+1))
	}
	return less
}

// widths shortens the widest columns until the row fits.
func (t table) widths(width int) []int {
	widths := make([]int, len(t.columns))
	sum := -gap
	for i := range t.columns {
		widths[i] = t.natural(i)
		sum += widths[i] + gap
	}
	for ; sum > width; sum-- {
		widest := -1
		for i := range widths {
			if widths[i] > t.least(i) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

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
