package storetest

import (
	"errors"

	"github.com/settle-go/settle/store"
)

func tombstones(s suite) {
	s.test("R51ATombstoneStandsInItsPlace", func(w *world) {
		i := w.intent()
		before := w.purged(i, store.Completed)
		row := w.wantTombstone(before)
		w.wantRecorded(w.claim(Claim(Operation(i, On(before, 1)))), row)
		entries, err := w.Ledger.List(w.ctx, store.Filter{Intent: i.ID, States: []store.State{store.Completed}, Node: before.Node})
		w.must(err, "List")
		w.wantIDs(entries, before)
		w.wantRow(entries[0].Operation, row)
	})
	s.test("R51TheNextNumberFollowsATombstone", func(w *world) {
		i := w.intent()
		row := w.wantTombstone(w.purged(i, store.Failed))
		w.won(Claim(Operation(i, On(row, 2)), After(row)))
	})
	s.test("R51PurgingBreaksNoGuard", func(w *world) {
		seen := w.purged(w.intent(), store.Failed)
		w.won(Claim(Operation(w.intent()), After(seen)))
		w.apply(Change(seen, store.Failed))
	})
	s.test("R51WhoSawThePayloadBringsNothingBack", func(w *world) {
		seen := w.purged(w.intent(), store.Failed)
		row := w.wantTombstone(seen)
		c := Change(seen, store.Manual)
		after := w.apply(c)
		wanted, _ := store.Next(row, c, after.TailAt)
		w.wantRow(after, wanted)
		w.wantRow(w.read(after), wanted)
		w.verify(after)
	})
	s.test("R51WhatComesInLaterIsNotKept", func(w *world) {
		i := w.intent()
		ended := func(c *store.Change) { c.Returned, c.Trace = true, Bytes(24) }
		looked := func(c *store.Change) { c.Checked, c.Verdict = true, "happened" }
		for _, late := range []func(store.Operation) store.Change{
			func(o store.Operation) store.Change { return Completion(o, "r-1", ended) },
			func(o store.Operation) store.Change { return Completion(o, "r-1", ended, looked) },
			func(o store.Operation) store.Change { return Change(o, store.Unknown, ended) },
			func(o store.Operation) store.Change { return Attempt(o) },
		} {
			seen := w.record(i)
			w.erase(i)
			row := w.wantTombstone(seen)
			c := late(seen) // as its attempt last saw it
			after := w.apply(c)
			wanted, _ := store.Next(row, c, after.TailAt)
			w.wantRow(after, wanted)
			w.wantRow(w.read(after), wanted)
			w.wantRow(w.read(after), tombstone(after))
			want(w, "the resource", after.Resource, c.Resource)
			w.verify(after)
		}
	})
	s.test("R51AProposalForATombstoneGoesWithItsCase", func(w *world) {
		body := []byte(`{"kind":"happened","result":{"id":"r-1"}}`)
		i := w.intent()
		o := w.standing(i, store.Manual)
		w.erase(i)
		o = w.apply(Change(w.read(o), store.Manual, proposes(body)))
		want(w, "the proposal", string(w.openCase(o).Case.Proposal), string(body))
		o = w.apply(Change(o, store.Failed))
		want(w, "the proposal of the closed case", string(nth(w, "cases", w.casesOf(o), 0).Case.Proposal), "")
		o = w.apply(Change(o, store.Failed, incident("late_success")))
		o = w.apply(Change(o, store.Failed, proposes(body)))
		want(w, "the proposal", string(w.openCase(o).Case.Proposal), string(body))
		w.apply(Change(o, store.Failed, proposes(body), resolves))
		for _, e := range w.casesOf(o) {
			want(w, "the proposal of the closed case", string(e.Case.Proposal), "")
		}
	})
	s.test("R14PurgingNeverLiftsUniqueness", func(w *world) {
		only := uniquely()
		row := w.wantTombstone(w.purged(w.intent(), store.Completed, only))
		w.wantRefused(w.claim(Claim(Operation(w.intent(), only))), store.RefusedUnique, row)
	})
	s.test("R34PurgingFreesNoResource", func(w *world) {
		i := w.intent()
		settled := w.apply(Completion(w.record(i), "r-1"))
		w.age(2 * Retention)
		settled = w.read(settled)
		want(w, "payloads that were removed", w.purgeAll(), 1)
		want(w, "the resource", w.wantTombstone(settled).Resource, "r-1")
		refused[*store.ResourceTakenError](w, Completion(w.standing(i, store.Unknown), "r-1", func(c *store.Change) { c.ByAttribute = true }))
	})
	s.test("R30ATombstoneHoldsAsBefore", func(w *world) {
		i := w.intent()
		row := w.wantTombstone(w.purged(i, store.Completed, Whole))
		w.wantRefused(w.claim(Claim(Operation(i, Whole), UnderHold())), store.RefusedHold, row)
	})
	s.test("R31ATombstoneOvertakesAsBefore", func(w *world) {
		resource := SomeDigest()
		lower := w.standing(w.intent(), store.Retryable, Writes(resource))
		row := w.wantTombstone(w.purged(w.intent(), store.Completed, Writes(resource)))
		want(w, "overtaken", refused[*store.BlockedError](w, Attempt(w.read(lower))).Overtaken, true)
		look := w.claim(Claim(Operation(w.intent(), Writes(resource)), Look))
		if look.Newest == nil {
			w.Fatal("a look isn't shown the newest write")
		}
		w.wantRow(look.Newest.Operation, row)
		want(w, "the next number", w.record(w.intent(), Writes(resource)).ResourceSeq, int64(3))
	})
	s.test("R51AProposalLosesItsPayloadToo", func(w *world) {
		o := w.standing(w.intent(), store.Manual)
		o = w.apply(Change(o, store.Manual, proposes([]byte(`{"kind":"happened","result":{"id":"r-1"}}`))))
		o = w.apply(Completion(o, "r-1"))
		w.age(2 * Retention)
		w.purgeAll()
		want(w, "the proposal", string(nth(w, "cases", w.casesOf(o), 0).Case.Proposal), "")
	})
	s.test("R52APurgeAndAReopeningMeet", func(w *world) {
		for range 8 {
			reopenRace(w)
		}
	})
}

