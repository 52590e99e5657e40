package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func changes(s suite) {
	s.test("R20AChangeIsWhatNextSays", everyChange)
	s.test("R21AnAttemptBegins", attemptBegins)
	s.test("R23DoubtsAreAlwaysTaken", func(w *world) {
		o := w.record(w.intent())
		for _, doubts := range []int{1, 3, 0} {
			o = w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Doubts = doubts }))
			want(w, "the doubts", w.read(o).Doubts, doubts)
		}
	})
	s.test("R37ToldAndGrantedAreAlwaysTaken", func(w *world) {
		o := w.standing(w.intent(), store.Retryable)
		for _, told := range []bool{true, false} {
			for _, granted := range []bool{true, false} {
				o = w.apply(Change(o, store.Retryable, func(c *store.Change) { c.Told, c.Granted = told, granted }))
				want(w, "told", w.read(o).Told, told)
				want(w, "granted", w.read(o).Granted, granted)
			}
		}
	})
	s.test("R43AnAttemptConsumesWhatWasGranted", func(w *world) {
		o := w.standing(w.intent(), store.Retryable)
		o = w.apply(Change(o, store.Retryable, func(c *store.Change) { c.Told, c.Granted = true, true }))
		o = w.apply(Attempt(o, func(c *store.Change) { c.Told, c.Granted = true, true }))
		want(w, "told", o.Told, false)
		want(w, "granted", o.Granted, false)
		w.wantRow(w.read(o), o)
	})
	s.test("R36LookupsAreCounted", func(w *world) {
		o := w.standing(w.intent(), store.Unknown)
		for n := 1; n <= 3; n++ {
			o = w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Checked, c.Verdict = true, "not_visible_yet" }))
			want(w, "the lookups", o.Checks, n)
		}
		o = w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Verdict = "ignored" }))
		want(w, "the lookups", o.Checks, 3)
		want(w, "the verdict", o.Verdict, "not_visible_yet")
		o = w.apply(Change(o, store.Manual, func(c *store.Change) { c.Checked = true }))
		want(w, "the lookups", o.Checks, 4)
		want(w, "the verdict", o.Verdict, "")
	})
	s.test("R20TheReasonIsThatOfTheLastMove", func(w *world) {
		o := w.standing(w.intent(), store.Unknown)
		for _, reason := range []string{"timeout", "", "lease_expired"} {
			o = w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Reason = reason }))
			want(w, "the reason", w.read(o).Reason, reason)
		}
	})
}

func outcomes(s suite) {
	s.test("R47TheOutcomeIsTakenOnceWhenItCompletes", outcomeOnce)
	s.test("R47TheOutcomeIsTakenOnlyWhenItCompletes", func(w *world) {
		o := w.record(w.intent())
		after := w.apply(Completion(o, "r-1", func(c *store.Change) { c.To = store.Unknown }))
		if after.Resource != "" || !after.ResourceDigest.IsZero() || after.Result != nil || after.ResultVersion != 0 {
			w.Error("an operation that isn't completed has an outcome")
		}
	})
	s.test("R38DueIsAlwaysTaken", func(w *world) {
		o := w.standing(w.intent(), store.Unknown)
		w.wantInstant("DueAt", o.DueAt, time.Time{})
		o = w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Due = store.DueIn(3 * time.Hour) }))
		w.wantInstant("DueAt", o.DueAt, o.TailAt.Add(3*time.Hour))
		o = w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Due.In = time.Hour }))
		w.wantInstant("DueAt", w.read(o).DueAt, time.Time{})
		o = w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Due = store.DueIn(0) }))
		w.wantInstant("DueAt", o.DueAt, o.TailAt)
	})
	s.test("R38ASettledRowIsNeverDue", func(w *world) {
		i := w.intent()
		due := func(c *store.Change) { c.Due = store.DueIn(time.Minute) }
		for _, state := range store.States() {
			if !state.Settled() {
				continue
			}
			from := store.Retryable
			if state == store.Superseded || state == store.Abandoned {
				from = store.Manual
			}
			o := w.apply(Change(w.standing(i, from), state, due))
			w.wantInstant("DueAt", w.read(o).DueAt, time.Time{})
			o = w.apply(Change(o, state, due))
			w.wantInstant("DueAt", w.read(o).DueAt, time.Time{})
		}
		w.age(24 * time.Hour)
		want(w, "rows that were taken", len(w.take()), 0)
	})
}

