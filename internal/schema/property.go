package schema

import (
	"encoding/json"
	"fmt"
	"slices"
)

// WithProperty returns the offered form with one more property at the end, for a
// parameter of settle's own such as an occurrence (R9). It may be left out: where
// the form lists every property as required, it is required and may be null. Who
// adds it takes it out of the arguments before they are validated.
func (s *Schema) WithProperty(name string, schema json.RawMessage) (json.RawMessage, error) {
	if !propertyName.MatchString(name) {
		return nil, fmt.Errorf("schema: a property can't have that name; use up to 64 of a-z, A-Z, 0-9, _ and -, and begin with a letter")
	}
	if _, err := membersOf(schema); err != nil {
		return nil, fmt.Errorf("schema: the schema of property %s isn't a JSON object", name)
	}
	top, err := membersOf(s.Offered)
	if err != nil {
		return nil, fmt.Errorf("schema: add property %s: %w", name, err)
	}
	var properties []member
	if i := find(top, "properties"); i >= 0 {
		if properties, err = membersOf(top[i].value); err != nil {
			return nil, fmt.Errorf("schema: add property %s: %w", name, err)
		}
	}
	if find(properties, name) >= 0 {
		return nil, fmt.Errorf("schema: the arguments have a field %s already; rename it, or the property", name)
	}
	if required, all := s.allRequired(top, properties); all {
		top = set(top, "required", quoteAll(append(required, name)))
		schema = orNull(schema)
	}
	whole, err := object(append(slices.Clone(properties), member{name, schema}))
	if err != nil {
		return nil, fmt.Errorf("schema: add property %s: %w", name, err)
	}
	return object(set(top, "properties", whole))
}

// allRequired says whether every property is required, as strict modes ask.
func (s *Schema) allRequired(top, properties []member) ([]string, bool) {
	i := find(top, "required")
	if i < 0 {
		return nil, false
	}
	var required []string
	if json.Unmarshal(top[i].value, &required) != nil {
		return nil, false
	}
	for _, p := range properties {
		if !slices.Contains(required, p.name) {
			return nil, false
		}
	}
	return required, true
}

// orNull lets a property be null, and keeps its description outside where it is
// read first.
func orNull(schema json.RawMessage) json.RawMessage {
	members, err := membersOf(schema)
	if err != nil {
		return schema
	}
	var outer []member
	if i := find(members, "description"); i >= 0 {
		outer = append(outer, members[i])
		members = slices.Delete(members, i, i+1)
	}
	inner, err := object(members)
	if err != nil {
		return schema
	}
	alternatives := append(append([]byte(`[`), inner...), `,{"type":"null"}]`...)
	nullable, err := object(append(outer, member{"anyOf", alternatives}))
	if err != nil {
		return schema
	}
	return nullable
}

func set(members []member, name string, value json.RawMessage) []member {
	members = slices.Clone(members)
	if i := find(members, name); i >= 0 {
		members[i].value = value
		return members
	}
	return append(members, member{name, value})
}

func quoteAll(names []string) json.RawMessage {
	text, err := json.Marshal(names)
	if err != nil {
		return json.RawMessage(`[]`)
	}
	return text
}
