package storetest

import (
	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func events(s suite) {
	s.test("R57AClaimIsTheFirstEvent", func(w *world) {
		for _, state := range []store.State{store.Running, store.AwaitingApproval, store.Retryable} {
			c := Claim(Operation(w.intent(), In(state), func(o *store.Operation) { o.Reason = "wanted" }))
			c.Actor = "worker é"
			o := w.won(c)
			wanted := store.FirstEvent(c)
			wanted.At = o.TailAt
			w.wantEvents(w.journal(o), wanted)
		}
	})
	s.test("R57AFirstExecutionIsTwoEvents", func(w *world) {
		for _, c := range []store.Change{
			{Kind: "attempt_ended", Actor: "caller", Body: []byte(`{"attempt":1}`)},
			{}, {Reason: "wanted"}, {Kind: "settled é", Actor: "worker", Visibility: 2 * Visibility},
		} {
			claim := Claim(Operation(w.intent()), func(claim *store.Claim) { claim.Actor = c.Actor })
			first := store.FirstEvent(claim)
			o := w.won(claim)
			first.At = o.TailAt
			c.Of, c.To, c.Returned = o, store.Completed, true
			second := store.NextEvent(c)
			o = w.apply(c)
			second.At = o.TailAt
			w.wantEvents(w.journal(o), first, second)
			w.verify(o)

			note := Change(o, store.Completed, func(c *store.Change) { c.Incident = "late_success" })
			third := store.NextEvent(note)
			o = w.apply(note)
			third.At = o.TailAt
			all := []store.Event{first, second, third}
			for after := range all {
				got, err := w.Ledger.Events(w.ctx, o.ID, after)
				w.must(err, "Events")
				w.wantEvents(got, all[after:]...)
			}
			w.verify(o)
		}
	})
	s.test("R57EveryMoveIsAnEventOfTheChain", func(w *world) {
		o := w.record(w.intent())
		wanted := w.journal(o)
		for _, c := range []func(store.Operation) store.Change{
			func(o store.Operation) store.Change { return Change(o, store.Unknown, inDoubt) },
			func(o store.Operation) store.Change { return Attempt(o) },
			func(o store.Operation) store.Change {
				return Change(o, store.Manual, func(c *store.Change) {
					c.Kind, c.Actor, c.Reason, c.Body = "", "", "", nil
				})
			},
			func(o store.Operation) store.Change {
				return Change(o, store.Completed, func(c *store.Change) {
					c.Kind, c.Actor, c.Reason = "decided", "operator é", "'; drop table event; --"
					c.Body, c.Decision = []byte("\x00\xff{not json"), uuid.New()
				})
			},
		} {
			change := c(o)
			o = w.apply(change)
			e := store.NextEvent(change)
			e.At = o.TailAt
			wanted = append(wanted, e)
		}
		w.wantEvents(w.journal(o), wanted...)
		w.verify(o)
	})
}

func journals(s suite) {
	s.test("R57EventsContinueAfterANumber", func(w *world) {
		o := w.standing(w.intent(), store.Manual)
		o = w.apply(Change(o, store.Manual))
		all := w.journal(o)
		for after := -1; after <= len(all)+1; after++ {
			got, err := w.Ledger.Events(w.ctx, o.ID, after)
			w.must(err, "Events")
			w.wantEvents(got, all[min(max(after, 0), len(all)):]...)
		}
	})
	s.test("R57AnUnknownOperationHasNoEvents", func(w *world) {
		want(w, "events", len(w.journal(Operation(w.intent()))), 0)
	})
	s.test("R57InstantsOfTheChainNeverRunBackwards", func(w *world) {
		o := w.record(w.intent())
		for range 20 {
			o = w.apply(Change(o, store.Running))
		}
		all := w.journal(o)
		for n := 1; n < len(all); n++ {
			if all[n].At.Before(all[n-1].At) {
				w.Errorf("event %d is dated before the one before it", all[n].Seq)
			}
		}
		w.verify(o)
	})
	s.test("R57TimeBreaksNoChain", func(w *world) {
		o := w.record(w.intent())
		for _, to := range []store.State{store.Unknown, store.Manual, store.Completed} {
			w.age(2 * Lease)
			w.take()
			o = w.apply(Change(w.read(o), to))
			w.verify(o)
		}
	})
}

func (w *world) wantEvents(got []store.Event, wanted ...store.Event) {
	w.Helper()
	if len(got) != len(wanted) {
		w.Fatalf("got %d events, want %d", len(got), len(wanted))
	}
	for n := range wanted {
		for _, d := range eventDifferences(got[n], wanted[n]) {
			w.Errorf("event %d: %s", wanted[n].Seq, d)
		}
	}
}
