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
}

type holding struct {
	// until is when the lease ends by this process's clock.
	until  time.Time
	cancel context.CancelFunc
}

// hold keeps an attempt's lease alive until the returned stop is called. A lease
// that is lost, or can't be renewed before its end, cancels the handler.
func (r *renewer) hold(h store.Held, asked time.Time, cancel context.CancelFunc) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = map[store.Held]holding{}
	}
	first := len(r.held) == 0
	r.held[h] = holding{asked.Add(maxLease), cancel}
	if first {
		r.executor.work.Add(1)
		go r.loop()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.held, h)
	}
}

// loop renews a third of a lease after the last time, until nothing is held.
func (r *renewer) loop() {
	defer r.executor.work.Done()
	ticker := time.NewTicker(maxLease / 3)
	defer ticker.Stop()
	for range ticker.C {
		if !r.renew() {
			return
		}
	}
}

// renew is false when nothing is held any more.
func (r *renewer) renew() bool {
	r.mu.Lock()
	if len(r.held) == 0 {
		r.held = nil
		r.mu.Unlock()
		return false
	}
	all := make([]store.Held, 0, len(r.held))
	for h := range r.held {
		all = append(all, h)
	}
	r.mu.Unlock()

	asked := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), maxLease/3)
	defer cancel()
	lost, err := r.executor.ledger.Renew(ctx, maxLease, all...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.executor.log.Warn("settle: leases could not be renewed", "error", err)
		r.endThoseNearTheirEnd()
		return true
	}
	for _, h := range lost {
		if held, ok := r.held[h]; ok {
			held.cancel()
			delete(r.held, h)
		}
	}
	for _, h := range all {
		if held, ok := r.held[h]; ok {
			held.until = asked.Add(maxLease)
			r.held[h] = held
		}
	}
	return true
}

// endThoseNearTheirEnd cancels what could outlive its lease before the next try.
func (r *renewer) endThoseNearTheirEnd() {
	for h, held := range r.held {
		if time.Until(held.until) < maxLease/3+recordMargin {
			held.cancel()
			delete(r.held, h)
		}
	}
}
