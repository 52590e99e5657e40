package schema

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	invopop "github.com/invopop/jsonschema"
)

// How a type tells invopop/jsonschema about itself.
type (
	schemer  interface{ JSONSchema() *invopop.Schema }
	extender interface{ JSONSchemaExtend(*invopop.Schema) }
	aliaser  interface{ JSONSchemaAlias() any }
	// propertyAliaser names another type for a field; nil for the field's own.
	propertyAliaser interface{ JSONSchemaProperty(name string) any }
)

var errPanic = errors.New("it panics on the zero value")

// guarded runs a method of the user's on a zero value that it may not stand.
func guarded(run func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return run()
}

// described takes a type's own description of itself, if it has one.
func (b *builder) described(t reflect.Type, path string) (*node, bool) {
	if t.Kind() == reflect.Interface {
		return nil, false
	}
	zero := reflect.New(t).Interface()
	if a, ok := zero.(aliaser); ok {
		var alias any
		if guarded(func() error { alias = a.JSONSchemaAlias(); return nil }) != nil || alias == nil {
			b.refuse(path, "the JSONSchemaAlias method of %s gives no type for its zero value; return a value of the type to describe", typeName(t))
			return anything(), true
		}
		return b.build(reflect.TypeOf(alias), path), true
	}
	s, ok := zero.(schemer)
	if !ok {
		return nil, false
	}
	var own *invopop.Schema
	if guarded(func() error { own = s.JSONSchema(); return nil }) != nil || own == nil {
		b.refuse(path, "the JSONSchema method of %s gives nothing for its zero value; return a schema", typeName(t))
		return anything(), true
	}
	n := b.fromSchema(own, path)
	b.adopt(n, t, path)
	return n, true
}

// extended lets a type add to the schema that its kind gave it.
func (b *builder) extended(n *node, t reflect.Type, path string) *node {
	if t.Kind() == reflect.Interface {
		return n
	}
	e, ok := reflect.New(t).Interface().(extender)
	if !ok || n.any {
		return n
	}
	s := n.render(plain)
	if guarded(func() error { e.JSONSchemaExtend(s); return nil }) != nil {
		b.refuse(path, "the JSONSchemaExtend method of %s panics; it is given the schema of the type", typeName(t))
		return n
	}
	n = b.fromSchema(s, path)
	b.adopt(n, t, path)
	return n
}

// propertyType is the type that describes a field.
func propertyType(owner reflect.Type, f goField) reflect.Type {
	if a, ok := reflect.New(owner).Interface().(propertyAliaser); ok {
		var alias any
		if guarded(func() error { alias = a.JSONSchemaProperty(f.name); return nil }) == nil && alias != nil {
			return reflect.TypeOf(alias)
		}
	}
	return f.Type
}

// beyond names a keyword of a schema that no offered form can say.
func beyond(s *invopop.Schema) string {
	keywords := map[string]bool{
		"$ref": s.Ref != "" || s.DynamicRef != "", "$defs": len(s.Definitions) > 0,
		"allOf": len(s.AllOf) > 0, "not": s.Not != nil, "if": s.If != nil || s.Then != nil || s.Else != nil,
		"dependentSchemas": len(s.DependentSchemas) > 0, "dependentRequired": len(s.DependentRequired) > 0,
		"prefixItems": len(s.PrefixItems) > 0, "contains": s.Contains != nil,
		"patternProperties": len(s.PatternProperties) > 0,
		"contentSchema":     s.ContentSchema != nil || s.ContentMediaType != "",
		"anyOf with oneOf":  len(s.AnyOf) > 0 && len(s.OneOf) > 0,
	}
	var met []string
	for keyword, present := range keywords {
		if present {
			met = append(met, keyword)
		}
	}
	for extra := range s.Extras {
		if !strings.HasPrefix(extra, "x-") {
			met = append(met, extra)
		}
	}
	slices.Sort(met)
	return strings.Join(met, ", ")
}

// deepest is where a schema that a type gave of itself is taken for endless.
const deepest = 64

// fromSchema reads a schema that a type gave of itself.
func (b *builder) fromSchema(s *invopop.Schema, path string) *node {
	if isTrue(s) {
		return anything()
	}
	if b.deep++; b.deep > deepest {
		b.deep--
		b.refuse(path, "its schema goes deeper than %d levels, or contains itself; describe a value of limited depth", deepest)
		return anything()
	}
	defer func() { b.deep-- }()
	if isFalse(s) {
		b.refuse(path, "its schema is false, which no value fits; drop the property")
		return anything()
	}
	if met := beyond(s); met != "" {
		b.refuse(path, "its schema uses %s, which strict modes don't take; say it with type, properties, items, enum, anyOf and bounds", met)
		return anything()
	}
	k := *s
	k.Version, k.ID, k.Anchor, k.Comments, k.Extras = "", "", "", "", nil
	k.Properties, k.AdditionalProperties, k.PropertyNames, k.Required = nil, nil, nil, nil
	k.Items, k.AnyOf, k.OneOf = nil, nil, nil
	n := &node{keywords: &k}
	n.inferType()
	switch {
	case len(s.AnyOf) > 0 || len(s.OneOf) > 0:
		return b.unionFrom(n, s, path)
	case k.Type == "object" || k.Type == "" && s.Properties != nil:
		k.Type = "object"
		b.objectFrom(n, s, path)
	case k.Type == "array":
		n.items = anything()
		if s.Items != nil {
			n.items = b.fromSchema(s.Items, path+"[]")
		}
	case k.Type == "":
		n.any = true
	case !slices.Contains([]string{"string", "number", "integer", "boolean"}, k.Type):
		b.refuse(path, "its schema has the type %q; use object, array, string, number, integer or boolean, and anyOf for null", k.Type)
	}
	return n
}

