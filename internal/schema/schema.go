package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/settle-go/settle/internal/canonical"
)

// Schema is what a tool takes as its arguments. It is immutable and safe for
// concurrent use.
type Schema struct {
	// Offered is the JSON Schema that a model is shown. From a Go type it lists
	// every property as required, an optional one as anyOf with null, in the
	// order of declaration; objects are closed; there is no $ref, no list of
	// types, and no keyword or format that a provider's strict mode refuses.
	// Given as JSON, it is what was given.
	Offered json.RawMessage
	// Accepted is the JSON Schema that arguments are validated against: an
	// optional field may be absent or null.
	Accepted json.RawMessage
	// Strict says that Offered may be sent to a strict mode. It is false where a
	// map, an any or raw JSON leaves open what may be sent, and where Offered
	// exceeds the providers' limits on size.
	Strict bool
	// Shape says how values are compared (R16). It is cyclic where a schema that
	// was given as JSON refers to itself.
	Shape *canonical.Shape
	// Fields are the top-level fields in the order of declaration.
	Fields []Field

	compiled *santhosh.Schema
	fit      *fit
	names    map[string]bool
}

// Field is a top-level field of a tool's arguments.
type Field struct {
	// Name is the field's name in JSON.
	Name string
	// Optional says that the field may be absent or null.
	Optional bool
	// Tags are those of the settle tag, all false where the schema was given as
	// JSON.
	Tags Tags
	// Type is the field's Go type, nil where the schema was given as JSON.
	Type reflect.Type
}

// Field returns the top-level field with that name in JSON.
func (s *Schema) Field(name string) (Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// TypeError is one problem with a Go type or with a schema that was given as
// JSON. [Of], [OfResult], [Parse] and [Results] join all of them.
type TypeError struct {
	// Type names the Go type, or says that it is a schema given as JSON.
	Type string
	// Path leads from the type to the field: [] stands for an array's elements,
	// {} for a map's values. It is empty for the type itself.
	Path string
	// Reason says what was met and what to do.
	Reason string
}

func (e *TypeError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("schema: %s: %s", e.Type, e.Reason)
	}
	return fmt.Sprintf("schema: %s: %s: %s", e.Type, e.Path, e.Reason)
}

// Of derives the schema of a tool's arguments from their Go type, a struct or a
// pointer to one. The empty struct stands for no arguments. The error joins a
// [*TypeError] for each problem.
func Of(t reflect.Type) (*Schema, error) { return derive(t, onArguments) }

// OfResult derives the schema of a tool's result from its Go type: as [Of], but
// for the settle tags, which are those of a result. It is what a result that a
// person gives has to fit (R40).
func OfResult(t reflect.Type) (*Schema, error) { return derive(t, onResult) }

func derive(t reflect.Type, at place) (*Schema, error) {
	if t == nil {
		return nil, &TypeError{Type: "nil", Reason: "no type; give the arguments as a struct, struct{} for none"}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	b := &builder{root: t, at: at}
	n := b.arguments()
	fields := b.fields(n)
	if len(b.problems) > 0 {
		return nil, errors.Join(b.problems...)
	}
	s := &Schema{Strict: n.strict(), Shape: n.shape(), Fields: fields}
	var err error
	if s.Offered, err = json.Marshal(n.render(offered)); err != nil {
		return nil, b.problem("", fmt.Sprintf("its schema can't be written as JSON (%v)", err))
	}
	if s.Accepted, err = json.Marshal(n.render(accepted)); err != nil {
		return nil, b.problem("", fmt.Sprintf("its schema can't be written as JSON (%v)", err))
	}
	if err := s.compile(typed); err != nil {
		return nil, b.problem("", "its schema doesn't hold together, check the jsonschema tags and JSONSchema methods: "+err.Error())
	}
	return s, nil
}

// builder derives a schema from a Go type and collects what is wrong with it.
type builder struct {
	root     reflect.Type
	at       place
	problems []error
	// within are the named types on the way down: meeting one again is recursion.
	within []reflect.Type
	// opaque counts the types on the way down that decode themselves.
	opaque int
	// deep counts the levels of a schema that a type gave of itself.
	deep int
}

func (b *builder) problem(path, reason string) error {
	return &TypeError{Type: typeName(b.root), Path: path, Reason: reason}
}

func (b *builder) refuse(path, format string, args ...any) {
	b.problems = append(b.problems, b.problem(path, fmt.Sprintf(format, args...)))
}

// arguments builds the top level, which has to be an object.
func (b *builder) arguments() *node {
	before := len(b.problems)
	n := b.build(b.root, "")
	if len(b.problems) > before {
		return n
	}
	if n.keywords.Type != "object" || n.additional != nil {
		b.refuse("", "arguments are a closed object; take a struct without MarshalJSON (an embedded field may bring one along), struct{} for none, or a raw tool with its own schema")
	}
	n.nullable, n.nilable = false, false
	return n
}

// fields lists the top-level fields with their settle tags, and checks them.
func (b *builder) fields(n *node) []Field {
	byName := map[string]goField{}
	if b.root.Kind() == reflect.Struct {
		list, _ := fieldsOf(b.root)
		for _, f := range list {
			byName[f.name] = f
		}
	}
	fields := make([]Field, 0, len(n.properties))
	for _, p := range n.properties {
		f := Field{Name: p.name, Optional: p.optional || p.node.nullable}
		if g, ok := byName[p.name]; ok {
			f.Type = g.Type
			f.Tags = b.tags(g.StructField, p.name, b.at)
		}
		if f.Tags.Identity && f.Optional {
			b.refuse(p.name, "an identity field is optional: a call without it would have no identity (R8); drop omitempty, omitzero or the pointer, or don't let it be identity")
		}
		if f.Tags.Identity {
			// A null list would leave the call without its identity as well.
			p.node.nilable = false
		}
		fields = append(fields, f)
	}
	b.nestedTags(b.root, "", map[reflect.Type]bool{})
	return fields
}

// typeName names a type as a reader of the code knows it.
func typeName(t reflect.Type) string {
	if t.Name() == "" && t.Kind() == reflect.Struct {
		return "an unnamed struct"
	}
	return t.String()
}
