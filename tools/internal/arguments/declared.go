package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/internal/schema"
)

// Declared is what a tool's declaration may name, and what it has named so far.
type Declared struct {
	schema *schema.Schema
	named  map[string]bool
	facts  map[string]bool
}

// Of reads the Go type of the arguments, or the schema of a raw tool.
func Of[In any](given json.RawMessage) (*Declared, error) {
	d := &Declared{named: map[string]bool{}, facts: map[string]bool{}}
	var err error
	switch t := reflect.TypeFor[In](); {
	case t != reflect.TypeFor[json.RawMessage]():
		if len(given) > 0 {
			return nil, errors.New("the field Schema is for raw tools; the schema of a typed tool comes from its Go type")
		}
		d.schema, err = schema.Of(t)
	case len(given) == 0:
		return nil, errors.New("a raw tool needs Schema: the JSON Schema of its arguments")
	default:
		d.schema, err = schema.Parse(given)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range d.schema.Fields {
		if strings.HasPrefix(f.Name, factPrefix) {
			return nil, fmt.Errorf("the argument %q has a name that begins with %s, which is kept for facts of the operation: rename it", f.Name, factPrefix)
		}
	}
	return d, nil
}

// Afresh is the same declaration that has named nothing yet.
func (d *Declared) Afresh() *Declared {
	return &Declared{schema: d.schema, named: map[string]bool{}, facts: map[string]bool{}}
}

// Use notes that the declaration names a field, by its JSON path, or a fact.
// Sure says that a call always has it: a fact, or a required field.
func (d *Declared) Use(name string) (sure bool, err error) {
	if strings.HasPrefix(name, factPrefix) {
		if !slices.Contains(factNames, name) {
			return false, fmt.Errorf("there is no %s; the facts of an operation are %s", name, strings.Join(factNames, ", "))
		}
		d.facts[name] = true
		return true, nil
	}
	parts, err := canonical.ParsePath(name)
	if err != nil {
		return false, fmt.Errorf("%q: %w", name, err)
	}
	if len(parts) == 0 {
		return false, errors.New("a field has no name: write the name of an argument")
	}
	field, ok := d.schema.Field(parts[0])
	if !ok || !leads(d.schema.Shape, parts) {
		return false, fmt.Errorf("%q leads to no field of the arguments; the fields are %s", name, strings.Join(d.names(), ", "))
	}
	d.named[parts[0]] = true
	return !field.Optional && len(parts) == 1, nil
}

// UseAll notes that the declaration uses all fields.
func (d *Declared) UseAll() {
	for _, f := range d.schema.Fields {
		d.named[f.Name] = true
	}
}

// Uses says whether the declaration has named one of the facts.
func (d *Declared) Uses(facts ...string) bool {
	return slices.ContainsFunc(facts, func(f string) bool { return d.facts[f] })
}

// Unused is the error that names the fields which the declaration has not: a
// model would give them, and they would change nothing. What the contract
// ignores may be left out.
func (d *Declared) Unused(c settle.Contract) error {
	var unused []string
	for _, f := range d.schema.Fields {
		if !d.named[f.Name] && !f.Tags.Ignore && !slices.Contains(c.Ignore, f.Name) {
			unused = append(unused, f.Name)
		}
	}
	if len(unused) == 0 {
		return nil
	}
	return fmt.Errorf("nothing is done with %s: use it, take it out of the arguments, or put it under Ignore in the contract", strings.Join(unused, ", "))
}

func (d *Declared) names() []string {
	names := make([]string, len(d.schema.Fields))
	for i, f := range d.schema.Fields {
		names[i] = f.Name
	}
	return names
}

// leads says whether a path can lead to something: it can't where the schema
// says which fields an object has, and has none of that name.
func leads(shape *canonical.Shape, parts []string) bool {
	for _, part := range parts {
		if shape == nil || len(shape.Fields) == 0 {
			return true
		}
		shape = shape.Fields[part]
		if shape == nil {
			return false
		}
	}
	return true
}
