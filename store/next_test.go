package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// running is an operation whose first attempt began at epoch.
func running() store.Operation {
	o, _ := store.First(storetest.Claim(storetest.Operation(storetest.NewIntent())), epoch)
	return o
}

// next moves o at the instant epoch + in.
func next(o store.Operation, in time.Duration, c store.Change) store.Operation {
	after, _ := store.Next(o, c, epoch.Add(in))
	return after
}

func wantInstant(t *testing.T, name string, got, want time.Time) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

func TestR21FirstSetsTheInstantsOfAnAttempt(t *testing.T) {
	t.Parallel()
	c := storetest.Claim(storetest.Operation(storetest.NewIntent()))
	c.KeyWindow = 24 * time.Hour
	o, e := store.First(c, epoch)
	for name, got := range map[string]time.Time{"CreatedAt": o.CreatedAt, "FirstSent": o.FirstSent, "Read": o.Read, "TailAt": o.TailAt, "the event": e.At} {
		wantInstant(t, name, got, epoch)
	}
	wantInstant(t, "LeaseUntil", o.LeaseUntil, epoch.Add(storetest.Lease))
	wantInstant(t, "DueAt", o.DueAt, o.LeaseUntil)
	wantInstant(t, "Moment", o.Moment, o.LeaseUntil.Add(storetest.Visibility))
	wantInstant(t, "KeyUntil", o.KeyUntil, epoch.Add(24*time.Hour))
	if o.Version != 1 || o.Attempt != 1 || e.Seq != 1 || e.Attempt != 1 || e.Kind != "claimed" || e.Move.String() != ">running" || o.Tail != e.Hash {
		t.Errorf("version %d, attempt %d and event %+v", o.Version, o.Attempt, e)
	}
}

func TestR21FirstOfAnotherStateRunsNothing(t *testing.T) {
	t.Parallel()
	c := storetest.Claim(storetest.Operation(storetest.NewIntent(), storetest.In(store.AwaitingApproval)))
	o, e := store.First(c, epoch)
	wantInstant(t, "FirstSent", o.FirstSent, time.Time{})
	wantInstant(t, "LeaseUntil", o.LeaseUntil, time.Time{})
	wantInstant(t, "DueAt", o.DueAt, epoch.Add(c.Wait))
	wantInstant(t, "Moment", o.Moment, epoch)
	wantInstant(t, "KeyUntil", o.KeyUntil, time.Time{})
	if o.Version != 1 || o.Attempt != 0 || e.Attempt != 0 || e.Move.String() != ">awaiting_approval" {
		t.Errorf("version %d, attempt %d and event %+v", o.Version, o.Attempt, e)
	}
}

func TestR22InstantsAreInMicroseconds(t *testing.T) {
	t.Parallel()
	c := storetest.Claim(storetest.Operation(storetest.NewIntent()))
	c.Lease, c.KeyWindow = time.Second+1999, 1999
	o, _ := store.First(c, epoch)
	wantInstant(t, "LeaseUntil", o.LeaseUntil, epoch.Add(time.Second+time.Microsecond))
	wantInstant(t, "KeyUntil", o.KeyUntil, epoch.Add(time.Microsecond))
	due := storetest.Change(o, store.Unknown)
	due.Due = store.DueIn(1999)
	wantInstant(t, "DueAt", next(o, 0, due).DueAt, epoch.Add(time.Microsecond))
}

func TestR21TheMoment(t *testing.T) {
	t.Parallel()
	const lease, visibility = storetest.Lease, storetest.Visibility
	end := lease + visibility // of the first attempt
	for name, c := range map[string]struct {
		doubts int           // before the move
		in     time.Duration // when it is made
		edit   func(*store.Change)
		want   time.Duration
	}{
		"stays without a return":                {0, time.Minute, func(*store.Change) {}, end},
		"comes forward with the only return":    {0, time.Minute, func(c *store.Change) { c.Returned = true }, time.Minute + visibility},
		"stays with other attempts in doubt":    {1, time.Minute, func(c *store.Change) { c.Returned = true }, end},
		"moves back with a late return":         {0, 2 * lease, func(c *store.Change) { c.Returned = true }, 2*lease + visibility},
		"moves back with a late return, doubts": {2, 2 * lease, func(c *store.Change) { c.Returned = true }, 2*lease + visibility},
		"moves back with a longer visibility":   {0, time.Minute, func(c *store.Change) { c.Visibility = visibility + time.Hour }, end + time.Hour},
		"stays with a shorter visibility":       {0, time.Minute, func(c *store.Change) { c.Visibility = time.Second }, end},
		"return and longer visibility": {0, time.Minute, func(c *store.Change) {
			c.Returned, c.Visibility = true, visibility+time.Hour
		}, time.Minute + visibility + time.Hour},
		"moves back with an attempt": {1, time.Minute, func(c *store.Change) {
			c.To, c.Start = store.Running, &store.Start{Lease: 2 * lease}
		}, time.Minute + 2*lease + visibility},
		"stays with a short attempt": {1, time.Minute, func(c *store.Change) {
			c.To, c.Start = store.Running, &store.Start{Lease: time.Second}
		}, end},
		"an attempt under a longer visibility": {1, time.Minute, func(c *store.Change) {
			c.To, c.Start = store.Running, &store.Start{Lease: time.Second, Visibility: visibility + time.Hour}
		}, end + time.Hour},
		"return and another attempt at once": {0, time.Minute, func(c *store.Change) {
			c.To, c.Returned, c.Start = store.Running, true, &store.Start{Lease: time.Second}
		}, time.Minute + visibility + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := running()
			o.Doubts = c.doubts
			after := next(o, c.in, storetest.Change(o, store.Unknown, c.edit))
			wantInstant(t, "Moment", after.Moment, epoch.Add(c.want))
		})
	}
}

