package settle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settle-go/settle/store"
)

// Queue is where people settle what the machine can't know (R39-R45). Every
// method takes the operator from the context ([WithOperator]). A reference of a
// tenant that the operator doesn't see is [store.ErrNotFound].
type Queue struct{ x *Executor }

// Queue returns the executor's queue.
func (x *Executor) Queue() *Queue { return &Queue{x} }

// QueueFilter selects cases. Empty fields select every open case.
type QueueFilter struct {
	// States are "manual", "awaiting_approval", or settled ones with an incident.
	States []string
	Tool   string
	Tenant string
	Reason string
	// Owner selects cases that this operator has taken; Free those that nobody has.
	Owner string
	Free  bool
	// OlderThan selects cases that have been open for at least so long.
	OlderThan time.Duration
	// Closed selects closed cases as well.
	Closed bool
	// Limit bounds a page (default and at most 1,000: 100). Cursor continues after one.
	Limit  int
	Cursor string
}

// QueuePage is a page of cases, oldest first, and where the next one begins.
type QueuePage struct {
	Cases []CaseSummary
	// Next is the cursor of the next page, or "" at the end. Cases that are
	// opened or closed meanwhile move no other.
	Next string
}

// CaseSummary is a line of the queue.
type CaseSummary struct {
	// Operation is the reference that every other method takes.
	Operation string
	Tool      string
	Tenant    string
	State     string
	Reason    string
	Incident  bool
	Version   int
	OpenedAt  time.Time
	ClosedAt  time.Time
	// Owner has taken the case, if anybody.
	Owner string
	// Proposed says that a decision waits for a second person.
	Proposed bool
}

// List returns cases, oldest first.
func (q *Queue) List(ctx context.Context, f QueueFilter) (QueuePage, error) {
	o, err := operatorFrom(ctx)
	if err != nil {
		return QueuePage{}, err
	}
	filter, err := f.store(q.x)
	if err != nil {
		return QueuePage{}, err
	}
	if err := q.x.allowed(ctx, OperatorAction{Operator: o, Action: "list", Tenant: f.Tenant, Tool: q.x.toolName(filter.Tool)}); err != nil {
		return QueuePage{}, err
	}
	entries, err := q.cases(ctx, o, filter)
	if err != nil {
		return QueuePage{}, err
	}
	var page QueuePage
	for _, e := range entries {
		page.Cases = append(page.Cases, summarize(q.x, e))
		filter.After = store.CaseCursor{OpenedAt: e.Case.OpenedAt, ID: e.Case.ID}
	}
	if len(entries) == filter.Limit {
		page.Next = writeCursor(filter.After)
	}
	return page, nil
}

// cases is a page of the cases that the operator sees. Where these are some
// tenants', each is asked for on its own: what waits for all the others may be
// far more.
func (q *Queue) cases(ctx context.Context, o Operator, f store.CaseFilter) ([]store.CaseEntry, error) {
	switch {
	case f.Tenant != "" && !o.sees(f.Tenant):
		return nil, nil
	case f.Tenant != "" || o.Tenants == nil:
		return q.x.ledger.Cases(ctx, f)
	}
	tenants := slices.Clone(o.Tenants)
	slices.Sort(tenants)
	var page []store.CaseEntry
	for _, f.Tenant = range slices.Compact(tenants) {
		if f.Tenant == "" {
			continue // no tenant's name, and the filter's word for all
		}
		entries, err := q.x.ledger.Cases(ctx, f)
		if err != nil {
			return nil, err
		}
		page = append(page, entries...)
		slices.SortFunc(page, func(a, b store.CaseEntry) int {
			return cmp.Or(a.Case.OpenedAt.Compare(b.Case.OpenedAt), bytes.Compare(a.Case.ID[:], b.Case.ID[:]))
		})
		page = page[:min(len(page), f.Limit)]
	}
	return page, nil
}

func (f QueueFilter) store(x *Executor) (store.CaseFilter, error) {
	filter := store.CaseFilter{Tenant: f.Tenant, Tool: x.toolKey(f.Tool), Reason: f.Reason, Holder: f.Owner, Free: f.Free,
		OlderThan: f.OlderThan, Closed: f.Closed, Limit: f.Limit}
	if filter.Limit <= 0 {
		filter.Limit = 100
	}
	filter.Limit = min(filter.Limit, 1000)
	for _, name := range f.States {
		state, err := store.ParseState(name)
		if err != nil {
			return filter, err
		}
		filter.States = append(filter.States, state)
	}
	var err error
	filter.After, err = readCursor(f.Cursor)
	return filter, err
}

func summarize(x *Executor, e store.CaseEntry) CaseSummary {
	return CaseSummary{Operation: e.Entry.ID.String(), Tool: x.toolName(e.Entry.Tool), Tenant: e.Entry.Of.TenantName,
		State: e.Entry.State.String(), Reason: e.Case.Reason, Incident: e.Case.Incident, Version: e.Entry.Version,
		OpenedAt: e.Case.OpenedAt, ClosedAt: e.Case.ClosedAt, Owner: e.Case.Holder, Proposed: e.Proposed()}
}

