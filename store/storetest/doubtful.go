package storetest

import (
	"github.com/settle-go/settle/store"
)

// doubtfulWrites: a settled write of which an attempt is in doubt can still take
// effect, and would undo a newer one (R31).
func doubtfulWrites(s suite) {
	s.test("R31ACompletedWriteInDoubtMakesTheNewOneWait", func(w *world) {
		resource := SomeDigest()
		lower := w.doubtful(store.Completed, Writes(resource))
		i := w.intent()
		c := Claim(Operation(i, Writes(resource)))
		a := w.claim(c)
		w.wantWon(a)
		newer := a.Operation
		want(w, "the state", newer.State, store.Retryable)
		w.wantOthers(a.Others, lower)
		w.wantOthers(w.claim(c).Others, lower) // its lost answer
		twin := w.claim(Claim(Operation(i, On(newer, 1))))
		w.wantRecorded(twin, newer)
		w.wantOthers(twin.Others, lower)

		blocked := refused[*store.BlockedError](w, Attempt(newer))
		want(w, "overtaken", blocked.Overtaken, false)
		w.wantOthers(blocked.Others, lower)
	})
	s.test("R31ASettledWriteInDoubtBlocksUntilItsMoment", func(w *world) {
		for _, state := range store.States() {
			if !state.Settled() {
				continue
			}
			resource := SomeDigest()
			lower := w.doubtful(state, Writes(resource))
			newer := w.record(w.intent(), Writes(resource))
			want(w, "the state behind a doubtful "+state.String(), newer.State, store.Retryable)
			w.age(w.read(lower).Moment.Sub(w.read(lower).Read))
			a := w.claim(Claim(Operation(w.intent(), Writes(resource))))
			want(w, "the state", a.Operation.State, store.Running)
			w.wantOthers(a.Others, w.read(newer))
		}
	})
	s.test("R31AWriteStartsOnceTheDoubtIsPastItsMoment", func(w *world) {
		resource := SomeDigest()
		w.doubtful(store.Completed, Writes(resource))
		newer := w.record(w.intent(), Writes(resource))
		w.age(2 * (Lease + Visibility))
		w.apply(Attempt(w.read(newer)))
	})
	s.test("R31ASettledWriteWithoutDoubtsIsPast", func(w *world) {
		resource := SomeDigest()
		o := w.apply(Change(w.record(w.intent(), Writes(resource)), store.Unknown, inDoubt))
		o = w.apply(Attempt(o))
		w.apply(Completion(o, "r-1", func(c *store.Change) { c.Doubts = 0 }))
		a := w.claim(Claim(Operation(w.intent(), Writes(resource))))
		want(w, "the state", a.Operation.State, store.Running)
		w.wantOthers(a.Others)
	})
}

// doubtful settles an operation by its second attempt, while nobody knows of the
// first one.
func (w *world) doubtful(in store.State, edits ...func(*store.Operation)) store.Operation {
	w.Helper()
	o := w.apply(Change(w.record(w.intent(), edits...), store.Unknown, inDoubt))
	o = w.apply(Attempt(o))
	if in == store.Abandoned {
		o = w.apply(Change(o, store.Manual))
	}
	o = w.apply(Change(o, in))
	want(w, "the doubts", o.Doubts, 1)
	if !o.Read.Before(o.Moment) {
		w.Fatal("the moment of an attempt in doubt has passed")
	}
	return o
}
