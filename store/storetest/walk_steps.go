package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// claim makes one to three claims in one call.
func (k *walker) claim() {
	var slots []*slot
	for range 1 + k.IntN(3) {
		slots = append(slots, pick(k, k.slots))
	}
	k.claimAll(slots...)
}

func (k *walker) claimAll(slots ...*slot) {
	var claims []store.Claim
	for _, s := range slots {
		claims = append(claims, k.claimOn(s))
	}
	k.last = fmt.Sprintf("claim of %d", len(claims))
	got, ref := k.got.claimAll(claims...), k.ref.claimAll(claims...)
	for n := range claims {
		k.last += " " + kindNames[slots[n].kind]
		k.compareClaimed(got[n], ref[n])
		if ref[n].Won {
			slots[n].number = max(slots[n].number, ref[n].Operation.Number)
		}
	}
}

func (k *walker) claimOn(s *slot) store.Claim {
	o := s.model
	o.ID, o.Owner, o.Run, o.Batch = k.id(), k.id(), pick(k, k.runs), pick(k, k.batches)
	o.Visibility, o.Escalate, o.Trace = k.span(), k.span(), k.bytes()
	if k.chance(60) {
		o.Retention = k.span()
	}
	if relatives := k.within(o.Intent); len(relatives) > 0 && k.chance(25) {
		o.Parent = pick(k, relatives)
	}
	o.Number = max(1, s.number)
	if s.number > 0 && k.chance(40) {
		o.Number++
	}
	if k.chance(20) {
		o.State = store.AwaitingApproval
	}
	c := store.Claim{Operation: o, Lease: k.span(), Wait: k.span(), Actor: "walker", Look: k.chance(10), Likely: k.chance(50)}
	if k.chance(30) {
		c.KeyWindow = k.span()
	}
	if id, ok := k.atSlot(s); ok && k.chance(30) {
		c.Operation.Owner = k.rows[id].ref.Owner // its own claim once more
	}
	switch {
	case s.kind == plain && k.chance(20):
		c.Operation.Contract = DigestOf("another")
	case s.kind == whole:
		c.Hold = &store.Hold{Told: k.some(whole)}
	case s.kind == numbered:
		if id, ok := k.atSlot(s); ok {
			p := k.rows[id]
			c.After = []store.Guard{{ID: id, Version: pick(k, []int{p.ref.Version, p.ref.Version, p.oldRef.Version})}}
		}
	}
	return c
}

// atSlot finds the slot's highest number.
func (k *walker) atSlot(s *slot) (uuid.UUID, bool) {
	for _, id := range slices.Backward(k.order) {
		if o := k.rows[id].ref; o.Intent == s.model.Intent && o.Slot == s.model.Slot {
			return id, true
		}
	}
	return uuid.Nil, false
}

// within lists the operations of an intent: steps are in that of their parent (R13).
func (k *walker) within(intent uuid.UUID) []uuid.UUID {
	var ids []uuid.UUID
	for _, id := range k.order {
		if k.rows[id].ref.Intent == intent {
			ids = append(ids, id)
		}
	}
	return ids
}

// some picks operations of a kind.
func (k *walker) some(of kind) []uuid.UUID {
	var ids []uuid.UUID
	for _, id := range k.order {
		if k.rows[id].ref.Tool == kindNames[of] && k.chance(50) {
			ids = append(ids, id)
		}
	}
	return ids
}

// change moves a row, sometimes one that has moved on, sometimes as it mustn't.
func (k *walker) change() {
	if len(k.order) == 0 {
		return
	}
	p := k.rows[pick(k, k.order)]
	got, ref := p.got, p.ref
	if k.chance(15) && p.oldRef.Version > 0 {
		got, ref = p.oldGot, p.oldRef
	}
	allowed := k.nextStates(ref)
	to := pick(k, allowed)
	if slices.Contains(allowed, store.Running) && k.chance(35) {
		to = store.Running
	} else if other := pick(k, store.States()); k.chance(10) && !(store.Move{From: ref.State, To: other}).Allowed() {
		to = other
	}
	k.apply(got, ref, to)
}

// apply moves a row as it was seen on either ledger.
func (k *walker) apply(got, ref store.Operation, to store.State) {
	c := k.changeOf(ref, to)
	k.last = fmt.Sprintf("%s at version %d of %s (start: %v)", store.Move{From: ref.State, To: to}, ref.Version, ref.Tool, c.Start != nil)

	c.Of = ref
	wanted, wantErr := k.ref.Ledger.Apply(k.ref.ctx, c)
	c.Of = got
	after, err := k.got.Ledger.Apply(k.got.ctx, c)
	if wantErr != nil || err != nil {
		k.compareErrors(err, wantErr)
		return
	}
	k.compareRow(after, wanted)
}

func (k *walker) changeOf(o store.Operation, to store.State) store.Change {
	c := Change(o, to, func(c *store.Change) {
		c.Reason, c.Doubts, c.Told, c.Granted = fmt.Sprint("reason ", k.IntN(5)), k.IntN(3), k.chance(30), k.chance(30)
		c.Returned, c.Checked, c.Verdict = k.chance(40), k.chance(30), "inconclusive"
		c.Due = store.Due{In: k.span(), Set: k.chance(70), AtMoment: k.chance(40)}
		c.Resource = fmt.Sprint("r-", k.IntN(4))
		c.ResourceDigest = DigestOf(c.Resource)
		c.Result, c.ResultVersion, c.Flags = []byte(c.Resource), k.IntN(3), uint8(k.IntN(8))
	})
	if k.chance(20) {
		c.Visibility = k.span()
	}
	if k.chance(20) {
		c.Trace = k.bytes()
	}
	k.people(&c)
	switch {
	case to == store.Running && k.chance(80):
		c.Start = &store.Start{Owner: k.id(), Run: pick(k, k.runs), Batch: pick(k, k.batches),
			CallID: "call", Trace: k.bytes(), Lease: k.span(), Visibility: k.span()}
	case to == store.Completed && o.State != store.Completed:
		c.ByAttribute = k.chance(50)
	case o.State != store.Failed && k.chance(20):
		c.Decision = uuid.UUID{15: byte(1 + k.IntN(3))}
	}
	return c
}

