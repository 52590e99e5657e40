package storetest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

func walks(s suite) {
	for seed := range uint64(12) {
		s.t.Run(fmt.Sprintf("R20AsTheLedgerInMemory/seed%d", seed), func(t *testing.T) {
			t.Parallel()
			Walk(t, s.open(t), seed, 150)
		})
	}
}

// Walk takes random steps (claims, changes, takes, renewals, purges, closed
// intents, time) on the ledger and on one in memory side by side, and compares
// what can be seen of them. Where the ledger can be opened again, the steps are taken in turn by
// two processes. The same seed takes the same steps. [Run] walks a few seeds; a fuzz
// test of a ledger can walk any.
//
// Instants are compared by their distance from the ledger's clock, to within
// slack. All spans are multiples of more than that, so that what has passed on
// one ledger has passed on the other.
func Walk(t *testing.T, w World, seed uint64, steps int) {
	clock := NewClock()
	reference := World{Ledger: memory.New(memory.WithClock(clock.Now)), Age: clock.Age}
	if w.Again != nil {
		w.Ledger = &alternating{Ledger: w.Ledger, other: w.Again(t)}
	}
	walker := newWalker(newWorld(t, w), newWorld(t, reference), seed)
	for step := range steps {
		walker.step()
		if t.Failed() {
			t.Fatalf("seed %d: the ledgers part at step %d, %s", seed, step, walker.last)
		}
	}
	walker.compareAll()
	if t.Failed() {
		t.Fatalf("seed %d: the ledgers differ after %d steps", seed, steps)
	}
}

// slack is how far apart the ledgers' clocks may be: what a slow machine takes
// for a walk.
const slack = 4 * time.Minute

// walker is a walk on two ledgers.
type walker struct {
	*rand.Rand
	got, ref *world
	last     string // the last step, for the report

	intents []store.Intent
	short   map[uuid.UUID]bool // intents that are closed as soon as they have done something
	slots   []*slot
	rows    map[uuid.UUID]*pair
	order   []uuid.UUID // of rows, so that a seed always picks the same
	runs    []uuid.UUID
	batches []uuid.UUID
	count   uint64
}

// slot is a place that the walk claims again and again.
type slot struct {
	kind   kind
	model  store.Operation
	number int // the highest that was recorded
}

// pair is one row as the walker last saw it on both ledgers, and before that.
type pair struct {
	got, ref       store.Operation
	oldGot, oldRef store.Operation
}

// kind is what a slot's claims ask for. Each kind can be refused for one reason
// only, since the order of refusals isn't said.
type kind uint8

const (
	plain    kind = iota // may come under another contract
	whole                // under a hold
	only                 // unique
	write                // idempotent, on a resource
	numbered             // guarded by the number before
	kinds
)

var kindNames = [kinds]string{"plain", "whole", "only", "write", "numbered"}

func newWalker(got, ref *world, seed uint64) *walker {
	k := &walker{Rand: rand.New(rand.NewPCG(seed, 0)), got: got, ref: ref, short: map[uuid.UUID]bool{}, rows: map[uuid.UUID]*pair{}}
	for _, tenant := range []string{"acme", "umbrella"} {
		for _, task := range []string{"t-1", "t-2"} {
			k.intent(tenant, "agent of "+task, task)
		}
	}
	for range 3 {
		k.runs, k.batches = append(k.runs, k.id()), append(k.batches, k.id())
	}
	k.batches[0] = uuid.Nil
	for n := range 5 * int(kinds) {
		k.slots = append(k.slots, k.newSlot(kind(n%int(kinds)), pick(k, k.intents)))
	}
	return k
}

// intent records an intent on both ledgers.
func (k *walker) intent(tenant, subject, task string) store.Intent {
	proposed := IntentOf(tenant, subject, task, "refund")
	proposed.ID, proposed.Tenant = k.id(), k.id()
	k.intents = append(k.intents, k.got.propose(proposed))
	return k.ref.propose(proposed)
}

func (k *walker) newSlot(of kind, in store.Intent) *slot {
	name := kindNames[of]
	o := Operation(in, Tool(name))
	o.Slot, o.Node = k.digest(), k.digest()
	switch of {
	case whole:
		o.Source = store.FromWhole
	case only:
		o.Unique = DigestOf(fmt.Sprint("only ", k.IntN(4)))
	case write:
		o.Class, o.ResourceKey = store.Idempotent, DigestOf(fmt.Sprint("door ", k.IntN(2)))
	}
	return &slot{kind: of, model: o}
}

// id returns ids in ascending order that depend on the seed alone.
func (k *walker) id() uuid.UUID {
	var id uuid.UUID
	k.count++
	binary.BigEndian.PutUint64(id[:8], k.count<<16)
	binary.BigEndian.PutUint64(id[8:], k.Uint64())
	return id
}

func (k *walker) digest() store.Digest { return store.Digest(k.id()) }

func (k *walker) bytes() []byte {
	id := k.id()
	return id[:]
}

// chance is true n times in a hundred.
func (k *walker) chance(n int) bool { return k.IntN(100) < n }

// span returns a duration whose sums are equal or differ by more than slack.
func (k *walker) span() time.Duration {
	return time.Duration(1+k.IntN(12))*time.Hour + time.Duration(k.IntN(6))*10*time.Minute
}

func pick[T any](k *walker, from []T) T { return from[k.IntN(len(from))] }

func (k *walker) age(d time.Duration) {
	k.got.age(d)
	k.ref.age(d)
}

func (k *walker) step() {
	switch n := k.IntN(100); {
	case n < 30:
		k.claim()
	case n < 65:
		k.change()
	case n < 73:
		k.take()
	case n < 77:
		k.renew()
	case n < 80:
		k.list()
	case n < 84:
		k.queue()
	case n < 88:
		k.purge()
	case n < 93:
		k.close()
	default:
		d := k.span()
		if k.chance(30) {
			d += store.ClosedGrace
		}
		k.last = fmt.Sprint("age by ", d)
		k.age(d)
	}
}
