package storetest

import (
	"fmt"
	"slices"

	"github.com/settle-go/settle/store"
)

func batches(s suite) {
	s.test("R19AnswersComeInTheOrderOfTheClaims", func(w *world) {
		i := w.intent()
		recorded := w.record(i)
		claims := manyClaims(i, 8)
		claims[2] = Claim(Operation(i, On(recorded, 1)))
		claims[5] = Claim(Operation(i), Look)
		for n, a := range w.claimAll(claims...) {
			switch n {
			case 2:
				w.wantRecorded(a, recorded)
			case 5:
				w.wantRecorded(a)
			default:
				w.wantWon(a)
				want(w, "the id", a.Operation.ID, claims[n].Operation.ID)
				w.wantRow(w.read(a.Operation), a.Operation)
				w.verify(a.Operation)
			}
		}
	})
	s.test("R19ARefusedClaimDoesntKeepOthersOut", func(w *world) {
		i := w.intent()
		w.record(i, Tool("mail"), Whole)
		gone := Operation(i)
		gone.Version = 1
		answers := w.claimAll(
			Claim(Operation(i)),
			Claim(Operation(i, Tool("mail"), Whole), UnderHold()),
			Claim(Operation(i, Tool("mail"), func(o *store.Operation) { o.Contract = SomeDigest() })),
			Claim(Operation(i), After(gone)),
			Claim(Operation(i)))
		w.wantWon(answers[0])
		want(w, "the refusal", answers[1].Refused, store.RefusedHold)
		w.wantRefused(answers[2], store.RefusedContract)
		w.wantRefused(answers[3], store.RefusedGuard)
		w.wantWon(answers[4])
		want(w, "rows", len(w.inIntent(i)), 3)
	})
	s.test("R19ABatchIsClaimedAgainAsAWhole", func(w *world) {
		claims := manyClaims(w.intent(), 5)
		first := w.claimAll(claims...)
		for n, a := range w.claimAll(claims...) {
			w.wantWon(a)
			w.wantRow(a.Operation, first[n].Operation)
		}
	})
}

// batchOrder: the claims of a call are decided one after the other.
func batchOrder(s suite) {
	s.test("R19AClaimGivenTwiceMeetsItself", func(w *world) {
		c := Claim(Operation(w.intent()))
		for _, a := range w.claimAll(c, c) {
			w.wantWon(a)
			want(w, "the id", a.Operation.ID, c.Operation.ID)
		}
		want(w, "events", len(w.journal(c.Operation)), 1)
	})
	s.test("R19ABatchIsSeenAsAWholeOrNotAtAll", wholeBatch)
	s.test("R31ARefusedWriteOfABatchTakesNoNumber", func(w *world) {
		resource, i := SomeDigest(), w.intent()
		gone := Operation(i)
		gone.Version = 1
		answers := w.claimAll(
			Claim(Operation(i, Writes(resource))),
			Claim(Operation(i, Writes(resource)), After(gone)),
			Claim(Operation(i, Writes(resource))))
		w.wantRefused(answers[1], store.RefusedGuard)
		want(w, "the first number", answers[0].Operation.ResourceSeq, int64(1))
		want(w, "the next number", answers[2].Operation.ResourceSeq, int64(2))
	})
	s.test("R19ClaimsOfOneBatchMeetInTheirOrder", func(w *world) {
		i := w.intent()
		first := Operation(i)
		answers := w.claimAll(Claim(first), Claim(Operation(i, On(first, 1))))
		w.wantWon(answers[0])
		w.wantRecorded(answers[1], answers[0].Operation)
	})
	s.test("R14UniqueDigestsOfOneBatchMeetInTheirOrder", func(w *world) {
		only := uniquely()
		answers := w.claimAll(Claim(Operation(w.intent(), only)), Claim(Operation(w.intent(), only)))
		w.wantWon(answers[0])
		w.wantRefused(answers[1], store.RefusedUnique, answers[0].Operation)
	})
	s.test("R30DifferentBatchesOfOneCallMeetInTheirOrder", func(w *world) {
		i := w.intent()
		answers := w.claimAll(Claim(Operation(i, Whole), UnderHold()), Claim(Operation(i, Whole), UnderHold()))
		w.wantWon(answers[0])
		w.wantRefused(answers[1], store.RefusedHold, answers[0].Operation)
	})
	s.test("R31WritesOfOneBatchAreNumberedInTheirOrder", func(w *world) {
		resource, i := SomeDigest(), w.intent()
		var claims []store.Claim
		for range 6 {
			claims = append(claims, Claim(Operation(i, Writes(resource))))
		}
		for n, a := range w.claimAll(claims...) {
			w.wantWon(a)
			want(w, "the number on the resource", a.Operation.ResourceSeq, int64(n+1))
			want(w, "running", a.Operation.State == store.Running, n == 0)
			want(w, "lower writes", len(a.Others), n)
		}
	})
	s.test("R3ContractsOfOneBatchMeetInTheirOrder", func(w *world) {
		i := w.intent()
		answers := w.claimAll(Claim(Operation(i)), Claim(Operation(i, func(o *store.Operation) { o.Contract = SomeDigest() })))
		w.wantWon(answers[0])
		w.wantRefused(answers[1], store.RefusedContract)
	})
	s.test("R19BatchesInOppositeOrderDontBlockOneAnother", func(w *world) {
		for range 8 {
			oppositeOrder(w)
		}
	})
}

