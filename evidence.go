package settle

import (
	"time"

	"github.com/google/uuid"
)

// verdict is what a lookup found (R33).
type verdict string

const (
	verdictInconclusive verdict = "inconclusive"
	verdictHappened     verdict = "happened"
	verdictNotHappened  verdict = "not_happened"
	// verdictNotVisible is "not happened" before the moment: it doesn't count.
	verdictNotVisible verdict = "not_visible_yet"
	verdictRunning    verdict = "still_running"
	verdictSeveral    verdict = "several"
	verdictFailed     verdict = "lookup_failed"
)

// Evidence is a lookup's answer. It comes from the [Query]; the zero Evidence
// is inconclusive, so absence has to be spelled out.
type Evidence struct {
	verdict     verdict
	resource    string
	result      any
	compare     any
	byAttribute bool
	created     time.Time
	reason      string
}

// Query is what a lookup is asked: did this operation happen?
type Query[Out any] struct{ asked *asked }

// asked is a query without its types.
type asked struct {
	key       Key
	reference uuid.UUID
	first     time.Time
	last      time.Time
	attempts  int
	principal Principal
	task      Task
}

// Key returns the key that the attempts sent (R11).
func (q Query[Out]) Key() string { return q.asked.key.String() }

// UUID returns the key as a UUID.
func (q Query[Out]) UUID() uuid.UUID { return q.asked.key.UUID() }

// Reference returns the operation's random reference.
func (q Query[Out]) Reference() string { return q.asked.reference.String() }

// FirstSent is the ledger's instant of the first attempt; LastEnd is the latest
// instant at which an attempt may have acted.
func (q Query[Out]) FirstSent() time.Time { return q.asked.first }

// LastEnd is the instant after which none of the attempts can take effect.
func (q Query[Out]) LastEnd() time.Time { return q.asked.last }

// Attempts is how many attempts were made.
func (q Query[Out]) Attempts() int { return q.asked.attempts }

// Principal returns the authority that the operation acts for: a lookup by
// attribute finds only what this principal may see (R34).
func (q Query[Out]) Principal() Principal { return q.asked.principal }

// Task returns the task that the operation belongs to.
func (q Query[Out]) Task() Task { return q.asked.task }

// Happened says that the effect is there, found by the operation's key. The
// operation completes with the resource's id and the result.
func (q Query[Out]) Happened(resource string, out Out) Evidence {
	return Evidence{verdict: verdictHappened, resource: resource, result: out}
}

// NotHappened says that the far side knows of no such effect. It counts only
// when the lookup began after the operation's moment (R33).
func (q Query[Out]) NotHappened() Evidence { return Evidence{verdict: verdictNotHappened} }

// StillRunning says that the far side is at work on it.
func (q Query[Out]) StillRunning() Evidence { return Evidence{verdict: verdictRunning} }

// Several says that more than one effect matches: a person decides (R34). The
// reason is for that person and must not hold secrets.
func (q Query[Out]) Several(reason string) Evidence {
	return Evidence{verdict: verdictSeveral, reason: reason}
}

// Inconclusive says that nothing could be learnt.
func (q Query[Out]) Inconclusive(reason string) Evidence {
	return Evidence{verdict: verdictInconclusive, reason: reason}
}

// Comparing adds what the far side shows of the effect, under the names of the
// arguments: a struct or a map. Where a field differs from what was accepted,
// the effect is somebody else's or was changed, and a person decides (R34).
func (e Evidence) Comparing(fields any) Evidence {
	e.compare = fields
	return e
}

// ByAttribute says that the effect was found by a business attribute instead of
// the key. It settles the operation only with a resource that settles no other
// one and that was created no earlier than the first attempt (R34); created is
// the far side's instant, or zero where it doesn't tell.
func (e Evidence) ByAttribute(created time.Time) Evidence {
	e.byAttribute, e.created = true, created
	return e
}
