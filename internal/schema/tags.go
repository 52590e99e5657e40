package schema

import (
	"reflect"
	"slices"
	"strings"
)

// Tags is what a field's settle tag says, as in settle:"identity,secret".
type Tags struct {
	// Identity: the field's value is part of the node (R8).
	Identity bool
	// Ignore: the field stays out of the fingerprint (R15).
	Ignore bool
	// Secret: the field is redacted, and stored with a codec only (R56).
	Secret bool
	// Resource: the field of a result that names what the effect created.
	Resource bool
}

// place is where a settle tag may stand.
type place int

const (
	onArguments place = iota
	onResult
	nested
)

// tags reads and checks a field's settle tag.
func (b *builder) tags(f reflect.StructField, path string, at place) Tags {
	var tags Tags
	tag, present := f.Tag.Lookup("settle")
	if !present {
		if strings.Contains(string(f.Tag), "settle:") {
			b.refuse(path, `its struct tag can't be read, so that the settle tag would be passed over; write settle:"identity", with a space between two tags`)
		}
		return tags
	}
	if at == nested {
		b.refuse(path, "a settle tag below the top level; put it on the top-level field that holds this one, or name the path in the contract")
		return tags
	}
	seen := map[string]bool{}
	for word := range strings.SplitSeq(tag, ",") {
		word = strings.TrimSpace(word)
		if seen[word] {
			b.refuse(path, "the settle tag says %q twice; say it once", word)
			continue
		}
		seen[word] = true
		b.tag(&tags, word, path, at)
	}
	if tags.Identity && tags.Ignore {
		b.refuse(path, "the settle tag says identity and ignore: what tells one operation from another can't stay out of the fingerprint; drop one")
	}
	return tags
}

func (b *builder) tag(tags *Tags, word, path string, at place) {
	switch word {
	case "identity", "ignore", "secret":
		if at == onResult {
			b.refuse(path, "the settle tag %s belongs on an argument; a result takes resource", word)
			return
		}
		tags.Identity = tags.Identity || word == "identity"
		tags.Ignore = tags.Ignore || word == "ignore"
		tags.Secret = tags.Secret || word == "secret"
	case "resource":
		if at == onArguments {
			b.refuse(path, "the settle tag resource belongs on the result's field that names what was created; an argument takes identity, ignore or secret")
			return
		}
		tags.Resource = true
	default:
		b.refuse(path, "the settle tag says %q; it takes identity, ignore and secret on arguments, resource on a result", word)
	}
}

// strayTags finds settle tags that would have no effect: on fields that aren't
// in the schema, and on structs whose fields are promoted.
func (b *builder) strayTags(t reflect.Type, path string, within ...reflect.Type) {
	if slices.Contains(within, t) {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		_, present := f.Tag.Lookup("settle")
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		promoted := f.Anonymous && name == "" && inner.Kind() == reflect.Struct
		switch {
		case tag == "-", f.Tag.Get("jsonschema") == "-", !f.IsExported() && !promoted:
			if present {
				b.refuse(join(path, f.Name), "a settle tag on a field that isn't in the schema; drop the tag, or export the field and name it")
			}
		case promoted:
			if present {
				b.refuse(join(path, f.Name), "a settle tag on an embedded struct; tag the fields inside it")
			}
			b.strayTags(inner, path, append(within, t)...)
		}
	}
}

// nestedTags finds settle tags below the top level of a type, which may be
// recursive.
func (b *builder) nestedTags(t reflect.Type, path string, seen map[reflect.Type]bool) {
	if t.Name() != "" {
		if seen[t] {
			return
		}
		seen[t] = true
	}
	switch t.Kind() {
	case reflect.Pointer:
		b.nestedTags(t.Elem(), path, seen)
	case reflect.Slice, reflect.Array:
		b.nestedTags(t.Elem(), path+"[]", seen)
	case reflect.Map:
		b.nestedTags(t.Elem(), path+"{}", seen)
	case reflect.Struct:
		fields, _ := fieldsOf(t)
		for _, f := range fields {
			at := join(path, f.name)
			if path != "" {
				b.tags(f.StructField, at, nested)
			}
			b.nestedTags(f.Type, at, seen)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
