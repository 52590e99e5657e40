package settle

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/store"
)

// fingerprint is what a call means (R15): digests under the tenant's key over
// the business arguments, together and one by one.
type fingerprint struct {
	whole  [32]byte
	fields []byte
}

// fieldDigest is one field's digest in a fingerprint.
type fieldDigest struct {
	name   string
	digest [8]byte
}

// maxFields bounds the fields that are digested one by one; a call with more is
// still compared as a whole.
const maxFields = 256

// takeFingerprint digests the business arguments. Upstream resources come under
// names that no argument can have (R13).
func takeFingerprint(intent store.Intent, tool string, business map[string]canonical.Value, upstream map[string]string) fingerprint {
	names := make([]string, 0, len(business)+len(upstream))
	encoded := make(map[string][]byte, len(business)+len(upstream))
	for name, v := range business {
		names = append(names, name)
		encoded[name] = canonical.Append(nil, v)
	}
	for step, resource := range upstream {
		name := "\x00after " + step
		names = append(names, name)
		encoded[name] = []byte(resource)
	}
	slices.Sort(names)

	whole := derive(intent.TenantKey, "settle fingerprint")
	whole.number(uint64(intent.Version))
	whole.text(tool)
	f := fingerprint{fields: make([]byte, 0, len(names)*20)}
	for i, name := range names {
		whole.text(name)
		whole.bytes(encoded[name])
		if i < maxFields {
			f.fields = appendField(f.fields, name, digestField(intent, tool, name, encoded[name]))
		}
	}
	whole.Sum(f.whole[:0])
	return f
}

func digestField(intent store.Intent, tool, name string, encoded []byte) (out [8]byte) {
	d := derive(intent.TenantKey, "settle field")
	d.number(uint64(intent.Version))
	d.text(tool)
	d.text(name)
	d.bytes(encoded)
	copy(out[:], d.Sum(nil))
	return out
}

func appendField(dst []byte, name string, digest [8]byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	dst = append(dst, name...)
	return append(dst, digest[:]...)
}

var errFields = errors.New("settle: the recorded field digests can't be read")

// readFields is the inverse of appendField.
func readFields(encoded []byte) ([]fieldDigest, error) {
	var fields []fieldDigest
	for len(encoded) > 0 {
		n, width := binary.Uvarint(encoded)
		if width <= 0 || n > uint64(len(encoded)) || uint64(len(encoded)-width) < n+8 {
			return nil, errFields
		}
		encoded = encoded[width:]
		f := fieldDigest{name: string(encoded[:n])}
		copy(f.digest[:], encoded[n:])
		fields = append(fields, f)
		encoded = encoded[n+8:]
	}
	return fields, nil
}

// differing names the fields in which two fingerprints differ, in order. Names
// are the schema's; a field that today's schema doesn't know is left to "other".
func differing(recorded, given []byte, known func(string) bool) []string {
	a, errA := readFields(recorded)
	b, errB := readFields(given)
	if errA != nil || errB != nil {
		return nil
	}
	digests := map[string][8]byte{}
	for _, f := range a {
		digests[f.name] = f.digest
	}
	differ := map[string]bool{}
	for _, f := range b {
		if d, ok := digests[f.name]; !ok || d != f.digest {
			differ[f.name] = true
		}
		delete(digests, f.name)
	}
	for name := range digests {
		differ[name] = true
	}
	return showFields(differ, known)
}

func showFields(differ map[string]bool, known func(string) bool) []string {
	var names []string
	for name := range differ {
		switch {
		case len(name) > 0 && name[0] == 0:
			name = "upstream"
		case !known(name):
			name = "other"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
