// Package steady makes an instant of a host's clock that never runs backwards over
// what was stored, and doesn't stand still either while the host's is behind it. A
// host clock that was an hour ahead and is set right must not keep every lease from
// ending for that hour (R38).
package steady

import (
	"sync"
	"time"
)

// Clock is the clock of a ledger whose database has none. The zero Clock is ready.
//
// Several processes share a ledger, and all that they share of its clock is the
// last instant that was stored. So a process that knows better, because it has
// seen the host's clock ahead or has counted the time since something was stored,
// must not hold another one's rows to that: a lease that began at the stored
// instant would be over before its attempt was.
type Clock struct {
	mu sync.Mutex
	// stored is the last that was stored, and seen when it was seen first, or handed
	// out here; last is what was handed out last, and at when; written and taken are
	// the same of what was handed out to be stored. The times are read by the
	// monotonic clock, which nobody sets.
	stored, last, written int64
	seen, at, taken       time.Time
}

// Read returns the instant at which the host's clock shows this, in microseconds:
// not before the one given, which is the last that was stored. While the host's is
// behind, time goes on from there by as much as has passed here since.
func (c *Clock) Read(host time.Time, stored int64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read(host, stored)
}

// Write is Read of an instant that is to be stored, by one writer at a time. What
// passes until it is seen to be stored counts, though others read meanwhile: with
// one write behind the other time would nearly stand still.
func (c *Clock) Write(host time.Time, stored int64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.read(host, stored)
	c.written, c.taken = c.last, c.at
	return now
}

func (c *Clock) read(host time.Time, stored int64) time.Time {
	at, shown := time.Now(), host.UnixMicro()
	switch {
	case c.at.IsZero():
		c.stored, c.seen = stored, at
	case stored == c.last:
		c.stored, c.seen = stored, c.at
	case stored == c.stored:
	case stored == c.written:
		c.stored, c.seen = stored, c.taken
	default:
		c.stored, c.seen = stored, at
	}
	now := max(shown, stored)
	if shown < max(stored, c.last) {
		passed := at.Sub(c.seen).Truncate(time.Microsecond)
		// What is stored in between tells every process so, by being another instant.
		if counted := stored + max(passed.Microseconds(), 1); counted > now {
			now, at = counted, c.seen.Add(passed) // or each read would lose what is cut off
		}
	}
	c.last, c.at = now, at
	return time.UnixMicro(now).UTC()
}
