package storetest

import (
	"time"

	"github.com/settle-go/settle/store"
)

func moments(s suite) {
	s.test("R21TheOnlyAttemptsReturnBringsTheMomentForward", func(w *world) {
		o := w.record(w.intent())
		o = w.apply(Change(o, store.Unknown, returned, inDoubt))
		w.wantInstant("Moment", o.Moment, o.TailAt.Add(Visibility))
		w.wantInstant("LeaseUntil", o.LeaseUntil, time.Time{})
	})
	s.test("R21WithOthersInDoubtTheMomentStays", func(w *world) {
		o := w.apply(Change(w.record(w.intent()), store.Unknown, inDoubt))
		started := w.apply(Attempt(o))
		after := w.apply(Change(started, store.Unknown, returned, func(c *store.Change) { c.Doubts = 2 }))
		w.wantInstant("Moment", after.Moment, started.Moment)
	})
	s.test("R21ALateReturnMovesTheMomentBack", func(w *world) {
		for doubts := range 2 {
			o := w.apply(Change(w.record(w.intent()), store.Unknown, func(c *store.Change) { c.Doubts = doubts }))
			o = w.apply(Attempt(o))
			w.age(3 * Lease)
			o = w.apply(Change(w.read(o), store.Unknown, returned, func(c *store.Change) { c.Doubts = doubts + 1 }))
			w.wantInstant("Moment", o.Moment, o.TailAt.Add(Visibility))
		}
	})
	s.test("R21NoReturnNoEarlierMoment", func(w *world) {
		o := w.record(w.intent())
		after := w.apply(Change(o, store.Unknown, inDoubt))
		w.wantInstant("Moment", after.Moment, o.Moment)
		w.wantInstant("LeaseUntil", after.LeaseUntil, time.Time{})
	})
	s.test("R21TheLongerVisibilityHolds", func(w *world) {
		o := w.record(w.intent())
		after := w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Visibility = Visibility + time.Hour }))
		want(w, "the visibility", after.Visibility, Visibility+time.Hour)
		w.wantInstant("Moment", after.Moment, o.Moment.Add(time.Hour))
		same := w.apply(Change(after, store.Unknown, func(c *store.Change) { c.Visibility = time.Second }))
		want(w, "the visibility", same.Visibility, Visibility+time.Hour)
		w.wantInstant("Moment", same.Moment, after.Moment)
	})
}

func attemptMoments(s suite) {
	s.test("R21AnAttemptUnderALongerVisibilityKeepsIt", func(w *world) {
		o := w.apply(Change(w.record(w.intent()), store.Unknown, inDoubt))
		// Its lease ends long before the one of the attempt in doubt.
		started := w.apply(Attempt(o, func(c *store.Change) {
			c.Start.Lease, c.Start.Visibility = time.Second, Visibility+5*time.Minute
		}))
		want(w, "the visibility", started.Visibility, Visibility+5*time.Minute)
		w.wantInstant("Moment", started.Moment, o.Moment.Add(5*time.Minute))
	})
	s.test("R21AnAttemptUnderAShorterVisibilityKeepsTheLonger", func(w *world) {
		o := w.standing(w.intent(), store.Retryable)
		started := w.apply(Attempt(o, func(c *store.Change) { c.Start.Visibility = time.Second }))
		want(w, "the visibility", started.Visibility, Visibility)
		w.wantInstant("Moment", started.Moment, started.LeaseUntil.Add(Visibility))
	})
	s.test("R21AnAttemptNeverBringsTheMomentForward", func(w *world) {
		o := w.apply(Change(w.record(w.intent()), store.Unknown, inDoubt))
		started := w.apply(Attempt(o, func(c *store.Change) { c.Start.Lease = time.Second }))
		w.wantInstant("Moment", started.Moment, o.Moment)
		w.wantInstant("LeaseUntil", started.LeaseUntil, started.TailAt.Add(time.Second))
	})
	s.test("R35DueAtTheMomentIsNotBeforeIt", func(w *world) {
		o := w.record(w.intent())
		after := w.apply(Change(o, store.Unknown, func(c *store.Change) {
			c.Due = store.Due{In: time.Second, Set: true, AtMoment: true}
		}))
		w.wantInstant("DueAt", after.DueAt, o.Moment)
		after = w.apply(Change(after, store.Unknown, func(c *store.Change) {
			c.Due = store.Due{In: 9 * time.Hour, Set: true, AtMoment: true}
		}))
		w.wantInstant("DueAt", after.DueAt, after.TailAt.Add(9*time.Hour))
	})
}

func instantsOfStates(s suite) {
	s.test("R35UnknownSinceIsTheFirstUnknown", unknownSince)
	s.test("R51SettledAtIsTheFirstSettlement", func(w *world) {
		o := w.standing(w.intent(), store.Failed)
		w.wantInstant("SettledAt", o.SettledAt, o.TailAt)
		noted := w.apply(Change(o, store.Failed))
		w.wantInstant("SettledAt", noted.SettledAt, o.SettledAt)
		open := w.apply(Change(noted, store.Manual))
		w.wantInstant("SettledAt", open.SettledAt, time.Time{})
		closed := w.apply(Change(open, store.Abandoned))
		w.wantInstant("SettledAt", closed.SettledAt, closed.TailAt)
	})
	s.test("R22AnExpiredLeaseIsSeenByTheLedgersClock", func(w *world) {
		o := w.record(w.intent())
		w.age(Lease - time.Minute)
		if w.read(o).Expired() || w.read(o).Due() {
			w.Error("a live lease counts as expired")
		}
		w.age(time.Minute)
		if !w.read(o).Expired() || !w.read(o).Due() {
			w.Error("an expired lease counts as live")
		}
		want(w, "the state", w.read(o).State, store.Running)
	})
}

