package schema

import (
	invopop "github.com/invopop/jsonschema"
)

// node is one place in a schema: what the offered and the accepted form, and the
// shape, are written from.
type node struct {
	// keywords are those of this place without the schemas below it. It is where
	// invopop/jsonschema writes what a field's jsonschema tags say.
	keywords *invopop.Schema

	// any takes every JSON value.
	any bool
	// union are the forms of which a value has one; exclusive says exactly one.
	union     []*node
	exclusive bool
	// properties are an object's fields, additional its other members (nil:
	// closed), names the pattern of theirs (empty: any name).
	properties []*property
	additional *node
	names      string
	// items are an array's elements.
	items *node

	// nullable values may be null, and the model is told so.
	nullable bool
	// nilable ones are written as null by encoding/json where they are nil: null
	// is accepted for them and not offered.
	nilable bool
	// hint tells the model what no keyword of the offered form says, and pattern
	// is what it is asked for where more is accepted.
	hint, pattern string
	// bounded is how far the Go type's integers reach.
	bounds *bounds
}

// property is a field of an object.
type property struct {
	name     string
	node     *node
	optional bool
	// nullIsAbsent: the Go type's decoding leaves no difference (R16).
	nullIsAbsent bool
}

// form is what a node is written for.
type form int

const (
	// offered is for the model.
	offered form = iota
	// accepted is for the validator.
	accepted
	// plain is what a type's JSONSchemaExtend method is given.
	plain
)

// render writes a node in one of its forms.
func (n *node) render(as form) *invopop.Schema {
	s := n.bare(as)
	if !n.takesNull(as) {
		return s
	}
	if as == accepted && s.Type != "" && s.Enum == nil && s.Const == nil {
		// A list of types is cheaper to validate than two alternatives, and its
		// errors are plainer. It is never offered.
		s.Extras = map[string]any{"type": []string{s.Type, "null"}}
		s.Type = ""
		return s
	}
	outer := &invopop.Schema{Title: s.Title, Description: s.Description}
	s.Title, s.Description = "", ""
	null := &invopop.Schema{Type: "null"}
	if as == offered && s.Type == "" && s.AnyOf != nil {
		outer.AnyOf = append(s.AnyOf, null)
	} else {
		outer.AnyOf = []*invopop.Schema{s, null}
	}
	return outer
}

func (n *node) takesNull(as form) bool {
	return !n.any && (n.nullable || n.nilable && as == accepted)
}

// renderField writes an object's field: an optional one may be null too.
func (p *property) render(as form) *invopop.Schema {
	if !p.optional || as == plain {
		return p.node.render(as)
	}
	n := *p.node
	n.nullable = true
	return n.render(as)
}

// bare writes a node without its null.
func (n *node) bare(as form) *invopop.Schema {
	var s *invopop.Schema
	if as == offered {
		s = n.offer()
	} else {
		k := *n.keywords
		s = &k
		if n.bounds != nil && as == accepted {
			s.Format = n.bounds.format
		}
	}
	forms := make([]*invopop.Schema, 0, len(n.union))
	for _, alternative := range n.union {
		forms = append(forms, alternative.render(as))
	}
	switch {
	case n.any && as == offered && s.Description == "":
		// The empty schema is written as true, which providers don't take for a
		// property.
		s.Description = "any JSON value"
	case len(forms) > 0 && n.exclusive && as != offered:
		s.OneOf = forms
	case len(forms) > 0:
		s.AnyOf = forms
	case s.Type == "object":
		n.renderObject(s, as)
	case s.Type == "array":
		s.Items = n.items.render(as)
	}
	return s
}

func (n *node) renderObject(s *invopop.Schema, as form) {
	s.AdditionalProperties = invopop.FalseSchema
	if n.additional != nil {
		s.AdditionalProperties = n.additional.render(as)
		if n.additional.any {
			s.AdditionalProperties = invopop.TrueSchema
		}
	}
	if n.names != "" && as != offered {
		s.PropertyNames = &invopop.Schema{Pattern: n.names}
	}
	if n.additional != nil && len(n.properties) == 0 {
		return
	}
	s.Properties = invopop.NewProperties()
	for _, p := range n.properties {
		s.Properties.Set(p.name, p.render(as))
		if !p.optional || as == offered {
			s.Required = append(s.Required, p.name)
		}
	}
	if len(s.Required) == 0 && as == offered {
		// Written although it is empty: strict modes ask for the keyword.
		s.Extras = map[string]any{"required": []string{}}
	}
}

// strict says whether the offered form can be sent to a strict mode.
func (n *node) strict() bool {
	total := 0
	return n.closed(1, &total) && total <= maxProperties
}

func (n *node) closed(depth int, total *int) bool {
	if n.any || n.additional != nil {
		return false
	}
	if depth > maxDepth && (n.keywords.Type == "object" || n.keywords.Type == "array") {
		return false
	}
	*total += len(n.properties)
	for _, p := range n.properties {
		if !p.node.closed(depth+1, total) {
			return false
		}
	}
	for _, alternative := range n.union {
		if !alternative.closed(depth, total) {
			return false
		}
	}
	return n.items == nil || n.items.closed(depth+1, total)
}
