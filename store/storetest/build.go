package storetest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Lease is how long the attempts that [Claim] and [Attempt] make may run: far
// longer than any test, so that time passes only where a test says so.
const Lease = time.Hour

// Visibility is the VisibilityDelay of what [Operation] makes.
const Visibility = 10 * time.Minute

// Retention is how long the ledger keeps the payload of what [Operation] makes.
const Retention = 30 * 24 * time.Hour

// ID returns a new id that sorts behind those made before it, as the ids of
// operations do.
func ID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// DigestOf returns a digest that is equal for equal texts.
func DigestOf(text string) store.Digest {
	sum := sha256.Sum256([]byte(text))
	return store.Digest(sum[:16])
}

// SomeDigest returns a digest that no other call returns.
func SomeDigest() store.Digest { return DigestOf(uuid.NewString()) }

// NewIntent proposes an intent that no ledger has yet, of the tenant "acme".
func NewIntent() store.Intent { return IntentOf("acme", "agent", "task-"+uuid.NewString(), "refund") }

// IntentOf proposes the intent of the given names, with new ids and keys.
func IntentOf(tenant, subject, task, goal string) store.Intent {
	return store.Intent{
		ID: ID(), Digest: digest(tenant, subject, task, goal),
		Tenant: uuid.New(), TenantDigest: digest(tenant),
		Principal: digest(tenant, subject), TenantName: tenant, Subject: subject, Task: task, Goal: goal,
		Key: Bytes(32), TenantKey: Bytes(32), Version: 1,
	}
}

// digest is over the names, each length-prefixed.
func digest(names ...string) [32]byte {
	var b []byte
	for _, n := range names {
		b = binary.BigEndian.AppendUint64(b, uint64(len(n)))
		b = append(b, n...)
	}
	return sha256.Sum256(b)
}

// Bytes returns n random bytes.
func Bytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// Operation returns an operation of the intent to be claimed, running, on a
// slot of its own, of the tool "refund". Edits change it before it is returned.
func Operation(intent store.Intent, edits ...func(*store.Operation)) store.Operation {
	o := store.Operation{
		ID: ID(), Intent: intent.ID, Tenant: intent.Tenant,
		Slot: SomeDigest(), Number: 1,
		Tool: "refund", Class: store.Unsafe, Contract: DigestOf("refund 1"),
		Source: store.FromIdentity, Node: SomeDigest(), Occurrence: 1,
		State: store.Running,
		Owner: uuid.New(), Run: uuid.New(), Batch: uuid.New(),
		Visibility: Visibility, Escalate: 30 * time.Minute, Retention: Retention,
		Fingerprint: sha256.Sum256([]byte("fingerprint")), Fields: []byte(`{"order":"aa"}`),
		Arguments: []byte(`{"order":"o-1","amount":"12.50"}`),
		CallID:    "call_1", Trace: Bytes(24),
	}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

// Tool names the tool, with the contract that belongs to it.
func Tool(name string) func(*store.Operation) {
	return func(o *store.Operation) { o.Tool, o.Contract = name, DigestOf(name+" 1") }
}

// In begins the operation in a state other than Running.
func In(state store.State) func(*store.Operation) {
	return func(o *store.Operation) { o.State = state }
}

// Within makes the operation a step of a composite one, or what undoes another
// one where the source says so.
func Within(parent store.Operation) func(*store.Operation) {
	return func(o *store.Operation) { o.Parent = parent.ID }
}

// On puts the operation on the slot of another one, as the given number.
func On(other store.Operation, number int) func(*store.Operation) {
	return func(o *store.Operation) {
		o.Slot, o.Node, o.Occurrence, o.Number = other.Slot, other.Node, other.Occurrence, number
		o.Tool, o.Contract, o.Class, o.Source = other.Tool, other.Contract, other.Class, other.Source
		o.Unique, o.ResourceKey = other.Unique, other.ResourceKey
	}
}

// Writes makes the operation an idempotent write on a resource (R31).
func Writes(resource store.Digest) func(*store.Operation) {
	return func(o *store.Operation) { o.Class, o.ResourceKey = store.Idempotent, resource }
}

// Whole makes the operation one of a whole-arguments tool (R30).
func Whole(o *store.Operation) { o.Source = store.FromWhole }

// Claim returns a claim of the operation under [Lease].
func Claim(o store.Operation, edits ...func(*store.Claim)) store.Claim {
	c := store.Claim{Operation: o, Lease: Lease, Wait: time.Minute, Actor: "executor"}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

// UnderHold adds the hold (R30) to a claim, but for the operations that were told.
func UnderHold(told ...uuid.UUID) func(*store.Claim) {
	return func(c *store.Claim) { c.Hold = &store.Hold{Told: told} }
}

// Look makes the claim one that only reads.
func Look(c *store.Claim) { c.Look = true }

// After makes the claim only while the operations stand as they were seen.
func After(seen ...store.Operation) func(*store.Claim) {
	return func(c *store.Claim) {
		for _, o := range seen {
			c.After = append(c.After, store.Guard{ID: o.ID, Version: o.Version})
		}
	}
}

// Change returns a move of the operation as it was last seen.
func Change(of store.Operation, to store.State, edits ...func(*store.Change)) store.Change {
	c := store.Change{
		Of: of, To: to, Kind: "moved", Actor: "executor", Reason: "because",
		Body: []byte(`{"note":"moved"}`), Doubts: of.Doubts, Told: of.Told, Granted: of.Granted,
	}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

// Attempt returns a change that begins another attempt under [Lease].
func Attempt(of store.Operation, edits ...func(*store.Change)) store.Change {
	c := Change(of, store.Running, func(c *store.Change) {
		c.Kind = "started"
		c.Start = &store.Start{
			Owner: uuid.New(), Run: uuid.New(), Batch: uuid.New(),
			CallID: "call_2", Trace: Bytes(24), Lease: Lease,
		}
	})
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

// Completion returns a change that records what happened.
func Completion(of store.Operation, resource string, edits ...func(*store.Change)) store.Change {
	c := Change(of, store.Completed, func(c *store.Change) {
		c.Kind, c.Returned, c.Reason = "settled", of.State == store.Running, ""
		c.Resource, c.ResourceDigest = resource, DigestOf(resource)
		c.Result, c.ResultVersion = []byte(`{"id":"r-1"}`), 1
	})
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

// Clock is the machine's clock, which a test can put on.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

// NewClock returns a clock that shows the time.
func NewClock() *Clock { return &Clock{} }

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Age puts the clock on by d: see [World].
func (c *Clock) Age(_ testing.TB, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}
