package settle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/store"
)

// binding is a tool without its types: what the one path through the executor
// works with.
type binding struct {
	name, description string
	// identity is the name that operations are keyed by: the oldest one (R3).
	identity string
	formerly []string
	contract Contract
	span     spanStart
	schema   *schema.Schema
	// offered is the schema that the model is shown: with the occurrence
	// parameter where the tool is Repeatable (R9).
	offered json.RawMessage
	steps   []*binding
	// sealed says that a codec encrypts what is stored, secrets included (R56).
	sealed bool
	// resultLimit bounds what is stored of a result, in bytes (R47).
	resultLimit int
	// undo is the tool's compensation, or nil.
	undo      *binding
	hasDo     bool
	hasLookup bool
	// digest is that of the identity definition (R3).
	digest store.Digest
	// identityPaths, ignored and secret are tags and contract together.
	identityPaths, ignored, secret []string

	resultVersion int

	decode func(args []byte) (any, error)
	// admitted is decode for arguments that fit today's schema.
	admitted func(args []byte) (any, error)
	do       func(ctx context.Context, op Op, in any) (any, error)
	lookup   func(ctx context.Context, a *asked, in any) (Evidence, error)
	upgrade  func(version int, result json.RawMessage) (any, error)
	// resource finds the effect's id in an encoded result.
	resource func(out any, encoded []byte) string
	// declared says that the ledger knows how many persons decide its cases.
	declared atomic.Bool
	// resultSchema is the JSON Schema of a result, or nil where its type has none.
	resultSchema json.RawMessage
	// parseResult checks a result that a person gives (R40).
	parseResult func(result []byte) error
}

// occurrenceParameter is the argument through which a model asks for a meant
// repeat of a Repeatable tool (R9).
const occurrenceParameter = "settle_occurrence"

const occurrenceSchema = `{"anyOf":[{"type":"integer"},{"type":"null"}],"description":"Leave null. ` +
	`Only where the very same action is meant to be done once more: the number of this repeat, 2 for the second, 3 for the third."}`

// maxToolName bounds a tool's name in bytes, as the providers' APIs do.
const maxToolName = 128

// ToolError says what is wrong with a tool's declaration.
type ToolError struct {
	Tool string
	Err  error
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("settle: tool %q: %s", e.Tool, strings.ReplaceAll(e.Err.Error(), "\n", "; "))
}
func (e *ToolError) Unwrap() error { return e.Err }

// bind is a tool's own, for one that is there: a nil one is told like every other
// mistake.
func bind(t AnyTool, redelivery time.Duration) (*binding, error) {
	if isNil(t) {
		return nil, &ToolError{"", errors.New("it is nil: leave it out")}
	}
	return t.bind(redelivery)
}

// isNil says that there is nothing in an interface, or nothing behind it.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}

// bind implements [AnyTool]. It reports everything that is wrong at once.
func (t Tool[In, Out]) bind(redelivery time.Duration) (*binding, error) {
	b := &binding{
		name: t.Name, description: t.Description, identity: t.Name, formerly: t.Formerly,
		hasDo: t.Do != nil, hasLookup: t.Lookup != nil, resultVersion: t.ResultVersion,
		contract: t.Contract.withDefaults(redelivery),
	}
	if len(t.Formerly) > 0 {
		b.identity = t.Formerly[0]
	}
	var problems []error
	note := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	for _, name := range append([]string{t.Name}, t.Formerly...) {
		note(checkToolName(name))
	}
	note(b.bindSchema(reflect.TypeFor[In](), t.Schema))
	note(b.bindResult(reflect.TypeFor[Out]()))
	note(b.contract.check(b.hasLookup, len(b.identityPaths) > 0, redelivery))
	note(b.bindSteps(t.Steps, redelivery))
	if t.Compensation != nil {
		undo, err := t.Compensation.bind(b.identity, redelivery, t.resultOf)
		note(err)
		b.undo = undo
	}
	if len(problems) > 0 {
		return nil, &ToolError{t.Name, errors.Join(problems...)}
	}
	b.digest = b.identityDefinition()
	b.span = newSpanStart(b.name, b.contract.Class)
	b.bindFuncs(t.erase())
	return b, nil
}

