package store

import (
	"errors"
	"fmt"
)

// ErrNotFound says that the ledger has no such row for this tenant.
var ErrNotFound = errors.New("store: no such operation for this tenant")

// ErrUnsettled says that an intent can't be closed while it has unsettled operations.
var ErrUnsettled = errors.New("store: the intent has unsettled operations: settle them before closing it")

// ErrClosed says that the ledger was closed.
var ErrClosed = errors.New("store: the ledger is closed")

// StaleError says that the row had moved on and nothing was written (R20).
type StaleError struct {
	// Current is the row as it is now.
	Current Operation
	// Repeated says that the change's decision id is recorded already: the
	// decision was taken and nothing more is to be done (R41).
	Repeated bool
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("store: operation %s has moved on: it is %s at version %d; read it again before deciding",
		e.Current.ID, e.Current.State, e.Current.Version)
}

// BlockedError says that an idempotent write can't start now (R31).
type BlockedError struct {
	// Overtaken says that a newer write on the resource was recorded.
	Overtaken bool
	// Others are the unsettled lower ones that it waits for.
	Others []Entry
}

func (e *BlockedError) Error() string {
	if e.Overtaken {
		return "store: a newer write on this resource was recorded; this one doesn't start any more"
	}
	return fmt.Sprintf("store: %d older write(s) on this resource are not settled; wait until they are or are past their moment", len(e.Others))
}

// ResourceTakenError says that the resource settles another operation (R34).
type ResourceTakenError struct{}

func (*ResourceTakenError) Error() string {
	return "store: this resource settles another operation; attribute evidence can't settle a second one with it"
}

// MoveError says that the state table has no such move: a mistake in the caller.
type MoveError struct{ Move Move }

func (e *MoveError) Error() string {
	return fmt.Sprintf("store: the state table has no move %q", e.Move.String())
}

// SchemaError says that the database's schema isn't the one this version knows.
type SchemaError struct{ Have, Want int64 }

func (e *SchemaError) Error() string {
	if e.Have > e.Want {
		return fmt.Sprintf("store: the ledger has schema version %d and this program knows %d: upgrade the program before it opens this ledger", e.Have, e.Want)
	}
	return fmt.Sprintf("store: the ledger has schema version %d and this program needs %d: run the migrations", e.Have, e.Want)
}

// UnwrittenError wraps an error after which it is certain that nothing was
// written: no connection, a deadlock that the database resolved, a full or
// read-only disk.
type UnwrittenError struct {
	Err error
	// Again says that the same call may succeed when it is made again at once.
	Again bool
}

func (e *UnwrittenError) Error() string { return "store: nothing was written: " + e.Err.Error() }
func (e *UnwrittenError) Unwrap() error { return e.Err }

// Unwritten reports whether nothing was written by the call that returned err.
func Unwritten(err error) bool {
	var unwritten *UnwrittenError
	var stale *StaleError
	var blocked *BlockedError
	var taken *ResourceTakenError
	var move *MoveError
	return errors.As(err, &unwritten) || errors.As(err, &stale) || errors.As(err, &blocked) ||
		errors.As(err, &taken) || errors.As(err, &move) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsettled) || errors.Is(err, ErrClosed)
}
