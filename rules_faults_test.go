package settle_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// A real ledger of which chosen calls go wrong.

// brokenLedger is a real ledger of which chosen calls go wrong, and which
// counts all of them.
type brokenLedger struct {
	store.Ledger
	mu sync.Mutex
	// plans are, by method, what happens to the next calls.
	plans map[string][]plan
	calls map[string]int
}

// plan is what happens to one call: it may make the call or not, and say
// something else than what that said.
type plan func(call func() error) error

// next plans the next calls of a method, each plan for one of them.
func (l *brokenLedger) next(method string, plans ...plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plans == nil {
		l.plans = map[string][]plan{}
	}
	l.plans[method] = append(l.plans[method], plans...)
}

// mend forgets the plans of a method.
func (l *brokenLedger) mend(method string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.plans, method)
}

// pending is how many planned calls were not made.
func (l *brokenLedger) pending() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.plans {
		n += len(p)
	}
	return n
}

// counted returns the calls since the last time, and how many there were in all.
func (l *brokenLedger) counted() (calls map[string]int, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls, l.calls = l.calls, nil
	for _, n := range calls {
		total += n
	}
	return calls, total
}

func (l *brokenLedger) through(method string, call func() error) error {
	l.mu.Lock()
	if l.calls == nil {
		l.calls = map[string]int{}
	}
	l.calls[method]++
	planned := l.plans[method]
	if len(planned) == 0 {
		l.mu.Unlock()
		return call()
	}
	l.plans[method] = planned[1:]
	l.mu.Unlock()
	return planned[0](call)
}

var errLink = errors.New("the link to the database broke")

// The plans.

// lostAnswer makes the call and loses its answer.
func lostAnswer(call func() error) error {
	_ = call()
	return errLink
}

// lostRequest loses the call: nobody can know that.
func lostRequest(func() error) error { return errLink }

// down refuses the call, which is certain to have written nothing.
func down(func() error) error { return &store.UnwrittenError{Err: errLink} }

// times is a plan for several calls.
func times(n int, p plan) []plan {
	all := make([]plan, n)
	for i := range all {
		all[i] = p
	}
	return all
}

func (l *brokenLedger) Intent(ctx context.Context, p store.Intent) (i store.Intent, err error) {
	err = l.through("intent", func() (err error) { i, err = l.Ledger.Intent(ctx, p); return err })
	return i, err
}

func (l *brokenLedger) Claim(ctx context.Context, claims ...store.Claim) (c []store.Claimed, err error) {
	err = l.through("claim", func() (err error) { c, err = l.Ledger.Claim(ctx, claims...); return err })
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (l *brokenLedger) Apply(ctx context.Context, c store.Change) (o store.Operation, err error) {
	err = l.through("apply", func() (err error) { o, err = l.Ledger.Apply(ctx, c); return err })
	if err != nil {
		return store.Operation{}, err
	}
	return o, nil
}

func (l *brokenLedger) Renew(ctx context.Context, d time.Duration, held ...store.Held) (lost []store.Held, err error) {
	err = l.through("renew", func() (err error) { lost, err = l.Ledger.Renew(ctx, d, held...); return err })
	return lost, err
}

func (l *brokenLedger) Take(ctx context.Context, t store.Take) (e []store.Entry, err error) {
	err = l.through("take", func() (err error) { e, err = l.Ledger.Take(ctx, t); return err })
	return e, err
}

func (l *brokenLedger) Get(ctx context.Context, tenant string, id uuid.UUID) (e store.Entry, err error) {
	err = l.through("get", func() (err error) { e, err = l.Ledger.Get(ctx, tenant, id); return err })
	return e, err
}

func (l *brokenLedger) List(ctx context.Context, f store.Filter) (e []store.Entry, err error) {
	err = l.through("list", func() (err error) { e, err = l.Ledger.List(ctx, f); return err })
	return e, err
}

func (l *brokenLedger) Declare(ctx context.Context, tools ...store.ToolRecord) error {
	return l.through("declare", func() error { return l.Ledger.Declare(ctx, tools...) })
}

func (l *brokenLedger) Audit(ctx context.Context, a ...store.Audit) error {
	return l.through("audit", func() error { return l.Ledger.Audit(ctx, a...) })
}
