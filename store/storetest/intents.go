package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func intents(s suite) {
	s.test("R7ANewIntentIsRecordedAsProposed", func(w *world) {
		proposed := NewIntent()
		proposed.Version = 3
		got := w.propose(proposed)
		if got.CreatedAt.IsZero() || !got.ClosedAt.IsZero() {
			w.Errorf("created at %v and closed at %v", got.CreatedAt, got.ClosedAt)
		}
		proposed.CreatedAt = got.CreatedAt
		w.wantIntent(got, proposed)
	})
	s.test("R7TheSameDigestIsTheSameRowForEver", func(w *world) {
		first := w.propose(IntentOf("acme", "agent", "task-1", "refund"))
		later := IntentOf("acme", "agent", "task-1", "refund")
		later.Version = 2
		w.wantIntent(w.propose(later), first)
	})
	s.test("R7IntentsOfOneTenantShareItsIDAndKey", func(w *world) {
		first, second := w.intentOf("acme", "task-1"), w.intentOf("acme", "task-2")
		if first.ID == second.ID || string(first.Key) == string(second.Key) {
			w.Error("two intents share an id or a key")
		}
		want(w, "the tenant's id", second.Tenant, first.Tenant)
		want(w, "the tenant's key", string(second.TenantKey), string(first.TenantKey))
	})
	s.test("R6NamesAreComparedByteForByte", func(w *world) {
		ids := map[uuid.UUID]string{}
		for _, tenant := range []string{"acme", "Acme", "acme ", "açme", "ac\u0327me", "acme\u200b", "'acme\"", `ac\me`, "ac%me", "東京"} {
			i := w.propose(IntentOf(tenant, "agent", "task", "refund"))
			if former, ok := ids[i.Tenant]; ok {
				w.Errorf("%q and %q are one tenant", former, tenant)
			}
			ids[i.Tenant] = tenant
			want(w, "the tenant's name", i.TenantName, tenant)
		}
	})
	s.test("R7LongNamesComeBackWhole", func(w *world) {
		long := ""
		for range 300 {
			long += "né"
		}
		proposed := IntentOf(long, long+"s", long+"t", long+"g")
		got := w.propose(proposed)
		proposed.CreatedAt = got.CreatedAt
		w.wantIntent(got, proposed)
		w.wantIntent(w.propose(IntentOf(long, long+"s", long+"t", long+"g")), got)
	})
}

func sharedIntents(s suite) {
	s.test("R7EveryEntryComesWithItsIntent", func(w *world) {
		i := w.intent()
		o := w.record(i)
		e, err := w.Ledger.Get(w.ctx, i.TenantName, o.ID)
		w.must(err, "Get")
		w.wantIntent(e.Of, i)
		entries, err := w.Ledger.List(w.ctx, store.Filter{Intent: i.ID})
		w.must(err, "List")
		w.wantIDs(entries, o)
		w.wantIntent(entries[0].Of, i)
		w.age(2 * Lease)
		taken := w.take()
		w.wantIDs(taken, o)
		// Age may have moved the stored instant.
		i.CreatedAt = taken[0].Of.CreatedAt
		w.wantIntent(taken[0].Of, i)
	})
	s.test("R7OneRowForSeveralCallersAtOnce", intentRace)
	s.test("R7OneTenantForSeveralIntentsAtOnce", tenantRace)
	s.test("R7AnotherProcessGetsTheSameRow", func(w *world) {
		first := w.propose(IntentOf("acme", "agent", "task-1", "refund"))
		for _, l := range w.handles() {
			got, err := l.Intent(w.ctx, IntentOf("acme", "agent", "task-1", "refund"))
			w.must(err, "Intent")
			w.wantIntent(got, first)
		}
	})
}

func intentRace(w *world) {
	got := make([]store.Intent, 16)
	w.race(len(got), func(n int, l store.Ledger) (err error) {
		got[n], err = l.Intent(w.ctx, IntentOf("acme", "agent", "task-1", "refund"))
		return err
	})
	for _, i := range got[1:] {
		w.wantIntent(i, got[0])
	}
}

func tenantRace(w *world) {
	got := make([]store.Intent, 16)
	w.race(len(got), func(n int, l store.Ledger) (err error) {
		got[n], err = l.Intent(w.ctx, IntentOf("acme", "agent", fmt.Sprint("task-", n), "refund"))
		return err
	})
	for _, i := range got[1:] {
		want(w, "the tenant's id", i.Tenant, got[0].Tenant)
		want(w, "the tenant's key", string(i.TenantKey), string(got[0].TenantKey))
	}
}

func (w *world) wantIntent(got, wanted store.Intent) {
	w.Helper()
	for _, d := range intentDifferences(got, wanted) {
		w.Errorf("intent: %s", d)
	}
}

// handles returns the ledger, and where that can be, the same one as another
// process has it.
func (w *world) handles() []store.Ledger {
	w.Helper()
	if w.Again == nil {
		return []store.Ledger{w.Ledger}
	}
	return []store.Ledger{w.Ledger, w.Again(w.T)}
}

// race makes n calls at once, spread over the handles. Each may be told to try
// again where nothing was written.
func (w *world) race(n int, call func(n int, l store.Ledger) error) {
	w.Helper()
	handles := w.handles()
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			for range 100 {
				errs[i] = call(i, handles[i%len(handles)])
				var unwritten *store.UnwrittenError
				if !errors.As(errs[i], &unwritten) || !unwritten.Again {
					return
				}
			}
		})
	}
	close(start)
	wg.Wait()
	w.must(errors.Join(errs...), "one of several calls at once")
}