// inferType reads the type off an enum or a const, and null out of an enum.
func (n *node) inferType() {
	k := n.keywords
	if slices.Contains(k.Enum, nil) {
		n.nullable = true
		k.Enum = slices.DeleteFunc(slices.Clone(k.Enum), func(v any) bool { return v == nil })
	}
	if text, ok := k.Const.(string); ok && len(k.Enum) == 0 {
		k.Const, k.Enum = nil, []any{text}
	}
	if k.Type == "" && len(k.Enum) > 0 && onlyStrings(k.Enum) {
		k.Type = "string"
	}
}

// unionFrom reads anyOf and oneOf. With one form beside null it is that form.
func (b *builder) unionFrom(n *node, s *invopop.Schema, path string) *node {
	n.exclusive = len(s.OneOf) > 0
	for _, alternative := range append(slices.Clone(s.AnyOf), s.OneOf...) {
		if alternative.Type == "null" {
			n.nullable = true
			continue
		}
		n.union = append(n.union, b.fromSchema(alternative, path))
	}
	if s.Type != "" || s.Properties != nil || s.Items != nil {
		b.refuse(path, "its schema has a type of its own beside anyOf or oneOf; say all of it in the alternatives")
	}
	if len(n.union) != 1 {
		return n
	}
	only := n.union[0]
	only.nullable = only.nullable || n.nullable
	if n.keywords.Title != "" {
		only.keywords.Title = n.keywords.Title
	}
	if n.keywords.Description != "" {
		only.keywords.Description = n.keywords.Description
	}
	return only
}

// objectFrom reads an object. One that names properties is closed, as
// invopop/jsonschema has it for structs, unless it says otherwise.
func (b *builder) objectFrom(n *node, s *invopop.Schema, path string) {
	more := s.AdditionalProperties
	switch {
	case more == nil && s.Properties == nil:
		n.additional = anything()
	case more != nil && !isFalse(more):
		n.additional = b.fromSchema(more, path+"{}")
	}
	if s.PropertyNames != nil {
		n.names = s.PropertyNames.Pattern
		if !reflect.DeepEqual(s.PropertyNames, &invopop.Schema{Pattern: n.names}) {
			b.refuse(path, "its schema has propertyNames with more than a pattern; say it in the description")
		}
	}
	known := map[string]bool{}
	if s.Properties != nil {
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			at := join(path, pair.Key)
			if !propertyName.MatchString(pair.Key) {
				b.refuse(at, "providers refuse this name of a property; use up to 64 of a-z, A-Z, 0-9, _ and -, and begin with a letter")
			}
			known[pair.Key] = true
			n.properties = append(n.properties, &property{
				name:     pair.Key,
				node:     b.fromSchema(pair.Value, at),
				optional: !slices.Contains(s.Required, pair.Key),
			})
		}
	}
	for _, name := range s.Required {
		if !known[name] {
			b.refuse(join(path, name), "its schema requires a property that it doesn't list; list it")
		}
	}
}

// adopt adds to a type's own description what its decoding says about null, and
// checks that what it describes can be decoded.
func (b *builder) adopt(n *node, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if has(t, unmarshaler) || has(t, textUnmarshaler) || n.any || len(n.union) > 0 {
		return
	}
	switch k := t.Kind(); {
	case k >= reflect.Int && k <= reflect.Uintptr && n.keywords.Type == "integer":
		n.bounds = boundsOf(t)
	case k == reflect.Struct && n.keywords.Type == "object":
		b.adoptFields(n, t, path)
	case k == reflect.Slice && n.keywords.Type == "array":
		n.nilable = n.keywords.MinItems == nil || *n.keywords.MinItems == 0
		b.adopt(n.items, t.Elem(), path+"[]")
	case k == reflect.Map && n.keywords.Type == "object":
		n.nilable = true
		if n.additional != nil {
			b.adopt(n.additional, t.Elem(), path+"{}")
		}
	}
}

func (b *builder) adoptFields(n *node, t reflect.Type, path string) {
	list, _ := fieldsOf(t)
	fields := map[string]goField{}
	for _, f := range list {
		fields[f.name] = f
	}
	for _, p := range n.properties {
		f, ok := fields[p.name]
		at := join(path, p.name)
		if !ok {
			b.refuse(at, "its schema lists a property that %s has no field for, so that it could never be decoded; drop it, or add UnmarshalJSON", typeName(t))
			continue
		}
		p.nullIsAbsent = b.opaque == 0 && !f.viaPointer && b.readsNullAsAbsent(f, p, at)
		b.adopt(p.node, f.Type, at)
	}
}

// isTrue says whether a schema takes everything; the empty one does.
func isTrue(s *invopop.Schema) bool {
	return reflect.DeepEqual(s, invopop.TrueSchema) || isEmpty(s)
}

func isFalse(s *invopop.Schema) bool { return reflect.DeepEqual(s, invopop.FalseSchema) }

func isEmpty(s *invopop.Schema) bool { return reflect.DeepEqual(s, &invopop.Schema{}) }
