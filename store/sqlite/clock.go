package sqlite

import (
	"sync"
	"time"
)

// clock is the ledger's: the host's, but it never runs backwards, and doesn't
// stand still either while the host's is behind it. A host clock that was an hour
// ahead and is set right must not keep every lease from ending for that hour (R38).
type clock struct {
	host func() time.Time

	mu   sync.Mutex
	last int64     // in microseconds
	at   time.Time // when last was read, by the monotonic clock, which nobody sets
}

const readClock = "SELECT at FROM settle_clock"

// read returns the ledger's instant, not before the one given, which is the
// last that was stored.
func (c *clock) read(stored int64) time.Time {
	host := c.host().UnixMicro()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now()
	now := max(host, stored, c.last)
	if passed := at.Sub(c.at).Truncate(time.Microsecond); host < c.last && c.last+passed.Microseconds() > now {
		now, at = c.last+passed.Microseconds(), c.at.Add(passed) // or each read would lose what is cut off
	}
	if now > c.last {
		c.last, c.at = now, at
	}
	return time.UnixMicro(now).UTC()
}
