package storetest

import (
	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// The races that belong to one topic stand there.
func races(s suite) {
	s.test("R19OneOfSeveralClaimsAtOnceIsWon", func(w *world) {
		for n := range 8 {
			claimRace(w, n%2 == 0)
		}
	})
	s.test("R19ARepeatedClaimMeetsItself", func(w *world) {
		for range 4 {
			c := Claim(Operation(w.intent()))
			answers := make([]store.Claimed, 8)
			w.race(len(answers), func(n int, l store.Ledger) (err error) {
				answers[n], err = w.claimBy(l, c)
				return err
			})
			for _, a := range answers {
				w.wantWon(a)
				w.wantRow(a.Operation, answers[0].Operation)
			}
			want(w, "events", len(w.journal(c.Operation)), 1)
		}
	})
	s.test("R22ASettlementAndARenewalMeet", func(w *world) {
		for range 8 {
			o := w.record(w.intent())
			w.race(2, func(n int, l store.Ledger) error {
				if n == 0 {
					_, err := l.Apply(w.ctx, Completion(o, uuid.NewString()))
					return err
				}
				_, err := l.Renew(w.ctx, 2*Lease, held(o))
				return err
			})
			after := w.read(o)
			want(w, "the state", after.State, store.Completed)
			if !after.LeaseUntil.IsZero() || !after.DueAt.IsZero() {
				w.Error("a settled operation has a lease or is due")
			}
			w.verify(o)
		}
	})
	s.test("R36ATakerAndALateAnswerMeet", func(w *world) {
		for range 8 {
			o := w.record(w.intent())
			w.age(2 * Lease)
			o = w.read(o)
			w.race(2, func(n int, l store.Ledger) error {
				if n == 0 {
					_, err := l.Apply(w.ctx, Completion(o, uuid.NewString()))
					return err
				}
				_, err := l.Take(w.ctx, store.Take{Lease: Lease, Operation: o.ID, Limit: 1})
				return err
			})
			after := w.read(o)
			if !after.DueAt.IsZero() {
				w.Error("a settled operation is due")
			}
			w.verify(o)
		}
	})
}

// claimRace lets twins meet: one wins, and every other one is shown its row.
func claimRace(w *world, likely bool) {
	i := w.intent()
	first := Operation(i)
	answers := make([]store.Claimed, 16)
	w.race(len(answers), func(n int, l store.Ledger) (err error) {
		answers[n], err = w.claimBy(l, Claim(Operation(i, On(first, 1)), func(c *store.Claim) { c.Likely = likely }))
		return err
	})
	won := 0
	for _, a := range answers {
		if a.Won {
			won++
		} else if len(a.Slot) != 1 {
			w.Fatalf("a loser was shown %d rows", len(a.Slot))
		}
		want(w, "the owner", owner(a), owner(answers[0]))
	}
	want(w, "claims that were won", won, 1)
	want(w, "rows", len(w.inIntent(i)), 1)
}
