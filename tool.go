package settle

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Tool is something that an agent may call: a value with a contract, whose
// clients come in through the constructor that makes it.
//
// In and Out are the Go types of arguments and result. The schema that the
// model is shown comes from In; the tags `settle:"identity"`, `settle:"ignore"`
// and `settle:"secret"` on its fields, and `settle:"resource"` on one of Out's,
// say the same as the fields of [Contract] with those names.
type Tool[In, Out any] struct {
	// Name is what the model calls the tool. A name is an identity: operations
	// are keyed by it (R3, R11). At most 128 bytes, no control characters.
	Name string
	// Formerly lists the names that the tool had before, oldest first. Its
	// operations go on being keyed by the oldest (R3).
	Formerly []string
	// Description is shown to the model.
	Description string
	Contract    Contract
	// Schema is the JSON Schema of the arguments where In is json.RawMessage.
	Schema json.RawMessage

	// Do runs one attempt. The context ends before the attempt's lease does;
	// the caller's cancellation doesn't reach it unless the contract says so
	// (R24). A nil error says that the effect happened; see [NotSent],
	// [Rejected] and [AlreadySo] for what an error can say. A tool without Do
	// belongs to a framework and is run through [Around].
	Do func(ctx context.Context, op Op, in In) (Out, error)
	// Lookup asks the far side whether the effect happened (R32, R33).
	Lookup func(ctx context.Context, q Query[Out], in In) (Evidence, error)

	// ResultVersion is stored with each result. Where a stored one is older,
	// Upgrade makes today's result of it; without Upgrade the replay carries
	// the resource only (R47).
	ResultVersion int
	Upgrade       func(version int, result json.RawMessage) (Out, error)

	// Compensation corrects what the tool has done (R49).
	Compensation *Compensation[In, Out]

	// Steps are the tools that a Composite runs through [Step] (R13).
	Steps []AnyTool
}

// RawTool is a tool whose arguments and results are JSON that the host reads
// itself. Absent and null differ in its arguments, since its handler can tell
// them apart (R16).
type RawTool = Tool[json.RawMessage, json.RawMessage]

// AnyTool is a [Tool] of whatever types. Nothing else implements it.
type AnyTool interface {
	bind(redelivery time.Duration) (*binding, error)
}

// Op is what a handler knows of the operation that it runs an attempt of.
type Op struct{ running *running }

// running is an attempt as its handler sees it.
type running struct {
	executor  *Executor
	binding   *binding
	key       Key
	reference uuid.UUID
	attempt   int
	principal Principal
	task      Task
	keyRead   atomic.Bool
	published published
	// args are those of the call that runs, as its tool is to have them.
	args []byte
	// steps is set while the operation is a composite (R13).
	steps *steps
}

// Key returns the operation's key for the far side: at most 40 characters of
// [a-z0-9_], the same for every attempt, worker and restart (R11).
func (o Op) Key() string {
	o.running.keyRead.Store(true)
	return o.running.key.String()
}

// UUID returns the operation's key as a UUID, for far sides that want one.
func (o Op) UUID() uuid.UUID {
	o.running.keyRead.Store(true)
	return o.running.key.UUID()
}

// Reference returns the operation's random reference: the one name of it that
// may stand in a log (R55).
func (o Op) Reference() string { return o.running.reference.String() }

// Attempt returns the number of the attempt, from 1.
func (o Op) Attempt() int { return o.running.attempt }

// Principal returns the authority that acts.
func (o Op) Principal() Principal { return o.running.principal }

// Task returns the task that the operation belongs to.
func (o Op) Task() Task { return o.running.task }

// KeyFrom returns the key of the operation that runs in ctx, for a tool that a
// framework owns and that sends it to a far side itself. A Keyed tool whose key
// nobody reads counts as Unsafe: nothing deduplicates on a key that wasn't sent.
func KeyFrom(ctx context.Context) (string, bool) {
	r, ok := ctx.Value(operationKey).(*operationStack)
	if !ok || r.running == nil {
		return "", false
	}
	return Op{r.running}.Key(), true
}

// ArgumentsFrom returns the arguments of the call that runs in ctx, as a tool
// that a framework owns is to be given them: the exact bytes of [Call.Args]. Only
// the occurrence that the model may send with a Repeatable tool (R9) isn't in
// them, unless [Call.Schema] has a property for it, so that the tool expects it.
func ArgumentsFrom(ctx context.Context) (json.RawMessage, bool) {
	r, ok := ctx.Value(operationKey).(*operationStack)
	if !ok || r.running == nil {
		return nil, false
	}
	return bytes.Clone(r.running.args), true
}

// operationStack is the chain of operations that a context runs inside of, so
// that a call that recurs into its own operation is refused (R28).
type operationStack struct {
	running *running
	above   *operationStack
}

// inTransaction says that the context is that of a handler in the ledger's
// transaction, or below it.
func (s *operationStack) inTransaction() bool {
	for ; s != nil; s = s.above {
		if s.running.binding.contract.Class == Transactional {
			return true
		}
	}
	return false
}

func (s *operationStack) holds(id uuid.UUID) bool {
	for ; s != nil; s = s.above {
		if s.running.reference == id {
			return true
		}
	}
	return false
}
