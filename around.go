package settle

import (
	"context"
	"errors"
	"sync"
)

// Around guards a tool that a framework owns: run is the framework's own way of
// running it. The contract is found by the call's name, among the tools of
// [WithTools] and [WithGuarded]; another name is Unsafe (R1). run is entered at
// most once per attempt, with a context that carries the operation's key
// ([KeyFrom]) and the arguments that the tool is to have ([ArgumentsFrom]); its
// result T passes through untouched on a first run.
//
// On a replay, and for every outcome without a result, T is the zero value and
// the outcome says what to tell the model: [Outcome.ForModel]. A result that was
// recorded is decoded into T where that is possible.
//
// The error is the host's mistake, as [Executor.Execute] says, or the error of
// run where it was the framework's control flow ([Interrupted]) and must reach
// the framework as it is. Any other error of run is in the outcome only, since
// an error would make many frameworks run the tool again.
func Around[T any](ctx context.Context, x *Executor, call Call, run func(ctx context.Context) (T, error)) (T, Outcome, error) {
	var zero T
	outs, err := x.execute(ctx, []Call{call}, &guard{run: func(ctx context.Context, _ Op, _ any) (any, error) {
		return run(ctx)
	}})
	if err != nil {
		return zero, Outcome{}, err
	}
	out := outs[0]
	if value, ok := out.value.(T); ok && out.Status == StatusCompleted {
		return value, out, nil
	}
	if out.Reason == reasonInterrupted && out.err != nil {
		return zero, out, unwrapKnown(out.err)
	}
	if out.Status == StatusCompleted && len(out.Result) > 0 {
		if value, err := Decode[T](out); err == nil {
			return value, out, nil
		}
	}
	return zero, out, nil
}

// unwrapKnown takes the marking off an error, so that a framework meets its own.
func unwrapKnown(err error) error {
	if known, ok := err.(*knownError); ok && known.err != nil { //nolint:errorlint // only the outermost marking is ours
		return known.err
	}
	return err
}

// Attempt is a call that was let through by [Executor.Begin] and has to be
// ended, for results that arrive as a stream.
type Attempt struct {
	// Context is what the tool has to run under.
	Context context.Context
	op      Op
	end     func(value any, err error) Outcome
}

// Op returns what the tool may know of its operation.
func (a *Attempt) Op() Op { return a.op }

// End records how the attempt ended. The first call counts; later ones return
// the same outcome. A stream that was closed early ends with an error, and is
// unknown.
func (a *Attempt) End(result any, err error) Outcome { return a.end(result, err) }

// Begin is the first half of [Around]. Where the call may run now, the attempt
// is not nil and must be ended; otherwise the outcome is the answer. An attempt
// that isn't ended before the contract's timeout is unknown; an End after that
// is evidence on it (R25). A stream can't be fed twice, so a begun attempt isn't
// retried by itself.
func (x *Executor) Begin(ctx context.Context, call Call) (*Attempt, Outcome, error) {
	begun := make(chan *Attempt, 1)
	answered := make(chan struct{})
	var outs []Outcome
	var err error
	go func() {
		defer close(answered)
		outs, err = x.execute(ctx, []Call{call}, &guard{once: true, run: func(ctx context.Context, op Op, _ any) (any, error) {
			return x.waitForEnd(ctx, op, begun, answered, func() Outcome { return outs[0] })
		}})
	}()
	select {
	case attempt := <-begun:
		return attempt, Outcome{}, nil
	case <-answered:
	}
	select {
	case attempt := <-begun:
		return attempt, Outcome{}, nil
	default:
	}
	switch {
	case err != nil:
		return nil, Outcome{}, err
	case outs == nil:
		return nil, x.gone(call.Tool), nil
	}
	return nil, outs[0], nil
}

// errNotEnded is a begun attempt that nobody ended: it may still be at work.
var errNotEnded = errors.New("settle: the attempt was begun and not ended in time")

// waitForEnd is the handler of a begun attempt: it runs until [Attempt.End],
// since only that is its return (R21), or until nobody waits for it any more.
func (x *Executor) waitForEnd(ctx context.Context, op Op, begun chan<- *Attempt, answered <-chan struct{}, outcome func() Outcome) (any, error) {
	type result struct {
		value any
		err   error
	}
	ended := make(chan result, 1)
	var once sync.Once
	attempt := &Attempt{Context: ctx, op: op}
	attempt.end = func(value any, err error) Outcome {
		once.Do(func() { ended <- result{value, err} })
		<-answered
		return outcome()
	}
	begun <- attempt
	select {
	case r := <-ended:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-ended:
		return r.value, r.err
	case <-x.closing:
		return nil, errNotEnded
	}
}
