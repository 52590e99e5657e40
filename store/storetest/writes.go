package storetest

import (
	"errors"
	"time"

	"github.com/settle-go/settle/store"
)

func writes(s suite) {
	s.test("R31WritesOnAResourceAreNumbered", func(w *world) {
		resource := SomeDigest()
		for n := int64(1); n <= 4; n++ {
			o := w.record(w.intent(), Writes(resource))
			want(w, "the number on the resource", o.ResourceSeq, n)
			want(w, "the number as read", w.read(o).ResourceSeq, n)
			w.apply(Change(o, store.Failed)) // a failed write keeps its number
		}
		want(w, "the number on another resource", w.record(w.intent(), Writes(SomeDigest())).ResourceSeq, int64(1))
	})
	s.test("R31OtherOperationsHaveNoNumber", func(w *world) {
		want(w, "the number", w.record(w.intent()).ResourceSeq, int64(0))
	})
	s.test("R31ARunningLowerWriteMakesTheNewOneWait", writeWaits)
	s.test("R31WhatAwaitsApprovalDoesntWaitForOthers", func(w *world) {
		resource := SomeDigest()
		lower := w.record(w.intent(), Writes(resource))
		for _, state := range []store.State{store.AwaitingApproval, store.Retryable} {
			a := w.claim(Claim(Operation(w.intent(), Writes(resource), In(state))))
			w.wantWon(a)
			want(w, "the state", a.Operation.State, state)
			want(w, "the first lower write", nth(w, "others", a.Others, 0).ID, lower.ID)
		}
	})
	s.test("R31ALowerWriteInDoubtMakesTheNewOneWait", func(w *world) {
		for _, state := range []store.State{store.Unknown, store.Manual} {
			resource := SomeDigest()
			lower := w.apply(Change(w.record(w.intent(), Writes(resource)), state, inDoubt))
			a := w.claim(Claim(Operation(w.intent(), Writes(resource))))
			w.wantWon(a)
			want(w, "the state", a.Operation.State, store.Retryable)
			w.wantOthers(a.Others, lower)
		}
	})
}

func lowerWrites(s suite) {
	s.test("R31ALowerWritePastItsMomentIsShownAndDoesntBlock", func(w *world) {
		resource := SomeDigest()
		first := w.record(w.intent(), Writes(resource))
		second := w.record(w.intent(), Writes(resource)) // waits for the first
		w.age(Lease + Visibility)
		a := w.claim(Claim(Operation(w.intent(), Writes(resource))))
		w.wantWon(a)
		want(w, "the state", a.Operation.State, store.Running)
		w.wantOthers(a.Others, w.read(first), w.read(second))
	})
	s.test("R31AnUnsettledLowerWriteWithoutAttemptsDoesntBlock", func(w *world) {
		for _, state := range []store.State{store.AwaitingApproval, store.Retryable} {
			resource := SomeDigest()
			lower := w.record(w.intent(), Writes(resource), In(state))
			a := w.claim(Claim(Operation(w.intent(), Writes(resource))))
			w.wantWon(a)
			want(w, "the state", a.Operation.State, store.Running)
			w.wantOthers(a.Others, lower)
		}
	})
	s.test("R31SettledLowerWritesArePast", func(w *world) {
		for _, state := range store.States() {
			if !state.Settled() {
				continue
			}
			resource := SomeDigest()
			w.standing(w.intent(), state, Writes(resource))
			a := w.claim(Claim(Operation(w.intent(), Writes(resource))))
			w.wantWon(a)
			want(w, "the state", a.Operation.State, store.Running)
			w.wantOthers(a.Others)
		}
	})
}

