package faulty

import (
	"bytes"
	"fmt"
	"sync"
)

// maxPattern is how many bytes a pattern may have; so many of a client's last
// ones are kept, for a match that lies across two reads.
const maxPattern = 4096

// Action is what happens to the request that a [Fault] matches.
type Action int

const (
	// CutBefore cuts the connection at the match: the server never sees the
	// request whole, so it didn't happen, and the client can't know.
	CutBefore Action = iota + 1
	// CutAfter forwards the match and cuts the connection at once: whether the
	// server acts is left open, as it is in life.
	CutAfter
	// LoseAnswer forwards the request, waits for the server's answer, drops it
	// and cuts the connection: it happened, and the client can't know.
	LoseAnswer
	// HoldRequest forwards nothing more from the match on, until
	// [Armed.Release]: the request is under way and hasn't happened.
	HoldRequest
	// HoldAnswer forwards the request and keeps the answer back until
	// [Armed.Release]: it happened, and the client still waits.
	HoldAnswer
)

func (a Action) String() string {
	switch a {
	case CutBefore:
		return "CutBefore"
	case CutAfter:
		return "CutAfter"
	case LoseAnswer:
		return "LoseAnswer"
	case HoldRequest:
		return "HoldRequest"
	case HoldAnswer:
		return "HoldAnswer"
	}
	return fmt.Sprintf("Action(%d)", int(a))
}

// Fault says which request something happens to, and what. It happens once.
type Fault struct {
	// Request is looked for, byte for byte, in what clients send, on any
	// connection and across reads; at most 4096 bytes. Empty means the next
	// request whatever it holds: the first bytes that a client sends after it
	// connected or was last answered.
	//
	// pgx sends the text of a statement with arguments once, to prepare it, and
	// then only its name: match an argument of it, or use its exec mode. It
	// sends statements without arguments, "commit" among them, as text.
	Request string
	// Skip is how many matches pass unharmed first.
	Skip int
	// Do is what happens at the match.
	Do Action
	// Answer, for LoseAnswer and HoldAnswer, is what the server must have sent
	// since the match before it counts as having answered. Empty means any
	// bytes. It is needed where an answer is longer than a read, or where
	// requests are sent ahead of the answers to earlier ones.
	Answer string
}

// Armed is a fault that waits for its request.
type Armed struct {
	fault    Fault
	skip     int
	taken    bool
	done     chan struct{}
	released chan struct{}
	release  sync.Once
}

// Done is closed when the fault has happened: the connection is cut, or the
// request or its answer is held.
func (a *Armed) Done() <-chan struct{} { return a.done }

// Release lets go what HoldRequest or HoldAnswer holds, now or when it comes. A
// test whose pgx client gave up calls it, too: pgx waits 15 seconds for the end
// of a connection that it abandoned, and a pool's Close waits for pgx.
func (a *Armed) Release() { a.release.Do(func() { close(a.released) }) }

func (a *Armed) happened() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// find returns where in window the fault's first match begins and ends that
// begins at from or later and ends after seen, the length of what was searched
// before; -1 where there is none. turn tells that a request begins at seen.
func (a *Armed) find(window []byte, from, seen int, turn bool) (start, end int) {
	if a.fault.Request == "" {
		if turn && from <= seen {
			return seen, len(window)
		}
		return -1, -1
	}
	from = max(from, seen-len(a.fault.Request)+1)
	at := bytes.Index(window[from:], []byte(a.fault.Request))
	if at < 0 {
		return -1, -1
	}
	return from + at, from + at + len(a.fault.Request)
}

// take returns the fault whose request is first in window, with its place. A
// match belongs to the fault that was armed first of those that it fits.
func take(faults []*Armed, window []byte, seen int, turn bool) (taken *Armed, start, end int) {
	from := 0
	for {
		taken = nil
		for _, a := range faults {
			if a.taken {
				continue
			}
			if s, e := a.find(window, from, seen, turn); s >= 0 && (taken == nil || s < start) {
				taken, start, end = a, s, e
			}
		}
		switch {
		case taken == nil:
			return nil, 0, 0
		case taken.skip == 0:
			taken.taken = true
			return taken, start, end
		}
		taken.skip--
		from = start + 1
	}
}
