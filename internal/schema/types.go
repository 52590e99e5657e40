package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"time"

	invopop "github.com/invopop/jsonschema"
)

var (
	marshaler       = reflect.TypeFor[json.Marshaler]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// propertyName is what every provider takes as the name of a property: Anthropic
// allows these characters (and the dot, which paths use), Gemini wants no digit
// or dash at the front.
var propertyName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// has says whether a value of the type has an interface's methods where
// encoding/json can take its address, as it can whenever it decodes.
func has(t, methods reflect.Type) bool {
	return t.Implements(methods) || reflect.PointerTo(t).Implements(methods)
}

// build describes one Go type. invopop/jsonschema is never asked about a type as
// a whole: it overflows the stack on a recursive one, and it knows neither
// encoding/json's rules for promoted fields nor types that write themselves.
func (b *builder) build(t reflect.Type, path string) *node {
	if t.Name() != "" && t.PkgPath() != "" {
		if slices.Contains(b.within, t) {
			b.refuse(path, "the type %s contains itself, and a schema without $ref can't say so; take a type of limited depth, or an id of the inner one", typeName(t))
			return anything()
		}
		b.within = append(b.within, t)
		defer func() { b.within = b.within[:len(b.within)-1] }()
	}
	if reason := refused(t); reason != "" {
		b.refuse(path, "%s", reason)
		return anything()
	}
	if t.Kind() == reflect.Pointer {
		n := b.build(t.Elem(), path)
		n.nullable = true
		return n
	}
	if n := b.wellKnown(t, path); n != nil {
		return n
	}
	if n, described := b.described(t, path); described {
		return n
	}
	if t.Kind() != reflect.Interface {
		if n, itself := b.writesItself(t, path); itself {
			return n
		}
	}
	n := b.structural(t, path)
	return b.extended(n, t, path)
}

// refused are types that encoding/json would take and that no argument should
// have.
func refused(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "time.Duration is a bare number of nanoseconds in JSON, which no model gets right; take a string and parse it, or an integer named after its unit, as in timeout_seconds"
	case reflect.TypeFor[url.URL]():
		return "url.URL is an object of its parts in JSON; take a string, if you like with jsonschema:\"format=uri\", and parse it"
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return "a " + t.Kind().String() + " has no form in JSON; leave the field out with json:\"-\""
	}
	return ""
}

func anything() *node { return &node{keywords: &invopop.Schema{}, any: true} }

func ofType(name string) *node { return &node{keywords: &invopop.Schema{Type: name}} }

// writesItself describes types with methods of encoding/json or of
// encoding.TextMarshaler. What they write is learned from their zero value; what
// they write and what they read has to be the same kind of JSON.
func (b *builder) writesItself(t reflect.Type, path string) (*node, bool) {
	writes, reads := has(t, marshaler), has(t, unmarshaler)
	writesText, readsText := has(t, textMarshaler), has(t, textUnmarshaler)
	if e := takenOver(t); e != nil {
		b.refuse(path, "%s embeds %s and so writes itself as one: its other fields are not in the JSON; give the embedded field a name", typeName(t), typeName(e))
		return anything(), true
	}
	switch {
	case writes && !reads && !readsText:
		b.refuse(path, "%s has MarshalJSON and no UnmarshalJSON, so that what it writes can't be read back; add it", typeName(t))
	case writes:
		return named(t, b.probed(t, path)), true
	case writesText && !readsText && !reads:
		b.refuse(path, "%s has MarshalText and no UnmarshalText, so that what it writes can't be read back; add it", typeName(t))
	case writesText:
		return named(t, textNode(t)), true
	case readsText && !reads && t.Kind() != reflect.String:
		b.refuse(path, "%s has UnmarshalText and no MarshalText: it reads a string and writes something else; add it", typeName(t))
	case readsText && !reads:
		return ofType("string"), true
	default:
		return nil, false
	}
	return anything(), true
}

// probed describes a type with MarshalJSON by what its zero value writes.
func (b *builder) probed(t reflect.Type, path string) *node {
	text, err := zeroJSON(t)
	if err != nil {
		b.refuse(path, "%s writes itself, and its zero value can't be written, so its schema isn't known; give it a JSONSchema method", typeName(t))
		return anything()
	}
	switch text[0] {
	case '"':
		n := ofType("string")
		n.keywords.Format = zeroFormats[string(text)]
		return n
	case 't', 'f':
		return ofType("boolean")
	case '{':
		b.refuse(path, "%s writes itself as an object, whose fields aren't known; give it a JSONSchema method", typeName(t))
	case '[':
		b.refuse(path, "%s writes itself as an array, whose elements aren't known; give it a JSONSchema method", typeName(t))
	case 'n':
		b.refuse(path, "%s writes its zero value as null, which doesn't say what its other values are; take a pointer to the plain type, or give it a JSONSchema method", typeName(t))
	default:
		return ofType("number")
	}
	return anything()
}