func shownWrites(s suite) {
	s.test("R31ALostAnswerShowsWhatItWaitsFor", func(w *world) {
		resource := SomeDigest()
		lower := w.record(w.intent(), Writes(resource))
		c := Claim(Operation(w.intent(), Writes(resource)))
		first := w.won(c)
		again := w.claim(c)
		w.wantWon(again)
		w.wantRow(again.Operation, first)
		w.wantOthers(again.Others, lower)
		w.wantOthers(w.claim(Claim(Operation(w.intent(), Writes(SomeDigest())))).Others)
	})
	s.test("R31ATwinIsShownWhatTheWriteWaitsFor", func(w *world) {
		resource, i := SomeDigest(), w.intent()
		lower := w.record(w.intent(), Writes(resource))
		row := w.record(i, Writes(resource))
		w.record(w.intent(), Writes(resource)) // a higher one isn't waited for
		a := w.claim(Claim(Operation(i, On(row, 1))))
		w.wantRecorded(a, row)
		w.wantOthers(a.Others, lower)
	})
	s.test("R31ATwinIsShownWhatTheLastNumberWaitsFor", func(w *world) {
		resource, i := SomeDigest(), w.intent()
		first := w.standing(i, store.Failed, Writes(resource))
		lower := w.record(w.intent(), Writes(resource))
		second := w.won(Claim(Operation(i, On(first, 2)), After(first)))
		for number := 1; number <= 2; number++ {
			a := w.claim(Claim(Operation(i, On(first, number))))
			w.wantRecorded(a, first, second)
			w.wantOthers(a.Others, lower)
		}
	})
	s.test("R31WhoDoesntWinIsShownTheNewestWrite", newestWrite)
}

func startedWrites(s suite) {
	s.test("R31AnAttemptStartsForTheHighestNumberOnly", func(w *world) {
		for _, state := range store.States() {
			resource := SomeDigest()
			lower := w.standing(w.intent(), store.Retryable, Writes(resource))
			w.standing(w.intent(), state, Writes(resource))
			if state == store.Failed {
				w.apply(Attempt(lower)) // what failed overtakes nothing
				continue
			}
			want(w, "overtaken", refused[*store.BlockedError](w, Attempt(lower)).Overtaken, true)
		}
	})
	s.test("R31AnAttemptWaitsForLowerOnes", func(w *world) {
		resource := SomeDigest()
		first := w.record(w.intent(), Writes(resource))
		second := w.apply(Change(w.record(w.intent(), Writes(resource)), store.Retryable))
		blocked := refused[*store.BlockedError](w, Attempt(second))
		want(w, "overtaken", blocked.Overtaken, false)
		w.wantOthers(blocked.Others, first)

		w.apply(Completion(first, "r-1"))
		w.apply(Attempt(second))
	})
	s.test("R31AnAttemptStartsOnceLowerOnesArePastTheirMoment", func(w *world) {
		resource := SomeDigest()
		first := w.record(w.intent(), Writes(resource))
		second := w.record(w.intent(), Writes(resource))
		w.age(Lease + Visibility - time.Minute)
		refused[*store.BlockedError](w, Attempt(w.read(second)))
		w.age(time.Minute)
		w.apply(Attempt(w.read(second)))
		want(w, "the state of the lower one", w.read(first).State, store.Running)
	})
	s.test("R31OnlyAttemptsAreOrdered", func(w *world) {
		resource := SomeDigest()
		lower := w.standing(w.intent(), store.Retryable, Writes(resource))
		w.record(w.intent(), Writes(resource))
		w.apply(Change(lower, store.Superseded))
	})
	s.test("R31OtherResourcesDontBlock", func(w *world) {
		w.record(w.intent(), Writes(SomeDigest()))
		o := w.record(w.intent(), Writes(SomeDigest()))
		want(w, "the state", o.State, store.Running)
	})
	s.test("R31NumbersAndStartsAreDecidedTogether", func(w *world) {
		for range 4 {
			writeRace(w)
		}
	})
	s.test("R31AStartAndANewerWriteAreDecidedTogether", func(w *world) {
		for range 16 {
			startRace(w)
		}
	})
}

// inDoubt leaves one attempt of which nobody knows whether it had an effect.
func inDoubt(c *store.Change) { c.Doubts = 1 }

