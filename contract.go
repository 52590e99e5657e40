package settle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Contract is what a tool's author promises, and how long the machine may try.
// The zero Contract is an Unsafe one that says too little to be accepted:
// whoever writes it down must say what identifies a call and whether there is
// a lookup (R2). All durations have a resolution of one microsecond.
type Contract struct {
	// Class is the promise. Default: Unsafe (R1).
	Class Class

	// Identity names the argument fields, by JSON path ("order_id",
	// "customer.id"), that tell one call from another: the same thing as the
	// tag `settle:"identity"` on a type that one owns. Two calls in an intent
	// with equal identity are the same call; where another field differs, that
	// is a conflict and not a second effect (R8, R17). For an Idempotent tool
	// it names the resource that is written (R31).
	Identity []string
	// WholeArguments says that no field identifies a call, so all business
	// arguments do. Such a tool is held while another of its operations in the
	// intent is unsettled, since a reworded call can't be told from a new one (R30).
	WholeArguments bool
	// Ignore names fields that change from call to call without changing what
	// is done: trace ids, request times, notes. They stay out of identity and
	// fingerprint (R15). Tag: `settle:"ignore"`.
	Ignore []string
	// Secret names fields that are never shown, and not stored without a codec
	// (R56); they count in the fingerprint. Tag: `settle:"secret"`.
	Secret []string
	// Resource is the JSON path of the effect's id in the result. Tag on a
	// result field: `settle:"resource"`.
	Resource string
	// Normalize compares identity fields by more than their bytes, such as mail
	// addresses without regard to case: from JSON path to normaliser (R16).
	Normalize map[string]Normalizer

	// Repeatable lets the model repeat a call on purpose, through a parameter
	// that the tool then offers (R9).
	Repeatable bool
	// Unique allows at most one operation with this identity in the tenant that
	// isn't failed, over all intents and for ever (R14).
	Unique bool

	// KeyWindow is how long the far side of a Keyed tool remembers a key, or
	// [Permanent]. It must be longer than lease and VisibilityDelay (R29).
	KeyWindow time.Duration
	// Timeout bounds one attempt. Default: 10 s; for Transactional 5 s, and at most 10 s.
	Timeout time.Duration
	// Attempts bounds the attempts of one operation over callers and workers
	// (R28). Default: 3; for Unsafe it is one for each call and must stay 0.
	Attempts int
	// NoLookup says that the far side can't be asked whether the effect
	// happened. Unsafe and Keyed tools have a Lookup or say this.
	NoLookup bool
	// VisibilityDelay is how long after an attempt's end its effect may still
	// be missing from a lookup. "Not happened" before then doesn't count (R33).
	// Default: 5 s. [Immediately] means none.
	VisibilityDelay time.Duration
	// EscalateAfter is how long after the first unknown outcome the machine
	// looks for evidence before it asks a person (R35). Default: 15 min, or more
	// where timeout and delay need it. Without a lookup an Unsafe operation is a
	// person's as soon as its moment has passed.
	EscalateAfter time.Duration
	// StaleAfter is the age at which an operation that is known to have had no
	// effect is given up as failed (R37). Default: 24 h.
	StaleAfter time.Duration
	// Retention is how long after settlement arguments, results and names are
	// kept (R51). Default: 30 days, or more where KeyWindow needs it.
	Retention time.Duration

	// Approval demands a person's word before each effect (R43).
	Approval bool
	// ApprovalTTL is how long an approval is waited for. Default: 24 h.
	ApprovalTTL time.Duration
	// Deciders is how many persons a decision takes: 1 (default) or 2 (R41).
	Deciders int

	// AcceptDuplicates, with a reason, says that the owner of an Unsafe tool
	// prefers a duplicate to a wait: past its moment an unknown outcome may be
	// retried. Each such retry is counted and named (R5).
	AcceptDuplicates string
	// Interruptible lets the caller's cancellation reach the handler of a tool
	// with side effects. Otherwise the attempt goes on and is recorded (R24).
	Interruptible bool
	// ActsBeforeInterrupt says that a framework's tool may have acted when it
	// interrupts its run: such an outcome is unknown instead of "not sent".
	ActsBeforeInterrupt bool

	// Authorize is asked before every attempt and before every answer that
	// carries more than a code (R46). Nil allows everything. Its error is shown
	// to nobody; it may be logged by the host itself.
	Authorize func(ctx context.Context, a Authorization) error
	// Classify turns a handler's error into one that says what is known:
	// [NotSent], [Rejected], [AlreadySo]. What it leaves as it is, is unknown
	// unless it says so itself (R27).
	Classify func(error) error
	// Guidance is the author's advice to the person who settles a case.
	Guidance string
}

