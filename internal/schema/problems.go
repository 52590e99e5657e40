package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// mostProblems is how many problems an error lists.
const mostProblems = 32

// unknownName stands in a path for a name that isn't in the schema.
const unknownName = "*"

// explain turns the validator's error, which quotes values, into one that names
// fields and rules (R55).
func (s *Schema) explain(doc any, err error) error {
	var failed *santhosh.ValidationError
	if !errors.As(err, &failed) {
		return invalid("", "they can't be validated")
	}
	e := &explainer{schema: s, doc: doc}
	e.explain(failed)
	return invalidFor(e.problems)
}

// invalidFor orders problems and keeps the first ones.
func invalidFor(problems []Problem) error {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Reason, b.Reason))
	})
	problems = slices.Compact(problems)
	more := max(0, len(problems)-mostProblems)
	return &ValidationError{Problems: problems[:len(problems)-more], More: more}
}

type explainer struct {
	schema   *Schema
	doc      any
	problems []Problem
}

func (e *explainer) add(at *santhosh.ValidationError, format string, args ...any) {
	e.problems = append(e.problems, Problem{
		Path:   e.schema.path(e.doc, at.InstanceLocation),
		Reason: fmt.Sprintf(format, args...),
	})
}

// explain adds what one error of the validator says, or what its causes say.
func (e *explainer) explain(at *santhosh.ValidationError) {
	switch k := at.ErrorKind.(type) {
	case *kind.AnyOf:
		e.explainAlternatives(at)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			e.add(at, "fits more than one of the forms that rule one another out")
			return
		}
		e.explainAlternatives(at)
	case *kind.Required:
		e.explainMissing(at, k.Missing)
	case *kind.DependentRequired:
		e.explainMissing(at, k.Missing)
	case *kind.Dependency:
		e.explainMissing(at, k.Missing)
	case *kind.AdditionalProperties:
		e.explainUnknown(at)
	case *kind.PropertyNames:
		e.add(at, "has a member whose name isn't allowed")
	default:
		if reason := reasonOf(k); reason != "" {
			e.add(at, "%s", reason)
			return
		}
		if len(at.Causes) == 0 {
			e.add(at, "breaks a rule of the schema")
		}
		for _, cause := range at.Causes {
			e.explain(cause)
		}
	}
}

// explainMissing names fields of the schema that aren't there.
func (e *explainer) explainMissing(at *santhosh.ValidationError, missing []string) {
	path := e.schema.path(e.doc, at.InstanceLocation)
	for _, name := range missing {
		e.problems = append(e.problems, Problem{join(path, name), "is required"})
	}
}

// explainUnknown says that there are fields that shouldn't be. Their names are
// the caller's; those that the schema lists are not.
func (e *explainer) explainUnknown(at *santhosh.ValidationError) {
	names := e.schema.listed(at.SchemaURL)
	if len(names) == 0 {
		e.add(at, "has an unknown field; it takes none")
		return
	}
	e.add(at, "has an unknown field; it takes %s", strings.Join(names, ", "))
}

// explainAlternatives explains the form that was meant: the only one whose type
// is that of the value.
func (e *explainer) explainAlternatives(at *santhosh.ValidationError) {
	var meant []*santhosh.ValidationError
	var want []string
	got := ""
	for _, cause := range at.Causes {
		if k, ok := cause.ErrorKind.(*kind.Type); ok && len(cause.InstanceLocation) == len(at.InstanceLocation) {
			want, got = append(want, k.Want...), k.Got
			continue
		}
		meant = append(meant, cause)
	}
	switch len(meant) {
	case 0:
		e.add(at, "%s", typeReason(got, want))
	case 1:
		e.explain(meant[0])
	default:
		e.add(at, "fits none of its %d forms", len(at.Causes))
	}
}