// takenOver returns the embedded type whose promoted methods write a struct that
// has fields besides.
func takenOver(t reflect.Type) reflect.Type {
	if t.Kind() != reflect.Struct || !has(t, marshaler) && !has(t, textMarshaler) {
		return nil
	}
	if fields, _ := fieldsOf(t); len(fields) == 0 {
		return nil
	}
	whole, err := zeroJSON(t)
	if err != nil {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous || f.Type.Kind() == reflect.Interface || !has(f.Type, marshaler) && !has(f.Type, textMarshaler) {
			continue
		}
		if part, err := zeroJSON(f.Type); err == nil && bytes.Equal(whole, part) {
			return f.Type
		}
	}
	return nil
}

// zeroFormats tell the format of a type's strings from its zero value.
var zeroFormats = map[string]string{
	`"00000000-0000-0000-0000-000000000000"`: "uuid",
	`"0001-01-01T00:00:00Z"`:                 "date-time",
}

func textNode(t reflect.Type) *node {
	n := ofType("string")
	if text, err := zeroJSON(t); err == nil {
		n.keywords.Format = zeroFormats[string(text)]
	}
	return n
}

// zeroJSON writes a type's zero value. A method that can't stand the zero value
// is an error, not the end of the program.
func zeroJSON(t reflect.Type) (text []byte, err error) {
	err = guarded(func() (err error) {
		text, err = json.Marshal(reflect.New(t).Interface())
		return err
	})
	return text, err
}

// structural describes a type by its kind.
func (b *builder) structural(t reflect.Type, path string) *node {
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() > 0 {
			b.refuse(path, "nothing says which type to decode into the interface %s; take a concrete type, any or json.RawMessage", typeName(t))
		}
		return anything()
	case reflect.Struct:
		return b.object(t, path)
	case reflect.Slice, reflect.Array:
		return b.list(t, path)
	case reflect.Map:
		return b.openObject(t, path)
	default:
		return b.scalar(t)
	}
}

// scalar leaves the plain kinds to invopop/jsonschema.
func (b *builder) scalar(t reflect.Type) *node {
	r := invopop.Reflector{Anonymous: true, DoNotReference: true}
	k := r.ReflectFromType(plainType(t.Kind()))
	k.Version = ""
	n := &node{keywords: k}
	if k.Type == "integer" {
		n.bounds = boundsOf(t)
	}
	return n
}

// plainType is a type of that kind without methods.
func plainType(k reflect.Kind) reflect.Type {
	switch k {
	case reflect.Bool:
		return reflect.TypeFor[bool]()
	case reflect.String:
		return reflect.TypeFor[string]()
	case reflect.Float32, reflect.Float64:
		return reflect.TypeFor[float64]()
	default:
		return reflect.TypeFor[int64]()
	}
}

// list describes slices and arrays; bytes are base64 in a string.
func (b *builder) list(t reflect.Type, path string) *node {
	elem := t.Elem()
	if t.Kind() == reflect.Slice && elem.Kind() == reflect.Uint8 &&
		!reflect.PointerTo(elem).Implements(marshaler) && !reflect.PointerTo(elem).Implements(textMarshaler) {
		n := ofType("string")
		n.keywords.ContentEncoding = "base64"
		n.nilable, n.hint = true, "bytes in base64"
		return n
	}
	n := ofType("array")
	n.items = b.build(elem, path+"[]")
	if t.Kind() == reflect.Slice {
		n.nilable = true
		return n
	}
	// encoding/json fills up a shorter array and drops what a longer one has.
	length := uint64(t.Len())
	n.keywords.MinItems, n.keywords.MaxItems = &length, &length
	return n
}

// Integers in a string, each in one spelling.
const (
	signedName   = `^(0|-?[1-9][0-9]*)$`
	unsignedName = `^(0|[1-9][0-9]*)$`
)

