package settle

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/store"
)

// rewrite writes the files in testdata anew. The vectors of keys are frozen: a
// derivation that gives other ones is a new version beside the old one (R7).
var rewrite = flag.Bool("settle.rewrite", false, "write the golden files in testdata anew")

// keyVectors is testdata/keys.json: what another implementation has to derive.
// All bytes are hexadecimal.
type keyVectors struct {
	Comment []string `json:"comment"`
	// Version is that of canonical form and derivation.
	Version int            `json:"version"`
	Intents []intentVector `json:"intents"`
	Keys    []keyVector    `json:"keys"`
	Prints  []printVector  `json:"fingerprints"`
}

// intentVector digests the names of an intent.
type intentVector struct {
	Tenant  string `json:"tenant"`
	Subject string `json:"subject"`
	Task    string `json:"task"`
	Goal    string `json:"goal"`
	Intent  string `json:"intent_digest"`
	OfTen   string `json:"tenant_digest"`
}

// keyVector derives an operation's key from the intent's key, and where the
// host names the node, the node and the slot too.
type keyVector struct {
	IntentKey  string `json:"intent_key"`
	TenantKey  string `json:"tenant_key"`
	Tenant     string `json:"tenant"`
	Subject    string `json:"subject"`
	Tool       string `json:"tool"`
	Source     string `json:"source"`
	HostNode   string `json:"host_node,omitempty"`
	Node       string `json:"node"`
	Occurrence int    `json:"occurrence"`
	Number     int    `json:"number"`
	Slot       string `json:"slot"`
	Key        string `json:"key"`
	UUID       string `json:"uuid"`
}

// printVector digests business arguments under a tenant's key, and the node
// that they make: of the identity fields, or of all of them.
type printVector struct {
	TenantKey   string            `json:"tenant_key"`
	Tool        string            `json:"tool"`
	Arguments   json.RawMessage   `json:"arguments"`
	Identity    []string          `json:"identity,omitempty"`
	Ignore      []string          `json:"ignore,omitempty"`
	Schema      json.RawMessage   `json:"schema,omitempty"`
	Fingerprint string            `json:"fingerprint"`
	Fields      map[string]string `json:"fields"`
	Node        string            `json:"node"`
}

