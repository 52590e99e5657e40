package httptool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/tools/internal/arguments"
)

// Lookup says how the far side is asked whether an effect happened, and what its
// answers mean. What the declaration doesn't cover is inconclusive: absence is
// found only where List or NotFound says how it looks.
type Lookup struct {
	// Request asks; its default Method is GET. {settle_key} is the key that the
	// attempts sent. It must change nothing.
	Request Request
	// List is the JSON path of an array in the answer. None in it is "not
	// happened", one is what was found, more are a case for a person. Without List
	// the answer itself is what was found.
	List string
	// NotFound are the statuses that say that there is no such effect, as a 404 of
	// an API that has it under the key. A 404 alone proves nothing: a wrong path
	// answers so too.
	NotFound []int
	// State is the JSON path, in what was found, of a text that says how far it
	// is, and States what each means. One that isn't listed is inconclusive.
	State  string
	States map[string]State
	// Result is the JSON path of the result in what was found. Default: all of it.
	Result string
	// Compare maps top-level arguments, ignored ones apart, to JSON paths in what
	// was found, of the same JSON type. Where one differs, a person decides (R34).
	Compare map[string]string
	// ByAttribute says that what is asked for isn't the key but a business
	// attribute, which others may have as well. Created is then the JSON path of
	// the instant at which it was made, RFC 3339; "" where the far side doesn't say.
	ByAttribute bool
	Created     string
}

// State is what the far side's own state of an effect means.
type State uint8

const (
	// Inconclusive: nothing can be said.
	Inconclusive State = iota
	// Done: it happened.
	Done
	// Running: the far side is at work on it.
	Running
	// Void: it was refused or undone before it had an effect.
	Void
)

// lookup is a Lookup that was read.
type lookup struct {
	Lookup
	request *recipe
}

func (l Lookup) read(d *arguments.Declared) (*lookup, error) {
	l.NotFound, l.States, l.Compare = slices.Clone(l.NotFound), maps.Clone(l.States), maps.Clone(l.Compare)
	if l.Request.Method == "" {
		l.Request.Method = http.MethodGet
	}
	made, err := l.Request.read(d)
	problems := []error{err}
	paths := []string{l.List, l.State, l.Result, l.Created}
	for field, path := range l.Compare {
		if _, err := d.Use(field); err != nil || strings.ContainsAny(field, "./") {
			problems = append(problems, fmt.Errorf("the field Compare names %q, which is no top-level argument", field))
		}
		paths = append(paths, path)
	}
	for _, path := range paths {
		_, err := canonical.ParsePath(path)
		problems = append(problems, err)
	}
	if (l.State == "") != (len(l.States) == 0) {
		problems = append(problems, errors.New("its State and States go together: give both, or neither"))
	}
	if l.Created != "" && !l.ByAttribute {
		problems = append(problems, errors.New("the field Created is for a lookup that is ByAttribute"))
	}
	if !l.ByAttribute && !d.Uses(arguments.Key, arguments.UUID, arguments.Reference) {
		problems = append(problems, errors.New("it asks for no {settle_key}: ask for what the attempts sent, or say ByAttribute"))
	}
	made.follow = made.method == http.MethodGet || made.method == http.MethodHead
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("the lookup: %w", err)
	}
	return &lookup{l, made}, nil
}

// look asks once. Its error is no answer; an answer that says nothing is
// inconclusive.
func (e *endpoint[In, Out]) look(ctx context.Context, q settle.Query[Out], in In) (none settle.Evidence, err error) {
	values, err := arguments.Read(q, in)
	if err != nil {
		return none, err
	}
	r, err := e.lookup.request.make(values)
	if err != nil {
		return none, err
	}
	a, failed := e.client.send(ctx, r)
	if failed != nil {
		return none, failed
	}
	if slices.Contains(e.lookup.NotFound, a.status) {
		return q.NotHappened(), nil
	}
	if MeaningOf(a.status) != Happened {
		return none, &Error{Status: a.status}
	}
	if a.readErr != nil {
		return none, &Error{Status: a.status, cause: a.readErr}
	}
	v, err := parse(a.body)
	if err != nil {
		return none, &Error{Status: a.status, cause: err}
	}
	return e.weigh(q, v), nil
}

func (e *endpoint[In, Out]) weigh(q settle.Query[Out], found canonical.Value) settle.Evidence {
	if e.lookup.List != "" {
		list, ok := found.Path(e.lookup.List)
		switch {
		case !ok || list.Kind() != canonical.Array:
			return q.Inconclusive("the answer has no array where the declaration says")
		case list.Len() == 0:
			return q.NotHappened()
		case list.Len() > 1:
			return q.Several("the far side lists more than one")
		}
		for found = range list.Elements() {
		}
	}
	if found.Kind() != canonical.Object {
		return q.Inconclusive("what was found is no JSON object")
	}
	switch e.state(found) {
	case Running:
		return q.StillRunning()
	case Void:
		return q.NotHappened()
	case Inconclusive:
		return q.Inconclusive("the far side's state of it isn't in the declaration")
	}
	return e.happened(q, found)
}

func (e *endpoint[In, Out]) state(found canonical.Value) State {
	if e.lookup.State == "" {
		return Done
	}
	v, ok := found.Path(e.lookup.State)
	text, scalar := arguments.Text(v)
	if !ok || !scalar {
		return Inconclusive
	}
	return e.lookup.States[text]
}

func (e *endpoint[In, Out]) happened(q settle.Query[Out], found canonical.Value) settle.Evidence {
	result, ok := found.Path(e.lookup.Result)
	if !ok {
		return q.Inconclusive("what was found has no result where the declaration says")
	}
	out, encoded, err := decodeValue[Out](result)
	if err != nil {
		return q.Inconclusive("what was found isn't of the declared type")
	}
	evidence := q.Happened(e.resource(out, encoded), out)
	if len(e.lookup.Compare) > 0 {
		shown := map[string]rawValue{}
		for field, path := range e.lookup.Compare {
			v, ok := found.Path(path)
			if !ok {
				return q.Inconclusive("what was found lacks a field to compare")
			}
			shown[field] = rawValue{v}
		}
		evidence = evidence.Comparing(shown)
	}
	if e.lookup.ByAttribute {
		created, _ := found.Path(e.lookup.Created)
		at, _ := time.Parse(time.RFC3339Nano, created.String()) // zero where it doesn't say
		evidence = evidence.ByAttribute(at)
	}
	return evidence
}

// rawValue writes itself as it was read.
type rawValue struct{ canonical.Value }

func (v rawValue) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }
