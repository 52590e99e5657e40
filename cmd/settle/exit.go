package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitStale   = 3
	exitSecond  = 4
	exitRefused = 5
)

// usageError says that the command line, or its environment, is wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// nextError says what to type next.
type nextError struct {
	error
	next string
}

func (e nextError) Unwrap() error { return e.error }

func next(err error, command string) error { return nextError{err, command} }

// errSecondPerson ends a decision that was proposed: done, as far as one person can.
var errSecondPerson = errors.New("a second person has to confirm")

// errFree refuses to take over what nobody has, or not any more.
var errFree = errors.New("nobody has taken the case: it is taken without --from")

// errFindings ends a check that has found something and has said so.
var errFindings = errors.New("something was found")

// meanings are what errors mean for the exit code, and for programs that read
// the JSON form of an error. The first that fits holds.
var meanings = []struct {
	is   func(error) bool
	exit int
	code string
}{
	{is[usageError], exitUsage, "usage"},
	{isAny(settle.ErrNoOperator, settle.ErrBlankReason, settle.ErrTooLong, settle.ErrNoSuchDecision, settle.ErrCursor), exitUsage, "usage"},
	{is[*settle.NameError], exitUsage, "usage"},
	{is[*settle.StaleVersionError], exitStale, "stale_version"},
	{is[*store.StaleError], exitStale, "stale_version"},
	{isAny(errFree, settle.ErrTaken, settle.ErrNoProposal, settle.ErrOtherDecision, settle.ErrVoid), exitStale, "conflict"},
	{isAny(errSecondPerson, settle.ErrSamePerson), exitSecond, "second_person_needed"},
	{is[*settle.MomentError], exitRefused, "moment_not_passed"},
	{isAny(settle.ErrErased), exitRefused, "erased"},
	{isAny(settle.ErrAttached), exitRefused, "success_attached"},
	{isAny(settle.ErrApprovalExpired), exitRefused, "approval_expired"},
	{is[*settle.ResultError], exitRefused, "result_does_not_fit"},
	{isAny(settle.ErrNotAllowed), exitRefused, "not_allowed"},
	{isAny(settle.ErrNoCase), exitRefused, "no_open_case"},
	{isAny(store.ErrUnsettled), exitRefused, "unsettled"},
	{isAny(errKeyless), exitRefused, "no_keys"},
	{is[*settle.MissingKeyError], exitRefused, "no_keys"},
	{isAny(settle.ErrSealed), exitRefused, "wrong_keys"},
	{isAny(store.ErrNotFound), exitFailed, "not_found"},
	{isAny(errFindings), exitFailed, "findings"},
	{isAny(context.Canceled), exitFailed, "interrupted"},
	{isAny(context.DeadlineExceeded), exitFailed, "timeout"},
	{func(error) bool { return true }, exitFailed, "failed"},
}

func is[E error](err error) bool {
	var as E
	return errors.As(err, &as)
}

func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
}

// meaning is an error's exit code and its word for programs.
func meaning(err error) (exit int, code string) {
	for _, m := range meanings {
		if m.is(err) {
			return m.exit, m.code
		}
	}
	return exitFailed, "failed"
}

// failure is an error as JSON.
type failure struct {
	Code    string `json:"code"`
	Exit    int    `json:"exit"`
	Message string `json:"message"`
	// Next is a command that helps.
	Next string `json:"next,omitempty"`
	// Version is the one that the case is at, where another was named.
	Version int `json:"version,omitempty"`
}

// end reports an error and turns it into the exit code.
func (a *app) end(err error) int {
	if err == nil {
		return exitDone
	}
	exit, code := meaning(err)
	if errors.Is(err, errSecondPerson) || errors.Is(err, errFindings) {
		return exit // its command has said so
	}
	f := failure{Code: code, Exit: exit, Message: said(err)}
	var advised nextError
	if errors.As(err, &advised) {
		f.Next = advised.next
	}
	var stale *settle.StaleVersionError
	if errors.As(err, &stale) {
		f.Version = stale.Now
	}
	if a.json {
		a.encode(a.err, struct {
			Error failure `json:"error"`
		}{f})
		return exit
	}
	fmt.Fprintf(a.err, "settle: %s\n", f.Message)
	if f.Next != "" {
		fmt.Fprintf(a.err, "  next: %s\n", f.Next)
	}
	return exit
}

// lines makes one of several.
var lines = strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", "; ")

// said is an error's message without the package that it comes from.
func said(err error) string {
	message := err.Error()
	for _, prefix := range []string{"settle: ", "store: ", "store/postgres: ", "sqlite: "} {
		message = strings.TrimPrefix(message, prefix)
	}
	return printable(lines.Replace(message))
}
