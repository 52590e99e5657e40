package settle

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// OperationFilter selects operations. Empty fields select everything.
type OperationFilter struct {
	Tenant string
	Tool   string
	// States are names of states, such as "unknown" or "completed".
	States []string
	// Subject, Task and Goal have to be the operation's own. No ledger indexes
	// them: every operation that the other fields select is read.
	Subject, Task, Goal string
	// Since leaves out what was accepted earlier. It is found by the time in the
	// operations' references and costs nothing.
	Since time.Time
	// Limit bounds a page (default 100, at most 1,000). Cursor continues after one.
	Limit  int
	Cursor string
}

// OperationPage is a page of operations, in the order of their acceptance.
type OperationPage struct {
	Operations []OperationSummary
	// Next is the cursor of the next page, or "" at the end.
	Next string
}

// OperationSummary is where an operation stands, with nothing of its arguments
// and results.
type OperationSummary struct {
	// Operation is the reference that every other method takes.
	Operation string
	Tool      string
	Class     string
	State     string
	Reason    string
	Version   int

	Tenant, Subject, Task, Goal string
	// Resource is the effect's id, where one is known.
	Resource string
	// Attempts is how many were made, Doubts of how many nobody knows the end.
	Attempts, Doubts int
	// Owner is the operator who has taken its case, if anybody.
	Owner string
	// Purged says that its payload is gone and a tombstone stays (R51).
	Purged bool

	// DueAt is when the machine looks at it next, LeaseUntil the end of a running
	// attempt's lease, Moment the instant after which no attempt can still take
	// effect (R21). Zero where there is none.
	CreatedAt, FirstSent, DueAt, LeaseUntil, Moment, SettledAt time.Time
	// ReadAt is the ledger's clock when this was read.
	ReadAt time.Time
}

// OperationDetail is all that may be shown of an operation without revealing
// its arguments and results.
type OperationDetail struct {
	OperationSummary
	// Occurrence and Number place the operation on its node (R9, R10).
	Occurrence, Number int
	// Checks and Verdict tell of the evidence sought so far (R36).
	Checks  int
	Verdict string
	// Fields are the arguments' names, each with what may be shown of it.
	Fields []CaseField
	// Parent is the composite that this is a step of, or what this corrects.
	Parent string
	// Children are the steps, or the corrections, of this operation.
	Children []Related
	// Cases are those that were opened on it, oldest first.
	Cases []CaseSummary
	// Events are the journal, oldest first; Notices the plain rows of the audit on
	// what changed nothing: refused decisions, conflicts, calls held (R57).
	Events  []CaseEvent
	Notices []AuditNotice
}

// AuditNotice is a line of the audit: on something that changed nothing, or on what
// an operator did to no one operation ([Queue.Acts]).
type AuditNotice struct {
	At                  time.Time
	Kind, Actor, Detail string
}

// maxPage bounds a page, and what one read of the ledger returns.
const maxPage = 1000

// Operations lists operations of the tenants that the operator sees, the first
// accepted first.
func (q *Queue) Operations(ctx context.Context, f OperationFilter) (OperationPage, error) {
	o, err := operatorFrom(ctx)
	if err != nil {
		return OperationPage{}, err
	}
	filter, err := f.store(q.x)
	if err != nil {
		return OperationPage{}, err
	}
	if err := q.x.allowed(ctx, OperatorAction{Operator: o, Action: "list", Tenant: f.Tenant, Tool: q.x.toolName(filter.Tool)}); err != nil {
		return OperationPage{}, err
	}
	limit := min(f.Limit, maxPage)
	if limit <= 0 {
		limit = 100
	}
	var page OperationPage
	for {
		entries, err := q.x.ledger.List(ctx, filter)
		if err != nil {
			return OperationPage{}, err
		}
		for _, e := range entries {
			if !o.sees(e.Of.TenantName) {
				continue
			}
			if f.Subject+f.Task+f.Goal != "" && strings.HasPrefix(e.Of.Subject, sealedName) {
				// Nothing found would look as if there were nothing.
				return OperationPage{}, &MissingKeyError{KeyID: keyOfName(e.Of.Subject)}
			}
			if !f.matches(e) {
				continue
			}
			if len(page.Operations) == limit {
				page.Next = page.Operations[limit-1].Operation
				return page, nil
			}
			page.Operations = append(page.Operations, q.x.summary(e))
		}
		if len(entries) < filter.Limit {
			return page, nil
		}
		filter.After = entries[len(entries)-1].ID
	}
}

func (f OperationFilter) store(x *Executor) (store.Filter, error) {
	filter := store.Filter{Tenant: f.Tenant, Tool: x.toolKey(f.Tool), Limit: maxPage}
	for _, name := range f.States {
		state, err := store.ParseState(name)
		if err != nil {
			return filter, err
		}
		filter.States = append(filter.States, state)
	}
	if f.Cursor != "" {
		after, err := uuid.Parse(f.Cursor)
		filter.After = after
		if err != nil {
			return filter, ErrCursor
		}
		return filter, nil
	}
	if !f.Since.IsZero() {
		filter.After = firstSince(f.Since)
	}
	return filter, nil
}

// clockSlack is how far the clock of the host that made a reference may be
// behind the ledger's.
const clockSlack = time.Minute

// firstSince is an id before those of the operations that were accepted since
// t: ids are UUIDs of version 7 and begin with the time in milliseconds.
func firstSince(t time.Time) (id uuid.UUID) {
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(max(t.Add(-clockSlack).UnixMilli(), 0)))
	copy(id[:6], millis[2:])
	return id
}

