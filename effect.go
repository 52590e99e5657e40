package settle

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// effect is what one attempt's end says about the far side (R27).
type effect uint8

const (
	// effectUnknown: everything that isn't proof of something else.
	effectUnknown effect = iota
	effectHappened
	effectNotSent
	effectRejected
	effectInterrupted
	// effectOpen: a composite waits for one of its steps (R13).
	effectOpen
	// effectCase: nothing was sent, and a person has to decide (R50).
	effectCase
)

var effectNames = [...]string{"unknown", "happened", "not_sent", "rejected", "interrupted", "step_open", "case"}

func (e effect) String() string { return effectNames[e] }

// knownError is an error that says what is known of the attempt it ends.
type knownError struct {
	err    error
	effect effect
	wait   time.Duration
	// resource is what stands, for AlreadySo.
	resource string
}

func (e *knownError) Error() string {
	if e.err == nil {
		return "settle: " + e.effect.String()
	}
	return e.err.Error()
}
func (e *knownError) Unwrap() error { return e.err }

// NotSentOption qualifies [NotSent].
type NotSentOption interface{ applyNotSent(*knownError) }

type retryAfter time.Duration

func (d retryAfter) applyNotSent(e *knownError) { e.wait = min(max(time.Duration(d), 0), longestWait) }

// RetryAfter says how long the far side asks to be left alone. It is never
// shortened: where the budget of the claim doesn't reach that far, the outcome
// is "not_done" and names the time (R28). More than ten years count as ten.
func RetryAfter(d time.Duration) NotSentOption { return retryAfter(d) }

// NotSent marks a handler's error as proof that the attempt had no effect and
// may be made again: nothing left this machine (no connection, no TLS), or the
// far side refuses before it acts. A timeout, a reset or a 5xx is no such
// proof (R27).
func NotSent(err error, options ...NotSentOption) error {
	e := &knownError{err: err, effect: effectNotSent}
	for _, o := range options {
		o.applyNotSent(e)
	}
	return e
}

// Rejected marks a handler's error as a definite business refusal: the far side
// understood the request and won't act on it. The operation fails; a corrected
// call may follow (R10).
func Rejected(err error) error { return &knownError{err: err, effect: effectRejected} }

// AlreadySo ends an attempt of an Idempotent or Transactional tool that found
// the desired state in place: it completes with the resource that stands (R27).
// From a tool of another class it is an unknown outcome.
func AlreadySo(resource string) error {
	return &knownError{err: errors.New("settle: already so"), effect: effectHappened, resource: resource}
}

// Interrupted marks an error as the framework's control flow (an interrupt, a
// confirmation that is required, input that is missing): the tool's word that
// it sent nothing. The operation stays retryable and its caller's, and [Around]
// returns the error as it came.
func Interrupted(err error) error { return &knownError{err: err, effect: effectInterrupted} }

// PanicError is what a panic becomes: of a handler an unknown outcome (R27), of a
// permission a denial, of a decoder an invalid argument. The stack of a handler
// goes to the log and nowhere else.
type PanicError struct{ Value any }

func (e *PanicError) Error() string {
	return fmt.Sprintf("settle: a function of the host panicked (%T)", e.Value)
}

// contained runs a function that the host gave for another purpose than to act: a
// decoder, a permission, an encoder. Its panic is an error like any other.
func contained(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p}
		}
	}()
	return f()
}

// apart is contained where the goroutine is one that others wait for:
// runtime.Goexit, which is how a test gives up, must not end that.
func apart(f func() error) error {
	err, done := errGone, make(chan struct{})
	go func() {
		defer close(done)
		err = contained(f)
	}()
	<-done
	return err
}

// misbehaved says that a function of the host's didn't return as functions do: its
// author has to see that, and whoever called for it can't mend it.
func misbehaved(err error) bool {
	return errors.Is(err, errGone) || errors.As(err, new(*PanicError))
}

// encode is json.Marshal of a value whose own methods may panic.
func encode(v any) (encoded []byte, err error) {
	err = contained(func() (err error) {
		encoded, err = json.Marshal(v)
		return err
	})
	return encoded, err
}

// errGone ends a handler's goroutine that left by runtime.Goexit.
var errGone = errors.New("settle: a function of the host ended its goroutine without returning")

// classify says what an attempt's error proves under the contract.
func (c Contract) classify(err error) knownError {
	if err == nil {
		return knownError{effect: effectHappened}
	}
	if c.Classify != nil {
		if classified := c.Classify(err); classified != nil {
			err = classified
		}
	}
	var known *knownError
	if !errors.As(err, &known) {
		return knownError{err: err, effect: effectUnknown}
	}
	k := *known
	switch {
	case k.effect == effectHappened && c.Class != Idempotent && c.Class != Transactional,
		k.effect == effectInterrupted && c.ActsBeforeInterrupt:
		k.effect = effectUnknown
	}
	return k
}
