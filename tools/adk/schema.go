package settleadk

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/genai"
)

// schemaOf is the JSON Schema that a declaration gives of its arguments, nil
// where it gives none.
func schemaOf(d *genai.FunctionDeclaration) (json.RawMessage, error) {
	switch {
	case d == nil:
		return nil, nil
	case d.ParametersJsonSchema != nil:
		schema, err := json.Marshal(d.ParametersJsonSchema)
		if err != nil {
			return nil, fmt.Errorf("its parameters are no JSON Schema: %w", err)
		}
		if string(schema) == "null" {
			return nil, nil
		}
		return schema, nil
	case d.Parameters != nil:
		return json.Marshal(jsonSchema(d.Parameters))
	}
	return nil, nil
}

// jsonSchema writes a schema of the Gemini API as JSON Schema: that API has type
// names in capitals and a flag for null. What only describes is left out.
func jsonSchema(s *genai.Schema) map[string]any {
	m := map[string]any{}
	if len(s.AnyOf) > 0 {
		var any []map[string]any
		for _, of := range s.AnyOf {
			any = append(any, jsonSchema(of))
		}
		m["anyOf"] = any
	}
	if s.Type != "" && s.Type != genai.TypeUnspecified {
		m["type"] = strings.ToLower(string(s.Type))
	}
	if len(s.Enum) > 0 {
		m["enum"] = s.Enum
	}
	if s.Items != nil {
		m["items"] = jsonSchema(s.Items)
	}
	if len(s.Properties) > 0 {
		properties := map[string]any{}
		for name, p := range s.Properties {
			properties[name] = jsonSchema(p)
		}
		m["properties"] = properties
	}
	if len(s.Required) > 0 {
		m["required"] = s.Required
	}
	bounds(m, s)
	if s.Nullable != nil && *s.Nullable {
		return map[string]any{"anyOf": []any{m, map[string]any{"type": "null"}}}
	}
	return m
}

func bounds(m map[string]any, s *genai.Schema) {
	if s.Pattern != "" {
		m["pattern"] = s.Pattern
	}
	for name, n := range map[string]*int64{"minLength": s.MinLength, "maxLength": s.MaxLength, "minItems": s.MinItems,
		"maxItems": s.MaxItems, "minProperties": s.MinProperties, "maxProperties": s.MaxProperties} {
		if n != nil {
			m[name] = *n
		}
	}
	for name, n := range map[string]*float64{"minimum": s.Minimum, "maximum": s.Maximum} {
		if n != nil {
			m[name] = *n
		}
	}
}
