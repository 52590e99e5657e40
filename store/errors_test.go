package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/settle-go/settle/store"
)

func TestUnwrittenHoldsWhereNothingWasWritten(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		store.ErrNotFound, store.ErrClosed,
		&store.StaleError{}, &store.BlockedError{}, &store.ResourceTakenError{}, &store.MoveError{},
		&store.UnwrittenError{Err: context.Canceled},
	} {
		if !store.Unwritten(err) || !store.Unwritten(fmt.Errorf("claim: %w", err)) {
			t.Errorf("Unwritten doesn't hold for %q", err)
		}
	}
	for _, err := range []error{nil, context.Canceled, errors.New("broken pipe"), &store.SchemaError{}} {
		if store.Unwritten(err) {
			t.Errorf("Unwritten holds for %v", err)
		}
	}
}

func TestUnwrittenErrorKeepsItsCause(t *testing.T) {
	t.Parallel()
	err := &store.UnwrittenError{Err: context.DeadlineExceeded, Again: true}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the cause is lost")
	}
}

func TestMessagesSayWhatToDo(t *testing.T) {
	t.Parallel()
	for message, err := range map[string]error{
		"read it again":          &store.StaleError{},
		"newer write":            &store.BlockedError{Overtaken: true},
		"2 older write(s)":       &store.BlockedError{Others: make([]store.Entry, 2)},
		"settles another":        &store.ResourceTakenError{},
		`no move "failed>manual`: &store.MoveError{Move: store.Move{From: store.Failed, To: store.Manual}},
		"upgrade the program":    &store.SchemaError{Have: 3, Want: 2},
		"run the migrations":     &store.SchemaError{Have: 1, Want: 2},
		"nothing was written":    &store.UnwrittenError{Err: errors.New("disk full")},
		"disk full":              &store.UnwrittenError{Err: errors.New("disk full")},
	} {
		if !strings.Contains(err.Error(), message) {
			t.Errorf("%q doesn't say %q", err, message)
		}
	}
}

func TestR55MessagesShowNoValues(t *testing.T) {
	t.Parallel()
	o := store.Operation{Arguments: []byte("secret"), Result: []byte("secret"), Resource: "secret", CallID: "secret", Verdict: "secret"}
	for _, err := range []error{
		&store.StaleError{Current: o},
		&store.BlockedError{Others: []store.Entry{{Operation: o, Of: store.Intent{TenantName: "secret"}}}},
	} {
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q shows a value", err)
		}
	}
}
