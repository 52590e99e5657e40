package settle

import (
	"math/rand/v2"
	"sync"
	"time"
)

// lanes bound how many operations of a tool this process recovers at once, over
// all passes (R36).
type lanes struct {
	limit int
	// freed has an element after a tool that had as much as it may has less.
	freed chan struct{}

	mu sync.Mutex
	// tools has those of which something is taken, by the names that operations are
	// keyed by: some may be tools that this process doesn't know.
	tools map[string]*lane
	// others has the tools that are left to other processes, and when.
	others map[string]headStart
}

// headStart is a time in which a process takes nothing of a tool.
type headStart struct{ from, until time.Time }

// lane is a tool's: what was taken, and the few of it that are worked on.
type lane struct {
	taken int
	slots chan struct{}
}

func newLanes(limit int) *lanes {
	return &lanes{limit: max(limit, 1), freed: make(chan struct{}, 1), tools: map[string]*lane{},
		others: map[string]headStart{}}
}

// leaveToOthers keeps passes from a tool that this process doesn't know when what
// was taken of it and couldn't be worked on is due again, which is at a fixed pace:
// without a head start for the others this process would mostly be the first to
// take it again. Until then the tool is served as every other is: a lease that ends
// there is seen to at once, however much is left to others (R38).
func (l *lanes) leaveToOthers(tool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const slack = recoveryLease / 8 // from when it was taken to now
	now := time.Now()
	h := headStart{now.Add(recoveryLease - slack), now.Add(recoveryLease + slack + rand.N(slack))}
	if before, ok := l.others[tool]; ok && now.Before(before.until) {
		h.from = before.from
	}
	l.others[tool] = h
}

// enter counts an operation that was taken. It is worked on once the lane has a slot.
func (l *lanes) enter(tool string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ok := l.tools[tool]
	if !ok {
		own = &lane{slots: make(chan struct{}, l.limit)}
		l.tools[tool] = own
	}
	own.taken++
	return own
}

// leave takes an operation out again.
func (l *lanes) leave(tool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.tools[tool]
	own.taken--
	if own.taken == l.limit-1 {
		select {
		case l.freed <- struct{}{}:
		default:
		}
	}
	if own.taken == 0 {
		delete(l.tools, tool)
	}
}

// full lists the tools of which as much is taken as may be worked on at once, and
// those that are left to others now.
func (l *lanes) full() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for tool, own := range l.tools {
		if own.taken >= l.limit {
			names = append(names, tool)
		}
	}
	now := time.Now()
	for tool, h := range l.others {
		switch {
		case !now.Before(h.until):
			delete(l.others, tool)
		case !now.Before(h.from):
			names = append(names, tool)
		}
	}
	return names
}
