package sqlite

import (
	"time"

	"github.com/settle-go/settle/internal/steady"
)

// clock is the ledger's: the host's, kept steady over all processes by the last
// instant that was stored.
type clock struct {
	host   func() time.Time
	steady steady.Clock
}

const readClock = "SELECT at FROM settle_clock"

// read returns the ledger's instant, not before the one given, which is the
// last that was stored.
func (c *clock) read(stored int64) time.Time { return c.steady.Read(c.host(), stored) }

// write is read of an instant that is to be stored.
func (c *clock) write(stored int64) time.Time { return c.steady.Write(c.host(), stored) }
