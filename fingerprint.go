package settle

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
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

// part is one business argument, or one upstream resource, in canonical bytes.
type part struct {
	name    string
	encoded []byte
}

// takeFingerprint digests the business arguments. Upstream resources come under
// names that no argument can have (R13).
func takeFingerprint(byTenant *deriver, version int, tool string, business []part, upstream map[string]string) fingerprint {
	for step, resource := range upstream {
		business = append(business, part{"\x00after " + step, []byte(resource)})
	}
	slices.SortFunc(business, func(a, b part) int { return strings.Compare(a.name, b.name) })

	size := 0
	for _, p := range business {
		size += len(p.name) + fieldRoom
	}
	f := fingerprint{fields: make([]byte, 0, size)}
	for i, p := range business {
		if i == maxFields {
			break
		}
		f.fields = appendField(f.fields, p.name, digestField(byTenant, version, tool, p))
	}
	byTenant.begin("settle fingerprint")
	byTenant.number(uint64(version))
	byTenant.text(tool)
	for _, p := range business {
		byTenant.text(p.name)
		byTenant.bytes(p.encoded)
	}
	f.whole = byTenant.whole()
	return f
}

func digestField(byTenant *deriver, version int, tool string, p part) (out [8]byte) {
	byTenant.begin("settle field")
	byTenant.number(uint64(version))
	byTenant.text(tool)
	byTenant.text(p.name)
	byTenant.bytes(p.encoded)
	sum := byTenant.whole()
	copy(out[:], sum[:])
	return out
}

// fieldRoom is what a field takes beside its name, most of which are short.
const fieldRoom = 1 + 8

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
