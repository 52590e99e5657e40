package settle

import (
	"sync/atomic"
	"time"
)

// crew runs jobs and handlers on goroutines that it keeps for a moment when they
// are done. A goroutine's stack begins small and is copied several times before
// a record on its way to a ledger fits into it: with a new goroutine for each,
// that was a fifth of what a call costs.
type crew struct {
	work chan func()
	// idle counts those that wait for work; closing ends them.
	idle    atomic.Int32
	closing <-chan struct{}
}

const (
	// maxIdle bounds the goroutines that wait for work, idleFor how long they do.
	maxIdle = 64
	idleFor = time.Second
)

func newCrew(closing <-chan struct{}) *crew {
	return &crew{work: make(chan func()), closing: closing}
}

// run starts do on a goroutine.
func (c *crew) run(do func()) {
	select {
	case c.work <- do:
	default:
		go c.member(do)
	}
}

func (c *crew) member(do func()) {
	timer := time.NewTimer(idleFor)
	defer timer.Stop()
	for do != nil {
		do()
		do = c.next(timer)
	}
}

// next waits for work, unless enough others do or it takes too long.
func (c *crew) next(timer *time.Timer) func() {
	defer c.idle.Add(-1)
	if c.idle.Add(1) > maxIdle {
		return nil
	}
	timer.Reset(idleFor)
	select {
	case do := <-c.work:
		return do
	case <-timer.C:
	case <-c.closing:
	}
	return nil
}
