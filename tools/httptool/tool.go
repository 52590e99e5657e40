package httptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/tools/internal/arguments"
)

// Spec declares an endpoint of an HTTP API as a tool.
type Spec struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments where In is json.RawMessage.
	Schema json.RawMessage
	// Contract is the author's promise. Its Timeout bounds the request, and its
	// Resource, or the tag on Out, names the effect's id in the result.
	Contract settle.Contract
	Request  Request

	// KeyHeader carries the operation's key. Default: Idempotency-Key for a Keyed
	// tool whose Request says {settle_key} or {settle_uuid} nowhere, otherwise none.
	KeyHeader string
	// KeyIsUUID sends the key as a UUID.
	KeyIsUUID bool

	// Result is the JSON path of the result in an answer. Default: the answer. An
	// answer without a body is the zero Out.
	Result string
	// Meanings says what a status proves where [MeaningOf] doesn't fit.
	Meanings map[int]Meaning
	// ThrottlesBeforeActing says that the far side looks at its limits before it
	// acts: 429 and 503 with a Retry-After are then NotSent (R27).
	ThrottlesBeforeActing bool
	// Refusal is the JSON path, in a refusal, of a text that the model is told.
	// Without it the model is told the status.
	Refusal string

	// Lookup is how the far side is asked whether the effect happened (R32).
	Lookup *Lookup
}

// endpoint is a declared tool.
type endpoint[In, Out any] struct {
	client   *Client
	spec     Spec
	request  *recipe
	lookup   *lookup
	resource func(out Out, encoded []byte) string
}

// New declares a tool. In and Out are Go types, or both json.RawMessage with a
// Schema. The error says everything that is wrong with the declaration; what is
// wrong with the contract, settle.New says.
func New[In, Out any](client *Client, spec Spec) (settle.Tool[In, Out], error) {
	e := &endpoint[In, Out]{client: client, spec: spec}
	e.spec.Meanings = maps.Clone(spec.Meanings)
	if err := e.read(); err != nil {
		return settle.Tool[In, Out]{}, fmt.Errorf("httptool: tool %q: %s", spec.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	tool := settle.Tool[In, Out]{Name: spec.Name, Description: spec.Description, Schema: spec.Schema, Contract: spec.Contract, Do: e.do}
	if e.lookup != nil {
		tool.Lookup = e.look
	}
	return tool, nil
}

func (e *endpoint[In, Out]) read() error {
	if e.client == nil {
		return errors.New("it has no client: make one with NewClient")
	}
	declared, err := arguments.Of[In](e.spec.Schema)
	if err != nil {
		return err
	}
	var problems []error
	e.request, err = e.spec.Request.read(declared)
	problems = append(problems, err)
	problems = append(problems, declared.Unused(e.spec.Contract), e.addKey(declared), e.checkPaths())
	e.request.follow = e.spec.Contract.Class == settle.Read && (e.request.method == "GET" || e.request.method == "HEAD")
	if e.spec.Lookup != nil {
		e.lookup, err = e.spec.Lookup.read(declared.Afresh())
		problems = append(problems, err)
	}
	e.resource, err = resourceOf[Out](e.spec.Contract.Resource)
	return errors.Join(append(problems, err)...)
}

// addKey puts the key into a header.
func (e *endpoint[In, Out]) addKey(d *arguments.Declared) error {
	name := e.spec.KeyHeader
	if name == "" {
		if e.spec.Contract.Class != settle.Keyed || d.Uses(arguments.Key, arguments.UUID) {
			return nil
		}
		name = "Idempotency-Key"
	}
	for _, h := range e.request.header {
		if strings.EqualFold(h.name, name) {
			return fmt.Errorf("the header %s carries the key and is under Header as well: take it away there", name)
		}
	}
	if len(e.client.header.Values(name)) > 0 {
		return fmt.Errorf("the header %s carries the key and is the client's as well: take it away there", name)
	}
	fact := arguments.Key
	if e.spec.KeyIsUUID {
		fact = arguments.UUID
	}
	e.request.header = append(e.request.header, named{name, template{{field: fact}}})
	return checkHeader(name)
}

func (e *endpoint[In, Out]) checkPaths() error {
	var problems []error
	for name, path := range map[string]string{"Result": e.spec.Result, "Refusal": e.spec.Refusal} {
		if _, err := canonical.ParsePath(path); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	for status, meaning := range e.spec.Meanings {
		if status < 200 || status > 599 || meaning > AlreadySo {
			problems = append(problems, fmt.Errorf("the status %d in Meanings isn't an answer's, or has no meaning", status))
		}
	}
	return errors.Join(problems...)
}

// resourceOf is how a result names its effect, as settle itself reads it.
func resourceOf[Out any](path string) (func(Out, []byte) string, error) {
	if path != "" {
		_, err := canonical.ParsePath(path)
		return func(_ Out, encoded []byte) string {
			v, _ := parse(encoded)
			found, _ := v.Path(path)
			return found.String()
		}, err
	}
	result, err := schema.Results(reflect.TypeFor[Out]())
	return func(out Out, _ []byte) string {
		reference, err := result.Reference(out)
		if err != nil {
			return ""
		}
		return reference
	}, err
}

func (e *endpoint[In, Out]) do(ctx context.Context, op settle.Op, in In) (out Out, err error) {
	values, err := arguments.Read(op, in)
	if err != nil {
		return out, settle.Rejected(err)
	}
	r, err := e.request.make(values)
	if err != nil {
		return out, settle.Rejected(err)
	}
	a, failed := e.client.send(ctx, r)
	switch {
	case failed == nil:
		return e.judge(a)
	case failed.notSent:
		return out, settle.NotSent(failed)
	}
	return out, failed
}