func (f OperationFilter) matches(e store.Entry) bool {
	return (f.Subject == "" || e.Of.Subject == f.Subject) && (f.Task == "" || e.Of.Task == f.Task) &&
		(f.Goal == "" || e.Of.Goal == f.Goal) && (f.Since.IsZero() || !e.CreatedAt.Before(f.Since))
}

// toolKey is the name that operations are keyed by of a tool that is named as today.
func (x *Executor) toolKey(name string) string {
	if b, ok := x.tools[name]; ok {
		return b.identity
	}
	return name
}

func (x *Executor) summary(e store.Entry) OperationSummary {
	return OperationSummary{
		Operation: e.ID.String(), Tool: x.toolName(e.Tool), Class: e.Class.String(), State: e.State.String(), Reason: e.Reason, Version: e.Version,
		Tenant: e.Of.TenantName, Subject: e.Of.Subject, Task: e.Of.Task, Goal: e.Of.Goal,
		Resource: e.Resource, Attempts: e.Attempt, Doubts: e.Doubts, Owner: e.Taken, Purged: e.Flags&store.FlagPurged != 0,
		CreatedAt: e.CreatedAt, FirstSent: e.FirstSent, DueAt: e.DueAt, LeaseUntil: e.LeaseUntil, Moment: e.Moment, SettledAt: e.SettledAt,
		ReadAt: e.Read,
	}
}

// Operation returns what may be shown of an operation. One of a tenant that the
// operator doesn't see is [store.ErrNotFound] (R46).
func (q *Queue) Operation(ctx context.Context, reference string) (OperationDetail, error) {
	e, err := q.find(ctx, reference, "show")
	if err != nil {
		return OperationDetail{}, err
	}
	d := OperationDetail{OperationSummary: q.x.summary(e), Occurrence: e.Occurrence, Number: e.Number,
		Checks: e.Checks, Verdict: e.Verdict, Fields: redacted(e.Arguments)}
	if b := q.x.byKey[e.Tool]; b != nil {
		d.Moment = e.MomentUnder(b.contract.VisibilityDelay)
	}
	if e.Parent != uuid.Nil {
		d.Parent = e.Parent.String()
	}
	return d, q.surround(ctx, e, &d)
}

// surround fills in what the ledger keeps beside the operation's row.
func (q *Queue) surround(ctx context.Context, e store.Entry, d *OperationDetail) error {
	events, err := q.x.ledger.Events(ctx, e.ID, 0)
	if err != nil {
		return err
	}
	d.Events = caseEvents(events)
	audits, err := q.x.ledger.Audits(ctx, e.ID)
	if err != nil {
		return err
	}
	d.Notices = notices(audits)
	cases, err := q.x.ledger.Cases(ctx, store.CaseFilter{Operation: e.ID, Closed: true, Limit: maxPage})
	if err != nil {
		return err
	}
	for _, c := range cases {
		d.Cases = append(d.Cases, summarize(q.x, c))
	}
	children, err := q.x.watched.List(ctx, store.Filter{Tenant: e.Of.TenantName, Parent: e.ID, Limit: maxPage}) // which needs no key
	if err != nil {
		return err
	}
	for _, c := range children {
		d.Children = append(d.Children, Related{Operation: c.ID.String(), Tool: q.x.toolName(c.Tool), State: c.State.String(), Resource: c.Resource})
	}
	return nil
}

// Brief is the brief of the task that an operation belongs to, as the task's
// own model is given it ([Executor.Brief]).
func (q *Queue) Brief(ctx context.Context, reference string) (string, error) {
	e, err := q.find(ctx, reference, "show")
	if err != nil {
		return "", err
	}
	text, _, err := q.x.briefOf(ctx, e.Of)
	return text, err
}

// find is the operation of a reference, whatever its tenant, if the operator
// may see it. Whoever may not, learns only that there is nothing (R46).
func (q *Queue) find(ctx context.Context, reference, action string) (store.Entry, error) {
	o, err := operatorFrom(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	id, err := uuid.Parse(reference)
	if err != nil || id == uuid.Nil {
		return store.Entry{}, store.ErrNotFound
	}
	found, err := q.x.ledger.List(ctx, store.Filter{After: before(id), Limit: 1})
	if err != nil {
		return store.Entry{}, err
	}
	if len(found) == 0 || found[0].ID != id || !o.sees(found[0].Of.TenantName) {
		return store.Entry{}, store.ErrNotFound
	}
	return found[0], q.x.allowed(ctx, OperatorAction{Operator: o, Action: action, Tenant: found[0].Of.TenantName,
		Tool: q.x.toolName(found[0].Tool), Operation: id.String()})
}

// before is the id right before another one.
func before(id uuid.UUID) uuid.UUID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}

// Acts lists what was done that belongs to no one operation, oldest first: a
// principal was erased, a task was closed, an undelivered event was sent again or
// discarded. The rows say when and by whom, and nothing of whose data it was, so
// that they can't be told apart by tenant: an operator who is limited to some is
// refused.
func (q *Queue) Acts(ctx context.Context) ([]AuditNotice, error) {
	o, err := operatorFrom(ctx)
	if err != nil {
		return nil, err
	}
	if o.Tenants != nil {
		return nil, fmt.Errorf("%w: these rows are of all tenants", ErrNotAllowed)
	}
	if err := q.x.allowed(ctx, OperatorAction{Operator: o, Action: "acts"}); err != nil {
		return nil, err
	}
	audits, err := q.x.ledger.Audits(ctx, uuid.Nil)
	return notices(audits), err
}

func notices(audits []store.Audit) (all []AuditNotice) {
	for _, a := range audits {
		all = append(all, AuditNotice{At: a.At, Kind: a.Kind, Actor: a.Actor, Detail: a.Detail})
	}
	return all
}