// openObject describes maps. What their members are called is the caller's.
func (b *builder) openObject(t reflect.Type, path string) *node {
	n := ofType("object")
	n.nilable = true
	key := t.Key()
	switch k := key.Kind(); {
	case k == reflect.String:
	case has(key, textMarshaler) && has(key, textUnmarshaler):
	case k >= reflect.Int && k <= reflect.Int64:
		n.names, n.hint = signedName, "the names are whole numbers"
	case k >= reflect.Uint && k <= reflect.Uintptr:
		n.names, n.hint = unsignedName, "the names are whole numbers"
	default:
		b.refuse(path, "encoding/json takes no map with %s as its key; use a string, an integer, or a type with MarshalText and UnmarshalText", typeName(key))
	}
	n.additional = b.build(t.Elem(), path+"{}")
	return n
}

// object describes a struct by encoding/json's rules.
func (b *builder) object(t reflect.Type, path string) *node {
	n := ofType("object")
	fields, faults := fieldsOf(t)
	for _, fault := range faults {
		b.refuse(join(path, fault.name), "%s", fault.reason)
	}
	b.strayTags(t, path)
	if has(t, unmarshaler) {
		// What its UnmarshalJSON does with null isn't known.
		b.opaque++
		defer func() { b.opaque-- }()
	}
	for _, f := range fields {
		if f.Tag.Get("jsonschema") == "-" {
			continue
		}
		at := join(path, f.name)
		if !propertyName.MatchString(f.name) {
			b.refuse(at, "providers refuse this name of a property; use up to 64 of a-z, A-Z, 0-9, _ and -, and begin with a letter")
		}
		p := b.property(t, f, at)
		p.nullIsAbsent = b.opaque == 0 && !f.viaPointer && b.readsNullAsAbsent(f, p, at)
		n.properties = append(n.properties, p)
	}
	if len(n.properties) == 0 && len(faults) == 0 && hidesAll(t) {
		b.refuse(path, "%s has fields and exports none of them, so that it is always {} in JSON; export them, or leave them out with json:\"-\"", typeName(t))
	}
	return n
}

// hidesAll says whether a struct without a field in JSON has one that was meant
// to be there, as far as its tags tell.
func hidesAll(t reflect.Type) bool {
	hidden := false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("json") == "-" || f.Tag.Get("jsonschema") == "-" {
			return false
		}
		hidden = hidden || !f.Anonymous
	}
	return hidden
}

// property describes a struct's field with what its tags say.
func (b *builder) property(owner reflect.Type, f goField, path string) *property {
	p := &property{name: f.name}
	if f.quoted {
		p.node = b.quoted(f.Type, path)
	} else {
		p.node = b.build(propertyType(owner, f), path)
	}
	p.optional = f.omitted || p.node.nullable
	b.applyTags(p, f.StructField, path)
	return p
}

// quoted describes a field with the option ",string". It is compared as the
// number that it holds.
func (b *builder) quoted(t reflect.Type, path string) *node {
	if t.Kind() == reflect.Pointer {
		n := b.quoted(t.Elem(), path)
		n.nullable = true
		return n
	}
	n := ofType("string")
	switch k := t.Kind(); {
	case has(t, marshaler) || has(t, unmarshaler) || has(t, textMarshaler) || has(t, textUnmarshaler):
		b.refuse(path, `json:",string" on %s, which writes or reads itself: encoding/json passes over the option as it writes and not as it reads; drop it`, typeName(t))
	case k == reflect.Bool:
		n.keywords.Enum = []any{"true", "false"}
	case k == reflect.Float32, k == reflect.Float64, t == reflect.TypeFor[json.Number]():
		n = decimalNode()
	case k == reflect.String:
		b.refuse(path, `json:",string" on a string is JSON within a string; drop the option`)
	default:
		n.hint = `a whole number in a string, as in "12"`
		n.keywords.Format, n.keywords.Pattern = "decimal", signedName
		if k >= reflect.Uint {
			n.keywords.Pattern = unsignedName
		}
	}
	return n
}

// readsNullAsAbsent says whether a field is the same after null as without a
// value (R16): null leaves everything but a type with UnmarshalJSON as it was,
// and what such a type does is tried.
func (b *builder) readsNullAsAbsent(f goField, p *property, path string) bool {
	if f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Interface || !has(f.Type, unmarshaler) {
		return true
	}
	v := reflect.New(f.Type)
	err := guarded(func() error { return json.Unmarshal([]byte("null"), v.Interface()) })
	if err != nil {
		if p.optional || p.node.nullable {
			b.refuse(path, "%s can't read null, which is what a strict mode sends for a field that is left out; let its UnmarshalJSON take null as no value, or take a pointer", typeName(f.Type))
		}
		return false
	}
	return reflect.DeepEqual(v.Elem().Interface(), reflect.Zero(f.Type).Interface())
}
