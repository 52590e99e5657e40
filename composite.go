package settle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// StepError is what [Step] returns for a step that isn't completed. A composite
// that returns it takes over the step's outcome: while the step is open, the
// composite is open with it and goes on when the step is settled; a step's
// refusal, conflict or hold is the composite's (R13).
type StepError struct {
	Step    string
	Outcome Outcome
}

func (e *StepError) Error() string {
	return fmt.Sprintf("settle: step %q is %s", e.Step, e.Outcome.Status)
}

// open says that the step may still come to an end by itself or by a person.
func (e *StepError) open() bool {
	switch e.Outcome.Status {
	case StatusUnknown, StatusInProgress, StatusManual, StatusAwaitingApproval, StatusUnavailable:
		return true
	}
	return false
}

// StepOption qualifies [Step].
type StepOption interface{ applyStep(*step) }

type afterStep string

func (a afterStep) applyStep(s *step) { s.after = append(s.after, string(a)) }

// After says that the step uses what an earlier one created. That one's
// resource becomes part of what this step means (R15): if it is another one
// later, this step is a conflict and not a replay. A step whose upstream isn't
// completed is refused.
func After(name string) StepOption { return afterStep(name) }

type step struct {
	name  string
	after []string
}

// steps are what one run of a composite has seen of its steps.
type steps struct {
	mu sync.Mutex
	// key is the composite's key that the steps are derived from.
	key       Key
	resources map[string]string
	done      []Related
	// until is, by step, when one that isn't done may be called again (R28).
	until map[string]time.Time
	// spent are the steps that have used up their attempts (R28).
	spent map[string]bool
	open  *StepError
}

// ErrNoComposite says that [Step] was called outside of a composite's Do, or
// with a tool that isn't among its Steps.
var ErrNoComposite = errors.New("settle: a step belongs into the Do of a Composite that lists its tool in Steps (R13)")

// Step runs one step of a composite: an operation of its own, with its own
// contract, keyed from the composite's operation and the step's name. When the
// composite runs again, after a crash or an open outcome, a finished step
// replays and an unfinished one is settled by its own contract.
//
// The error is a [*StepError] where the step isn't completed, and
// [ErrNoComposite] or a [*NameError] for mistakes in the composite.
func Step[In, Out any](ctx context.Context, op Op, name string, tool Tool[In, Out], in In, options ...StepOption) (Out, error) {
	var zero Out
	s := step{name: name}
	for _, o := range options {
		o.applyStep(&s)
	}
	// By pointer, so that methods of pointers take part in encoding.
	r, err := newStep(op, s, tool.Name, &in)
	if err != nil {
		return zero, err
	}
	parent, x := op.running, op.running.executor
	f := &flow{x: x, request: r}
	out := f.go1(ctx)
	if out.Status != StatusCompleted {
		return zero, parent.stepEnded(name, out)
	}
	parent.stepDone(name, out)
	if value, ok := out.value.(Out); ok {
		return value, nil
	}
	if len(out.Result) == 0 {
		return zero, nil
	}
	value, err := Decode[Out](out)
	if err != nil {
		return zero, Rejected(err)
	}
	return value, nil
}

// newStep reads a step as a request under its composite.
func newStep(op Op, s step, toolName string, in any) (*request, error) {
	parent := op.running
	if parent == nil || parent.steps == nil {
		return nil, ErrNoComposite
	}
	if err := checkName("step", s.name); err != nil {
		return nil, err
	}
	tool := parent.binding.step(toolName)
	if tool == nil {
		return nil, ErrNoComposite
	}
	args, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("settle: step %q: encode its arguments: %w", s.name, err)
	}
	r, err := newRequest(tool, Call{Tool: toolName, Args: args}, parent.principal, parent.task, parent.executor.settings.limits)
	if err != nil {
		return nil, &StepError{Step: s.name, Outcome: parent.executor.invalid(tool, err)}
	}
	r.parent, r.step, r.run = parent, s.name, tool.do
	r.upstream, err = parent.upstreamOf(s)
	return r, err
}

func (b *binding) step(name string) *binding {
	for _, s := range b.steps {
		if s.name == name {
			return s
		}
	}
	return nil
}

