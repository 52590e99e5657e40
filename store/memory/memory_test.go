package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.World {
		clock := storetest.NewClock()
		l := memory.New(memory.WithClock(clock.Now))
		return storetest.World{Ledger: l, Age: clock.Age}
	})
}

func TestR26AMemoryLedgerSaysThatItSurvivesNothing(t *testing.T) {
	t.Parallel()
	l := memory.New()
	if info := l.Info(); info.Name != "memory" || info.Durable {
		t.Errorf("the ledger says that it is %+v", info)
	}
	findings, err := l.Check(t.Context())
	if err != nil || len(findings) != 1 {
		t.Errorf("got %d findings and the error %v", len(findings), err)
	}
}

// onClock is a ledger on a clock that a test sets, and claims an operation each time.
func onClock(t *testing.T) (*storetest.Clock, *memory.Ledger, func() store.Operation) {
	t.Helper()
	clock := storetest.NewClock()
	l := memory.New(memory.WithClock(clock.Now))
	i, err := l.Intent(t.Context(), storetest.NewIntent())
	if err != nil {
		t.Fatal(err)
	}
	return clock, l, func() store.Operation {
		answers, err := l.Claim(t.Context(), storetest.Claim(storetest.Operation(i)))
		if err != nil {
			t.Fatal(err)
		}
		return answers[0].Operation
	}
}

func TestR22TheClockNeverRunsBackwards(t *testing.T) {
	t.Parallel()
	clock, _, claim := onClock(t)
	before := claim()
	clock.Age(t, -24*time.Hour)
	if after := claim(); after.CreatedAt.Before(before.CreatedAt) {
		t.Errorf("the ledger's clock ran backwards by %v", before.CreatedAt.Sub(after.CreatedAt))
	}
	for began := time.Now(); !claim().CreatedAt.After(before.CreatedAt); {
		if time.Since(began) > 5*time.Second {
			t.Fatal("the ledger's clock stands still while the host's is behind it: no lease ends (R38)")
		}
	}
}

// However often the clock is read, it goes on as fast as time does.
func TestR38TheClockThatIsCountedOnLosesNothing(t *testing.T) {
	t.Parallel()
	clock, l, claim := onClock(t)
	first := claim()
	read := func() time.Time {
		e, err := l.Get(t.Context(), "acme", first.ID)
		if err != nil {
			t.Fatal(err)
		}
		return e.Read
	}
	clock.Age(t, -24*time.Hour)
	began, from := time.Now(), first.CreatedAt
	for time.Since(began) < 100*time.Millisecond {
		read()
	}
	passed := time.Since(began)
	if went := read().Sub(from); went < passed-time.Millisecond {
		t.Errorf("in %v it went on by %v", passed, went)
	}
}

func TestR26AClosedLedgerSaysSo(t *testing.T) {
	t.Parallel()
	l := memory.New()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Intent(t.Context(), storetest.NewIntent())
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("got the error %v, want ErrClosed", err)
	}
}

func TestTheZeroOptionsUseTheMachinesClock(t *testing.T) {
	t.Parallel()
	l := memory.New()
	early := time.Now().Add(-time.Second)
	i, err := l.Intent(t.Context(), storetest.NewIntent())
	if err != nil || i.CreatedAt.Before(early) || i.CreatedAt.After(time.Now()) {
		t.Errorf("created at %v with the error %v", i.CreatedAt, err)
	}
}

// TestR22ALeaseEndsAtItsInstant holds the clock still, which the conformance
// suite can't: at the very end of a lease the attempt is expired, lost and due.
func TestR22ALeaseEndsAtItsInstant(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 11, 3, 9, 30, 0, 0, time.UTC)
	l := memory.New(memory.WithClock(func() time.Time { return now }))
	i, err := l.Intent(t.Context(), storetest.NewIntent())
	if err != nil {
		t.Fatal(err)
	}
	answers, err := l.Claim(t.Context(), storetest.Claim(storetest.Operation(i)))
	if err != nil {
		t.Fatal(err)
	}
	o := answers[0].Operation
	for _, c := range []struct {
		at    time.Time
		ended bool
	}{{o.LeaseUntil.Add(-time.Microsecond), false}, {o.LeaseUntil, true}} {
		now = c.at
		e, err := l.Get(t.Context(), i.TenantName, o.ID)
		if err != nil || e.Expired() != c.ended {
			t.Errorf("expired is %v with the error %v", e.Expired(), err)
		}
		taken, err := l.Take(t.Context(), store.Take{Operation: o.ID})
		if err != nil || (len(taken) == 1) != c.ended {
			t.Errorf("%d rows were due with the error %v", len(taken), err)
		}
	}
	lost, err := l.Renew(t.Context(), storetest.Lease, store.Held{Operation: o.ID, Owner: o.Owner})
	if err != nil || len(lost) != 1 {
		t.Errorf("%d leases were lost with the error %v", len(lost), err)
	}
}
