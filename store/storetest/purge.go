package storetest

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func keeps(retention time.Duration) func(*store.Operation) {
	return func(o *store.Operation) { o.Retention = retention }
}

func purges(s suite) {
	s.test("R51ASettledOperationLosesItsPayloadAfterItsRetention", func(w *world) {
		i := w.intent()
		for _, state := range store.States() {
			if !state.Settled() {
				continue
			}
			o := w.standing(i, state, keeps(9*24*time.Hour))
			w.age(9*24*time.Hour - time.Minute)
			o = w.read(o)
			want(w, "payloads that were removed", w.purgeAll(), 0)
			w.unchanged(o)
			w.age(time.Minute)
			o = w.read(o)
			want(w, "payloads that were removed", w.purgeAll(), 1)
			w.wantTombstone(o)
		}
	})
	s.test("R51RetentionIsCountedFromSettlement", func(w *world) {
		o := w.record(w.intent())
		w.age(10 * Retention)
		o = w.apply(Completion(w.read(o), "r-1"))
		want(w, "payloads that were removed", w.purgeAll(), 0)
		w.unchanged(o)
		w.age(Retention)
		want(w, "payloads that were removed", w.purgeAll(), 1)
	})
	s.test("R51RetentionIsCountedFromTheLastSettlement", func(w *world) {
		o := w.standing(w.intent(), store.Failed)
		w.age(Retention - time.Hour)
		o = w.apply(Change(w.apply(Change(w.read(o), store.Manual)), store.Completed))
		w.age(2 * time.Hour)
		want(w, "payloads that were removed", w.purgeAll(), 0)
		w.unchanged(w.read(o))
	})
	s.test("R51EachOperationHasARetentionOfItsOwn", func(w *world) {
		i := w.intent()
		short, long := w.standing(i, store.Completed, keeps(time.Hour)), w.standing(i, store.Completed, keeps(3*time.Hour))
		w.age(2 * time.Hour)
		short, long = w.read(short), w.read(long)
		want(w, "payloads that were removed", w.purgeAll(), 1)
		w.wantTombstone(short)
		w.unchanged(long)
	})
	s.test("R51AnOperationIsPurgedOnce", func(w *world) {
		o := w.standing(w.intent(), store.Completed)
		w.age(2 * Retention)
		want(w, "payloads that were removed", w.purgeAll(), 1)
		o = w.read(o)
		for range 2 {
			want(w, "payloads that were removed again", w.purgeAll(), 0)
		}
		w.unchanged(o)
	})
}

func keptPayloads(s suite) {
	kept := func(w *world, rows ...store.Operation) {
		w.Helper()
		w.age(10 * Retention)
		for n := range rows {
			rows[n] = w.read(rows[n])
		}
		want(w, "payloads that were removed", w.purgeAll(), 0)
		for _, o := range rows {
			w.unchanged(o)
		}
	}
	s.test("R51NoRetentionKeepsThePayload", func(w *world) {
		kept(w, w.standing(w.intent(), store.Completed, keeps(0)))
	})
	s.test("R51UnsettledOperationsAreNeverPurged", func(w *world) {
		i := w.intent()
		var all []store.Operation
		for _, state := range store.States() {
			if !state.Settled() {
				all = append(all, w.standing(i, state))
			}
		}
		kept(w, all...)
	})
	s.test("R51WhatHangsOnAnUnsettledParentIsKept", func(w *world) {
		i := w.intent()
		parent := w.record(i, Tool("trip"))
		step := w.standing(i, store.Completed, Within(parent))
		kept(w, parent, step)
		w.apply(Completion(w.read(parent), "t-1"))
		want(w, "payloads that were removed", w.purgeAll(), 1)
		w.age(Retention)
		want(w, "payloads that were removed", w.purgeAll(), 1)
	})
	s.test("R51WhatAnUnsettledStepHangsOnIsKept", func(w *world) {
		i := w.intent()
		parent := w.standing(i, store.Abandoned, Tool("trip"))
		step := w.standing(i, store.Manual, Within(parent))
		kept(w, parent, step)
		w.apply(Change(w.read(step), store.Failed))
		want(w, "payloads that were removed", w.purgeAll(), 1)
		want(w, "flags of the parent", w.read(parent).Flags, store.FlagPurged)
	})
	s.test("R51WhatIsBeingUndoneIsKept", func(w *world) {
		i := w.intent()
		original := w.standing(i, store.Completed)
		undo := w.standing(i, store.Unknown, Tool("undo"), Within(original), func(o *store.Operation) { o.Source = store.FromOriginal })
		kept(w, original, undo)
		w.apply(Completion(w.read(undo), "u-1"))
		want(w, "payloads that were removed", w.purgeAll(), 1)
		want(w, "flags of the original", w.read(original).Flags, store.FlagPurged)
	})
	s.test("R51SettledRelativesKeepNothing", func(w *world) {
		i := w.intent()
		parent := w.standing(i, store.Completed, Tool("trip"))
		w.standing(i, store.Failed, Within(parent))
		w.standing(i, store.Completed, Within(parent))
		w.record(i) // unsettled, and no relative
		w.age(2 * Retention)
		want(w, "payloads that were removed", w.purgeAll(), 3)
	})
	s.test("R51AnOpenIncidentKeepsThePayload", func(w *world) {
		o := w.standing(w.intent(), store.Completed)
		o = w.apply(Change(o, store.Completed, incident("second_effect")))
		other := w.standing(w.intent(), store.Completed)
		w.age(2 * Retention)
		o, other = w.read(o), w.read(other)
		want(w, "payloads that were removed", w.purgeAll(), 1)
		w.unchanged(o)
		w.wantTombstone(other)
		o = w.apply(Change(o, store.Completed, resolves))
		want(w, "payloads that were removed", w.purgeAll(), 1)
		w.wantTombstone(o)
	})
}

