package schema

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	invopop "github.com/invopop/jsonschema"
)

// applyTags writes what a field's jsonschema tags say into its node. Their
// meaning is invopop/jsonschema's; what it passes over in silence (a misspelt
// keyword, a comma that isn't escaped, a rule that the type doesn't have) is
// refused.
func (b *builder) applyTags(p *property, f reflect.StructField, path string) {
	n := p.node
	tag, rules := f.Tag.Get("jsonschema"), f.Tag.Get("jsonschema_description")
	if f.Tag.Get("jsonschema_extras") != "" {
		b.refuse(path, "jsonschema_extras: no provider takes keywords of one's own; drop the tag")
	}
	if tag == "" && rules == "" {
		return
	}
	if !b.checkTag(n, tag, p, path) {
		return
	}
	format, description := n.keywords.Format, n.keywords.Description
	reflectTags(n, tag, rules)
	if n.keywords.Description == "" {
		n.keywords.Description = description
	}
	if format != "" && n.keywords.Format != format {
		b.refuse(path, "the jsonschema tag says format=%s and the type has the format %s; drop it", n.keywords.Format, format)
	}
	if n.any && !isEmpty(n.keywords) {
		b.narrow(n, path)
	}
	b.checkBounds(n, path)
	if n.items != nil {
		b.checkBounds(n.items, path)
	}
	if c := n.keywords.MinItems; c != nil && *c > 0 {
		n.nilable = false
	}
}

// checkBounds refuses a bound that the Go type can't hold: it would promise the
// model what decoding refuses.
func (b *builder) checkBounds(n *node, path string) {
	k := n.keywords
	for _, bound := range []json.Number{k.Minimum, k.Maximum, k.ExclusiveMinimum, k.ExclusiveMaximum} {
		if n.bounds != nil && bound != "" && !n.bounds.hold(string(bound)) {
			b.refuse(path, "the jsonschema tag sets a bound that isn't %s, as the field's type is; set one that is", n.bounds.words())
		}
	}
}

// placeholder stands for a field whose type the mapper supplies.
type placeholder struct{}

// reflectTags has invopop/jsonschema read the tags of a struct with one field,
// whose schema is the node's own, so that it writes them there.
func reflectTags(n *node, tag, description string) {
	if n.items != nil {
		n.keywords.Items = n.items.keywords
		defer func() { n.keywords.Items = nil }()
	}
	one := reflect.StructOf([]reflect.StructField{{
		Name: "Field",
		Type: reflect.TypeFor[placeholder](),
		Tag: reflect.StructTag(`json:"field" jsonschema:` + strconv.Quote(tag) +
			` jsonschema_description:` + strconv.Quote(description)),
	}})
	r := invopop.Reflector{Anonymous: true, DoNotReference: true, Mapper: func(t reflect.Type) *invopop.Schema {
		if t == reflect.TypeFor[placeholder]() {
			return n.keywords
		}
		return nil
	}}
	r.ReflectFromType(one)
}

// narrow turns an any whose tags name a type into one of that type.
func (b *builder) narrow(n *node, path string) {
	k := *n.keywords
	if k.Type == "" && len(k.AnyOf) == 0 && len(k.OneOf) == 0 {
		return // a title or a description
	}
	nullable := n.nullable
	*n = *b.fromSchema(&k, path)
	n.nullable = n.nullable || nullable
}

// splitTag splits at commas without a backslash before them, as
// invopop/jsonschema does.
func splitTag(tag string) []string {
	var parts []string
	for part := range strings.SplitSeq(tag, ",") {
		if last := len(parts) - 1; last >= 0 && strings.HasSuffix(parts[last], `\`) {
			parts[last] = strings.TrimSuffix(parts[last], `\`) + "," + part
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// checkTag reads the words that settle itself acts on, and refuses what would
// have no effect.
func (b *builder) checkTag(n *node, tag string, p *property, path string) bool {
	before := len(b.problems)
	parts := splitTag(tag)
	jsonType := taggedType(n, parts)
	for _, part := range parts {
		keyword, value, hasValue := strings.Cut(part, "=")
		switch {
		case part == "":
		case part == "required":
			p.optional, n.nullable = false, false
		case part == "nullable":
			n.nullable = true
		case !hasValue:
			b.refuse(path, `the jsonschema tag says %q, which is no keyword; a comma in a text is written \\,`, part)
		default:
			b.checkKeyword(n, jsonType, keyword, value, path)
		}
	}
	return len(b.problems) == before
}

func (b *builder) checkKeyword(n *node, jsonType, keyword, value, path string) {
	switch keyword {
	case "title", "description":
		return
	case "type", "oneof_type", "anyof_type":
		if !n.any {
			b.refuse(path, "the jsonschema tag says %s, and the Go type decides that; drop it", keyword)
		}
		return
	}
	if n.items != nil && !slices.Contains([]string{"minItems", "maxItems", "uniqueItems"}, keyword) {
		if strings.Contains(value, "=") || n.items.items != nil {
			b.refuse(path, "the jsonschema tag says %s, which can't be read for an array's elements; give them a type of their own with a JSONSchema method", keyword)
			return
		}
		jsonType = n.items.keywords.Type
	}
	takes, known := keywordsOf(jsonType)[keyword]
	if !known {
		if jsonType == "" {
			jsonType = "any value"
		}
		b.refuse(path, "the jsonschema tag says %s, which has no meaning for type %s; drop it, or see docs/schema.md for what there is", keyword, jsonType)
		return
	}
	if !takes(value) {
		b.refuse(path, "the jsonschema tag gives %s a value that it can't have; write a count, a number, true, or a pattern, as the keyword asks", keyword)
	}
}

// taggedType is the type that a place has once its tags are read.
func taggedType(n *node, parts []string) string {
	if n.any {
		for _, part := range parts {
			if named, ok := strings.CutPrefix(part, "type="); ok {
				return named
			}
		}
	}
	return n.keywords.Type
}

func keywordsOf(jsonType string) map[string]func(string) bool {
	switch jsonType {
	case "string":
		return map[string]func(string) bool{
			"minLength": isCount, "maxLength": isCount, "pattern": isPattern, "format": isText,
			"enum": isText, "default": isText, "example": isText,
		}
	case "number", "integer":
		return map[string]func(string) bool{
			"multipleOf": isNumber, "minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber,
			"exclusiveMaximum": isNumber, "enum": isNumber, "default": isNumber, "example": isNumber,
		}
	case "boolean":
		return map[string]func(string) bool{"default": isBool}
	case "array":
		return map[string]func(string) bool{"minItems": isCount, "maxItems": isCount, "uniqueItems": isWordTrue}
	}
	return nil
}

func isText(string) bool           { return true }
func isWordTrue(value string) bool { return value == "true" }
func isBool(value string) bool     { return value == "true" || value == "false" }

func isCount(value string) bool {
	_, err := strconv.ParseUint(value, 10, 31)
	return err == nil
}

// isNumber asks for a number of JSON, as it ends up in one.
func isNumber(value string) bool {
	var n json.Number
	return value != "" && value[0] != '"' && json.Unmarshal([]byte(value), &n) == nil && n != ""
}

func isPattern(value string) bool {
	_, err := regexp.Compile(value)
	return err == nil
}
