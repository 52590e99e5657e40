package settle

import (
	"maps"
	"slices"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/store"
)

// identityDefinition digests what decides which calls are the same (R3).
func (b *binding) identityDefinition() store.Digest { return b.definitionUnder(b.source()) }

func (b *binding) definitionUnder(source store.Source) store.Digest {
	const purpose = "settle identity definition"
	parts := []string{string(source)}
	if source == store.FromHost || source == store.FromOriginal {
		return shortened(digestOf(purpose, parts...))
	}
	for _, path := range b.identityPaths {
		shape := b.shapeOf(path)
		format := ""
		if shape != nil {
			format = shape.Format
		}
		parts = append(parts, path, b.contract.Normalize[path].Name, format)
		if kind := b.kindOf(path); kind != "" && format == "" {
			parts = append(parts, "\x00kind "+kind)
		}
		for _, format := range formatsWithin(shape, "", map[*canonical.Shape]bool{}) {
			parts = append(parts, "\x00within "+format)
		}
	}
	if b.contract.Class == Idempotent {
		// Its node holds the desired state as well: a tool that was of another
		// class before doesn't find its own operations by it (R31).
		parts = append(parts, "desired state")
	}
	if source == store.FromWhole || b.contract.Class == Idempotent {
		parts = append(parts, slices.Sorted(slices.Values(b.ignored))...)
	}
	return shortened(digestOf(purpose, parts...))
}

// shapeOf is how the values at a path are compared, nil for as they are read.
func (b *binding) shapeOf(path string) *canonical.Shape {
	parts, err := canonical.ParsePath(path)
	if err != nil {
		return nil
	}
	shape := b.shape()
	for _, part := range parts {
		if shape == nil {
			return nil
		}
		shape = shape.Fields[part]
	}
	return shape
}

// kindOf is the kind of JSON that an identity field is sent in, where that is no
// string: order 17 and order "17" are one order and have two nodes, so a field that
// changes from one to the other changes what identifies a call (R3). Where the
// schema leaves the kind open it is none.
func (b *binding) kindOf(path string) string {
	parts, err := canonical.ParsePath(path)
	if err != nil || b.schema == nil {
		return ""
	}
	if kind := b.schema.Kind(parts); kind != "string" {
		return kind
	}
	return ""
}

// formatsWithin lists the formats by which parts of an identity field are compared
// as values, each behind where it stands. A shape may contain itself.
func formatsWithin(s *canonical.Shape, at string, above map[*canonical.Shape]bool) []string {
	if s == nil || above[s] {
		return nil
	}
	above[s] = true
	defer delete(above, s)
	var formats []string
	below := func(s *canonical.Shape, at string) {
		if s != nil && s.Format != "" {
			formats = append(formats, at+" "+s.Format)
		}
		formats = append(formats, formatsWithin(s, at, above)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		below(s.Fields[name], at+"."+name)
	}
	below(s.Items, at+"[]")
	below(s.Additional, at+"{}")
	return formats
}
