package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func take(s suite) {
	s.test("R36OnlyDueRowsAreTaken", func(w *world) {
		i := w.intent()
		running := w.record(i)
		w.standing(i, store.Unknown) // without a Due
		want(w, "rows that were taken", len(w.take()), 0)
		w.age(Lease - time.Minute)
		want(w, "rows that were taken", len(w.take()), 0)
		w.age(time.Minute)
		w.wantIDs(w.take(), running)
	})
	s.test("R22TakingChangesDueAtAndNothingElse", func(w *world) {
		before := w.record(w.intent())
		w.age(2 * Lease)
		before = w.read(before)
		taken := w.take(func(t *store.Take) { t.Lease = 5 * time.Minute })
		w.wantIDs(taken, before)
		got := taken[0].Operation
		if early, late := before.Read.Add(5*time.Minute), got.Read.Add(5*time.Minute); got.DueAt.Before(early) || got.DueAt.After(late) {
			w.Errorf("DueAt is %v, want it between %v and %v", got.DueAt, early, late)
		}
		w.wantRow(w.read(before), got)
		got.DueAt = before.DueAt
		w.wantRow(got, before)
		want(w, "events", len(w.journal(before)), 1)
		w.apply(Change(before, store.Unknown)) // its guard holds
	})
	s.test("R36ATakenRowIsAnothersUntilTheTakersLeaseEnds", func(w *world) {
		o := w.record(w.intent())
		w.age(2 * Lease)
		w.wantIDs(w.take(), o)
		want(w, "rows that were taken", len(w.take()), 0)
		w.age(Lease - time.Minute)
		want(w, "rows that were taken", len(w.take()), 0)
		w.age(time.Minute)
		w.wantIDs(w.take(), o)
	})
}

func takeOrder(s suite) {
	s.test("R38EveryUnsettledStateCanBeTaken", func(w *world) {
		i := w.intent()
		n := 0
		for _, state := range store.States() {
			if !state.Settled() {
				o := w.standing(i, state)
				w.apply(Change(o, state, func(c *store.Change) { c.Due = store.DueIn(time.Minute) }))
				n++
			}
		}
		w.age(Lease)
		want(w, "rows that were taken", len(w.take()), n)
	})
	s.test("R36TheLongestDueComesFirst", func(w *world) {
		i := w.intent()
		var all []store.Operation
		for _, in := range []time.Duration{4, 1, 3, 2, 1} {
			o := w.standing(i, store.Unknown)
			all = append(all, w.apply(Change(o, store.Unknown, func(c *store.Change) { c.Due = store.DueIn(in * time.Minute) })))
		}
		w.age(Lease)
		limit := func(n int) func(*store.Take) { return func(t *store.Take) { t.Limit = n } }
		w.wantIDs(w.take(limit(2)), all[1], all[4])
		w.wantIDs(w.take(limit(2)), all[3], all[2])
		w.wantIDs(w.take(limit(2)), all[0])
	})
}

func fairTakes(s suite) {
	s.test("R36ThereIsABoundPerToolAndTenant", func(w *world) {
		acme, other := w.intentOf("acme", "t"), w.intentOf("umbrella", "t")
		for range 5 {
			w.record(acme)
			w.record(acme, Tool("mail"))
			w.record(other)
		}
		w.age(2 * Lease)
		count := map[store.Pair]int{}
		for _, e := range w.take(func(t *store.Take) { t.Each = 2 }) {
			count[pairOf(e)]++
		}
		want(w, "pairs", len(count), 3)
		for _, n := range count {
			want(w, "rows of one tool and tenant", n, 2)
		}
		want(w, "rows of what is left", len(w.take()), 9)
	})
	s.test("R36NoLimitIsNoBound", func(w *world) {
		i := w.intent()
		w.claimAll(manyClaims(i, 150)...)
		w.age(2 * Lease)
		want(w, "rows that were taken", len(w.take(func(t *store.Take) { t.Limit, t.Each = 0, 0 })), 150)
	})
	s.test("R36ALongListStarvesNobody", fairness)
	s.test("R36RowsComePairByPairFromBehindTheCursor", pairByPair)
	s.test("R36TheCursorMayStandBehindTheLastPair", func(w *world) {
		o := w.record(w.intent())
		w.age(2 * Lease)
		w.wantIDs(w.take(func(t *store.Take) { t.After = store.Pair{Tool: "zzzz", Tenant: uuid.Max} }), o)
	})
	s.test("R36ToolsAtTheirLimitAreLeftOut", func(w *world) {
		i := w.intent()
		w.record(i)
		w.record(i, Tool("mail"))
		ticket := w.record(i, Tool("ticket"))
		w.age(2 * Lease)
		w.wantIDs(w.take(func(t *store.Take) { t.Except = []string{"refund", "mail"} }), ticket)
		want(w, "rows of what is left", len(w.take(func(t *store.Take) { t.Except = []string{"elsewhere"} })), 2)
	})
	s.test("R36OneOperationIsTakenIfItIsDue", func(w *world) {
		i := w.intent()
		due, _ := w.record(i), w.record(i)
		w.age(2 * Lease)
		early := w.record(i)
		only := func(o store.Operation) func(*store.Take) {
			return func(t *store.Take) { t.Operation, t.Limit, t.Each = o.ID, 0, 0 }
		}
		want(w, "rows that were taken", len(w.take(only(early))), 0)
		want(w, "rows that were taken", len(w.take(only(Operation(i)))), 0)
		w.wantIDs(w.take(only(due)), due)
		want(w, "rows that were taken", len(w.take(only(due))), 0)
		want(w, "rows of what is left", len(w.take()), 1)
	})
	s.test("R36OneTakerForEachRow", takeRace)
}

