package canonical

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// vectors is testdata/vectors.json, which says itself what its groups mean.
type vectors struct {
	Version  int
	About    []string
	Equal    []comparedVector
	Distinct []comparedVector
	Refused  []refusedVector
	Plain    []plainVector
	Rounded  []roundedVector
}

type comparedVector struct {
	Note, Rule string
	Shape      *shapeVector
	Inputs     []string
	Canonical  string
}

type refusedVector struct {
	Note, Rule string
	Limits     Limits
	Input      *string
	InputHex   string              `json:"input_hex"`
	InputParts [][]json.RawMessage `json:"input_parts"`
	Error      string
}

type plainVector struct{ Note, Rule, Input, Output string }

type roundedVector struct {
	Note, Rule, Input string
	Path              *string
}

type shapeVector struct {
	Format       string
	NullIsAbsent bool `json:"null_is_absent"`
	Fields       map[string]*shapeVector
	Items        *shapeVector
	Additional   *shapeVector
}

func (s *shapeVector) shape() *Shape {
	if s == nil {
		return nil
	}
	shape := &Shape{Format: s.Format, NullIsAbsent: s.NullIsAbsent, Items: s.Items.shape(), Additional: s.Additional.shape()}
	for name, field := range s.Fields {
		if shape.Fields == nil {
			shape.Fields = make(map[string]*Shape)
		}
		shape.Fields[name] = field.shape()
	}
	return shape
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if v.Version != Version {
		t.Fatalf("vectors are of version %d, the code of version %d", v.Version, Version)
	}
	for group, n := range map[string]int{
		"equal": len(v.Equal), "distinct": len(v.Distinct), "refused": len(v.Refused), "plain": len(v.Plain), "rounded": len(v.Rounded),
	} {
		if n == 0 {
			t.Fatalf("no vectors in group %s", group)
		}
	}
	return v
}

func mustParse(t *testing.T, input string) Value {
	t.Helper()
	v, err := Parse([]byte(input), Limits{})
	if err != nil {
		t.Fatalf("Parse(%q): %v", input, err)
	}
	return v
}

func canonicalBytes(t *testing.T, input string, s *Shape) []byte {
	t.Helper()
	v, err := Normalize(mustParse(t, input), s)
	if err != nil {
		t.Fatalf("Normalize(%q): %v", input, err)
	}
	return Append(nil, v)
}

func TestR16VectorsEqual(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Equal {
		want, err := hex.DecodeString(v.Canonical)
		if err != nil || len(want) == 0 || len(v.Inputs) == 0 {
			t.Fatalf("%s: not a vector: %v", v.Note, err)
		}
		for _, input := range v.Inputs {
			if got := canonicalBytes(t, input, v.Shape.shape()); !bytes.Equal(got, want) {
				t.Errorf("%s: %q gives %x, want %x", v.Note, input, got, want)
			}
		}
	}
}

func TestR16VectorsDistinct(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Distinct {
		seen := make(map[string]string)
		for _, input := range v.Inputs {
			got := string(canonicalBytes(t, input, v.Shape.shape()))
			if other, twice := seen[got]; twice {
				t.Errorf("%s: %q and %q share their canonical bytes", v.Note, input, other)
			}
			seen[got] = input
		}
		if len(v.Inputs) < 2 {
			t.Errorf("%s: one input can't be distinct", v.Note)
		}
	}
}

func (v refusedVector) input(t *testing.T) []byte {
	t.Helper()
	if v.Input != nil {
		return []byte(*v.Input)
	}
	input, err := hex.DecodeString(v.InputHex)
	if err != nil {
		t.Fatalf("%s: %v", v.Note, err)
	}
	for _, part := range v.InputParts {
		var text string
		var times int
		if err := errors.Join(json.Unmarshal(part[0], &text), json.Unmarshal(part[1], &times)); err != nil {
			t.Fatalf("%s: %v", v.Note, err)
		}
		input = append(input, strings.Repeat(text, times)...)
	}
	return input
}

func TestR16VectorsRefused(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Refused {
		_, err := Parse(v.input(t), v.Limits)
		got := "nothing"
		if e, ok := errors.AsType[*SyntaxError](err); ok {
			got = "syntax"
			if e.Offset < 0 || e.Offset > int64(len(v.input(t))) {
				t.Errorf("%s: offset %d is outside the input", v.Note, e.Offset)
			}
		}
		if e, ok := errors.AsType[*LimitError](err); ok {
			got = "limit " + e.Limit
		}
		if got != v.Error {
			t.Errorf("%s: refused for %s (%v), want %s", v.Note, got, err, v.Error)
		}
	}
}

func TestR16VectorsPlain(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Plain {
		read := mustParse(t, v.Input)
		if got := string(read.AppendJSON(nil)); got != v.Output {
			t.Errorf("%s: %q comes out as %q, want %q", v.Note, v.Input, got, v.Output)
		}
		if !bytes.Equal(canonicalBytes(t, v.Output, nil), Append(nil, read)) {
			t.Errorf("%s: %q and %q have other canonical bytes", v.Note, v.Input, v.Output)
		}
	}
}

func TestVectorsRounded(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors(t).Rounded {
		read := mustParse(t, v.Input)
		err := SafeRounded(read)
		if v.Path == nil {
			if err != nil {
				t.Errorf("%s: %q is refused: %v", v.Note, v.Input, err)
			}
			continue
		}
		e, ok := errors.AsType[*RoundedError](err)
		if !ok || e.Path != *v.Path {
			t.Errorf("%s: %q is refused for %+v, want path %q", v.Note, v.Input, err, *v.Path)
			continue
		}
		if at, ok := read.Path(e.Path); !ok || at.Kind() != Number {
			t.Errorf("%s: path %q leads to %v", v.Note, e.Path, at)
		}
	}
}