// toolName is today's name of a tool that operations are keyed by an older name of.
func (x *Executor) toolName(key string) string {
	if b, ok := x.byKey[key]; ok {
		return b.name
	}
	return key
}

// allowed asks the host's policy.
func (x *Executor) allowed(ctx context.Context, a OperatorAction) error {
	if x.settings.policy == nil {
		return nil
	}
	if err := x.settings.policy(ctx, a); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return nil
}

// Take gives the case to the operator. Taking one's own again is no change.
func (q *Queue) Take(ctx context.Context, reference string) error {
	_, err := q.update(ctx, reference, "take", func(c *opened) (change store.Change, err error) {
		switch {
		case !c.file.ClosedAt.IsZero():
			return change, ErrNoCase
		case c.file.Holder == c.operator.Name:
			return change, nil
		case c.file.Holder != "":
			return change, ErrTaken
		}
		change, err = c.passing("taken")
		change.Take = &c.operator.Name
		return change, err
	})
	return err
}

// TakeOver gives the operator a case that another one has taken and can't go on
// with. It names whom it is taken from, and is [ErrTaken] where somebody else has
// it by now; the journal tells of both.
func (q *Queue) TakeOver(ctx context.Context, reference, from string) error {
	_, err := q.update(ctx, reference, "take_over", func(c *opened) (change store.Change, err error) {
		switch {
		case !c.file.ClosedAt.IsZero():
			return change, ErrNoCase
		case c.file.Holder == c.operator.Name:
			return change, nil
		case c.file.Holder == "" || c.file.Holder != from:
			return change, ErrTaken
		}
		if change, err = c.passing("taken_over"); err != nil {
			return change, err
		}
		change.Take = &c.operator.Name
		change.Body, err = json.Marshal(map[string]string{"note": "from " + from})
		return change, err
	})
	return err
}

// Release gives the case back to the queue.
func (q *Queue) Release(ctx context.Context, reference string) error {
	_, err := q.update(ctx, reference, "release", func(c *opened) (change store.Change, err error) {
		switch {
		case !c.file.ClosedAt.IsZero():
			return change, ErrNoCase
		case c.file.Holder == "":
			return change, nil
		case c.file.Holder != c.operator.Name:
			return change, ErrTaken
		}
		nobody := ""
		change, err = c.passing("released")
		change.Take = &nobody
		return change, err
	})
	return err
}

// maxNote bounds an operator's words, in bytes.
const maxNote = 4096

// Note adds the operator's words to the case.
func (q *Queue) Note(ctx context.Context, reference, text string) error {
	_, err := q.update(ctx, reference, "note", func(c *opened) (change store.Change, err error) {
		if strings.TrimSpace(text) == "" {
			return change, errors.New("settle: a note needs a text")
		}
		if len(text) > maxNote {
			return change, ErrTooLong
		}
		change = c.change("note")
		change.Body, err = json.Marshal(map[string]string{"note": text})
		return change, err
	})
	return err
}

// Revealed is what a case hides by default.
type Revealed struct {
	Arguments json.RawMessage
	Result    json.RawMessage
	// Proposed is the result that is given with a decision which waits for a
	// second person (R41).
	Proposed json.RawMessage
}

// Reveal shows the arguments, the result, and what a proposal gives for one. That
// is an event of the operation (R39). Secret fields were never stored without a codec and aren't shown.
func (q *Queue) Reveal(ctx context.Context, reference string) (Revealed, error) {
	var proposed json.RawMessage
	row, err := q.update(ctx, reference, "reveal", func(c *opened) (change store.Change, err error) {
		p, _ := c.proposal()
		if proposed, err = q.x.openProposed(c.entry.ID, p); err != nil {
			return change, err
		}
		return c.passing("revealed")
	})
	if err != nil {
		return Revealed{}, err
	}
	return Revealed{Arguments: row.Arguments, Result: row.Result, Proposed: proposed}, nil
}

// Look asks the far side for evidence now. Where this process has the tool, it
// looks itself; elsewhere the case is due for a worker that has it. What is
// found is shown in the case; deciding stays with the operator (R42).
func (q *Queue) Look(ctx context.Context, reference string) (Case, error) {
	c, err := q.open(ctx, reference, "look")
	if err != nil {
		return Case{}, err
	}
	if c.entry.State != store.Manual {
		return Case{}, ErrNoCase
	}
	if c.tool == nil {
		change := c.change("look_asked")
		change.Due = store.DueIn(0)
		if err := q.write(ctx, change); err != nil {
			return Case{}, err
		}
		return q.left(ctx, reference)
	}
	if _, err := q.x.lookForPerson(ctx, c.entry, c.tool, "operator:"+c.operator.Name); err != nil {
		return Case{}, outdated(c.entry.Operation, err)
	}
	return q.left(ctx, reference)
}

// write applies an operator's change. A row that moved on is stale.
func (q *Queue) write(ctx context.Context, c store.Change) error {
	_, err := q.x.apply(ctx, c)
	return outdated(c.Of, err)
}

// outdated says in the queue's words that a row has moved on since it was read.
func outdated(read store.Operation, err error) error {
	var stale *store.StaleError
	if errors.As(err, &stale) {
		return &StaleVersionError{Seen: read.Version, Now: stale.Current.Version}
	}
	return err
}