func writeWaits(w *world) {
	resource := SomeDigest()
	lower := w.record(w.intent(), Writes(resource))
	c := Claim(Operation(w.intent(), Writes(resource)))
	c.Wait = 3 * time.Minute
	a := w.claim(c)
	w.wantWon(a)
	o := a.Operation
	want(w, "the state", o.State, store.Retryable)
	want(w, "the attempts", o.Attempt, 0)
	w.wantInstant("DueAt", o.DueAt, o.CreatedAt.Add(3*time.Minute))
	w.wantInstant("Moment", o.Moment, o.CreatedAt)
	w.wantInstant("LeaseUntil", o.LeaseUntil, time.Time{})
	w.wantInstant("FirstSent", o.FirstSent, time.Time{})
	want(w, "the owner", o.Owner, c.Operation.Owner)
	w.wantOthers(a.Others, lower)
	want(w, "the first move", w.event(o, 1).Move, store.Move{To: store.Retryable})
	w.verify(o)
}

func newestWrite(w *world) {
	resource, i := SomeDigest(), w.intent()
	first := w.standing(i, store.Completed, Writes(resource))
	twin := Claim(Operation(i, On(first, 1)))
	newest := func() store.Operation {
		a := w.claim(twin)
		w.wantRecorded(a, first)
		if a.Newest == nil {
			w.Fatal("the answer doesn't say which write is the newest")
		}
		want(w, "the newest write's intent", a.Newest.Of.ID, a.Newest.Intent)
		return a.Newest.Operation
	}
	w.wantRow(newest(), first)
	second := w.record(w.intent(), Writes(resource))
	w.wantRow(newest(), second)
	third := w.record(w.intent(), Writes(resource), In(store.AwaitingApproval))
	w.wantRow(newest(), third)
	w.apply(Change(third, store.Failed))
	w.wantRow(newest(), second)

	look := w.claim(Claim(Operation(w.intent(), Writes(resource)), Look))
	w.wantRecorded(look)
	if look.Newest == nil || look.Newest.ID != second.ID {
		w.Error("a look isn't shown the newest write")
	}
	if a := w.claim(Claim(Operation(w.intent(), Writes(SomeDigest())), Look)); a.Newest != nil {
		w.Error("a resource without writes has a newest one")
	}
	gone := Operation(i)
	late := w.claim(Claim(Operation(w.intent(), Writes(resource)), After(gone)))
	w.wantRefused(late, store.RefusedGuard)
	if late.Newest == nil || late.Newest.ID != second.ID {
		w.Error("a refused write isn't shown the newest one")
	}
}

// writeRace records writes on one resource at once: they get the numbers 1 to
// n, and the first one alone runs.
func writeRace(w *world) {
	resource, i := SomeDigest(), w.intent()
	answers := make([]store.Claimed, 8)
	w.race(len(answers), func(n int, l store.Ledger) (err error) {
		answers[n], err = w.claimBy(l, Claim(Operation(i, Writes(resource))))
		return err
	})
	seen := map[int64]bool{}
	for _, a := range answers {
		w.wantWon(a)
		seq := a.Operation.ResourceSeq
		if seq < 1 || seq > int64(len(answers)) || seen[seq] {
			w.Errorf("the number %d is out of range or given twice", seq)
		}
		seen[seq] = true
		if running := a.Operation.State == store.Running; running != (seq == 1) {
			w.Errorf("write %d is %s", seq, a.Operation.State)
		}
		want(w, "lower writes", len(a.Others), int(seq)-1)
	}
}

// startRace lets the start of a lower write meet the claim of a newer one. They
// never run both.
func startRace(w *world) {
	resource, i := SomeDigest(), w.intent()
	lower := w.record(i, Writes(resource), In(store.Retryable))
	var newer store.Operation
	var blocked *store.BlockedError
	w.race(2, func(n int, l store.Ledger) error {
		if n == 0 {
			_, err := l.Apply(w.ctx, Attempt(lower))
			if errors.As(err, &blocked) {
				return nil
			}
			return err
		}
		a, err := w.claimBy(l, Claim(Operation(i, Writes(resource))))
		newer = a.Operation
		return err
	})
	if started := blocked == nil; started == (newer.State == store.Running) {
		w.Errorf("the lower write was started: %v, and the newer one is %s", started, newer.State)
	}
}
