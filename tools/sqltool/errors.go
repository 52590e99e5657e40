package sqltool

import (
	"errors"
	"fmt"

	"github.com/settle-go/settle"
)

// Error says which part of a tool the database refused. Its text holds none of
// the database's own, which may quote values (R55); the cause is unwrapped.
type Error struct {
	// Check or Statement is the number of what failed, from 1; the other is 0.
	Check, Statement int
	cause            error
}

func (e *Error) Error() string {
	what, n := "statement", e.Statement
	if e.Check > 0 {
		what, n = "check", e.Check
	}
	var state interface{ SQLState() string }
	if errors.As(e.cause, &state) {
		return fmt.Sprintf("sqltool: %s %d failed with SQLSTATE %s; everything is rolled back", what, n, state.SQLState())
	}
	return fmt.Sprintf("sqltool: %s %d failed; everything is rolled back", what, n)
}

// Unwrap is the database's error.
func (e *Error) Unwrap() error { return e.cause }

// failure is what an error of a statement means: a broken constraint that the
// declaration has a text for is a refusal.
func failure(s Statement, i int, err error) error {
	if s.Violates != "" && violates(err) {
		return settle.Rejected(errors.New(s.Violates))
	}
	return &Error{Statement: i + 1, cause: err}
}

// miscounted is what the model is told where a statement met another number of
// rows than it must.
func miscounted(s Statement, i int, n int64) error {
	if s.Otherwise != "" {
		return errors.New(s.Otherwise)
	}
	return fmt.Errorf("statement %d met %d rows where %s was expected; nothing was changed", i+1, n, rowsNames[s.Rows])
}

// ArgumentError says that an argument can't be a parameter of this database. It
// holds no value.
type ArgumentError struct{ Field, Reason string }

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("the argument %s can't be stored: %s", e.Field, e.Reason)
}
