package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func claims(s suite) {
	s.test("R19AClaimRecordsTheOperation", claimRecords)
	s.test("R19AClaimInAnotherStateRunsNothing", claimOfAnotherState)
	s.test("R19EveryFieldComesBack", everyFieldComesBack)
	s.test("R19ALostAnswerIsClaimedAgain", func(w *world) {
		for _, state := range []store.State{store.Running, store.AwaitingApproval, store.Retryable} {
			c := Claim(Operation(w.intent(), In(state)))
			first := w.won(c)
			second := w.claim(c)
			w.wantWon(second)
			w.wantRow(second.Operation, first)
			want(w, "events", len(w.journal(first)), 1)
		}
	})
	s.test("R19TheSameOwnerUnderAnotherIDIsRecognised", func(w *world) {
		c := Claim(Operation(w.intent()))
		first := w.won(c)
		c.Operation.ID = ID()
		again := w.claim(c)
		w.wantWon(again)
		w.wantRow(again.Operation, first)
		w.absent(c.Operation)
	})
	s.test("R19AnotherOwnerIsShownTheRow", func(w *world) {
		i := w.intent()
		first := w.record(i)
		twin := Claim(Operation(i, On(first, 1)))
		w.wantRecorded(w.claim(twin), first)
		w.absent(twin.Operation)
		w.unchanged(first)
	})
}

func slots(s suite) {
	s.test("R21TheOwnerIsTheLastAttempt", func(w *world) {
		c := Claim(Operation(w.intent()))
		row := w.apply(Change(w.won(c), store.Retryable))
		started := w.apply(Attempt(row))
		w.wantRecorded(w.claim(c), started)
		c.Operation.Owner = started.Owner
		again := w.claim(c)
		w.wantWon(again)
		w.wantRow(again.Operation, started)
	})
	s.test("R19TheOwnerOfASettledRowStillWins", func(w *world) {
		c := Claim(Operation(w.intent()))
		settled := w.apply(Completion(w.won(c), "r-1"))
		again := w.claim(c)
		w.wantWon(again)
		w.wantRow(again.Operation, settled)
	})
	s.test("R19HintsNeverDecide", hintsNeverDecide)
	s.test("R19ASlotIsOneInItsIntentOnly", func(w *world) {
		first := w.record(w.intent())
		second := w.record(w.intent(), On(first, 1))
		if first.ID == second.ID {
			w.Error("two intents share a row")
		}
	})
	s.test("R10TheSlotHoldsEveryNumberLowestFirst", func(w *world) {
		i := w.intent()
		first := w.standing(i, store.Failed)
		second := w.apply(Change(w.won(Claim(Operation(i, On(first, 2)), After(first))), store.Failed))
		third := w.won(Claim(Operation(i, On(first, 3)), After(second)))
		for number := 1; number <= 3; number++ {
			w.wantRecorded(w.claim(Claim(Operation(i, On(first, number)))), first, second, third)
		}
	})
	s.test("R10TheOwnerOfOneNumberDoesntOwnTheNext", func(w *world) {
		i := w.intent()
		first := w.standing(i, store.Failed)
		second := w.won(Claim(Operation(i, On(first, 2), func(o *store.Operation) { o.Owner = first.Owner }), After(first)))
		want(w, "the number", second.Number, 2)
		w.unchanged(first)
	})
}

func looks(s suite) {
	s.test("R18ALookReadsAndNeverWrites", func(w *world) {
		i := w.intent()
		unmade := Claim(Operation(i), Look)
		w.wantRecorded(w.claim(unmade))
		w.absent(unmade.Operation)
		first := w.record(i)
		w.wantRecorded(w.claim(Claim(Operation(i, On(first, 1)), Look)), first)
		w.wantRecorded(w.claim(Claim(Operation(i, On(first, 2)), Look)), first)
		w.unchanged(first)
	})
	s.test("R18ALookIsWonByNobody", func(w *world) {
		c := Claim(Operation(w.intent()))
		row := w.won(c)
		Look(&c)
		w.wantRecorded(w.claim(c), row)
	})
	s.test("R18ALookIsRefusedByNothing", func(w *world) {
		i := w.intent()
		w.record(i, Whole)
		unmade := Claim(Operation(i, Whole), Look, UnderHold())
		unmade.Operation.Contract = DigestOf("another")
		unmade.After = []store.Guard{{ID: ID(), Version: 1}}
		w.wantRecorded(w.claim(unmade))
	})
	s.test("R20AClaimCantBeginInEveryState", func(w *world) {
		i := w.intent()
		for _, state := range append(store.States(), 0) {
			if (store.Move{To: state}).Allowed() {
				continue
			}
			good, bad := Claim(Operation(i)), Claim(Operation(i, In(state)))
			_, err := w.Ledger.Claim(w.ctx, good, bad)
			want(w, "the move", wantError[*store.MoveError](w, err).Move, store.Move{To: state})
			w.absent(good.Operation)
			w.absent(bad.Operation)
		}
	})
	s.test("NoClaimsNoAnswers", func(w *world) {
		want(w, "answers", len(w.claimAll()), 0)
	})
}

