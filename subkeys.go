package settle

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash"

	"github.com/google/uuid"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/store"
)

// derivationVersion is the version of canonical form and key derivation that
// new intents are pinned to (R7).
const derivationVersion = canonical.Version

// Key is an operation's key: what the far side deduplicates on (R11).
type Key [32]byte

var keyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String renders the key as 39 characters of [a-z0-9_].
func (k Key) String() string { return "settle_" + keyEncoding.EncodeToString(k[:20]) }

// UUID renders the key as a UUID of version 8 (RFC 9562, section 5.8).
func (k Key) UUID() uuid.UUID {
	var id uuid.UUID
	copy(id[:], k[:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// deriver writes length-prefixed parts into a hash, so that no two lists of
// parts are the same input.
type deriver struct{ hash.Hash }

func derive(key []byte, purpose string) deriver {
	d := deriver{hmac.New(sha256.New, key)}
	d.text(purpose)
	return d
}

func (d deriver) bytes(b []byte) {
	d.number(uint64(len(b)))
	d.Write(b)
}

func (d deriver) text(s string) { d.bytes([]byte(s)) }

func (d deriver) number(n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	d.Write(b[:])
}

func (d deriver) digest() (out store.Digest) {
	copy(out[:], d.Sum(nil))
	return out
}

// intentDigest names an intent in the ledger's index (R7, R12).
func intentDigest(p Principal, t Task) [32]byte {
	d := deriver{sha256.New()}
	for _, s := range []string{"settle intent", p.Tenant, p.Subject, t.ID, t.Goal} {
		d.text(s)
	}
	return [32]byte(d.Sum(nil))
}

// tenantDigest names a tenant in the ledger's index.
func tenantDigest(tenant string) [32]byte {
	d := deriver{sha256.New()}
	d.text("settle tenant")
	d.text(tenant)
	return [32]byte(d.Sum(nil))
}

// principalDigest names a principal in the ledger (R52).
func principalDigest(p Principal) [32]byte {
	d := deriver{sha256.New()}
	d.text("settle principal")
	d.text(p.Tenant)
	d.text(p.Subject)
	return [32]byte(d.Sum(nil))
}

// newIntent proposes an intent's row, with fresh random keys.
func newIntent(p Principal, t Task) store.Intent {
	return store.Intent{
		ID: newID(), Digest: intentDigest(p, t), Tenant: uuid.New(), TenantDigest: tenantDigest(p.Tenant),
		Principal: principalDigest(p), TenantName: p.Tenant, Subject: p.Subject, Task: t.ID, Goal: t.Goal,
		Key: randomKey(), TenantKey: randomKey(), Version: derivationVersion,
	}
}

// randomKey returns 256 random bits. crypto/rand doesn't fail on the systems
// that Go supports; it ends the program rather than return less.
func randomKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) //nolint:errcheck // never fails, see above
	return key
}

// newID returns a random reference in the order of time (UUID version 7).
func newID() uuid.UUID {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.New()
	}
	return id
}

// node is one side effect in an intent (R8), before its occurrence and number.
type node struct {
	source store.Source
	digest store.Digest
}

// slot is the digest of tool, node and occurrence (R9): the numbers of one slot
// are numbered together (R10).
func (n node) slot(intent store.Intent, tool string, occurrence int) store.Digest {
	d := derive(intent.Key, "settle slot")
	d.text(tool)
	d.text(string(n.source))
	d.bytes(n.digest[:])
	d.number(uint64(occurrence))
	return d.digest()
}

// operationKeyOf derives an operation's key (R11). Nothing that changes between
// deliveries enters: no call ids, positions, turns or clocks.
func operationKeyOf(intent store.Intent, o store.Operation) Key {
	d := derive(intent.Key, "settle key")
	d.number(uint64(intent.Version))
	d.text(intent.TenantName)
	d.text(intent.Subject)
	d.text(o.Tool)
	d.text(string(o.Source))
	d.bytes(o.Node[:])
	d.number(uint64(o.Occurrence))
	d.number(uint64(o.Number))
	return Key(d.Sum(nil))
}

// hostNode is the node that the host names itself.
func hostNode(intent store.Intent, name string) node {
	d := derive(intent.TenantKey, "settle node")
	d.text(string(store.FromHost))
	d.text(name)
	return node{store.FromHost, d.digest()}
}

// stepNode is the node of a composite's step: the parent's key and the step's name (R13).
func stepNode(intent store.Intent, parent Key, name string) node {
	d := derive(intent.TenantKey, "settle node")
	d.text(string(store.FromStep))
	d.bytes(parent[:])
	d.text(name)
	return node{store.FromStep, d.digest()}
}
