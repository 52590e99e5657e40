package schema

import (
	"reflect"
	"slices"

	"github.com/settle-go/settle/internal/canonical"
)

// comparedAsValues are the formats of strings that R16 compares as values.
func comparedAsValues(format string) bool {
	return slices.Contains([]string{"date-time", "date", "decimal", "uuid"}, format)
}

// shape writes how values are compared; nil where they are compared as read.
func (n *node) shape() *canonical.Shape { return n.branch().shape }

func (n *node) branch() branch {
	if n.any {
		return unknown
	}
	if len(n.union) > 0 {
		branches := make([]branch, 0, len(n.union))
		for _, alternative := range n.union {
			branches = append(branches, alternative.branch())
		}
		return either(branches)
	}
	b := branch{null: n.nullable}
	switch n.keywords.Type {
	case "object":
		b.objects, b.closed = true, n.additional == nil
		b.shape = n.objectShape()
	case "array":
		b.arrays = true
		if items := n.items.shape(); items != nil {
			b.shape = &canonical.Shape{Items: items}
		}
	case "string":
		b.strings = true
		if comparedAsValues(n.keywords.Format) {
			b.shape = &canonical.Shape{Format: n.keywords.Format}
		}
	}
	return b
}

func (n *node) objectShape() *canonical.Shape {
	s := &canonical.Shape{}
	if n.additional != nil {
		s.Additional = n.additional.shape()
	}
	if len(n.properties) > 0 {
		s.Fields = make(map[string]*canonical.Shape, len(n.properties))
	}
	for _, p := range n.properties {
		f := p.node.shape()
		if f == nil {
			f = &canonical.Shape{}
		}
		f.NullIsAbsent = p.nullIsAbsent
		s.Fields[p.name] = f
	}
	return s
}

// branch is what one of several schemas for a place takes, and how it compares.
type branch struct {
	shape                          *canonical.Shape
	strings, objects, arrays, null bool
	// closed objects have no members but those listed.
	closed bool
}

// unknown takes everything and compares it as it is read.
var unknown = branch{strings: true, objects: true, arrays: true, null: true}

// either compares values of which one branch or another holds. A format counts
// where every branch that takes strings has it: two strings that one branch
// keeps apart are never taken for one.
func either(branches []branch) branch {
	var all branch
	var shaped []branch
	for _, b := range branches {
		all.strings = all.strings || b.strings
		all.objects = all.objects || b.objects
		all.arrays = all.arrays || b.arrays
		all.null = all.null || b.null
		if b.strings || b.objects || b.arrays {
			shaped = append(shaped, b)
		}
	}
	if len(shaped) == 1 {
		// The branch's own shape, not a copy: it may not be complete yet.
		all.shape, all.closed = shaped[0].shape, shaped[0].closed
		return all
	}
	all.closed = !slices.ContainsFunc(shaped, func(b branch) bool { return b.objects && !b.closed })
	all.shape = &canonical.Shape{
		Format:     commonFormat(shaped),
		Items:      common(shaped, func(b branch) bool { return b.arrays }, func(s *canonical.Shape) *canonical.Shape { return s.Items }),
		Additional: common(shaped, func(b branch) bool { return b.objects }, func(s *canonical.Shape) *canonical.Shape { return s.Additional }),
		Fields:     commonFields(shaped),
	}
	if reflect.DeepEqual(all.shape, &canonical.Shape{}) {
		all.shape = nil
	}
	return all
}

func commonFormat(branches []branch) string {
	format, first := "", true
	for _, b := range branches {
		if !b.strings {
			continue
		}
		if b.shape == nil || !first && b.shape.Format != format {
			return ""
		}
		format, first = b.shape.Format, false
	}
	return format
}

// common is a part of the shapes that all branches of a kind share.
func common(branches []branch, kind func(branch) bool, part func(*canonical.Shape) *canonical.Shape) *canonical.Shape {
	var shared *canonical.Shape
	first := true
	for _, b := range branches {
		if !kind(b) {
			continue
		}
		if b.shape == nil {
			return nil
		}
		p := part(b.shape)
		if !first && !reflect.DeepEqual(p, shared) {
			return nil
		}
		shared, first = p, false
	}
	return shared
}

// commonFields keeps the fields that each branch of objects either compares in
// the same way or doesn't have.
func commonFields(branches []branch) map[string]*canonical.Shape {
	fields := map[string]*canonical.Shape{}
	for _, b := range branches {
		if b.shape == nil {
			continue
		}
		for name, f := range b.shape.Fields {
			if agreed(branches, name, f) {
				fields[name] = f
			} else {
				fields[name] = &canonical.Shape{}
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

func agreed(branches []branch, name string, f *canonical.Shape) bool {
	for _, b := range branches {
		if !b.objects {
			continue
		}
		var other *canonical.Shape
		listed := false
		if b.shape != nil {
			other, listed = b.shape.Fields[name]
		}
		if listed && !reflect.DeepEqual(other, f) || !listed && !b.closed {
			return false
		}
	}
	return true
}

// both compares values for which two schemas hold at once.
func both(a, b branch) branch {
	return branch{
		shape:   bothShapes(a.shape, b.shape, 0),
		strings: a.strings && b.strings,
		objects: a.objects && b.objects,
		arrays:  a.arrays && b.arrays,
		null:    a.null && b.null,
		closed:  a.closed || b.closed,
	}
}

func bothShapes(a, b *canonical.Shape, depth int) *canonical.Shape {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	case depth > deepest:
		return nil
	}
	s := &canonical.Shape{
		Items:      bothShapes(a.Items, b.Items, depth+1),
		Additional: bothShapes(a.Additional, b.Additional, depth+1),
	}
	switch {
	case a.Format == "" || a.Format == b.Format:
		s.Format = b.Format
	case b.Format == "":
		s.Format = a.Format
	}
	if len(a.Fields)+len(b.Fields) > 0 {
		s.Fields = map[string]*canonical.Shape{}
	}
	for name, f := range a.Fields {
		s.Fields[name] = bothShapes(f, b.Fields[name], depth+1)
	}
	for name, f := range b.Fields {
		if _, ok := s.Fields[name]; !ok {
			s.Fields[name] = f
		}
	}
	return s
}