func clocks(s suite) {
	s.test("R22EveryAnswerSaysWhenItWasRead", everyAnswerIsDated)
	s.test("R22TheLedgersClockNeverRunsBackwards", func(w *world) {
		o := w.record(w.intent())
		handles := w.handles()
		last := o.Read
		for n := range 50 {
			e, err := handles[n%len(handles)].Get(w.ctx, w.tenantOf(o), o.ID)
			w.must(err, "Get")
			if e.Read.Before(last) {
				w.Errorf("a later read is dated %v earlier", last.Sub(e.Read))
			}
			last = e.Read
		}
	})
	s.test("R22InstantsAreInMicrosecondsAndUTC", func(w *world) {
		c := Claim(Operation(w.intent()))
		c.Lease, c.KeyWindow = Lease+1234567*time.Nanosecond, time.Hour+time.Nanosecond
		o := w.won(c)
		o = w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Due = store.DueIn(time.Minute + 999*time.Nanosecond) }))
		o = w.read(o)
		e := w.event(o, 1)
		for _, at := range []time.Time{o.CreatedAt, o.DueAt, o.Moment, o.KeyUntil, o.FirstSent, o.UnknownSince, o.TailAt, o.Read, e.At} {
			if at.Nanosecond()%1000 != 0 || at.Location() != time.UTC {
				w.Errorf("the instant %v isn't in microseconds and UTC", at)
			}
		}
		if o.SettledAt != (time.Time{}) || o.LeaseUntil != (time.Time{}) {
			w.Error("an instant that is unset isn't the zero time")
		}
	})
}

func returned(c *store.Change) { c.Returned = true }

func unknownSince(w *world) {
	o := w.record(w.intent())
	w.wantInstant("UnknownSince", o.UnknownSince, time.Time{})
	first := w.apply(Change(o, store.Unknown))
	w.wantInstant("UnknownSince", first.UnknownSince, first.TailAt)
	o = w.apply(Change(first, store.Unknown))
	w.wantInstant("UnknownSince", o.UnknownSince, first.UnknownSince)
	o = w.apply(Attempt(o))
	w.wantInstant("UnknownSince", o.UnknownSince, first.UnknownSince)
	o = w.apply(Change(o, store.Unknown))
	w.wantInstant("UnknownSince", o.UnknownSince, first.UnknownSince)
	o = w.apply(Change(o, store.Manual))
	w.wantInstant("UnknownSince", o.UnknownSince, first.UnknownSince)
	o = w.apply(Change(o, store.Unknown)) // handed back by a person
	w.wantInstant("UnknownSince", o.UnknownSince, o.TailAt)
	known := w.apply(Change(o, store.Retryable))
	w.wantInstant("UnknownSince", known.UnknownSince, time.Time{})
	o = w.apply(Change(w.apply(Attempt(known)), store.Unknown))
	w.wantInstant("UnknownSince", o.UnknownSince, o.TailAt)
	o = w.apply(Completion(o, "r-1"))
	w.wantInstant("UnknownSince", o.UnknownSince, time.Time{})
}

// everyAnswerIsDated looks at Read wherever a row comes back.
func everyAnswerIsDated(w *world) {
	i := w.intent()
	c := Claim(Operation(i, Writes(DigestOf("door"))))
	o := w.won(c)
	later := func(name string, read time.Time) {
		w.Helper()
		if read.Before(o.CreatedAt) {
			w.Errorf("%s: read at %v, before the row was there at %v", name, read, o.CreatedAt)
		}
	}
	later("Claim", o.Read)
	twin := w.claim(Claim(Operation(i, On(o, 1), Writes(DigestOf("door")))))
	later("Claimed.Slot", nth(w, "rows", twin.Slot, 0).Read)
	if twin.Newest == nil {
		w.Fatal("the answer doesn't say which write is the newest")
	}
	later("Claimed.Newest", twin.Newest.Read)
	second := w.claim(Claim(Operation(i, Writes(DigestOf("door")))))
	later("Claimed.Others", nth(w, "others", second.Others, 0).Read)
	later("Get", w.read(o).Read)
	later("List", nth(w, "rows", w.inIntent(i), 0).Read)
	after := w.apply(Change(o, store.Unknown, inDoubt))
	later("Apply", after.Read)
	later("StaleError", refused[*store.StaleError](w, Change(o, store.Unknown)).Current.Read)
	later("BlockedError", nth(w, "others", refused[*store.BlockedError](w, Attempt(second.Operation)).Others, 0).Read)
	w.age(2 * Lease)
	later("Take", nth(w, "rows", w.take(), 0).Read)
}
