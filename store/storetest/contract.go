package storetest

import "github.com/settle-go/settle/store"

func contract(s suite) {
	other := func(o *store.Operation) { o.Contract = DigestOf("another definition") }

	s.test("R3AnotherIdentityDefinitionIsRefused", func(w *world) {
		i := w.intent()
		w.record(i)
		changed := Claim(Operation(i, other))
		w.wantRefused(w.claim(changed), store.RefusedContract)
		w.absent(changed.Operation)
		w.record(i)
	})
	s.test("R3TheFirstDefinitionStaysThoughItsOperationsAreSettled", func(w *world) {
		i := w.intent()
		w.standing(i, store.Failed)
		w.standing(i, store.Completed)
		w.wantRefused(w.claim(Claim(Operation(i, other))), store.RefusedContract)
	})
	s.test("R3ADefinitionIsPerToolAndIntent", func(w *world) {
		i := w.intent()
		w.record(i)
		w.record(i, Tool("mail"), other)
		w.record(w.intent(), other)
	})
	s.test("R18WhatIsRecordedAnswersUnderAnotherDefinition", func(w *world) {
		i := w.intent()
		first := w.record(i)
		w.wantRecorded(w.claim(Claim(Operation(i, On(first, 1), other))), first)
		w.wantRefused(w.claim(Claim(Operation(i, On(first, 2), other), After(first))), store.RefusedContract)
	})
	s.test("R3OneOfTwoDefinitionsAtOnceIsPinned", func(w *world) {
		for range 8 {
			contractRace(w)
		}
	})
}

// contractRace lets two definitions of one tool meet in a new intent.
func contractRace(w *world) {
	i := w.intent()
	answers := make([]store.Claimed, 8)
	asked := func(n int) store.Digest { return DigestOf([]string{"one", "two"}[n%2]) }
	w.race(len(answers), func(n int, l store.Ledger) (err error) {
		answers[n], err = w.claimBy(l, Claim(Operation(i, func(o *store.Operation) { o.Contract = asked(n) })))
		return err
	})
	var pinned store.Digest
	for n, a := range answers {
		switch {
		case !a.Won && a.Refused != store.RefusedContract:
			w.Errorf("a claim was refused with %d", a.Refused)
		case a.Won && !pinned.IsZero() && asked(n) != pinned:
			w.Fatal("one intent has operations of a tool under two definitions")
		case a.Won:
			pinned = asked(n)
			want(w, "the contract", a.Operation.Contract, pinned)
		}
	}
}
