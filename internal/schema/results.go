package schema

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// Result is what a tool's result type says of itself.
type Result struct {
	// Resource is the name in JSON of the field with settle:"resource", which
	// names what the effect created. It is empty where the type has none.
	Resource string

	typ   reflect.Type
	index []int
}

// Results reads the settle tags of a result type, of whatever kind it is. At most
// one top-level field is the resource; it is a string, an integer, or has
// MarshalText or String. The error joins a [*TypeError] for each problem.
func Results(t reflect.Type) (*Result, error) {
	if t == nil {
		return nil, &TypeError{Type: "nil", Reason: "no type; give the result as a Go type, struct{} for none"}
	}
	r := &Result{typ: t}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	b := &builder{root: t}
	if t.Kind() == reflect.Struct {
		b.resource(r, t)
	}
	b.nestedTags(t, "", map[reflect.Type]bool{})
	if len(b.problems) > 0 {
		return nil, errors.Join(b.problems...)
	}
	return r, nil
}

func (b *builder) resource(r *Result, t reflect.Type) {
	b.strayTags(t, "")
	fields, _ := fieldsOf(t)
	for _, f := range fields {
		if !b.tags(f.StructField, f.name, onResult).Resource {
			continue
		}
		if r.Resource != "" {
			b.refuse(f.name, "a second field is tagged resource, beside %s; tag the one that names what was created", r.Resource)
			continue
		}
		if !namesResource(f.Type) {
			b.refuse(f.name, "%s can't name a resource; take a string, an integer, or a type with MarshalText or String", typeName(f.Type))
		}
		r.Resource, r.index = f.name, f.index
	}
}

var stringer = reflect.TypeFor[fmt.Stringer]()

func namesResource(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k := t.Kind()
	return k == reflect.String || k >= reflect.Int && k <= reflect.Uintptr || has(t, textMarshaler) || has(t, stringer)
}

// Reference returns the resource that a result names. It is empty where the type
// has none, and where the field is nil or empty. The error says that the result
// isn't of the type, or that the field's MarshalText failed; it holds no value.
func (r *Result) Reference(result any) (string, error) {
	if r.Resource == "" {
		return "", nil
	}
	v := reflect.ValueOf(result)
	if !v.IsValid() || v.Type() != r.typ {
		return "", fmt.Errorf("schema: read the resource: expected a result of type %s", typeName(r.typ))
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", nil
		}
		v = v.Elem()
	}
	v, err := v.FieldByIndexErr(r.index)
	if err != nil {
		return "", nil // an embedded pointer is nil
	}
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", nil
		}
		v = v.Elem()
	}
	return text(v, r.Resource)
}

// text writes a value as its JSON would name it: by its own text form, else by
// its kind, else by String.
func text(v reflect.Value, name string) (string, error) {
	addressable := reflect.New(v.Type())
	addressable.Elem().Set(v)
	own := addressable.Interface()
	if m, ok := own.(encoding.TextMarshaler); ok {
		written, err := m.MarshalText()
		if err != nil {
			return "", fmt.Errorf("schema: read the resource: MarshalText of field %s failed", name)
		}
		return string(written), nil
	}
	switch k := v.Kind(); {
	case k == reflect.String:
		return v.String(), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	if s, ok := own.(fmt.Stringer); ok {
		return s.String(), nil
	}
	return "", fmt.Errorf("schema: read the resource: field %s has no text form", name)
}
