package settle

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"

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

// deriver digests lists of parts under a key (HMAC-SHA-256, RFC 2104), each part
// with its length before it, so that no two lists are the same input. It is one
// goroutine's, and made once for many lists. A call digests some nine short ones:
// crypto/hmac, which is made for long inputs, took four times as long for them.
type deriver struct {
	// list is the key's inner block and the parts; outer is its outer block with
	// room for the inner digest.
	list  []byte
	outer [sha256.BlockSize + sha256.Size]byte
	room  [sha256.BlockSize + 384]byte
}

func under(key []byte) *deriver {
	if len(key) > sha256.BlockSize {
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	d := &deriver{}
	copy(d.room[:], key)
	copy(d.outer[:], key)
	for i := range sha256.BlockSize {
		d.room[i] ^= 0x36
		d.outer[i] ^= 0x5c
	}
	d.list = d.room[:sha256.BlockSize]
	return d
}

// begin starts a list, whose first part says what it is for.
func (d *deriver) begin(purpose string) {
	d.list = d.list[:sha256.BlockSize]
	d.text(purpose)
}

func (d *deriver) number(n uint64) { d.list = binary.BigEndian.AppendUint64(d.list, n) }
func (d *deriver) bytes(b []byte)  { d.list = appendPart(d.list, b) }
func (d *deriver) text(s string)   { d.list = appendPart(d.list, s) }

func appendPart[T string | []byte](dst []byte, part T) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(len(part))), part...)
}

// whole ends the list with its digest.
func (d *deriver) whole() [sha256.Size]byte {
	inner := sha256.Sum256(d.list)
	copy(d.outer[sha256.BlockSize:], inner[:])
	return sha256.Sum256(d.outer[:])
}

// digest ends the list with the digest that a ledger indexes.
func (d *deriver) digest() store.Digest { return shortened(d.whole()) }

func shortened(sum [sha256.Size]byte) store.Digest {
	var d store.Digest
	return store.Digest(sum[:len(d)])
}

// digestOf digests a list of parts without a key: SHA-256.
func digestOf(purpose string, parts ...string) [sha256.Size]byte {
	var room [512]byte
	list := appendPart(room[:0], purpose)
	for _, part := range parts {
		list = appendPart(list, part)
	}
	return sha256.Sum256(list)
}

// intentDigest names an intent in the ledger's index (R7, R12).
func intentDigest(p Principal, t Task) [32]byte {
	return digestOf("settle intent", p.Tenant, p.Subject, t.ID, t.Goal)
}

// tenantDigest names a tenant in the ledger's index.
func tenantDigest(tenant string) [32]byte { return digestOf("settle tenant", tenant) }

// principalDigest names a principal in the ledger (R52).
func principalDigest(p Principal) [32]byte { return digestOf("settle principal", p.Tenant, p.Subject) }

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

// slot is the digest of tool, node and occurrence under the intent's key (R9):
// the numbers of one slot are numbered together (R10).
func (n node) slot(byIntent *deriver, tool string, occurrence int) store.Digest {
	byIntent.begin("settle slot")
	byIntent.text(tool)
	byIntent.text(string(n.source))
	byIntent.bytes(n.digest[:])
	byIntent.number(uint64(occurrence))
	return byIntent.digest()
}

// operationKeyOf derives an operation's key (R11). Nothing that changes between
// deliveries enters: no call ids, positions, turns or clocks.
func operationKeyOf(intent store.Intent, o store.Operation) Key {
	return operationKeyUnder(under(intent.Key), &intent, &o)
}

// operationKeyUnder is operationKeyOf with a deriver under the intent's key.
func operationKeyUnder(d *deriver, intent *store.Intent, o *store.Operation) Key {
	d.begin("settle key")
	d.number(uint64(intent.Version))
	d.text(intent.TenantName)
	d.text(intent.Subject)
	d.text(o.Tool)
	d.text(string(o.Source))
	d.bytes(o.Node[:])
	d.number(uint64(o.Occurrence))
	d.number(uint64(o.Number))
	return d.whole()
}

// hostNode is the node that the host names itself.
func hostNode(byTenant *deriver, name string) node {
	byTenant.begin("settle node")
	byTenant.text(string(store.FromHost))
	byTenant.text(name)
	return node{store.FromHost, byTenant.digest()}
}

// stepNode is the node of a composite's step: the parent's key and the step's name (R13).
func stepNode(byTenant *deriver, parent Key, name string) node {
	byTenant.begin("settle node")
	byTenant.text(string(store.FromStep))
	byTenant.bytes(parent[:])
	byTenant.text(name)
	return node{store.FromStep, byTenant.digest()}
}
