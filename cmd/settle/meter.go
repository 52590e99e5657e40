package main

import (
	"fmt"
	"time"
)

// meter shows how far long work has come, on standard error: one line that
// changes on a terminal, a line every now and then elsewhere.
type meter struct {
	app   *app
	last  time.Time
	shown bool
}

const (
	meterRedraw = 100 * time.Millisecond
	meterPlain  = 10 * time.Second
)

func (a *app) meter() *meter { return &meter{app: a, last: a.now()} }

func (m *meter) show(text string) {
	to := m.app.err
	if m.app.now().Sub(m.last) < ifElse(to.terminal(), meterRedraw, meterPlain) {
		return
	}
	m.last = m.app.now()
	if !to.terminal() {
		fmt.Fprintln(to, text+" …")
		return
	}
	fmt.Fprint(to, "\r\x1b[K", cut(text+" …", to.width-1))
	m.shown = true
}

// clear takes the line away.
func (m *meter) clear() {
	if m.shown {
		fmt.Fprint(m.app.err, "\r\x1b[K")
	}
}
