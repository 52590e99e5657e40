package schema

import (
	"encoding/json"
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	invopop "github.com/invopop/jsonschema"
)

// What the strict modes of OpenAI and Anthropic take, and Gemini's function
// declarations: the part that all of them share. docs/schema.md says where they
// differ.
const (
	// maxDepth and maxProperties are OpenAI's limits on one schema.
	maxDepth      = 10
	maxProperties = 5000
	// maxRepeat is the largest count in a pattern that is offered as one:
	// Anthropic refuses large ones and doesn't say from where on.
	maxRepeat = 64
)

// decimalPattern is what a model is asked to write for a decimal number. An
// exponent is accepted as well.
const decimalPattern = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`

// offeredFormats are on the list of every provider that has one.
var offeredFormats = [...]string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

func offeredFormat(format string) bool {
	return slices.Contains(offeredFormats[:], format)
}

// offer writes a node's own keywords for the model: what a strict mode takes as
// it is, everything else in words at the end of the description. What is said in
// words is still checked, since the accepted form has it as a rule.
func (n *node) offer() *invopop.Schema {
	k := n.keywords
	s := &invopop.Schema{Type: k.Type, Title: k.Title}
	words := n.words()
	if offeredFormat(k.Format) {
		s.Format = k.Format
	}
	switch {
	case plainPattern(k.Pattern):
		s.Pattern = k.Pattern
	case k.Pattern == "" && n.pattern != "":
		s.Pattern = n.pattern
	case k.Pattern == "" && k.Format == "decimal":
		s.Pattern = decimalPattern
	}
	if onlyStrings(k.Enum) {
		s.Enum = k.Enum
	}
	s.Description = k.Description
	switch {
	case len(words) == 0:
	case s.Description == "":
		s.Description = strings.Join(words, "; ")
	default:
		s.Description += " (" + strings.Join(words, "; ") + ")"
	}
	return s
}

// words says what no keyword of the offered form says.
func (n *node) words() []string {
	k := n.keywords
	var w []string
	say := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	number := func(format string, bound json.Number) {
		if bound != "" {
			say(format, bound)
		}
	}
	count := func(bounded string, bound *uint64, noun string) {
		if bound != nil {
			say("%s %s", bounded, counted(*bound, noun))
		}
	}
	if n.hint != "" {
		say("%s", n.hint)
	}
	if n.bounds != nil && n.bounds.bits < 64 {
		say("%s", n.bounds.words())
	} else if n.bounds != nil && !n.bounds.signed && k.Minimum == "" {
		say("not negative")
	}
	if k.Format != "" && !offeredFormat(k.Format) && n.hint == "" {
		say("%s", formatWords(k.Format))
	}
	if k.ContentEncoding != "" && n.hint == "" {
		say("encoded as %s", k.ContentEncoding)
	}
	if k.Pattern != "" && !plainPattern(k.Pattern) {
		say("matches the pattern %s", k.Pattern)
	}
	if !onlyStrings(k.Enum) {
		say("one of %s", list(k.Enum))
	}
	if k.Const != nil {
		say("always %s", quote(k.Const))
	}
	number("at least %s", k.Minimum)
	number("more than %s", k.ExclusiveMinimum)
	number("at most %s", k.Maximum)
	number("less than %s", k.ExclusiveMaximum)
	number("a multiple of %s", k.MultipleOf)
	count("at least", k.MinLength, "character")
	count("at most", k.MaxLength, "character")
	w = append(w, itemWords(k)...)
	count("at least", k.MinProperties, "member")
	count("at most", k.MaxProperties, "member")
	if k.Default != nil {
		say("default %s", quote(k.Default))
	}
	if len(k.Examples) > 0 {
		say("for example %s", list(k.Examples))
	}
	if k.Deprecated {
		say("deprecated")
	}
	return w
}

func itemWords(k *invopop.Schema) []string {
	var w []string
	switch {
	case k.MinItems != nil && k.MaxItems != nil && *k.MinItems == *k.MaxItems:
		w = append(w, "exactly "+counted(*k.MinItems, "element"))
	case k.MinItems != nil && k.MaxItems != nil:
		w = append(w, fmt.Sprintf("from %d to %s", *k.MinItems, counted(*k.MaxItems, "element")))
	case k.MinItems != nil:
		w = append(w, "at least "+counted(*k.MinItems, "element"))
	case k.MaxItems != nil:
		w = append(w, "at most "+counted(*k.MaxItems, "element"))
	}
	if k.UniqueItems {
		w = append(w, "no two equal elements")
	}
	return w
}

func counted(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// formatWords describes a format to the model, and in an error to the caller.
func formatWords(format string) string {
	for _, b := range allBounds() {
		if b.format == format {
			return b.words()
		}
	}
	switch format {
	case "decimal":
		return `a decimal number in a string, as in "12.50"`
	case "date-time":
		return `a date and time with its offset, as in "2006-01-02T15:04:05Z" (RFC 3339)`
	case "date":
		return `a date, as in "2006-01-02"`
	case "uuid":
		return `a UUID, as in "6ba7b810-9dad-11d1-80b4-00c04fd430c8"`
	default:
		return "in the format " + format
	}
}

// plainPattern says whether a pattern is within what Anthropic's strict mode
// documents: characters, classes, groups, anchors at both ends, quantifiers with
// small counts.
func plainPattern(pattern string) bool {
	if pattern == "" || strings.Contains(pattern, "(?") || strings.Contains(pattern, "[[:") {
		return false
	}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '\\' {
			continue
		}
		i++
		if i == len(pattern) || !strings.ContainsRune(`dwsnrt\.+*?()|[]{}^$/-`, rune(pattern[i])) {
			return false
		}
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && plainSyntax(re)
}

func plainSyntax(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL,
		syntax.OpCapture, syntax.OpConcat, syntax.OpAlternate, syntax.OpEmptyMatch,
		syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpBeginText, syntax.OpEndText:
	case syntax.OpRepeat:
		if re.Min > maxRepeat || re.Max > maxRepeat {
			return false
		}
	default:
		return false
	}
	if re.Flags&syntax.NonGreedy != 0 {
		return false
	}
	return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !plainSyntax(sub) })
}

// onlyStrings holds for the enums that every provider takes: Gemini's function
// declarations know none but strings.
func onlyStrings(enum []any) bool {
	return !slices.ContainsFunc(enum, func(v any) bool { _, ok := v.(string); return !ok })
}

func list(values []any) string {
	texts := make([]string, 0, len(values))
	for _, v := range values {
		texts = append(texts, quote(v))
	}
	return strings.Join(texts, ", ")
}

// quote writes a value of the schema (never one of the arguments).
func quote(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text)
}
