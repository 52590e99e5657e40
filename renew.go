package settle

import (
	"context"
	"sync"
	"time"

	"github.com/settle-go/settle/store"
)

// renewer extends the leases of attempts that may run longer than one lease, all
// of them in one write. Its goroutine lives while there are any (R22).
type renewer struct {
	executor *Executor
	mu       sync.Mutex
	held     map[store.Held]holding
	// idle ends the goroutine; it is nil where none runs.
	idle chan struct{}
}

type holding struct {
	// until is when the lease ends by this process's clock.
	until  time.Time
	cancel context.CancelFunc
}

// renewalNeeds is what must be left of a lease that is to be renewed: the time
// until the first renewal, and as much again for a ledger that doesn't answer.
const renewalNeeds = 2 * maxLease / 3

// hold keeps an attempt's lease, which ends at until by this process's clock,
// alive until the returned stop is called. A lease that is lost, or can't be
// renewed before its end, cancels the handler.
func (r *renewer) hold(h store.Held, until time.Time, cancel context.CancelFunc) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle == nil {
		r.held, r.idle = map[store.Held]holding{}, make(chan struct{})
		r.executor.work.Add(1)
		go r.loop(r.idle)
	}
	r.held[h] = holding{until, cancel}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.drop(h)
	}
}

// drop forgets an attempt, and ends the goroutine with the last one: Shutdown
// waits for it. It is called under mu.
func (r *renewer) drop(h store.Held) {
	delete(r.held, h)
	if len(r.held) == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// loop renews a third of a lease after the last time, until nothing is held.
func (r *renewer) loop(idle <-chan struct{}) {
	defer r.executor.work.Done()
	ticker := time.NewTicker(maxLease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.renew()
		case <-idle:
			return
		}
	}
}

func (r *renewer) renew() {
	r.mu.Lock()
	all := make([]store.Held, 0, len(r.held))
	for h := range r.held {
		all = append(all, h)
	}
	r.mu.Unlock()
	if len(all) == 0 {
		return
	}

	asked := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), maxLease/3)
	defer cancel()
	lost, err := r.executor.ledger.Renew(ctx, maxLease, all...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.executor.log.Warn("settle: leases could not be renewed", "error", err)
		r.endThoseNearTheirEnd()
		return
	}
	for _, h := range lost {
		if held, ok := r.held[h]; ok {
			held.cancel()
			r.drop(h)
		}
	}
	for _, h := range all {
		if held, ok := r.held[h]; ok {
			held.until = asked.Add(maxLease)
			r.held[h] = held
		}
	}
}

// endThoseNearTheirEnd cancels what could outlive its lease before the next try.
func (r *renewer) endThoseNearTheirEnd() {
	for h, held := range r.held {
		if time.Until(held.until) < maxLease/3+recordMargin {
			held.cancel()
			r.drop(h)
		}
	}
}
