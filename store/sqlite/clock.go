package sqlite

import (
	"sync/atomic"
	"time"
)

// clock is the ledger's: the host's, but it never runs backwards.
type clock struct {
	host func() time.Time
	last atomic.Int64
}

const readClock = "SELECT at FROM settle_clock"

// read returns the ledger's instant, not before the one given, which is the
// last that was stored.
func (c *clock) read(stored int64) time.Time {
	now := max(c.host().UnixMicro(), stored)
	for {
		last := c.last.Load()
		if now <= last {
			return time.UnixMicro(last).UTC()
		}
		if c.last.CompareAndSwap(last, now) {
			return time.UnixMicro(now).UTC()
		}
	}
}