func TestR11KeysAreDerivedAsPublished(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "keys.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want keyVectors
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if want.Version != derivationVersion {
		t.Fatalf("the vectors are of version %d and new intents of %d: keep the old vectors and add a file", want.Version, derivationVersion)
	}
	got := keyVectors{Comment: want.Comment, Version: want.Version}
	for _, v := range want.Intents {
		got.Intents = append(got.Intents, v.derive())
	}
	for _, v := range want.Keys {
		got.Keys = append(got.Keys, v.derive(t))
	}
	for _, v := range want.Prints {
		got.Prints = append(got.Prints, v.derive(t))
	}
	encoded := golden(t, got)
	if *rewrite {
		if err := os.WriteFile(path, encoded, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(encoded, raw) {
		t.Errorf("the derivation has changed: keys that far sides know would be others. Got:\n%s", encoded)
	}
	if len(want.Intents) == 0 || len(want.Keys) == 0 || len(want.Prints) == 0 {
		t.Error("there are no vectors")
	}
}

func golden(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (v intentVector) derive() intentVector {
	digest := intentDigest(Principal{v.Tenant, v.Subject}, Task{v.Task, v.Goal})
	tenant := tenantDigest(v.Tenant)
	v.Intent, v.OfTen = hex.EncodeToString(digest[:]), hex.EncodeToString(tenant[:])
	return v
}

func (v keyVector) derive(t *testing.T) keyVector {
	t.Helper()
	intent := store.Intent{Key: unhex(t, v.IntentKey), TenantKey: unhex(t, v.TenantKey), TenantName: v.Tenant, Subject: v.Subject, Version: derivationVersion}
	n := node{source: store.Source(v.Source)}
	if v.HostNode != "" {
		n = hostNode(under(intent.TenantKey), v.HostNode)
	} else {
		copy(n.digest[:], unhex(t, v.Node))
	}
	slot := n.slot(under(intent.Key), v.Tool, v.Occurrence)
	key := operationKeyOf(intent, store.Operation{Tool: v.Tool, Source: n.source, Node: n.digest, Occurrence: v.Occurrence, Number: v.Number})
	v.Node, v.Slot = hex.EncodeToString(n.digest[:]), hex.EncodeToString(slot[:])
	v.Key, v.UUID = key.String(), key.UUID().String()
	return v
}

func (v printVector) derive(t *testing.T) printVector {
	t.Helper()
	tool, err := RawTool{Name: v.Tool, Schema: v.Schema, Contract: Contract{
		Identity: v.Identity, WholeArguments: len(v.Identity) == 0, Ignore: v.Ignore, NoLookup: true}}.bind(0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRequest(tool, Call{Tool: v.Tool, Args: v.Arguments}, Principal{}, Task{}, canonical.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.identify(store.Intent{Key: make([]byte, 32), TenantKey: unhex(t, v.TenantKey), Version: derivationVersion}); err != nil {
		t.Fatal(err)
	}
	fields, err := readFields(r.print.fields)
	if err != nil {
		t.Fatal(err)
	}
	v.Fields = map[string]string{}
	for _, f := range fields {
		v.Fields[f.name] = hex.EncodeToString(f.digest[:])
	}
	v.Fingerprint, v.Node = hex.EncodeToString(r.print.whole[:]), hex.EncodeToString(r.node.digest[:])
	return v
}

func TestR11NoTwoListsOfPartsAreTheSameInput(t *testing.T) {
	t.Parallel()
	intent := store.Intent{Key: make([]byte, 32), TenantKey: make([]byte, 32), TenantName: "acme", Subject: "bot", Version: 1}
	base := store.Operation{Tool: "pay", Source: store.FromHost, Occurrence: 1, Number: 1}
	seen := map[Key]string{}
	add := func(name string, i store.Intent, o store.Operation) {
		key := operationKeyOf(i, o)
		if before, ok := seen[key]; ok {
			t.Errorf("%s and %s have one key", name, before)
		}
		seen[key] = name
	}
	add("base", intent, base)
	change := func(name string, f func(i *store.Intent, o *store.Operation)) {
		i, o := intent, base
		f(&i, &o)
		add(name, i, o)
	}
	change("version", func(i *store.Intent, _ *store.Operation) { i.Version = 2 })
	change("tenant", func(i *store.Intent, _ *store.Operation) { i.TenantName = "acmeb" })
	change("tenant to subject", func(i *store.Intent, _ *store.Operation) { i.TenantName, i.Subject = "acmeb", "ot" })
	change("subject to tool", func(i *store.Intent, o *store.Operation) { i.Subject, o.Tool = "bo", "tpay" })
	change("tool", func(_ *store.Intent, o *store.Operation) { o.Tool = "payh" })
	change("source", func(_ *store.Intent, o *store.Operation) { o.Source = store.FromWhole })
	change("tool to source", func(_ *store.Intent, o *store.Operation) { o.Tool, o.Source = "payh", "ost" })
	change("node", func(_ *store.Intent, o *store.Operation) { o.Node[15] = 1 })
	change("occurrence", func(_ *store.Intent, o *store.Operation) { o.Occurrence = 2 })
	change("number", func(_ *store.Intent, o *store.Operation) { o.Number = 2 })
	change("both", func(_ *store.Intent, o *store.Operation) { o.Occurrence, o.Number = 2, 2 })
	change("key", func(i *store.Intent, _ *store.Operation) { i.Key = append(make([]byte, 31), 1) })

	digests := map[[32]byte]bool{}
	for _, names := range [][4]string{{"a", "b", "c", "d"}, {"ab", "", "c", "d"}, {"", "ab", "c", "d"}, {"a", "bc", "", "d"}, {"a", "b", "cd", ""}, {"b", "a", "c", "d"}} {
		digests[intentDigest(Principal{names[0], names[1]}, Task{names[2], names[3]})] = true
	}
	if len(digests) != 6 {
		t.Errorf("%d digests of 6 intents", len(digests))
	}
}

func TestR11NothingThatChangesBetweenDeliveriesEntersAKey(t *testing.T) {
	t.Parallel()
	intent := store.Intent{Key: make([]byte, 32), TenantName: "acme", Subject: "bot", Version: 1, Task: "t", Goal: "g"}
	o := store.Operation{Tool: "pay", Source: store.FromHost, Occurrence: 1, Number: 1}
	want := operationKeyOf(intent, o)
	o.CallID, o.Attempt, o.Owner, o.Run, o.Batch, o.Trace, o.ID = "call_1", 7, newID(), newID(), newID(), []byte("trace"), newID()
	intent.ID, intent.Tenant = newID(), newID()
	if operationKeyOf(intent, o) != want {
		t.Error("the key depends on a delivery")
	}
}

func TestR15FieldDigestsCanBeReadBack(t *testing.T) {
	t.Parallel()
	encoded := appendField(appendField(nil, "a", [8]byte{1}), "", [8]byte{2})
	fields, err := readFields(encoded)
	if err != nil || len(fields) != 2 || fields[0].name != "a" || fields[1].digest != [8]byte{2} {
		t.Errorf("got %v, %v", fields, err)
	}
	for cut := 1; cut < len(encoded); cut++ {
		if cut == 10 {
			continue // one whole field
		}
		if _, err := readFields(encoded[:cut]); err == nil {
			t.Errorf("%d of %d bytes were read", cut, len(encoded))
		}
	}
	for _, broken := range [][]byte{{0xff}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, {0x80}} {
		if _, err := readFields(broken); err == nil {
			t.Errorf("%x was read", broken)
		}
		if fields := differing(broken, encoded, func(string) bool { return true }); fields != nil {
			t.Errorf("%x differs in %v", broken, fields)
		}
	}
}

// TestR11DigestsAreHMACSHA256 compares with crypto/hmac, for keys and lists
// shorter and longer than a block, and for the second list under a key.
func TestR11DigestsAreHMACSHA256(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 31, 32, 63, 64, 65, 500} {
		key := bytes.Repeat([]byte{7}, size)
		d := under(key)
		for _, length := range []int{0, 1, 47, 48, 300, 400, 5000, 3} {
			part := bytes.Repeat([]byte{'x'}, length)
			d.begin("settle test")
			d.bytes(part)
			h := hmac.New(sha256.New, key)
			h.Write(appendPart(appendPart(nil, "settle test"), part))
			if got := d.whole(); !bytes.Equal(got[:], h.Sum(nil)) {
				t.Errorf("a key of %d bytes and a part of %d: the digest isn't HMAC-SHA-256", size, length)
			}
		}
	}
}