// reopenRace lets a person reopen what is being purged: the payload is there as
// a whole or not at all.
func reopenRace(w *world) {
	o := w.standing(w.intent(), store.Failed)
	w.age(2 * Retention)
	o = w.read(o)
	c := Change(o, store.Manual)
	w.race(2, func(n int, l store.Ledger) error {
		if n == 0 {
			_, err := l.Purge(w.ctx, store.Purge{})
			return err
		}
		_, err := l.Apply(w.ctx, c)
		return err
	})
	after := w.read(o)
	if after.Flags&store.FlagPurged != 0 {
		o = tombstone(o)
	}
	wanted, _ := store.Next(o, c, after.TailAt)
	w.wantRow(after, wanted)
	w.verify(after)
	w.apply(Change(after, store.Failed)) // so that no later purge meets it unsettled
}

// purged settles an operation in the state, purges it, and returns it as it was
// before.
func (w *world) purged(i store.Intent, in store.State, edits ...func(*store.Operation)) store.Operation {
	w.Helper()
	o := w.standing(i, in, edits...)
	w.age(2 * Retention)
	o = w.read(o)
	want(w, "payloads that were removed", w.purgeAll(), 1)
	return o
}

// tombstone is what a purge leaves of an operation. Neither version nor journal
// know of it: the purge is no move.
func tombstone(o store.Operation) store.Operation {
	o.Arguments, o.Result, o.Fields, o.Trace, o.CallID = nil, nil, nil, nil, ""
	o.Fingerprint = [32]byte{}
	o.Flags |= store.FlagPurged
	return o
}

// wantTombstone requires the operation to be a tombstone now, and else as it was.
func (w *world) wantTombstone(before store.Operation) store.Operation {
	w.Helper()
	w.unchanged(tombstone(before))
	w.verify(before)
	return w.read(before)
}

// gone says whether the ledger has no such operation any more.
func (w *world) gone(o store.Operation) bool {
	w.Helper()
	_, err := w.Ledger.Get(w.ctx, w.tenantOf(o), o.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		w.must(err, "Get")
	}
	return err != nil
}
