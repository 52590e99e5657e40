package sqlite_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

// hand is a host's clock that a test sets.
type hand struct{ at atomic.Int64 }

func handAt(t time.Time) *hand {
	h := &hand{}
	h.set(t)
	return h
}

func (h *hand) set(t time.Time)       { h.at.Store(t.UnixNano()) }
func (h *hand) Now() time.Time        { return time.Unix(0, h.at.Load()) }
func (h *hand) option() sqlite.Option { return sqlite.WithClock(h.Now) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestTheClockOfTheLedgerNeverRunsBackwards(t *testing.T) {
	t.Parallel()
	clock := handAt(noon.Add(1234567 * time.Nanosecond))
	w := newWorld(t, clock.option())
	i := w.intent()
	first := w.won(i)
	if want := noon.Add(1234 * time.Microsecond); !first.CreatedAt.Equal(want) {
		t.Errorf("claimed at %v, want %v", first.CreatedAt, want)
	}
	clock.set(noon.Add(-time.Hour))
	second := w.won(i)
	settled := w.apply(storetest.Completion(first, "r-1"))
	if second.CreatedAt.Before(first.CreatedAt) || settled.SettledAt.Before(first.CreatedAt) {
		t.Errorf("claimed at %v, then at %v, and settled at %v", first.CreatedAt, second.CreatedAt, settled.SettledAt)
	}
	e, err := w.Get(w.ctx, "acme", first.ID)
	w.must(err)
	if e.Read.Before(settled.SettledAt) {
		t.Errorf("a row of %v was read at %v", settled.SettledAt, e.Read)
	}
	clock.set(noon.Add(30 * time.Minute))
	later, err := w.Get(w.ctx, "acme", first.ID)
	w.must(err)
	clock.set(noon)
	again, err := w.Get(w.ctx, "acme", first.ID)
	w.must(err)
	if !later.Read.Equal(noon.Add(30*time.Minute)) || again.Read.Before(settled.SettledAt) {
		t.Errorf("read at %v, then at %v", later.Read, again.Read)
	}
	clock.set(noon.Add(time.Hour))
	if third := w.won(i); !third.CreatedAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("claimed at %v though the clock showed %v", third.CreatedAt, noon.Add(time.Hour))
	}
}

// A process that has seen the host's clock ahead, or has counted on while it was
// behind, knows of instants that no other process does. A lease that another one
// begins isn't over for it before its time.
func TestR22NoProcessEndsAnothersLeaseByAClockOfItsOwn(t *testing.T) {
	t.Parallel()
	const soon = time.Second
	for name, shown := range map[string][]time.Duration{
		"it saw the clock ahead":        {time.Hour, soon},
		"it saw the clock ahead, twice": {time.Hour, soon, 2 * time.Hour, soon},
		"it saw the clock set back":     {-time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := handAt(noon)
			w := newWorld(t, clock.option())
			i := w.intent()
			known := w.won(i)
			for _, d := range shown {
				clock.set(noon.Add(d))
				_, err := w.Get(w.ctx, "acme", known.ID)
				w.must(err)
			}
			// It is at rest for longer than the lease; nothing is stored meanwhile.
			const lease = 100 * time.Millisecond
			for began := time.Now(); time.Since(began) < 2*lease; {
				_, err := w.Get(w.ctx, "acme", known.ID)
				w.must(err)
			}
			other := open(t, w.path, clock.option())
			began := time.Now()
			claim := storetest.Claim(storetest.Operation(i))
			claim.Lease = lease
			answers, err := other.Claim(w.ctx, claim)
			w.must(err)
			e, err := w.Get(w.ctx, "acme", answers[0].Operation.ID)
			w.must(err)
			if e.Expired() && time.Since(began) < lease {
				t.Errorf("a lease that began at %v and ends at %v is over at %v", e.CreatedAt, e.LeaseUntil, e.Read)
			}
		})
	}
}

