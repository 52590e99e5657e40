package settle

import (
	"context"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Principal is the authority that acts, from the host's authentication and
// never from arguments or a model (R6). The subject is stable over replicas and
// restarts: a user, a service account, an agent's own identity, never a process.
type Principal struct {
	Tenant, Subject string
}

// Task names what is being done: an id from the host's own data and a constant
// of its code, never prose and never from a model (R7). With the principal it
// names the intent: every worker, turn and restart that gives the same four
// names works on the same operations, and another task or goal is another
// intent in which everything may happen anew.
type Task struct {
	ID, Goal string
}

// maxName bounds a name from outside, in bytes (R12).
const maxName = 256

// NameError says which name was refused, and why (R12). It doesn't hold the name.
type NameError struct {
	// Name is the role of the name: "tenant", "subject", "task", "goal", "node", "tool".
	Name   string
	Reason string
}

func (e *NameError) Error() string { return "settle: the " + e.Name + " " + e.Reason }

// Errors of the host: [Executor.Execute] returns them beside an outcome that
// says that nothing was done.
var (
	// ErrNoPrincipal: the context has no principal. Call WithPrincipal with what
	// your authentication says.
	ErrNoPrincipal = errors.New("settle: the context has no principal: call settle.WithPrincipal with what your authentication says (R6)")
	// ErrNoTask: the context has no task. Call WithTask with an id of your own.
	ErrNoTask = errors.New("settle: the context has no task: call settle.WithTask with an id of your own and a constant goal (R7)")
	// ErrShutdown: the executor takes no new calls.
	ErrShutdown = errors.New("settle: the executor is shut down: nothing was done; build another one to go on")
)

type contextKey uint8

const (
	principalKey contextKey = iota
	taskKey
	operationKey
	operatorKey
)

// WithPrincipal returns a context that acts for p.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey, p)
}

// PrincipalFrom returns the context's principal.
func PrincipalFrom(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey).(Principal)
	return p, ok
}

// WithTask returns a context in which calls belong to t.
func WithTask(ctx context.Context, t Task) context.Context {
	return context.WithValue(ctx, taskKey, t)
}

// TaskFrom returns the context's task.
func TaskFrom(ctx context.Context) (Task, bool) {
	t, ok := ctx.Value(taskKey).(Task)
	return t, ok
}

// detached is a context that doesn't end with ctx, and has its values.
func detached(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// scope reads principal and task and checks their names.
func scope(ctx context.Context) (Principal, Task, error) {
	stack, _ := ctx.Value(operationKey).(*operationStack)
	if stack.inTransaction() {
		return Principal{}, Task{}, ErrInTransaction
	}
	p, ok := PrincipalFrom(ctx)
	if !ok {
		return p, Task{}, ErrNoPrincipal
	}
	t, ok := TaskFrom(ctx)
	if !ok {
		return p, t, ErrNoTask
	}
	return p, t, errors.Join(checkName("tenant", p.Tenant), checkName("subject", p.Subject),
		checkName("task", t.ID), checkName("goal", t.Goal))
}

// checkName refuses a name that isn't fit for a ledger; it repairs nothing (R12).
func checkName(role, name string) error {
	switch {
	case name == "":
		return &NameError{role, "is empty: give it a name (R6, R12)"}
	case len(name) > maxName:
		return &NameError{role, fmt.Sprintf("has %d bytes and at most %d are allowed (R12)", len(name), maxName)}
	case printableASCII(name):
		return nil // as nearly all are; it is in every normalisation form
	case !utf8.ValidString(name):
		return &NameError{role, "isn't valid UTF-8 (R12)"}
	case !norm.NFC.IsNormalString(name):
		return &NameError{role, "isn't in Unicode normalisation form C: normalise it where it is made (R12)"}
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return &NameError{role, "has a control character (R12)"}
		}
	}
	return nil
}

func printableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
