package settletest

import (
	"sync"
	"time"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

// Clock is a ledger's clock that stands still until the test sets it forward.
//
// It decides what the ledger decides: when a lease has ended, when a moment has
// passed, what is due for recovery, stale or a person's. The pauses between
// attempts and the timeout of a handler are the process's own and go by the
// real clock.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows the present time.
func NewClock() *Clock { return &Clock{now: time.Now()} }

// Now returns what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance sets the clock forward. Set it forward while no attempt is at work:
// one whose lease ends under it may be repeated.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(max(d, 0))
}

// Ledger returns a new ledger in memory that goes by the clock.
func (c *Clock) Ledger() store.Ledger { return memory.New(memory.WithClock(c.Now)) }
