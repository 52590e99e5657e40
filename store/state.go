package store

import "fmt"

// Class is a tool's contract class: what its author promises about running it
// again (protocol, section 1). The zero class is [Unsafe] (R1).
type Class uint8

// The classes. See the constants of package settle for what each one promises.
const (
	Unsafe Class = iota
	Read
	Idempotent
	Keyed
	Composite
	Transactional
)

var classNames = [...]string{"unsafe", "read", "idempotent", "keyed", "composite", "transactional"}

// String returns the name that documents, traces and the database use.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// ParseClass is the inverse of [Class.String].
func ParseClass(name string) (Class, error) {
	for i, n := range classNames {
		if n == name {
			return Class(i), nil
		}
	}
	return Unsafe, fmt.Errorf("store: %q is no class; the classes are %v", name, classNames)
}

// State is where an operation stands (protocol, section 4). The zero State is
// no state: an operation that doesn't exist yet.
type State uint8

// The states. Settled ones come last, so that [State.Settled] is a comparison.
const (
	_ State = iota
	// AwaitingApproval: nothing was sent; a person must allow exactly this fingerprint.
	AwaitingApproval
	// Running: an attempt may be at work, under a lease.
	Running
	// Retryable: known to have had no effect; may run again.
	Retryable
	// Unknown: nobody knows whether it happened; the machine looks for evidence.
	Unknown
	// Manual: a person's; the machine sends nothing outside for it.
	Manual
	// Completed: it happened; resource and result are recorded.
	Completed
	// Failed: definitely no effect.
	Failed
	// Superseded: an idempotent write that a newer one on its resource overtook.
	Superseded
	// Abandoned: closed by a person without knowing; never executed again.
	Abandoned
)

var stateNames = [...]string{"", "awaiting_approval", "running", "retryable", "unknown", "manual",
	"completed", "failed", "superseded", "abandoned"}

// States lists every state, in order.
func States() []State {
	all := make([]State, 0, len(stateNames)-1)
	for s := AwaitingApproval; s <= Abandoned; s++ {
		all = append(all, s)
	}
	return all
}

// String returns the name that documents, traces and the database use.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState is the inverse of [State.String].
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name && n != "" {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("store: %q is no state; the states are %v", name, stateNames[1:])
}

// Settled says that the outcome is known for good or closed by a person.
func (s State) Settled() bool { return s >= Completed && s <= Abandoned }

// moves is the one table of allowed transitions (R20). A move of a state to
// itself is journaled work that decides nothing: another attempt under the
// same claim, a lookup without an answer, a note on a case.
var moves = map[State][]State{
	0:                {Running, AwaitingApproval, Retryable},
	AwaitingApproval: {AwaitingApproval, Retryable, Failed, Abandoned},
	Running:          {Running, Completed, Failed, Retryable, Unknown, Manual, Superseded},
	Retryable:        {Retryable, Running, AwaitingApproval, Completed, Failed, Manual, Superseded, Abandoned},
	Unknown:          {Unknown, Running, Completed, Failed, Retryable, Manual, Superseded},
	Manual:           {Manual, Completed, Failed, Retryable, Unknown, Superseded, Abandoned},
	Completed:        {Completed},
	Failed:           {Failed, Manual},
	Superseded:       {Superseded},
	Abandoned:        {Abandoned, Manual},
}

// Move is one transition. From is 0 where the operation is new.
type Move struct{ From, To State }

// Moves lists every allowed transition in a stable order. Databases build
// their constraint from it.
func Moves() []Move {
	var all []Move
	for from := State(0); from <= Abandoned; from++ {
		for _, to := range moves[from] {
			all = append(all, Move{from, to})
		}
	}
	return all
}

// Allowed says whether the table has the move.
func (m Move) Allowed() bool {
	for _, to := range moves[m.From] {
		if to == m.To {
			return true
		}
	}
	return false
}

// String renders the move as the databases store it: "running>completed",
// ">running" for a new operation.
func (m Move) String() string { return m.From.String() + ">" + m.To.String() }

// ParseMove is the inverse of [Move.String].
func ParseMove(text string) (Move, error) {
	for _, m := range Moves() {
		if m.String() == text {
			return m, nil
		}
	}
	return Move{}, fmt.Errorf("store: %q is no move of the state table", text)
}
