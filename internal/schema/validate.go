package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/settle-go/settle/internal/canonical"
)

// source says whose schema is compiled.
type source int

const (
	// typed: derived from a Go type, so that its formats are what the type reads.
	typed source = iota
	// given: as JSON, read as its draft has it.
	given
)

// documentURL is where a schema is taken to live. The domain can't exist
// (RFC 2606), and the loader refuses everything anyway.
const documentURL = "https://schema.invalid/arguments.json"

// nothingElse is a loader that loads nothing: a schema is one document.
type nothingElse struct{}

func (nothingElse) Load(url string) (any, error) {
	return nil, errors.New("it refers to another document; put what it refers to under $defs")
}

// compile prepares the accepted form for validation.
func (s *Schema) compile(from source) error {
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(s.Accepted))
	if err != nil {
		return err
	}
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.UseLoader(nothingElse{})
	c.AssertFormat()
	c.RegisterFormat(&santhosh.Format{Name: "decimal", Validate: checkString(isDecimalText)})
	if from == typed {
		c.AssertContent()
		for _, b := range allBounds() {
			c.RegisterFormat(b.check())
		}
		c.RegisterFormat(&santhosh.Format{Name: "date-time", Validate: checkString(isGoTime)})
	}
	if err := c.AddResource(documentURL, doc); err != nil {
		return err
	}
	if s.compiled, err = c.Compile(documentURL); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), documentURL, ""))
	}
	s.fit = newFit(s.compiled)
	s.names = map[string]bool{}
	collectNames(doc, s.names)
	return nil
}

var errFormat = errors.New("not in the format")

func checkString(fits func(string) bool) func(any) error {
	return func(v any) error {
		if text, ok := v.(string); ok && !fits(text) {
			return errFormat
		}
		return nil
	}
}

var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// isDecimalText asks for a number of JSON (RFC 8259 section 6) in a string.
func isDecimalText(text string) bool {
	return number.MatchString(text) && bounded(text)
}

// isGoTime asks for what time.Time reads: RFC 3339 without its lower-case
// letters and leap seconds.
func isGoTime(text string) bool {
	return new(time.Time).UnmarshalText([]byte(text)) == nil
}

// bounded says whether a number is of the size that the canonical form takes. An
// exact comparison of 1e999999999 would take the machine's memory.
func bounded(text string) bool {
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return len(text) <= canonical.MaxDigits
	}
	exponent, err := strconv.Atoi(text[i+1:])
	return err == nil && i <= canonical.MaxDigits && -canonical.MaxExponent <= exponent && exponent <= canonical.MaxExponent
}

// ValidationError says how arguments don't fit: which fields and which rules. It
// holds no value and no name that the caller chose (R55).
type ValidationError struct {
	// Problems are in the order of their paths, at most 32 of them.
	Problems []Problem
	// More counts the problems beyond those.
	More int
}

// Problem is one rule that arguments break.
type Problem struct {
	// Path leads to the field, as in items[2].price; * stands for a name that
	// isn't in the schema. It is empty for the arguments as a whole.
	Path string
	// Reason says what was expected.
	Reason string
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Reason
	}
	return p.Path + ": " + p.Reason
}

func (e *ValidationError) Error() string {
	texts := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		texts = append(texts, p.String())
	}
	if e.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.More))
	}
	return "invalid arguments: " + strings.Join(texts, "; ")
}

func invalid(path, reason string) error {
	return &ValidationError{Problems: []Problem{{path, reason}}}
}

// Validate checks arguments as they came against the accepted form, with exact
// numbers. The error is a [*ValidationError].
func (s *Schema) Validate(args []byte) error {
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return invalid("", "not one JSON value")
	}
	if location, found := oversized(doc); found {
		return invalid(s.path(doc, location), fmt.Sprintf("a number may have %d digits and an exponent up to %d", canonical.MaxDigits, canonical.MaxExponent))
	}
	if err := s.compiled.Validate(doc); err != nil {
		return s.explain(doc, err)
	}
	return nil
}

// oversized finds a number that isn't bounded, and where it is.
func oversized(v any) (location []string, found bool) {
	switch v := v.(type) {
	case json.Number:
		return nil, !bounded(string(v))
	case []any:
		for i, item := range v {
			if location, found = oversized(item); found {
				return append([]string{strconv.Itoa(i)}, location...), true
			}
		}
	case map[string]any:
		for name, item := range v {
			if location, found = oversized(item); found {
				return append([]string{name}, location...), true
			}
		}
	}
	return nil, false
}
