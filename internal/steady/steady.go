// Package steady makes an instant of a host's clock that never runs backwards, and
// doesn't stand still either while the host's is behind it. A host clock that was
// an hour ahead and is set right must not keep every lease from ending for that
// hour (R38).
package steady

import (
	"sync"
	"time"
)

// Clock is the clock of a ledger whose database has none. The zero Clock is ready.
type Clock struct {
	mu   sync.Mutex
	last int64     // in microseconds
	at   time.Time // when last was read, by the monotonic clock, which nobody sets
}

// Read returns the instant at which the host's clock shows this, in microseconds:
// not before what was read before, nor before the one given, which is the last that
// was stored.
func (c *Clock) Read(host time.Time, stored int64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, shown := time.Now(), host.UnixMicro()
	now := max(shown, stored, c.last)
	if passed := at.Sub(c.at).Truncate(time.Microsecond); shown < c.last && c.last+passed.Microseconds() > now {
		now, at = c.last+passed.Microseconds(), c.at.Add(passed) // or each read would lose what is cut off
	}
	if now > c.last {
		c.last, c.at = now, at
	}
	return time.UnixMicro(now).UTC()
}
