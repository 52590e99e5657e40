package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/settle-go/settle/internal/canonical"
)

// Fits says of most valid arguments that they are, at a fraction of what
// [Schema.Validate] costs. False says nothing: Validate then decides, and has
// the words for what is wrong. It takes the arguments as they were parsed.
func (s *Schema) Fits(args canonical.Value) bool { return s.fit.admits(args) }

// fit is the part of a compiled schema that decides most arguments. What it
// admits is valid.
type fit struct {
	// never holds for a schema that says something which isn't decided here.
	never  bool
	kinds  kinds
	whole  bool // numbers are integers
	format *santhosh.Format
	forms  []*fit // alternatives, of which one has to admit

	enum    []string
	pattern santhosh.Regexp
	length  interval
	value   interval

	required          []string
	properties        map[string]*fit
	additional, items *fit // nil: anything
	size              interval
}

// kinds is a set of kinds, one bit each; the empty set stands for all of them.
type kinds uint16

func (k kinds) has(kind canonical.Kind) bool { return k == 0 || k&(1<<kind) != 0 }

// interval bounds a count or an integer, both ends included.
type interval struct{ low, high int64 }

var unbounded = interval{math.MinInt64, math.MaxInt64}

func (i interval) holds(n int64) bool { return i.low <= n && n <= i.high }

// decided are the keywords that newFit reads, and those that demand nothing.
var decided = []string{
	"Bool", "Types", "Enum", "Format", "AnyOf", "Required", "Properties", "AdditionalProperties",
	"Items2020", "MinItems", "MaxItems", "MinLength", "MaxLength", "Pattern", "Minimum", "Maximum",
	"DraftVersion", "Location", "Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated",
}

// newFit reads a compiled schema. It doesn't follow references.
func newFit(s *santhosh.Schema) *fit {
	f := &fit{format: s.Format, pattern: s.Pattern, required: s.Required, length: unbounded, value: unbounded, size: unbounded}
	for v, i := reflect.ValueOf(s).Elem(), 0; i < v.NumField(); i++ {
		if k := v.Type().Field(i); k.IsExported() && !v.Field(i).IsZero() && !slices.Contains(decided, k.Name) {
			f.never = true
			return f
		}
	}
	f.never = s.Bool != nil && !*s.Bool
	f.length.narrow(s.MinLength, s.MaxLength)
	f.size.narrow(s.MinItems, s.MaxItems)
	f.takeTypes(s.Types)
	f.takeEnum(s.Enum)
	f.takeRange(s.Minimum, s.Maximum)
	f.takeBelow(s)
	return f
}

func (i *interval) narrow(low, high *int) {
	if low != nil {
		i.low = int64(*low)
	}
	if high != nil {
		i.high = int64(*high)
	}
}

var kindsOfTypes = map[string]canonical.Kind{
	"null": canonical.Null, "boolean": canonical.Bool, "integer": canonical.Number, "number": canonical.Number,
	"string": canonical.String, "array": canonical.Array, "object": canonical.Object,
}

func (f *fit) takeTypes(types *santhosh.Types) {
	if types == nil || types.IsEmpty() {
		return
	}
	names := types.ToStrings()
	for _, name := range names {
		f.kinds |= 1 << kindsOfTypes[name]
	}
	f.whole = !slices.Contains(names, "number")
}

// takeEnum takes lists of strings.
func (f *fit) takeEnum(enum *santhosh.Enum) {
	if enum == nil {
		return
	}
	f.enum = []string{}
	for _, v := range enum.Values {
		if text, ok := v.(string); ok {
			f.enum = append(f.enum, text)
		} else {
			f.never = true
		}
	}
}

// takeRange takes bounds that are integers.
func (f *fit) takeRange(low, high *big.Rat) {
	integer := func(bound *big.Rat) int64 {
		if !bound.IsInt() || !bound.Num().IsInt64() {
			f.never = true
		}
		return bound.Num().Int64()
	}
	if low != nil {
		f.value.low = integer(low)
	}
	if high != nil {
		f.value.high = integer(high)
	}
}

// takeBelow takes the schemas below this one.
func (f *fit) takeBelow(s *santhosh.Schema) {
	f.properties = make(map[string]*fit, len(s.Properties))
	for name, property := range s.Properties {
		f.properties[name] = newFit(property)
	}
	for _, form := range s.AnyOf {
		f.forms = append(f.forms, newFit(form))
	}
	if s.Items2020 != nil {
		f.items = newFit(s.Items2020)
	}
	switch additional := s.AdditionalProperties.(type) {
	case bool:
		if !additional {
			f.additional = &fit{never: true}
		}
	case *santhosh.Schema:
		f.additional = newFit(additional)
	}
}

// open admits every value, but for numbers that Validate has to look at.
var open = &fit{length: unbounded, value: unbounded, size: unbounded}

func (f *fit) admits(v canonical.Value) bool {
	if f == nil {
		f = open
	}
	if f.never || !f.kinds.has(v.Kind()) {
		return false
	}
	if f.forms != nil && !slices.ContainsFunc(f.forms, func(form *fit) bool { return form.admits(v) }) {
		return false
	}
	switch v.Kind() {
	case canonical.String:
		return f.admitsString(v.String())
	case canonical.Number:
		return f.enum == nil && f.admitsNumber(v.Literal())
	case canonical.Array:
		return f.enum == nil && f.format == nil && f.admitsArray(v)
	case canonical.Object:
		return f.enum == nil && f.format == nil && f.admitsObject(v)
	case canonical.Bool:
		return f.enum == nil && f.formatted(v.Bool())
	default:
		return f.enum == nil && f.formatted(nil)
	}
}

func (f *fit) admitsString(text string) bool {
	if f.enum != nil && !slices.Contains(f.enum, text) || f.pattern != nil && !f.pattern.MatchString(text) {
		return false
	}
	if f.length != unbounded && !f.length.holds(int64(utf8.RuneCountInString(text))) {
		return false
	}
	return f.format == nil || f.formatted(text)
}

// formatted asks the format, which is one of strings and lets most else pass.
func (f *fit) formatted(v any) bool { return f.format == nil || f.format.Validate(v) == nil }

// maxPlain is the most characters of a number that is admitted: fewer than what
// [Schema.Validate] takes.
const maxPlain = 64

// admitsNumber leaves to Validate what isn't written as plain digits.
func (f *fit) admitsNumber(literal string) bool {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil && literal != "-0" {
		return f.value.holds(n) && (f.format == nil || f.formatted(json.Number(literal)))
	}
	return !f.whole && f.value == unbounded && f.format == nil && len(literal) <= maxPlain && !strings.ContainsAny(literal, "eE")
}

func (f *fit) admitsArray(v canonical.Value) bool {
	if !f.size.holds(int64(v.Len())) {
		return false
	}
	for element := range v.Elements() {
		if !f.items.admits(element) {
			return false
		}
	}
	return true
}

func (f *fit) admitsObject(v canonical.Value) bool {
	for _, name := range f.required {
		if _, ok := v.Member(name); !ok {
			return false
		}
	}
	for name, member := range v.Members() {
		as, ok := f.properties[name]
		if !ok {
			as = f.additional
		}
		if !as.admits(member) {
			return false
		}
	}
	return true
}
