package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// people adds to a change what operators do, and incidents.
func (k *walker) people(c *store.Change) {
	c.Resolve = k.chance(20)
	if k.chance(20) {
		c.Take = new(pick(k, []string{"ann", "bob", ""}))
	}
	if k.chance(20) {
		c.Proposal = new([]byte(pick(k, []string{"fail", "happened", ""})))
	}
	if c.To.Settled() && k.chance(10) || c.To == store.Running && k.chance(10) {
		c.Incident = "late_success"
	}
}

// queue reads cases page by page.
func (k *walker) queue() {
	f := store.CaseFilter{Closed: k.chance(60), Free: k.chance(15)}
	if k.chance(30) {
		f.Tenant = pick(k, k.intents).TenantName
	}
	if k.chance(20) {
		f.Tool = pick(k, kindNames[:])
	}
	if k.chance(20) {
		f.Reason = fmt.Sprint("reason ", k.IntN(5))
	}
	if k.chance(20) {
		f.Holder = pick(k, []string{"ann", "bob"})
	}
	if k.chance(30) {
		f.OlderThan = k.span()
	}
	if len(k.order) > 0 && k.chance(20) {
		f.Operation = pick(k, k.order)
	}
	for range k.IntN(3) {
		f.States = append(f.States, pick(k, store.States()))
	}
	f.Limit = 1 + k.IntN(5)
	k.last = fmt.Sprintf("queue %+v", f)
	k.compareCases(k.got.allCases(f), k.ref.allCases(f))
}

// allCases reads the queue to its end.
func (w *world) allCases(f store.CaseFilter) []store.CaseEntry {
	w.Helper()
	var all []store.CaseEntry
	for range 1000 {
		page := w.cases(f)
		all = append(all, page...)
		if len(page) == 0 {
			return all
		}
		f.After = cursorOf(page[len(page)-1])
	}
	w.Fatal("the queue doesn't end")
	return nil
}

// compareCases compares cases in any order: ids are the ledgers' own, and cases
// are opened at instants that are close to one another.
func (k *walker) compareCases(got, ref []store.CaseEntry) {
	k.got.Helper()
	if len(got) != len(ref) {
		k.got.Errorf("got %d cases, want %d", len(got), len(ref))
		return
	}
	name := func(c store.Case) string {
		return fmt.Sprint(c.Operation, c.Tenant, c.Tool, c.Reason, c.Incident, c.ClosedAt.IsZero(), c.Holder, string(c.Proposal))
	}
	inOrder := func(a, b store.CaseEntry) int {
		if names := strings.Compare(name(a.Case), name(b.Case)); names != 0 {
			return names
		}
		return a.Case.OpenedAt.Compare(b.Case.OpenedAt)
	}
	slices.SortFunc(got, inOrder)
	slices.SortFunc(ref, inOrder)
	for n := range ref {
		k.compareInOrder([]store.Entry{got[n].Entry}, []store.Entry{ref[n].Entry})
		wanted := ref[n].Case
		wanted.ID = got[n].Case.ID
		for _, at := range caseInstants {
			g, r := at(&got[n].Case), at(&wanted)
			apart := g.Sub(got[n].Entry.Read) - r.Sub(ref[n].Entry.Read)
			if g.IsZero() == r.IsZero() && (g.IsZero() || apart.Abs() < slack) {
				*r = *g
			}
		}
		if wanted.Holder == "" {
			wanted.HeldAt = got[n].Case.HeldAt
		}
		k.got.wantCase(got[n].Case, wanted)
	}
}

// caseInstants are those that age with the case.
var caseInstants = [...]func(*store.Case) *time.Time{
	func(c *store.Case) *time.Time { return &c.OpenedAt },
	func(c *store.Case) *time.Time { return &c.ClosedAt },
	func(c *store.Case) *time.Time { return &c.HeldAt },
}

// purge purges to the end, from the beginning or from some operation.
func (k *walker) purge() {
	p := store.Purge{Limit: 1 + k.IntN(20)}
	if len(k.order) > 0 && k.chance(15) {
		p.After = pick(k, k.order)
	}
	if k.chance(10) {
		p.Principal = pick(k, k.intents).Principal
	}
	k.last = fmt.Sprintf("purge of %d", p.Limit)
	want(k.got, "operations that were removed", k.got.purgeFrom(p), k.ref.purgeFrom(p))
	k.order = slices.DeleteFunc(k.order, k.compareSettled)
}

// compareSettled compares a settled row, and says whether it is gone.
func (k *walker) compareSettled(id uuid.UUID) bool {
	o := k.rows[id].ref
	if !o.State.Settled() {
		return false
	}
	if !k.ref.gone(o) {
		k.compareRow(k.got.read(o), k.ref.read(o))
		return false
	}
	k.got.wantGone(o)
	delete(k.rows, id)
	return true
}

// close lets an intent do something, mostly to its end, and closes it. Its slots
// are claimed again like all others, as by a process that knew it from before.
func (k *walker) close() {
	i := k.intent(pick(k, []string{"acme", "umbrella"}), "agent", fmt.Sprint("short ", k.count))
	k.short[i.ID] = true
	for range k.IntN(4) {
		s := k.newSlot(kind(k.IntN(int(kinds))), i)
		k.slots = append(k.slots, s)
		k.claimAll(s)
		id, ok := k.atSlot(s)
		if !ok {
			continue
		}
		o := k.rows[id]
		allowed := slices.DeleteFunc(k.nextStates(o.ref), func(to store.State) bool { return !to.Settled() && !k.chance(5) })
		k.apply(o.got, o.ref, pick(k, allowed))
	}
	tenant := i.TenantName
	if k.chance(10) {
		tenant = "nobody"
	}
	for range 1 + k.IntN(2) {
		err := k.got.Ledger.CloseIntent(k.got.ctx, tenant, i.ID)
		wanted := k.ref.Ledger.CloseIntent(k.ref.ctx, tenant, i.ID)
		k.last = fmt.Sprint("close: ", wanted)
		if !errors.Is(err, wanted) {
			k.got.Errorf("got the error %v, want %v", err, wanted)
		}
	}
	for _, o := range k.ref.inIntent(i) {
		k.compareRow(k.got.read(o), o)
	}
}