// Normalizer makes equal what means the same in an identity field. Its name is
// part of the identity definition: a change of what it does takes a new name (R3).
type Normalizer struct {
	Name string
	Func func(string) string
}

// Authorization is the question that [Contract.Authorize] answers.
type Authorization struct {
	Principal Principal
	Task      Task
	Tool      string
	// Operation is the reference of the operation, or "" where there is none yet.
	Operation string
	// Purpose is "attempt" before an effect, "answer" before an answer with a body.
	Purpose string
	// Args are the arguments as given or as recorded.
	Args []byte
}

const (
	defaultTimeout       = 10 * time.Second
	defaultTransaction   = 5 * time.Second
	defaultAttempts      = 3
	defaultVisibility    = 5 * time.Second
	defaultEscalateAfter = 15 * time.Minute
	defaultStaleAfter    = 24 * time.Hour
	defaultRetention     = 30 * 24 * time.Hour
	defaultApprovalTTL   = 24 * time.Hour

	// maxTransaction bounds the handler of a Transactional tool: others wait for
	// its locks, and give up after ledgerTimeout (R53).
	maxTransaction = ledgerTimeout

	// maxLease bounds a lease; what runs longer renews it (R22).
	maxLease = 30 * time.Second
	// recordMargin is the part of a lease that is kept for writing the outcome.
	recordMargin = 2 * time.Second
	// firstBackoff and maxBackoff bound the pauses between attempts, with full jitter (R28).
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// withDefaults fills in what the author left open.
func (c Contract) withDefaults(redelivery time.Duration) Contract {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if c.Class == Transactional {
		def(&c.Timeout, defaultTransaction)
		c.VisibilityDelay = Immediately
	}
	def(&c.Timeout, defaultTimeout)
	def(&c.VisibilityDelay, defaultVisibility)
	if c.VisibilityDelay == Immediately {
		c.VisibilityDelay = 0
	}
	if c.Attempts == 0 && c.Class != Unsafe {
		c.Attempts = defaultAttempts
	}
	def(&c.EscalateAfter, max(defaultEscalateAfter, 2*(c.Timeout+c.VisibilityDelay)))
	def(&c.StaleAfter, defaultStaleAfter)
	def(&c.ApprovalTTL, defaultApprovalTTL)
	def(&c.Retention, max(defaultRetention, c.needsRetention(redelivery)))
	if c.Deciders == 0 {
		c.Deciders = 1
	}
	return c
}

// needsRetention is the shortest Retention that covers the far side's memory of
// the key, the search for evidence and the host's longest redelivery (R2).
func (c Contract) needsRetention(redelivery time.Duration) time.Duration {
	window := c.KeyWindow
	if window == Permanent {
		window = 0
	}
	return max(window, c.EscalateAfter, redelivery)
}

// lease is how long one claim may run: all of its attempts, the pauses between
// them and the margin to record, up to 30 s (R22).
func (c Contract) lease() time.Duration {
	budget := c.Timeout + recordMargin
	for i := 1; i < c.Attempts && budget < maxLease; i++ {
		budget += c.Timeout + maxBackoff
	}
	return min(budget, max(maxLease, recordMargin))
}

// keyMargin is how far before the end of the key window the last attempt may start (R29).
func (c Contract) keyMargin() time.Duration {
	return max(c.lease(), min(c.Timeout, maxLease)+recordMargin) + c.VisibilityDelay
}

// check says everything that is wrong with a contract at once (R2).
func (c Contract) check(hasLookup, hasIdentity bool, redelivery time.Duration) error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	remote := c.Class == Unsafe || c.Class == Keyed
	sideEffect := remote || c.Class == Transactional

	if c.Class > Transactional {
		refuse("class %d doesn't exist: say Read, Idempotent, Keyed, Unsafe, Composite or Transactional (R1)", uint8(c.Class))
	}
	if remote && !hasLookup && !c.NoLookup {
		refuse("a tool that is %s needs a Lookup, or NoLookup: true to say that its far side can't be asked (R2)", c.Class)
	}
	if hasLookup && c.NoLookup {
		refuse("NoLookup is true and there is a Lookup: take one of them away (R2)")
	}
	if sideEffect && !hasIdentity && !c.WholeArguments {
		refuse("a tool that is %s needs identity fields, or WholeArguments: true (R2, R8)", c.Class)
	}
	if hasIdentity && c.WholeArguments {
		refuse("WholeArguments is true and there are identity fields: take one of them away (R8)")
	}
	if c.Class == Transactional && (hasLookup || c.NoLookup) {
		refuse("a transactional tool is never in doubt: take Lookup and NoLookup away (R53)")
	}
	if c.Class == Transactional && c.Timeout > maxTransaction {
		refuse("Timeout %v is too long for a transactional tool, whose locks others wait for: at most %v (R53)", c.Timeout, maxTransaction)
	}
	if c.Class == Idempotent && !hasIdentity {
		refuse("an idempotent tool needs identity fields that name the resource it writes (R2, R31)")
	}
	if c.Class == Keyed && c.KeyWindow == 0 {
		refuse("a keyed tool needs KeyWindow: how long the far side remembers a key, or settle.Permanent (R2, R29)")
	}
	if c.Class != Keyed && c.KeyWindow != 0 {
		refuse("KeyWindow is for keyed tools; this one is %s (R29)", c.Class)
	}
	if c.Class == Keyed && c.KeyWindow > 0 && c.KeyWindow <= c.keyMargin() {
		refuse("KeyWindow %v is too short: an attempt may need %v of it for its lease and the visibility delay (R29)", c.KeyWindow, c.keyMargin())
	}
	if c.Class == Unsafe && c.Attempts != 0 {
		refuse("an unsafe tool can't have a retry policy: leave Attempts at 0; each call makes at most one attempt (R2)")
	}
	if c.Unique && (!hasIdentity || c.Class == Read) {
		refuse("Unique needs identity fields and a side effect (R14)")
	}
	if c.AcceptDuplicates != "" && c.Class != Unsafe {
		refuse("AcceptDuplicates is for unsafe tools; this one is %s (R5)", c.Class)
	}
	if c.EscalateAfter <= c.Timeout+c.VisibilityDelay {
		refuse("EscalateAfter %v must be longer than Timeout and VisibilityDelay together, %v (R2)", c.EscalateAfter, c.Timeout+c.VisibilityDelay)
	}
	if need := c.needsRetention(redelivery); c.Retention < need {
		refuse("Retention %v is too short: key window, reconciliation and the host's longest redelivery need %v (R2)", c.Retention, need)
	}
	if c.Deciders < 1 || c.Deciders > 2 {
		refuse("Deciders is %d: a decision takes 1 person or 2 (R41)", c.Deciders)
	}
	if !utf8.ValidString(c.Guidance) || strings.ContainsRune(c.Guidance, 0) {
		refuse("Guidance isn't UTF-8 without NUL, and the ledger keeps it as a text (R39)")
	}
	for _, d := range c.durations() {
		switch {
		case d.value < 0:
			refuse("%s is negative: give a positive duration, or leave it out for the default", d.name)
		case d.value > d.longest:
			refuse("%s is longer than %d days: say how long it really may be", d.name, d.longest/day)
		}
	}
	if c.Attempts < 0 {
		refuse("Attempts is negative: give a positive number, or leave it out for the default")
	}
	return errors.Join(problems...)
}

const (
	day = 24 * time.Hour
	// longestWait and longestKept bound durations, so that no sum of them with
	// one another or with an instant runs over.
	longestWait = 3_650 * day
	longestKept = 36_500 * day
)

type duration struct {
	name           string
	value, longest time.Duration
}

// durations are the contract's durations with their names and bounds.
func (c Contract) durations() []duration {
	window := c.KeyWindow
	if window == Permanent {
		window = 0
	}
	return []duration{
		{"Timeout", c.Timeout, longestWait}, {"VisibilityDelay", c.VisibilityDelay, longestWait},
		{"KeyWindow", window, longestKept}, {"EscalateAfter", c.EscalateAfter, longestKept},
		{"StaleAfter", c.StaleAfter, longestKept}, {"Retention", c.Retention, longestKept},
		{"ApprovalTTL", c.ApprovalTTL, longestKept},
	}
}

// hasEffects says whether running the tool changes anything.
func (c Contract) hasEffects() bool { return c.Class != Read }
