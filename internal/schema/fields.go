package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// goField is a struct's field as encoding/json sees it: promoted ones included,
// shadowed ones not.
type goField struct {
	reflect.StructField
	name   string // in JSON
	tagged bool
	index  []int // from the outermost struct
	// omitted says that the field may be left out: omitempty or omitzero.
	omitted bool
	quoted  bool // written as a string: the option ",string"
	// viaPointer says that the field is promoted through an embedded pointer,
	// which stays nil as long as none of its fields is given.
	viaPointer bool
}

// fieldFault is what encoding/json would pass over in silence or fail at.
type fieldFault struct {
	name   string
	reason string
}

// embedded is a struct whose fields are promoted.
type embedded struct {
	typ        reflect.Type
	index      []int
	viaPointer bool
}

// fieldsOf lists a struct's fields by the rules of encoding/json, in the order
// of declaration: the least nested field of a name wins, a tagged one before an
// untagged one on its level, and of two equals none.
func fieldsOf(t reflect.Type) ([]goField, []fieldFault) {
	var found []goField
	var faults []fieldFault
	visited := map[reflect.Type]bool{}
	level := []embedded{{typ: t}}
	times := map[reflect.Type]int{t: 1}
	for len(level) > 0 {
		var next []embedded
		nextTimes := map[reflect.Type]int{}
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			visited[e.typ] = true
			for i := range e.typ.NumField() {
				f, inner, fault := fieldAt(e, i)
				if fault != nil {
					faults = append(faults, *fault)
				}
				if inner != nil {
					if nextTimes[inner.typ]++; nextTimes[inner.typ] == 1 {
						next = append(next, *inner)
					}
				}
				if f == nil {
					continue
				}
				found = append(found, *f)
				if times[e.typ] > 1 {
					// The same struct embedded twice on a level: its fields
					// rule one another out.
					found = append(found, *f)
				}
			}
		}
		level, times = next, nextTimes
	}
	return dominant(found, faults)
}

// fieldAt reads one field of a struct: either one that is written, or an
// embedded struct whose fields are promoted, or neither.
func fieldAt(e embedded, i int) (*goField, *embedded, *fieldFault) {
	sf := e.typ.Field(i)
	inner := sf.Type
	if inner.Name() == "" && inner.Kind() == reflect.Pointer {
		inner = inner.Elem()
	}
	tag, present := sf.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	if tag == "-" || !sf.IsExported() && (!sf.Anonymous || inner.Kind() != reflect.Struct) {
		return nil, nil, nil
	}
	index := append(slices.Clone(e.index), i)
	if sf.Anonymous && name == "" && inner.Kind() == reflect.Struct {
		pointer := sf.Type.Kind() == reflect.Pointer
		if pointer && !sf.IsExported() {
			return nil, nil, &fieldFault{sf.Name, "an embedded pointer to an unexported struct can't be read by encoding/json; embed the struct itself, or export it"}
		}
		return nil, &embedded{inner, index, e.viaPointer || pointer}, nil
	}
	if !sf.IsExported() {
		return nil, nil, nil
	}
	f := &goField{StructField: sf, name: sf.Name, index: index, viaPointer: e.viaPointer}
	if present && name != "" {
		f.name, f.tagged = name, true
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			f.omitted = true
		case "string":
			f.quoted = quotable(inner.Kind())
		}
	}
	return f, nil, nil
}

func quotable(k reflect.Kind) bool {
	return k == reflect.String || k == reflect.Bool || k >= reflect.Int && k <= reflect.Float64
}

// dominant keeps the field that encoding/json would take for each name.
func dominant(found []goField, faults []fieldFault) ([]goField, []fieldFault) {
	slices.SortStableFunc(found, func(a, b goField) int {
		return cmp.Or(strings.Compare(a.name, b.name), len(a.index)-len(b.index), order(a.tagged, b.tagged))
	})
	var fields []goField
	for i := 0; i < len(found); {
		first, same := found[i], i+1
		for same < len(found) && found[same].name == first.name {
			same++
		}
		if same > i+1 && len(found[i+1].index) == len(first.index) && found[i+1].tagged == first.tagged {
			faults = append(faults, fieldFault{first.name, "two fields have this name in JSON and encoding/json drops both; rename one"})
		} else {
			fields = append(fields, first)
		}
		i = same
	}
	slices.SortFunc(fields, func(a, b goField) int { return slices.Compare(a.index, b.index) })
	return fields, faults
}

func order(first, second bool) int {
	switch {
	case first == second:
		return 0
	case first:
		return -1
	default:
		return 1
	}
}