func claimRecords(w *world) {
	c := Claim(Operation(w.intent()))
	c.KeyWindow = 24 * time.Hour
	o := w.won(c)
	now := o.CreatedAt

	wanted := c.Operation
	wanted.Version, wanted.Attempt = 1, 1
	wanted.CreatedAt, wanted.FirstSent = now, now
	wanted.LeaseUntil, wanted.DueAt = now.Add(Lease), now.Add(Lease)
	wanted.Moment = now.Add(Lease + Visibility)
	wanted.KeyUntil = now.Add(24 * time.Hour)
	wanted.Tail, wanted.TailAt = store.FirstEvent(c).Hash, now
	w.wantRow(o, wanted)
	w.wantRow(w.read(o), wanted)
	if o.Expired() || o.Due() {
		w.Error("a new attempt is expired or due")
	}
	w.verify(o)
}

func claimOfAnotherState(w *world) {
	for _, state := range []store.State{store.AwaitingApproval, store.Retryable} {
		c := Claim(Operation(w.intent(), In(state)))
		o := w.won(c)
		now := o.CreatedAt
		wanted := c.Operation
		wanted.Version, wanted.CreatedAt, wanted.Moment = 1, now, now
		wanted.DueAt = now.Add(c.Wait)
		wanted.Tail, wanted.TailAt = store.FirstEvent(c).Hash, now
		w.wantRow(o, wanted)
		w.wantRow(w.read(o), wanted)
		w.verify(o)
	}
}

// everyFieldComesBack fills every field that a claim may fill in.
func everyFieldComesBack(w *world) {
	parent := w.record(w.intent(), Tool("trip"))
	for _, source := range []store.Source{store.FromHost, store.FromIdentity, store.FromWhole, store.FromStep, store.FromOriginal} {
		for class := store.Unsafe; class <= store.Transactional; class++ {
			c := Claim(Operation(w.intent()))
			o := &c.Operation
			o.Source, o.Class, o.Parent, o.Occurrence = source, class, parent.ID, 7
			o.Unique, o.Reason = SomeDigest(), "needs_approval"
			o.Visibility, o.Escalate, o.Retention = 1234567*time.Microsecond, 7654321*time.Microsecond, 3333333*time.Microsecond
			o.CallID, o.Tool = `call "é" '1' 東`, "tool-"+string(source)+class.String()
			got := w.won(c)
			wanted := store.Operation(*o)
			wanted.Version, wanted.Attempt, wanted.ResourceSeq = 1, 1, got.ResourceSeq
			wanted.CreatedAt, wanted.FirstSent, wanted.TailAt = got.CreatedAt, got.FirstSent, got.TailAt
			wanted.LeaseUntil, wanted.DueAt, wanted.Moment = got.LeaseUntil, got.DueAt, got.Moment
			wanted.Tail = got.Tail
			w.wantRow(got, wanted)
			w.wantRow(w.read(got), wanted)
		}
	}
	empty := Operation(w.intent(), func(o *store.Operation) {
		o.Fields, o.Arguments, o.Trace, o.CallID, o.Escalate, o.Visibility, o.Retention = nil, nil, nil, "", 0, 0, 0
	})
	got := w.won(Claim(empty))
	w.wantRow(w.read(got), got)
	want(w, "the call's id", got.CallID, "")
	w.wantInstant("Moment", got.Moment, got.LeaseUntil)
}

func hintsNeverDecide(w *world) {
	for _, likely := range []bool{false, true} {
		for _, known := range []bool{false, true} {
			hint := func(c *store.Claim) { c.Likely, c.Known = likely, known }
			i := w.intent()
			w.record(i) // so that Known is true
			c := Claim(Operation(i), hint)
			row := w.won(c)
			again := w.claim(c)
			w.wantWon(again)
			w.wantRow(again.Operation, row)
			w.wantRecorded(w.claim(Claim(Operation(i, On(row, 1)), hint)), row)
			w.wantRefused(w.claim(Claim(Operation(i, Whole), hint, UnderHold())), store.RefusedHold, w.inIntent(i)...)
			w.wantRecorded(w.claim(Claim(Operation(i), hint, Look)))
			stale := Claim(Operation(i, On(row, 2)), hint)
			stale.After = []store.Guard{{ID: row.ID, Version: 9}}
			w.wantRefused(w.claim(stale), store.RefusedGuard)
		}
	}
}

// inIntent lists the operations of an intent.
func (w *world) inIntent(i store.Intent) []store.Operation {
	w.Helper()
	entries, err := w.Ledger.List(w.ctx, store.Filter{Intent: i.ID})
	w.must(err, "List")
	var all []store.Operation
	for _, e := range entries {
		all = append(all, e.Operation)
	}
	return all
}

// manyClaims returns n claims of the intent.
func manyClaims(i store.Intent, n int) []store.Claim {
	var all []store.Claim
	for range n {
		all = append(all, Claim(Operation(i)))
	}
	return all
}

// owner is whose attempt the claim met, or its own.
func owner(a store.Claimed) uuid.UUID {
	if a.Won {
		return a.Operation.Owner
	}
	if len(a.Slot) > 0 {
		return a.Slot[0].Owner
	}
	return uuid.Nil
}