// reasonOf words a rule; empty where the causes say more.
func reasonOf(k santhosh.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return typeReason(k.Got, k.Want)
	case *kind.Enum:
		return "must be one of " + list(k.Want)
	case *kind.Const:
		return "must be " + quote(k.Want)
	case *kind.Format:
		return "must be " + formatWords(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + k.Want
	case *kind.ContentEncoding:
		return "must be encoded as " + k.Want
	case *kind.Minimum:
		return "must be at least " + decimalText(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimalText(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + decimalText(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimalText(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimalText(k.Want)
	default:
		return countReason(k)
	}
}

func countReason(k santhosh.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return "must have at least " + counted(uint64(k.Want), "character")
	case *kind.MaxLength:
		return "must have at most " + counted(uint64(k.Want), "character")
	case *kind.MinItems:
		return "must have at least " + counted(uint64(k.Want), "element")
	case *kind.MaxItems:
		return "must have at most " + counted(uint64(k.Want), "element")
	case *kind.AdditionalItems:
		return "has more elements than it may"
	case *kind.UniqueItems:
		return "must have no two equal elements"
	case *kind.MinProperties:
		return "must have at least " + counted(uint64(k.Want), "member")
	case *kind.MaxProperties:
		return "must have at most " + counted(uint64(k.Want), "member")
	case *kind.FalseSchema:
		return "isn't allowed here"
	case *kind.Not:
		return "has a form that is ruled out"
	case *kind.Contains, *kind.MinContains:
		return "lacks an element that it must have"
	case *kind.MaxContains:
		return "has too many elements of a kind"
	case *kind.ContentMediaType, *kind.ContentSchema:
		return "holds content that isn't of the declared type"
	default:
		return ""
	}
}

func typeReason(got string, want []string) string {
	want = slices.Compact(slices.Sorted(slices.Values(want)))
	texts := make([]string, 0, len(want))
	for _, w := range want {
		texts = append(texts, withArticle(w))
	}
	return "must be " + strings.Join(texts, " or ") + ", not " + withArticle(got)
}

func withArticle(jsonType string) string {
	switch jsonType {
	case "null":
		return "null"
	case "array", "object":
		return "an " + jsonType
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	default:
		return "a " + jsonType
	}
}

// decimalText writes a bound of the schema as it was written, or nearly so.
func decimalText(r *big.Rat) string {
	if places, exact := r.FloatPrec(); exact {
		return r.FloatString(places)
	}
	return r.RatString()
}

// path writes where in the arguments something is. Names that the schema doesn't
// know are the caller's and aren't written.
func (s *Schema) path(doc any, location []string) string {
	path := ""
	for _, token := range location {
		switch at := doc.(type) {
		case []any:
			path += "[" + token + "]"
			doc = nil
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(at) {
				doc = at[i]
			}
		case map[string]any:
			path = join(path, s.known(token))
			doc = at[token]
		default:
			path = join(path, unknownName)
			doc = nil
		}
	}
	return path
}

func (s *Schema) known(name string) string {
	if s.names[name] {
		return name
	}
	return unknownName
}

// collectNames gathers the names of all properties that a schema lists.
func collectNames(schema any, names map[string]bool) {
	switch v := schema.(type) {
	case []any:
		for _, item := range v {
			collectNames(item, names)
		}
	case map[string]any:
		if properties, ok := v["properties"].(map[string]any); ok {
			for name := range properties {
				names[name] = true
			}
		}
		for _, item := range v {
			collectNames(item, names)
		}
	}
}

// listed returns, in their order, the names of the properties of the schema at a
// location as the validator writes it.
func (s *Schema) listed(location string) []string {
	_, fragment, _ := strings.Cut(location, "#")
	pointer, err := url.PathUnescape(fragment)
	if err != nil {
		return nil
	}
	at := s.Accepted
	for _, token := range append(pointerTokens(pointer), "properties") {
		if at = child(at, token); at == nil {
			return nil
		}
	}
	members, err := membersOf(at)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.name)
	}
	return names
}

func child(raw json.RawMessage, token string) json.RawMessage {
	if members, err := membersOf(raw); err == nil {
		if i := find(members, token); i >= 0 {
			return members[i].value
		}
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(items) {
		return items[i]
	}
	return nil
}
