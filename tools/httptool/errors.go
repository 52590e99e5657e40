package httptool

import "fmt"

// Error is how an attempt fails. Its text holds nothing of the request, and of
// the answer no more than its status, and its refusal where the declaration asks
// for that (R55).
type Error struct {
	// Status is the answer's, 0 where there was none.
	Status int
	// Refusal is the far side's own text at [Spec.Refusal], "" without one. It is
	// for the model, at most 300 bytes, and may quote arguments.
	Refusal string
	// notSent says that no byte of the request was written.
	notSent bool
	cause   error
}

func (e *Error) Error() string {
	switch {
	case e.Refusal != "":
		return fmt.Sprintf("the far side answered with status %d: %s", e.Status, e.Refusal)
	case e.Status != 0 && e.cause != nil:
		return fmt.Sprintf("the far side answered with status %d, and its answer can't be read", e.Status)
	case e.Status != 0:
		return fmt.Sprintf("the far side answered with status %d", e.Status)
	case e.notSent:
		return "the request was not sent: no connection took it"
	default:
		return "the request was sent and not answered"
	}
}

// Unwrap is the error of the layer below, nil where the far side answered. Its
// text may name hosts and addresses.
func (e *Error) Unwrap() error { return e.cause }

// ArgumentError says that an argument can't stand where the declaration puts it.
// It holds no value.
type ArgumentError struct {
	// Field is the argument's path, Place where it was to stand: "path", "query",
	// "header", "body".
	Field, Place string
	Reason       string
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("the argument %s can't stand in the request's %s: %s", e.Field, e.Place, e.Reason)
}
