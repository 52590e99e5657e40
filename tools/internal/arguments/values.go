package arguments

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/canonical"
)

// factPrefix begins the name of a fact.
const factPrefix = "settle_"

// The facts of an operation that a declaration may name.
const (
	Key       = factPrefix + "key"       // [settle.Op.Key]
	UUID      = factPrefix + "uuid"      // the key as a UUID
	Reference = factPrefix + "reference" // [settle.Op.Reference]
	Tenant    = factPrefix + "tenant"    // of the principal
	Subject   = factPrefix + "subject"   // of the principal
	Task      = factPrefix + "task"      // the task's id
)

var factNames = []string{Key, UUID, Reference, Tenant, Subject, Task}

// Operation is where facts come from: [settle.Op] and [settle.Query].
type Operation interface {
	Key() string
	UUID() uuid.UUID
	Reference() string
	Principal() settle.Principal
	Task() settle.Task
}

// Values are the fields and facts of one call.
type Values struct {
	// Encoded are the arguments in JSON: a raw tool's as they came.
	Encoded json.RawMessage
	fields  canonical.Value
	of      Operation
}

var errUnreadable = errors.New("the arguments can't be read as JSON")

// Read takes the arguments of a call, which were validated before.
func Read[In any](of Operation, in In) (Values, error) {
	encoded, raw := any(in).(json.RawMessage)
	if !raw {
		var err error
		if encoded, err = json.Marshal(in); err != nil {
			return Values{}, errUnreadable // its own text may hold a value (R55)
		}
	}
	fields, err := canonical.Parse(encoded, canonical.Limits{Bytes: len(encoded) + 1, Members: math.MaxInt32})
	if err != nil {
		return Values{}, errUnreadable
	}
	return Values{Encoded: encoded, fields: fields, of: of}, nil
}

// Get returns the field at a path, or a fact. It is false where there is none,
// or null.
func (v Values) Get(name string) (canonical.Value, bool) {
	if fact, ok := v.fact(name); ok {
		return canonical.NewString(fact)
	}
	value, ok := v.fields.Path(name)
	return value, ok && !value.IsNull()
}

// fact asks for the key only where it is wanted: a Keyed attempt that never
// asked for it counts as Unsafe.
func (v Values) fact(name string) (string, bool) {
	switch name {
	case Key:
		return v.of.Key(), true
	case UUID:
		return v.of.UUID().String(), true
	case Reference:
		return v.of.Reference(), true
	case Tenant:
		return v.of.Principal().Tenant, true
	case Subject:
		return v.of.Principal().Subject, true
	case Task:
		return v.of.Task().ID, true
	}
	return "", false
}

// Text writes a scalar as text: a string's characters, a number's digits, true
// or false. It is false for an array, an object and null.
func Text(v canonical.Value) (string, bool) {
	switch v.Kind() {
	case canonical.String, canonical.Number:
		return v.String(), true
	case canonical.Bool:
		if v.Bool() {
			return "true", true
		}
		return "false", true
	}
	return "", false
}
