package settle

import (
	"time"

	"github.com/settle-go/settle/store"
)

// Class is what a tool's author promises about running the tool again. Nobody
// but the host decides it: not a tool's name, not an HTTP method, not a hint
// that came with an imported tool (R4).
type Class = store.Class

// The contract classes (protocol, section 1).
const (
	// Unsafe promises nothing. A mail relay, a ticket system without keys, a
	// tool that somebody else wrote. After a definite "did not happen" the
	// caller or a person may run it again; after an unknown outcome only
	// evidence or a person decides, and it is never repeated on a guess.
	// It is the zero value: what nobody declared is unsafe (R1).
	Unsafe = store.Unsafe

	// Read changes nothing. It is retried freely, needs no ledger, and runs
	// even where the ledger is down.
	Read = store.Read

	// Idempotent writes a desired state: writing the same state again changes
	// nothing more. "Set the label of issue 7 to urgent", not "add a comment".
	// It is retried after an unknown outcome for as long as it is the newest
	// write on its resource (R31). Its identity fields name the resource.
	Idempotent = store.Idempotent

	// Keyed sends a key on which the far side deduplicates, for
	// [Contract.KeyWindow]. It is retried with the same key inside the window
	// and counts as Unsafe after it (R29).
	Keyed = store.Keyed

	// Composite has no effect outside its steps. Its own body may run again at
	// any time; each step is an operation with a contract of its own (R13).
	Composite = store.Composite

	// Transactional writes rows of the ledger's own database and nothing else,
	// in the transaction that claims and settles it, which its handler takes from
	// its context: postgres.InTx, sqlite.InTx. They commit together or not at
	// all, so that its outcome is always known, and its rows are written once for
	// an operation (R53). That holds for those rows alone: the handler makes no
	// remote call, calls no other tool ([ErrInTransaction]), and is done within
	// [Contract.Timeout], 10 s at most, for as long as it holds the ledger's locks.
	Transactional = store.Transactional
)

// Permanent is the [Contract.KeyWindow] of a far side that never forgets a key.
const Permanent = time.Duration(1<<63 - 1)

// Immediately is the [Contract.VisibilityDelay] of a far side whose lookups see
// an effect as soon as the call that made it could have been answered.
const Immediately = time.Duration(-1)
