package storetest

import (
	"github.com/settle-go/settle/store"
)

func erasure(s suite) {
	s.test("R52APrincipalsPayloadsGoAtOnce", func(w *world) {
		first, second := w.intentOf("acme", "t-1"), w.intentOf("acme", "t-2")
		var all []store.Operation
		for n, state := range store.States() {
			all = append(all, w.standing([]store.Intent{first, second}[n%2], state, keeps(0)))
		}
		for n := range all {
			all[n] = w.read(all[n])
		}
		want(w, "payloads that were removed", w.erase(first), len(all))
		for _, o := range all {
			w.wantTombstone(o)
		}
		want(w, "payloads that were removed again", w.erase(first), 0)
	})
	s.test("R52ErasureIsOfOnePrincipal", func(w *world) {
		gone := w.propose(IntentOf("acme", "ann", "t", "refund"))
		erased := w.standing(gone, store.Completed)
		var kept []store.Operation
		for _, i := range []store.Intent{IntentOf("acme", "bob", "t", "refund"), IntentOf("umbrella", "ann", "t", "refund"),
			IntentOf("acme", "Ann", "t", "refund"), IntentOf("ac", "meann", "t", "refund")} {
			kept = append(kept, w.standing(w.propose(i), store.Completed))
		}
		want(w, "payloads that were removed", w.erase(gone), 1)
		w.wantTombstone(erased)
		for _, o := range kept {
			w.unchanged(o)
		}
		want(w, "payloads of nobody", w.purgeFrom(store.Purge{Principal: [32]byte{1}}), 0)
	})
	s.test("R52ErasureWaitsForNothing", func(w *world) {
		i := w.intent()
		settled := w.apply(Change(w.standing(i, store.Completed), store.Completed, incident("second_effect")))
		parent := w.record(i, Tool("trip"))
		step := w.standing(i, store.Completed, Within(parent))
		want(w, "payloads that were removed", w.erase(i), 3)
		for _, o := range []store.Operation{settled, parent, step} {
			w.wantTombstone(o)
		}
		w.wantCases(settled, "open second_effect incident")
	})
	s.test("R52ErasureWorksInPages", func(w *world) {
		i, other := w.intentOf("acme", "t"), w.propose(IntentOf("acme", "bob", "t", "refund"))
		for range 4 {
			w.record(i)
			w.record(other)
		}
		want(w, "payloads that were removed", w.purgeFrom(store.Purge{Principal: i.Principal, Limit: 3}), 4)
	})
	s.test("R52WhatIsErasedCanStillSettle", func(w *world) {
		i := w.intent()
		running := w.record(i)
		w.erase(i)
		row := w.wantTombstone(running)
		want(w, "leases that were lost", len(w.renew(Lease, held(row))), 0)
		c := Change(running, store.Failed) // as its attempt last saw it
		after := w.apply(c)
		want(w, "the state", after.State, store.Failed)
		want(w, "the arguments", len(after.Arguments), 0)
		w.verify(after)
	})
	s.test("R52ErasureLeavesACaseWithoutItsProposal", func(w *world) {
		i := w.intent()
		o := w.standing(i, store.Manual)
		o = w.apply(Change(o, store.Manual, takes("ann"), proposes([]byte(`{"result":{"id":"r-1"}}`))))
		open := w.openCase(o).Case
		w.erase(i)
		open.Proposal = nil
		w.wantCase(w.openCase(o).Case, open)
	})
	s.test("R52WhatWasProposedBeforeAnErasureIsNotPutBack", func(w *world) {
		i := w.intent()
		o := w.standing(i, store.Manual)
		secret := proposes([]byte(`{"result":{"id":"r-1"}}`))
		read := w.apply(Change(o, store.Manual, secret))
		w.erase(i)
		for _, put := range []store.Change{Change(read, store.Manual, secret), Change(read, store.Manual, takes("bob"), secret)} {
			refused[*store.StaleError](w, put)
		}
		bare := w.openCase(o).Case.Proposal
		want(w, "the proposal", string(bare), "")
		// What is proposed later is for somebody to confirm.
		w.apply(Change(w.read(o), store.Manual, secret))
		want(w, "a later proposal", len(w.openCase(o).Case.Proposal) > 0, true)
	})
	s.test("R51ErasedPayloadsAreNotPurgedAgain", func(w *world) {
		i := w.intent()
		w.standing(i, store.Completed)
		w.erase(i)
		w.age(2 * Retention)
		want(w, "payloads that were removed", w.purgeAll(), 0)
	})
}

// erase removes the payloads of the intent's principal and returns how many.
func (w *world) erase(of store.Intent) int {
	w.Helper()
	return w.purgeFrom(store.Purge{Principal: of.Principal})
}