// nextStates are those that a row may move to. A write of a closed intent doesn't
// fail here: it would go with its number, which may be given again.
func (k *walker) nextStates(o store.Operation) []store.State {
	var all []store.State
	for _, m := range store.Moves() {
		if m.From == o.State && (m.To != store.Failed || o.ResourceKey.IsZero() || !k.short[o.Intent]) {
			all = append(all, m.To)
		}
	}
	return all
}

func (k *walker) take() {
	t := store.Take{Lease: k.span(), Limit: 1 + k.IntN(6), Each: 1 + k.IntN(3)}
	if k.chance(60) {
		t.After = store.Pair{Tool: pick(k, kindNames[:]), Tenant: pick(k, k.intents).Tenant}
	}
	if k.chance(30) {
		t.Except = []string{pick(k, kindNames[:])}
	}
	if len(k.order) > 0 && k.chance(30) {
		t.Operation = pick(k, k.order)
	}
	ties := k.ties()
	if ties {
		t.Limit, t.Each = 0, 0
	}
	k.last = fmt.Sprintf("take of %d, each %d", t.Limit, t.Each)
	got, err := k.got.Ledger.Take(k.got.ctx, t)
	k.got.must(err, "Take")
	ref, err := k.ref.Ledger.Take(k.ref.ctx, t)
	k.ref.must(err, "Take")
	if ties {
		k.compareEntries(got, ref)
		return
	}
	k.compareInOrder(got, ref)
}

// ties says whether rows of one tool and tenant are due at instants that are
// too close to be in the same order on both ledgers.
func (k *walker) ties() bool {
	due := map[store.Pair][]time.Time{}
	for _, i := range k.intents {
		for _, o := range k.ref.inIntent(i) {
			if !o.Due() {
				continue
			}
			p := store.Pair{Tool: o.Tool, Tenant: o.Tenant}
			for _, other := range due[p] {
				if o.DueAt.Sub(other).Abs() < slack {
					return true
				}
			}
			due[p] = append(due[p], o.DueAt)
		}
	}
	return false
}

func (k *walker) renew() {
	var held []store.Held
	for _, id := range k.order {
		if k.chance(30) {
			held = append(held, store.Held{Operation: id, Owner: k.rows[id].ref.Owner})
		}
	}
	if k.chance(30) {
		held = append(held, store.Held{Operation: k.id(), Owner: k.id()})
	}
	lease := 13 * time.Hour // longer than any span: a lease is extended
	k.last = fmt.Sprintf("renewal of %d", len(held))
	got, ref := k.got.renew(lease, held...), k.ref.renew(lease, held...)
	if len(got) != len(ref) {
		k.got.Errorf("%d leases were lost, want %d", len(got), len(ref))
	}
	for _, h := range ref {
		if !slices.Contains(got, h) {
			k.got.Errorf("the lease on %s wasn't lost", h.Operation)
		}
	}
	for _, h := range held {
		if p := k.rows[h.Operation]; p != nil {
			k.compareRow(k.got.read(p.ref), k.ref.read(p.ref))
		}
	}
}

func (k *walker) list() {
	f := store.Filter{Limit: 1 + k.IntN(20)}
	if k.chance(40) {
		f.Tenant = pick(k, k.intents).TenantName
	}
	if k.chance(40) {
		f.Intent = pick(k, k.intents).ID
	}
	if k.chance(40) {
		f.Tool = pick(k, kindNames[:])
	}
	if k.chance(20) {
		f.Node = pick(k, k.slots).model.Node
	}
	for range k.IntN(4) {
		f.States = append(f.States, pick(k, store.States()))
	}
	if len(k.order) > 0 && k.chance(40) {
		f.After = pick(k, k.order)
	}
	k.last = "list"
	got, err := k.got.Ledger.List(k.got.ctx, f)
	k.got.must(err, "List")
	ref, err := k.ref.Ledger.List(k.ref.ctx, f)
	k.ref.must(err, "List")
	k.compareInOrder(got, ref)
}

// compareErrors requires both ledgers to have refused for the same reason.
func (k *walker) compareErrors(got, ref error) {
	k.got.Helper()
	if got == nil || ref == nil {
		k.got.Errorf("got the error %v, want %v", got, ref)
		return
	}
	var stale, wantStale *store.StaleError
	var blocked, wantBlocked *store.BlockedError
	switch {
	case errors.As(ref, &wantStale) && errors.As(got, &stale):
		want(k.got, "repeated", stale.Repeated, wantStale.Repeated)
		k.compareRow(stale.Current, wantStale.Current)
	case errors.As(ref, &wantBlocked) && errors.As(got, &blocked):
		want(k.got, "overtaken", blocked.Overtaken, wantBlocked.Overtaken)
		k.compareEntries(blocked.Others, wantBlocked.Others)
	case fmt.Sprintf("%T", got) != fmt.Sprintf("%T", ref):
		k.got.Errorf("got the error %v, want %v", got, ref)
	}
}