func TestR21MomentUnderTodaysContract(t *testing.T) {
	t.Parallel()
	o := running()
	wantInstant(t, "shorter", o.MomentUnder(0), o.Moment)
	wantInstant(t, "longer", o.MomentUnder(o.Visibility+time.Minute), o.Moment.Add(time.Minute))
	wantInstant(t, "no moment", store.Operation{}.MomentUnder(time.Minute), time.Time{})
}

func TestR38ExpiredAndDueAreOfTheInstantOfReading(t *testing.T) {
	t.Parallel()
	o := running()
	for in, expired := range map[time.Duration]bool{0: false, storetest.Lease - 1: false, storetest.Lease: true, 2 * storetest.Lease: true} {
		o.Read = epoch.Add(in)
		if o.Expired() != expired || o.Due() != expired {
			t.Errorf("after %v: expired %v, due %v", in, o.Expired(), o.Due())
		}
	}
	o.State, o.DueAt = store.Unknown, time.Time{}
	if o.Expired() || o.Due() {
		t.Error("an operation that doesn't run is expired or due")
	}
}

func TestR31WhatBlocks(t *testing.T) {
	t.Parallel()
	for _, state := range store.States() {
		for doubts := range 2 {
			o := store.Operation{State: state, Doubts: doubts, Moment: epoch, Read: epoch.Add(-1)}
			if wanted := state == store.Running || doubts > 0; o.Blocks() != wanted {
				t.Errorf("%s with %d doubts blocks: %v", state, doubts, o.Blocks())
			}
			if o.Read = epoch; o.Blocks() {
				t.Errorf("%s blocks past its moment", state)
			}
		}
	}
}

func TestR30WhatHolds(t *testing.T) {
	t.Parallel()
	own := storetest.Operation(storetest.NewIntent())
	claim := func(told ...uuid.UUID) store.Claim { return storetest.Claim(own, storetest.UnderHold(told...)) }
	other := func(state store.State, edits ...func(*store.Operation)) store.Operation {
		return storetest.Operation(storetest.NewIntent(), append(edits, storetest.In(state))...)
	}
	completed := other(store.Completed)
	batch := func(o *store.Operation) { o.Batch = own.Batch }
	for name, c := range map[string]struct {
		other store.Operation
		claim store.Claim
		want  bool
	}{
		"awaiting":             {other(store.AwaitingApproval), claim(), true},
		"running":              {other(store.Running), claim(), true},
		"retryable":            {other(store.Retryable), claim(), true},
		"unknown":              {other(store.Unknown), claim(), true},
		"manual":               {other(store.Manual), claim(), true},
		"completed":            {completed, claim(), true},
		"completed and told":   {completed, claim(uuid.New(), completed.ID), false},
		"completed here":       {other(store.Completed, func(o *store.Operation) { o.Run = own.Run }), claim(), false},
		"failed":               {other(store.Failed), claim(), false},
		"superseded":           {other(store.Superseded), claim(), false},
		"abandoned":            {other(store.Abandoned), claim(), false},
		"unsettled here":       {other(store.Unknown, func(o *store.Operation) { o.Run = own.Run }), claim(), true},
		"its own row":          {other(store.Running, func(o *store.Operation) { o.ID = own.ID }), claim(), false},
		"its own slot":         {other(store.Running, func(o *store.Operation) { o.Slot = own.Slot }), claim(), false},
		"its own batch":        {other(store.Running, batch), claim(), false},
		"completed, own batch": {other(store.Completed, batch), claim(), false},
	} {
		if got := c.other.Holds(c.claim); got != c.want {
			t.Errorf("%s: holds is %v", name, got)
		}
	}
}

func TestR20NextMakesEveryMoveOfTheTable(t *testing.T) {
	t.Parallel()
	for _, m := range store.Moves() {
		o := running()
		o.State = m.From
		after, e := store.Next(o, storetest.Change(o, m.To), epoch.Add(time.Second))
		if after.State != m.To || after.Version != 2 || e.Move != m || e.Seq != 2 || after.Tail != e.Hash {
			t.Errorf("%s: the row is %s at version %d with the event %+v", m, after.State, after.Version, e)
		}
		if settled := !after.SettledAt.IsZero(); m.To.Settled() != m.From.Settled() && settled != m.To.Settled() {
			t.Errorf("%s: settled at %v", m, after.SettledAt)
		}
		if m.To != store.Running && !after.LeaseUntil.IsZero() {
			t.Errorf("%s: an operation that doesn't run has a lease", m)
		}
	}
}

func TestR57TheEventOfAnAttemptCountsIt(t *testing.T) {
	t.Parallel()
	o := running()
	if e := store.NextEvent(storetest.Attempt(o)); e.Attempt != 2 {
		t.Errorf("the event is of attempt %d", e.Attempt)
	}
	if e := store.NextEvent(storetest.Change(o, store.Unknown)); e.Attempt != 1 {
		t.Errorf("the event is of attempt %d", e.Attempt)
	}
}
