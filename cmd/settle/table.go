package main

import (
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