// everyChange makes each allowed move in several forms and compares the row
// with the one that store.Next computes at the same instant.
func everyChange(w *world) {
	forms := []func(*store.Change){
		func(*store.Change) {},
		func(c *store.Change) { c.Returned, c.Doubts = true, 1 },
		func(c *store.Change) { c.Visibility, c.Due = time.Hour, store.DueIn(5*time.Minute) },
		func(c *store.Change) {
			c.Returned, c.Visibility = true, 2*Visibility
			c.Due = store.Due{In: time.Minute, Set: true, AtMoment: true}
		},
		func(c *store.Change) { c.Checked, c.Verdict, c.Told, c.Granted = true, "inconclusive", true, true },
		func(c *store.Change) {
			c.Resource, c.ResourceDigest, c.ByAttribute = "r-1", SomeDigest(), true
			c.Result, c.ResultVersion, c.Flags = []byte("{}"), 2, store.FlagUnencodable
		},
		func(c *store.Change) {
			taker, proposal := "ann", []byte(`{"kind":"fail"}`)
			c.Take, c.Proposal, c.Resolve, c.Trace, c.Flags = &taker, &proposal, true, Bytes(24), store.FlagAttached
		},
		func(c *store.Change) { c.Incident, c.Decision, c.Body, c.Reason = "late_success", uuid.New(), nil, "" },
	}
	i := w.intent()
	for _, move := range store.Moves() {
		if move.From == 0 {
			continue
		}
		for _, form := range forms {
			c := Change(w.standing(i, move.From), move.To, form)
			w.applyAsNext(c)
		}
		if move.To == store.Running {
			w.applyAsNext(Attempt(w.standing(i, move.From)))
			w.applyAsNext(Attempt(w.standing(i, move.From), forms[3]))
		}
	}
}

// applyAsNext makes a change and requires the row to be the one of store.Next.
func (w *world) applyAsNext(c store.Change) store.Operation {
	w.Helper()
	got := w.apply(c)
	wanted, event := store.Next(c.Of, c, got.TailAt)
	w.wantRow(got, wanted)
	w.wantRow(w.read(got), wanted)
	for _, d := range eventDifferences(w.event(got, event.Seq), event) {
		w.Errorf("event %d (%s): %s", event.Seq, event.Move, d)
	}
	return got
}

func attemptBegins(w *world) {
	o := w.record(w.intent())
	o = w.apply(Change(o, store.Unknown, inDoubt))
	c := Attempt(o)
	c.Start.Lease = 2 * Lease
	after := w.apply(c)
	now := after.TailAt
	want(w, "the state", after.State, store.Running)
	want(w, "the attempts", after.Attempt, 2)
	want(w, "the doubts", after.Doubts, 1)
	want(w, "the owner", after.Owner, c.Start.Owner)
	want(w, "the run", after.Run, c.Start.Run)
	want(w, "the batch", after.Batch, c.Start.Batch)
	want(w, "the call's id", after.CallID, "call_2")
	want(w, "the trace", string(after.Trace), string(c.Start.Trace))
	w.wantInstant("LeaseUntil", after.LeaseUntil, now.Add(2*Lease))
	w.wantInstant("DueAt", after.DueAt, after.LeaseUntil)
	w.wantInstant("Moment", after.Moment, after.LeaseUntil.Add(Visibility))
	w.wantInstant("FirstSent", after.FirstSent, o.FirstSent)

	want(w, "the event's attempt", w.event(after, 3).Attempt, 2)
	waiting := w.record(w.intent(), In(store.Retryable))
	first := w.apply(Attempt(waiting))
	want(w, "the attempts", first.Attempt, 1)
	w.wantInstant("FirstSent", first.FirstSent, first.TailAt)
}

func outcomeOnce(w *world) {
	o := w.record(w.intent())
	o = w.apply(Completion(o, "r-1", func(c *store.Change) { c.Flags = store.FlagOversize }))
	want(w, "the resource", o.Resource, "r-1")
	want(w, "the resource's digest", o.ResourceDigest, DigestOf("r-1"))
	want(w, "by attribute", o.ByAttribute, false)
	want(w, "the result", string(o.Result), `{"id":"r-1"}`)
	want(w, "the result's version", o.ResultVersion, 1)
	want(w, "the flags", o.Flags, store.FlagOversize)
	again := w.apply(Completion(o, "r-2", func(c *store.Change) {
		c.Result, c.ResultVersion, c.Flags, c.ByAttribute = []byte("other"), 9, store.FlagUnencodable, true
	}))
	want(w, "the flags", again.Flags, store.FlagOversize|store.FlagUnencodable)
	again.Flags = o.Flags
	again.Version, again.Tail, again.TailAt = o.Version, o.Tail, o.TailAt
	w.wantRow(again, o)
}
