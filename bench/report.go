package main

import (
	"fmt"
	"io"
)

// report prints the figures, each on a line of its own, and keeps the names of
// those that fall short.
type report struct {
	out   io.Writer
	short []string
}

func (r *report) heading(p part) { fmt.Fprintf(r.out, "\n# %s: %s\n", p.name, p.what) }

func (r *report) atLeast(name string, value, bar float64) {
	fmt.Fprintf(r.out, "ratio %s %.3f at least %.2f\n", name, value, bar)
	if !(value >= bar) { // not a number is short too
		r.short = append(r.short, name)
	}
}

func (r *report) atMost(name string, value, bar float64) {
	fmt.Fprintf(r.out, "ratio %s %.3f at most %.2f\n", name, value, bar)
	if !(value <= bar) {
		r.short = append(r.short, name)
	}
}

// plain prints a ratio that no bar is set for.
func (r *report) plain(name string, value float64) {
	fmt.Fprintf(r.out, "ratio %s %.3f\n", name, value)
}

// figure prints what is no ratio.
func (r *report) figure(name string, value float64, unit string) {
	fmt.Fprintf(r.out, "figure %s %.1f %s\n", name, value, unit)
}

// costs prints a contender's rate and what an operation costs the client.
func (r *report) costs(name string, m measured) {
	r.figure(name+"/rate", m.rate(), "op/s")
	r.figure(name+"/cpu", m.cpuEach(), "µs/op")
	r.figure(name+"/allocations", m.allocationsEach(), "allocs/op")
	r.figure(name+"/allocated", m.bytesEach(), "B/op")
}