func TestTheLastStoredInstantHoldsForOtherProcessesAndRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, handAt(noon).option())
	i := w.intent()
	first := w.won(i)
	before := noon.Add(-24 * time.Hour)
	other := open(t, w.path, handAt(before).option())
	e, err := other.Get(w.ctx, "acme", first.ID)
	w.must(err)
	if e.Read.Before(first.CreatedAt) {
		t.Errorf("a row of %v was read at %v", first.CreatedAt, e.Read)
	}
	w.must(w.Close())
	w.must(other.Close())

	w.Ledger = open(t, w.path, handAt(before).option())
	second := w.won(i)
	if second.CreatedAt.Before(first.CreatedAt) {
		t.Errorf("claimed at %v, and after a restart at %v", first.CreatedAt, second.CreatedAt)
	}
}

// The instant is that of the statement, not that of the transaction's or the
// call's beginning: a lease has its full length after a wait for the lock.
func TestR22ALeaseBeginsWhenItIsWritten(t *testing.T) {
	t.Parallel()
	clock := handAt(noon)
	w := newWorld(t, clock.option())
	o := storetest.Operation(w.intent())
	unlock := w.locked()
	answer := make(chan store.Operation, 1)
	go func() {
		answers, err := w.Claim(w.ctx, storetest.Claim(o))
		if err == nil {
			answer <- answers[0].Operation
		}
		close(answer)
	}()
	w.queued(1)
	clock.set(noon.Add(time.Minute))
	unlock()
	if got := <-answer; !got.LeaseUntil.Equal(noon.Add(time.Minute + storetest.Lease)) {
		t.Errorf("the lease ends at %v, want %v", got.LeaseUntil, noon.Add(time.Minute+storetest.Lease))
	}
}

func TestR21DurationsAreRoundedToTheSaferSide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.won(w.intent(), func(o *store.Operation) { o.Visibility, o.Escalate = time.Second+1, time.Minute+1 })
	e, err := w.Get(w.ctx, "acme", o.ID)
	w.must(err)
	if o.Visibility != time.Second+time.Microsecond || e.Visibility != o.Visibility || e.Escalate != o.Escalate {
		t.Errorf("a delay of 1 s and 1 ns was answered as %v and stored as %v", o.Visibility, e.Visibility)
	}
}

// A clock that was ahead and is set right doesn't stop the ledger's: leases end,
// in this process and in others, as long after they began as they should.
func TestR38LeasesEndAfterTheHostsClockIsSetBack(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	ahead.Store(int64(24 * time.Hour))
	host := sqlite.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	w := newWorld(t, host)
	const lease = 200 * time.Millisecond
	began := time.Now()
	claim := storetest.Claim(storetest.Operation(w.intent()))
	claim.Lease = lease
	answers, err := w.Claim(w.ctx, claim)
	w.must(err)
	o := answers[0].Operation
	ahead.Store(0)
	others := open(t, w.path, host)
	for _, l := range []*sqlite.Ledger{w.Ledger, others} {
		for {
			e, err := l.Get(w.ctx, "acme", o.ID)
			w.must(err)
			if e.Read.Before(o.CreatedAt) {
				t.Fatalf("what was claimed at %v was read at %v", o.CreatedAt, e.Read)
			}
			if e.Expired() {
				break
			}
			if time.Since(began) > 20*time.Second {
				t.Fatalf("a lease of %v hasn't ended after %v", lease, time.Since(began))
			}
			runtime.Gosched()
		}
		if took := time.Since(began); took < lease {
			t.Errorf("a lease of %v ended after %v", lease, took)
		}
	}
}

// What passes while a write is on its way to the disk counts, though others read
// meanwhile: with one write behind the other, leases wouldn't end for as long as the
// host's clock is behind (R38).
func TestR38TimeGoesOnUnderLoadAfterTheHostsClockIsSetBack(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	ahead.Store(int64(24 * time.Hour))
	w := newWorld(t, sqlite.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	i := w.intent()
	first := w.won(i)
	ahead.Store(0)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := w.Get(w.ctx, "acme", first.ID); err != nil {
				stopped <- err
				return
			}
		}
	}()
	w.won(i)
	began, from := time.Now(), w.won(i)
	last := from
	for n := 0; n < 100 || time.Since(began) < time.Second; n++ {
		last = w.won(i)
	}
	passed := time.Since(began)
	close(stop)
	w.must(<-stopped)
	if moved := last.CreatedAt.Sub(from.CreatedAt); moved < passed/2 || moved > 2*passed {
		t.Errorf("the ledger's time has gone on by %v in %v", moved, passed)
	}
}