// wholeBatch lists while batches are claimed.
func wholeBatch(w *world) {
	const size = 10
	intents := make([]store.Intent, 8)
	for n := range intents {
		intents[n] = w.intent()
	}
	w.race(4, func(n int, l store.Ledger) error {
		for k := range intents {
			if n < 2 {
				if k%2 != n {
					continue
				}
				if _, err := l.Claim(w.ctx, manyClaims(intents[k], size)...); err != nil {
					return err
				}
				continue
			}
			entries, err := l.List(w.ctx, store.Filter{Intent: intents[k].ID})
			if err != nil {
				return err
			}
			if len(entries)%size != 0 {
				w.Errorf("%d claims of a batch of %d were to be seen", len(entries), size)
			}
		}
		return nil
	})
}

// oppositeOrder claims the same operations forwards and backwards at once: of
// each, one caller wins, and the callers never wait for one another in a circle.
func oppositeOrder(w *world) {
	i := w.intent()
	var claims []store.Claim
	for n := range 12 {
		edits := []func(*store.Operation){}
		switch n % 4 {
		case 1:
			edits = append(edits, Tool("door"), Writes(SomeDigest()))
		case 2:
			edits = append(edits, Tool("invoice"), uniquely())
		case 3:
			edits = append(edits, Tool("mail"), Whole)
		}
		claims = append(claims, Claim(Operation(i, edits...)))
	}
	answers := make([][]store.Claimed, 6)
	w.race(len(answers), func(n int, l store.Ledger) (err error) {
		var own []store.Claim
		for _, c := range claims {
			o := Operation(i, On(c.Operation, 1))
			own = append(own, Claim(o))
		}
		if n%2 == 1 {
			slices.Reverse(own)
		}
		answers[n], err = l.Claim(w.ctx, own...)
		if err == nil && len(answers[n]) != len(own) {
			err = fmt.Errorf("got %d answers to %d claims", len(answers[n]), len(own))
		}
		if n%2 == 1 {
			slices.Reverse(answers[n])
		}
		return err
	})
	for n := range claims {
		won := 0
		for _, a := range answers {
			if a[n].Won {
				won++
			}
			want(w, "the owner", owner(a[n]), owner(answers[0][n]))
		}
		want(w, "winners of a claim", won, 1)
	}
	want(w, "rows", len(w.inIntent(i)), len(claims))
}
