package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

func (k *walker) compareClaimed(got, ref store.Claimed) {
	k.got.Helper()
	want(k.got, "won", got.Won, ref.Won)
	want(k.got, "the refusal", got.Refused, ref.Refused)
	want(k.got, "rows in the slot", len(got.Slot), len(ref.Slot))
	want(k.got, "a newest write", got.Newest != nil, ref.Newest != nil)
	if k.got.Failed() {
		return
	}
	if ref.Won {
		k.compareRow(got.Operation, ref.Operation)
	}
	for n := range ref.Slot {
		k.compareRow(got.Slot[n], ref.Slot[n])
	}
	k.compareEntries(got.Others, ref.Others)
	if ref.Newest != nil {
		k.compareInOrder([]store.Entry{*got.Newest}, []store.Entry{*ref.Newest})
	}
}

// compareEntries compares entries in any order.
func (k *walker) compareEntries(got, ref []store.Entry) {
	k.got.Helper()
	byID := func(entries []store.Entry) []store.Entry {
		entries = slices.Clone(entries)
		slices.SortFunc(entries, func(a, b store.Entry) int { return slices.Compare(a.ID[:], b.ID[:]) })
		return entries
	}
	k.compareInOrder(byID(got), byID(ref))
}

func (k *walker) compareInOrder(got, ref []store.Entry) {
	k.got.Helper()
	ids := func(entries []store.Entry) (all []uuid.UUID) {
		for _, e := range entries {
			all = append(all, e.ID)
		}
		return all
	}
	if !slices.Equal(ids(got), ids(ref)) {
		k.got.Errorf("got the operations %v, want %v", ids(got), ids(ref))
		return
	}
	for n := range ref {
		k.compareRow(got[n].Operation, ref[n].Operation)
		g, r := got[n].Of, ref[n].Of
		want(k.got, "closed", !g.ClosedAt.IsZero(), !r.ClosedAt.IsZero())
		g.CreatedAt, g.ClosedAt = r.CreatedAt, r.ClosedAt
		k.got.wantIntent(g, r)
	}
}

// compareRow compares two rows and remembers them as last seen. The chains
// differ, since the ledgers' instants do.
func (k *walker) compareRow(got, ref store.Operation) {
	k.got.Helper()
	k.remember(got, ref)
	got.Tail, got.TailAt = ref.Tail, ref.TailAt
	for _, at := range instants {
		g, r := at(&got), at(&ref)
		apart := g.Sub(got.Read) - r.Sub(ref.Read)
		if g.IsZero() == r.IsZero() && (g.IsZero() || apart.Abs() < slack) {
			*g = *r
		}
	}
	for _, d := range differences(got, ref) {
		k.got.Errorf("operation %s (%s): %s", ref.ID, ref.Tool, d)
	}
}

// instants are those that age with the row.
var instants = [...]func(*store.Operation) *time.Time{
	func(o *store.Operation) *time.Time { return &o.LeaseUntil },
	func(o *store.Operation) *time.Time { return &o.DueAt },
	func(o *store.Operation) *time.Time { return &o.Moment },
	func(o *store.Operation) *time.Time { return &o.KeyUntil },
	func(o *store.Operation) *time.Time { return &o.CreatedAt },
	func(o *store.Operation) *time.Time { return &o.FirstSent },
	func(o *store.Operation) *time.Time { return &o.UnknownSince },
	func(o *store.Operation) *time.Time { return &o.SettledAt },
}

func (k *walker) remember(got, ref store.Operation) {
	p, ok := k.rows[ref.ID]
	if !ok {
		p = &pair{}
		k.rows[ref.ID] = p
		k.order = append(k.order, ref.ID)
	}
	if p.ref.Version != ref.Version {
		p.oldGot, p.oldRef = p.got, p.ref
	}
	p.got, p.ref = got, ref
}

// compareAll compares everything that was recorded.
func (k *walker) compareAll() {
	every := store.CaseFilter{Closed: true, Limit: 1000}
	k.compareCases(k.got.allCases(every), k.ref.allCases(every))
	for _, i := range k.intents {
		got, ref := k.got.inIntent(i), k.ref.inIntent(i)
		want(k.got, "operations of an intent", len(got), len(ref))
		for n := range min(len(got), len(ref)) {
			k.compareRow(got[n], ref[n])
			k.compareJournal(got[n], ref[n])
			k.got.verify(got[n])
		}
	}
}

func (k *walker) compareJournal(got, ref store.Operation) {
	events, wanted := k.got.journal(got), k.ref.journal(ref)
	want(k.got, "events", len(events), len(wanted))
	for n := range min(len(events), len(wanted)) {
		e := wanted[n]
		e.At, e.Hash = events[n].At, events[n].Hash
		k.got.wantEvents(events[n:n+1], e)
	}
}