// upstreamOf finds what the steps before have created.
func (r *running) upstreamOf(s step) (map[string]string, error) {
	r.steps.mu.Lock()
	defer r.steps.mu.Unlock()
	upstream := map[string]string{}
	for _, name := range s.after {
		resource, done := r.steps.resources[name]
		if !done {
			return nil, &StepError{Step: s.name, Outcome: Outcome{Status: StatusHeld, Tool: r.binding.name, Reason: reasonUnsettled,
				Detail: fmt.Sprintf("step %q comes after %q, which isn't completed", s.name, name)}}
		}
		upstream[name] = resource
	}
	return upstream, nil
}

func (r *running) stepDone(name string, out Outcome) {
	r.steps.mu.Lock()
	defer r.steps.mu.Unlock()
	r.steps.resources[name] = out.Resource
	delete(r.steps.until, name)
	delete(r.steps.spent, name)
	r.steps.done = append(r.steps.done, Related{Operation: out.Operation, Tool: out.Tool, State: string(out.Status), Resource: out.Resource})
}

// stepsDone lists what a composite's run has completed: it stays done, however
// the composite itself ends.
func (r *running) stepsDone() []Related {
	if r == nil || r.steps == nil {
		return nil
	}
	r.steps.mu.Lock()
	defer r.steps.mu.Unlock()
	return slices.Clone(r.steps.done)
}

func (r *running) stepEnded(name string, out Outcome) error {
	err := &StepError{Step: name, Outcome: out}
	r.steps.mu.Lock()
	defer r.steps.mu.Unlock()
	if err.open() && r.steps.open == nil {
		r.steps.open = err
	}
	if out.Status == StatusNotDone && out.wait > 0 {
		r.steps.until[name] = time.Now().Add(out.wait)
	}
	if out.spent || out.Reason == reasonExhausted {
		r.steps.spent[name] = true
	}
	return err
}

// judgeComposite says what the return of a composite's Do proves. It has no
// effect of its own, so nothing about it is unknown: either a step is open, or
// it is done, refused, or may run again (R13).
func (r *running) judgeComposite(end ending) ending {
	r.steps.mu.Lock()
	defer r.steps.mu.Unlock()
	if r.steps.open != nil {
		return ending{knownError: knownError{err: r.steps.open, effect: effectOpen}, open: &r.steps.open.Outcome}
	}
	var refused *StepError
	switch {
	case errors.As(end.err, &refused) && refused.Outcome.Status == StatusNotDone:
		end.effect = effectNotSent
	case errors.As(end.err, &refused):
		end.effect = effectRejected
	case end.effect == effectUnknown:
		end.effect = effectNotSent
	}
	if end.effect == effectNotSent {
		// Another run would begin the step anew, whatever the body made of its error.
		end.spent = len(r.steps.spent) > 0
		// It would meet the same step again before that.
		for _, until := range r.steps.until {
			end.wait = max(end.wait, time.Until(until))
		}
	}
	return end
}

// stepsFor prepares the steps of a composite's run. A call that corrects a
// failed one goes on with that one's steps, so that those which are done
// replay; one that replaces a completed composite has steps of its own.
func (x *Executor) stepsFor(ctx context.Context, j *job) (*steps, error) {
	s := &steps{key: operationKeyOf(j.r.intent, j.row), resources: map[string]string{}, until: map[string]time.Time{}, spent: map[string]bool{}}
	chain, err := x.failedBefore(ctx, j.row)
	if n := len(chain); n > 0 {
		s.key = operationKeyOf(j.r.intent, chain[n-1])
	}
	return s, err
}

// failedBefore is the unbroken chain of failed operations that a corrected one
// ends, the newest first. A composite's steps are those of all of them (R13).
func (x *Executor) failedBefore(ctx context.Context, row store.Operation) ([]store.Operation, error) {
	if row.Number == 1 {
		return nil, nil
	}
	claimed, err := x.ledger.Claim(ctx, store.Claim{Look: true, Operation: store.Operation{Intent: row.Intent, Tenant: row.Tenant,
		Slot: row.Slot, Number: 1, Tool: row.Tool}})
	if err != nil {
		return nil, err
	}
	var chain []store.Operation
	first := row.Number
	for _, before := range slices.Backward(claimed[0].Slot) {
		if before.Number != first-1 {
			continue
		}
		if before.State != store.Failed {
			break
		}
		chain, first = append(chain, before), before.Number
	}
	return chain, nil
}

// isStep says whether the operation belongs to a composite.
func isStep(o store.Operation) bool { return o.Parent != uuid.Nil }