// erased is a tool's functions without their types.
type erased struct {
	decode func([]byte) (any, error)
	// admitted is decode for arguments that fit the schema.
	admitted    func([]byte) (any, error)
	do          func(context.Context, Op, any) (any, error)
	lookup      func(context.Context, *asked, any) (Evidence, error)
	upgrade     func(int, json.RawMessage) (any, error)
	parseResult func([]byte) error
}

func (b *binding) bindFuncs(e erased) {
	b.decode, b.admitted, b.do, b.lookup, b.upgrade, b.parseResult = e.decode, e.admitted, e.do, e.lookup, e.upgrade, e.parseResult
	if b.admitted == nil {
		b.admitted = b.decode
	}
}

// errNoArguments: what was erased (R52) is no operation with empty arguments.
var errNoArguments = errors.New("settle: the arguments are gone")

// erase is the only place that knows a tool's types.
func (t Tool[In, Out]) erase() erased {
	guarded := contained
	if schema.RunsCode(reflect.TypeFor[In]()) {
		guarded = apart // what is recorded answers and is worked on all the same (R18, R38)
	}
	decode := func(by func([]byte, any) error) func([]byte) (any, error) {
		return func(args []byte) (any, error) {
			var in In
			if len(args) == 0 {
				return in, errNoArguments
			}
			if raw, ok := any(&in).(*json.RawMessage); ok {
				*raw = bytes.Clone(args) // the handler may write in it (R29)
				return in, nil
			}
			// Not in one line: Go leaves open whether in is read before the call.
			err := guarded(func() error { return by(args, &in) })
			return in, err
		}
	}
	e := erased{
		decode:   decode(schema.Decode),
		admitted: decode(schema.Admitted(reflect.TypeFor[In]())),
		parseResult: func(result []byte) error {
			var out Out
			return contained(func() error { return schema.Decode(result, &out) })
		},
	}
	if t.Do != nil {
		e.do = func(ctx context.Context, op Op, in any) (any, error) {
			return t.Do(ctx, op, in.(In))
		}
	}
	if t.Lookup != nil {
		e.lookup = func(ctx context.Context, a *asked, in any) (Evidence, error) {
			return t.Lookup(ctx, Query[Out]{a}, in.(In))
		}
	}
	if t.Upgrade != nil {
		e.upgrade = func(version int, result json.RawMessage) (out any, err error) {
			err = apart(func() (err error) {
				out, err = t.Upgrade(version, result)
				return err
			})
			return out, err
		}
	}
	return e
}

func checkToolName(name string) error {
	if err := checkName("tool", name); err != nil {
		return err
	}
	if len(name) > maxToolName {
		return &NameError{"tool", fmt.Sprintf("has %d bytes and at most %d are allowed (R12)", len(name), maxToolName)}
	}
	return nil
}

// bindSchema finds the schema and the fields that tags and contract name.
func (b *binding) bindSchema(in reflect.Type, given json.RawMessage) (err error) {
	switch raw := in == reflect.TypeFor[json.RawMessage](); {
	case raw && len(given) == 0 && b.hasDo:
		return errors.New("a raw tool needs Schema: the JSON Schema of its arguments")
	case raw && len(given) == 0:
		// A framework's own tool: its schema comes with each call.
	case raw:
		b.schema, err = schema.Parse(given)
	case len(given) > 0:
		return errors.New("the field Schema is for raw tools; the schema of a typed tool comes from its Go type")
	default:
		b.schema, err = schema.Of(in)
	}
	if err != nil {
		return err
	}
	b.identityPaths = slices.Clone(b.contract.Identity)
	b.ignored = slices.Clone(b.contract.Ignore)
	b.secret = slices.Clone(b.contract.Secret)
	if b.schema == nil {
		return nil
	}
	var problems []error
	for _, path := range slices.Concat(b.identityPaths, b.ignored, b.secret) {
		problems = append(problems, b.checkPath(path))
	}
	for _, path := range b.identityPaths {
		if f, ok := b.schema.Field(path); ok && f.Optional {
			problems = append(problems, fmt.Errorf("identity field %q is optional: a call without it would have no identity; make it required (R8)", path))
		}
	}
	for _, f := range b.schema.Fields {
		if f.Tags.Identity {
			b.identityPaths = append(b.identityPaths, f.Name)
		}
		if f.Tags.Ignore {
			b.ignored = append(b.ignored, f.Name)
		}
		if f.Tags.Secret {
			b.secret = append(b.secret, f.Name)
		}
	}
	slices.Sort(b.identityPaths)
	b.identityPaths = slices.Compact(b.identityPaths)
	problems = append(problems, b.checkNormalizers(), b.checkOverlap())
	b.offered = b.schema.Offered
	if b.contract.Repeatable {
		b.offered, err = b.schema.WithProperty(occurrenceParameter, json.RawMessage(occurrenceSchema))
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// checkPath says whether a path of the contract leads to a field of the schema.
func (b *binding) checkPath(path string) error {
	parts, err := canonical.ParsePath(path)
	if err != nil {
		return fmt.Errorf("path %q: %w", path, err)
	}
	if len(parts) == 0 {
		return fmt.Errorf("path %q leads to no field: name one", path)
	}
	shape := b.schema.Shape
	for i, part := range parts {
		var next *canonical.Shape
		if shape != nil {
			next = shape.Fields[part]
		}
		if next == nil && i == 0 {
			if _, ok := b.schema.Field(part); !ok {
				return fmt.Errorf("path %q leads to no field of the arguments; the fields are %s", path, b.fieldNames())
			}
		}
		shape = next
	}
	return nil
}

func (b *binding) fieldNames() string {
	names := make([]string, len(b.schema.Fields))
	for i, f := range b.schema.Fields {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

func (b *binding) checkNormalizers() error {
	var problems []error
	for path, n := range b.contract.Normalize {
		if !slices.Contains(b.identityPaths, path) || strings.ContainsAny(path, "./") {
			problems = append(problems, fmt.Errorf("the field Normalize names %q: a normaliser belongs to a top-level identity field (R16)", path))
		}
		if n.Name == "" || n.Func == nil {
			problems = append(problems, fmt.Errorf("the normaliser of %q needs a Name and a Func (R3, R16)", path))
		}
	}
	return errors.Join(problems...)
}

func (b *binding) checkOverlap() error {
	for _, path := range b.identityPaths {
		if slices.Contains(b.ignored, path) {
			return fmt.Errorf("field %q is identity and ignored: it can only be one of them", path)
		}
	}
	return nil
}

// bindResult finds the resource in the result, and its schema where its type has one.
func (b *binding) bindResult(out reflect.Type) error {
	if s, err := schema.OfResult(out); err == nil {
		b.resultSchema = s.Accepted
	}
	if path := b.contract.Resource; path != "" {
		if _, err := canonical.ParsePath(path); err != nil {
			return fmt.Errorf("the path %q of Resource: %w", path, err)
		}
		b.resource = func(_ any, encoded []byte) string {
			v, err := canonical.Parse(encoded, canonical.Limits{Bytes: len(encoded) + 1})
			if err != nil {
				return ""
			}
			found, _ := v.Path(path)
			return found.String()
		}
		return nil
	}
	results, err := schema.Results(out)
	if err != nil {
		return err
	}
	b.resource = func(out any, _ []byte) (resource string) {
		err := contained(func() (err error) {
			resource, err = results.Reference(out)
			return err
		})
		if err != nil {
			// A result of another type is a framework's own and names no resource.
			return ""
		}
		return resource
	}
	return nil
}

func (b *binding) bindSteps(steps []AnyTool, redelivery time.Duration) error {
	if len(steps) > 0 && b.contract.Class != Composite {
		return errors.New("only a Composite has Steps (R13)")
	}
	var problems []error
	for _, s := range steps {
		step, err := bind(s, redelivery)
		problems = append(problems, err)
		b.steps = append(b.steps, step)
	}
	return errors.Join(problems...)
}

// source is where the tool's nodes come from where the host names none (R8).
func (b *binding) source() store.Source {
	if len(b.identityPaths) > 0 {
		return store.FromIdentity
	}
	return store.FromWhole
}

// shape is how the tool's arguments are compared, nil for as they are read.
func (b *binding) shape() *canonical.Shape {
	if b.schema == nil {
		return nil
	}
	return b.schema.Shape
}

// undeclared is what an unlisted name gets: Unsafe, whole arguments, no lookup (R1).
func undeclared(name string, redelivery time.Duration) (*binding, error) {
	return RawTool{Name: name, Contract: Contract{WholeArguments: true, NoLookup: true}}.bind(redelivery)
}