func pairOf(e store.Entry) store.Pair { return store.Pair{Tool: e.Tool, Tenant: e.Tenant} }

// fairness follows the cursor with one row at a time: each round meets every
// tool and tenant once, however long the list of one is.
func fairness(w *world) {
	pairs := map[store.Pair]int{}
	for n, tenant := range []string{"acme", "umbrella", "東京"} {
		i := w.intentOf(tenant, "t")
		for _, tool := range []string{"mail", "refund", "ticket"} {
			for range 3 + 20*(n%2) {
				o := w.record(i, Tool(tool))
				pairs[store.Pair{Tool: o.Tool, Tenant: o.Tenant}] = 0
			}
		}
	}
	w.age(2 * Lease)
	var cursor store.Pair
	for round := 1; round <= 3; round++ {
		for range len(pairs) {
			taken := w.take(func(t *store.Take) { t.Limit, t.Each, t.After = 1, 1, cursor })
			if len(taken) != 1 {
				w.Fatalf("round %d: took %d rows", round, len(taken))
			}
			cursor = pairOf(taken[0])
			pairs[cursor]++
		}
		for pair, n := range pairs {
			want(w, fmt.Sprintf("round %d: rows of %s", round, pair.Tool), n, round)
		}
	}
}

// pairByPair learns the order of the pairs, which is the ledger's own, and then
// begins behind each of them.
func pairByPair(w *world) {
	for _, tenant := range []string{"acme", "umbrella"} {
		i := w.intentOf(tenant, "t")
		for _, tool := range []string{"mail", "Refund", "ticket-2", "ticket"} {
			w.record(i, Tool(tool))
			w.record(i, Tool(tool))
		}
	}
	takePairs := func(after store.Pair) []store.Pair {
		w.age(2 * Lease)
		var pairs []store.Pair
		for _, e := range w.take(func(t *store.Take) { t.After = after }) {
			pairs = append(pairs, pairOf(e))
		}
		return pairs
	}
	order := takePairs(store.Pair{})
	want(w, "rows that were taken", len(order), 16)
	for n := 1; n < len(order); n += 2 {
		want(w, "the pair of two rows in a row", order[n], order[n-1])
		rotated := slices.Concat(order[n+1:], order[:n+1])
		if got := takePairs(order[n]); !slices.Equal(got, rotated) {
			w.Errorf("behind pair %d the pairs come as %v, want %v", n/2+1, got, rotated)
		}
	}
}

func takeRace(w *world) {
	i := w.intent()
	w.claimAll(manyClaims(i, 60)...)
	w.age(2 * Lease)
	var mu sync.Mutex
	takers := map[uuid.UUID]int{}
	w.race(8, func(_ int, l store.Ledger) error {
		for range 60 {
			entries, err := l.Take(w.ctx, store.Take{Lease: Lease, Limit: 5, Each: 5})
			mu.Lock()
			for _, e := range entries {
				takers[e.ID]++
			}
			mu.Unlock()
			if err != nil || len(entries) == 0 {
				return err
			}
		}
		return nil
	})
	// A taker may have stepped over what another one was about to take.
	for _, e := range w.take() {
		takers[e.ID]++
	}
	want(w, "rows that were taken", len(takers), 60)
	for _, n := range takers {
		want(w, "takers of a row", n, 1)
	}
}
