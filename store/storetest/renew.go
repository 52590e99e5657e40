package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func renew(s suite) {
	s.test("R22ALeaseIsExtendedWithItsMoment", func(w *world) {
		before := w.record(w.intent())
		want(w, "leases that were lost", len(w.renew(3*Lease, held(before))), 0)
		after := w.read(before)
		if after.LeaseUntil.Sub(before.LeaseUntil) < 2*Lease {
			w.Errorf("the lease grew by %v only", after.LeaseUntil.Sub(before.LeaseUntil))
		}
		w.wantInstant("DueAt", after.DueAt, after.LeaseUntil)
		w.wantInstant("Moment", after.Moment, after.LeaseUntil.Add(Visibility))

		after.LeaseUntil, after.DueAt, after.Moment = before.LeaseUntil, before.DueAt, before.Moment
		w.wantRow(after, before) // neither version nor anything else
		want(w, "events", len(w.journal(before)), 1)
	})
	s.test("R22ARenewedAttemptKeepsItsGuard", func(w *world) {
		o := w.record(w.intent())
		w.renew(3*Lease, held(o))
		w.apply(Completion(o, "r-1"))
		w.verify(o)
	})
	s.test("R21RenewingNeverBringsTheMomentForward", func(w *world) {
		o := w.apply(Change(w.record(w.intent()), store.Unknown, inDoubt))
		o = w.apply(Attempt(o, func(c *store.Change) { c.Start.Lease = time.Minute }))
		want(w, "leases that were lost", len(w.renew(2*time.Minute, held(o))), 0)
		w.wantInstant("Moment", w.read(o).Moment, o.Moment)
	})
}

func lostLeases(s suite) {
	s.test("R22WhatIsLostComesBackAndIsLeftAlone", func(w *world) {
		i := w.intent()
		live := w.record(i)
		settled := w.standing(i, store.Completed)
		waiting := w.record(i, In(store.Retryable))
		foreign := w.record(i)
		unknown := w.standing(i, store.Unknown)
		unmade := Operation(i)
		taken := held(foreign)
		taken.Owner = uuid.New()

		lost := w.renew(3*Lease, held(settled), held(live), taken, held(waiting), held(unmade), held(unknown))
		wanted := map[store.Held]bool{held(settled): true, taken: true, held(waiting): true, held(unmade): true, held(unknown): true}
		for _, h := range lost {
			if !wanted[h] {
				w.Error("a lease was lost that is alive, or twice")
			}
			delete(wanted, h)
		}
		want(w, "leases that were lost and not reported", len(wanted), 0)
		for _, o := range []store.Operation{settled, waiting, foreign, unknown} {
			w.unchanged(o)
		}
	})
	s.test("R22ALeaseThatEndedIsLost", func(w *world) {
		o := w.record(w.intent())
		w.age(Lease)
		ended := w.read(o)
		if lost := w.renew(Lease, held(o)); len(lost) != 1 || lost[0] != held(o) {
			w.Error("a lease that had ended was renewed")
		}
		w.unchanged(ended)
	})
	s.test("R22RenewedLeasesAreNotDue", func(w *world) {
		o := w.record(w.intent())
		w.age(Lease - time.Minute)
		w.renew(Lease, held(o))
		w.age(2 * time.Minute)
		want(w, "rows that were taken", len(w.take()), 0)
		w.age(Lease)
		w.wantIDs(w.take(), o)
	})
	s.test("R22NothingHeldNothingLost", func(w *world) {
		want(w, "leases that were lost", len(w.renew(Lease)), 0)
	})
	s.test("R22ManyAreRenewedInOneCall", func(w *world) {
		i := w.intent()
		var all []store.Held
		for _, a := range w.claimAll(manyClaims(i, 200)...) {
			w.wantWon(a)
			all = append(all, held(a.Operation))
		}
		want(w, "leases that were lost", len(w.renew(3*Lease, all...)), 0)
		w.age(2 * Lease)
		want(w, "rows that were taken", len(w.take()), 0)
	})
}

// held names the attempt that owns the operation.
func held(o store.Operation) store.Held { return store.Held{Operation: o.ID, Owner: o.Owner} }