func purgePages(s suite) {
	s.test("R52APurgeWorksInPages", func(w *world) {
		all := w.purgeable(7)
		var p store.Purge
		for pages, seen := 0, 0; ; pages++ {
			p.Limit = 3
			done := w.purge(p)
			seen += done.Seen
			if done.Seen > 3 || done.Removed != done.Seen || pages > 4 {
				w.Fatalf("page %d of 3 saw %d operations and removed %d payloads", pages+1, done.Seen, done.Removed)
			}
			for n, o := range all {
				want(w, "removed", w.read(o).Flags == store.FlagPurged, n < seen)
			}
			if p.After = done.Next; p.After == uuid.Nil {
				want(w, "operations that were seen", seen, len(all))
				return
			}
		}
	})
	s.test("R52APageCountsWhatItSaw", func(w *world) {
		i := w.intent()
		w.standing(i, store.Completed)
		w.record(i)
		w.standing(w.intentOf("umbrella", "t"), store.Completed)
		w.age(2 * Retention)
		w.record(i)
		done := w.purge(store.Purge{})
		want(w, "operations that were seen", done.Seen, 4)
		want(w, "payloads that were removed", done.Removed, 2)
		want(w, "where it goes on", done.Next, uuid.Nil)
		done = w.purge(store.Purge{})
		want(w, "operations that were seen again", done.Seen, 4)
		want(w, "payloads that were removed again", done.Removed, 0)
	})
	s.test("R52APurgeThatWasInterruptedGoesOn", func(w *world) {
		all := w.purgeable(6)
		first := w.purge(store.Purge{Limit: 2})
		want(w, "payloads that were removed", first.Removed, 2)
		claimed := w.record(w.intent()) // live traffic
		want(w, "payloads behind the page", w.purgeFrom(store.Purge{After: first.Next, Limit: 3}), 4)
		for _, o := range all {
			w.wantTombstone(o)
		}
		w.unchanged(claimed)
	})
	s.test("R52APurgeThatWasInterruptedBeginsAnew", func(w *world) {
		w.purgeable(6)
		first := w.purge(store.Purge{Limit: 4})
		want(w, "payloads that were removed", first.Removed, 4)
		want(w, "payloads that were left", w.purgeAll(), 2)
	})
	s.test("R52WithoutALimitAPageEndsAfterAThousand", func(w *world) {
		i := w.intent()
		for range 11 {
			w.claimAll(manyClaims(i, 100)...)
		}
		done := w.purge(store.Purge{})
		want(w, "operations that were seen", done.Seen, 1000)
		done = w.purge(store.Purge{After: done.Next})
		want(w, "operations that were seen", done.Seen, 100)
		want(w, "where it goes on", done.Next, uuid.Nil)
	})
	s.test("R52NothingIsPurgedOfNothing", func(w *world) {
		want(w, "what a purge did", w.purge(store.Purge{}), store.Purged{})
		want(w, "what a purge did", w.purge(store.Purge{After: uuid.Max}), store.Purged{})
	})
	s.test("R52SeveralPurgesAtOnceRemoveEachPayloadOnce", purgeRace)
}

// purgeRace lets processes purge at once. One may step over what another has.
func purgeRace(w *world) {
	all := w.purgeable(20)
	w.wantPurgedOnce(len(all))
	for _, o := range all {
		w.wantTombstone(o)
	}
}

// wantPurgedOnce lets six purges run at once, and one after them, and requires
// them to remove so many together.
func (w *world) wantPurgedOnce(wanted int) {
	w.Helper()
	removed := make([]int, 6)
	w.race(len(removed), func(n int, l store.Ledger) error {
		some, err := w.purgeBy(l, store.Purge{Limit: 3})
		removed[n] += some
		return err
	})
	sum := w.purgeAll()
	for _, n := range removed {
		sum += n
	}
	want(w, "operations that were removed", sum, wanted)
}

// purgeable makes operations whose retention is over.
func (w *world) purgeable(n int) []store.Operation {
	w.Helper()
	i := w.intent()
	all := make([]store.Operation, n)
	for n := range all {
		all[n] = w.standing(i, store.Completed)
	}
	w.age(2 * Retention)
	for n := range all {
		all[n] = w.read(all[n])
	}
	return all
}

func (w *world) purge(p store.Purge) store.Purged {
	w.Helper()
	done, err := w.Ledger.Purge(w.ctx, p)
	w.must(err, "Purge")
	return done
}

// purgeAll purges to the end and returns how many payloads were removed.
func (w *world) purgeAll() int {
	w.Helper()
	return w.purgeFrom(store.Purge{})
}

func (w *world) purgeFrom(p store.Purge) int {
	w.Helper()
	removed, err := w.purgeBy(w.Ledger, p)
	w.must(err, "Purge")
	return removed
}

// purgeBy purges to the end through a handle.
func (w *world) purgeBy(l store.Ledger, p store.Purge) (removed int, err error) {
	for range 1000 {
		done, err := l.Purge(w.ctx, p)
		if err != nil {
			return removed, err
		}
		removed += done.Removed
		if p.After = done.Next; p.After == uuid.Nil {
			return removed, nil
		}
	}
	return removed, errors.New("the purge doesn't end")
}
