package settle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/store"
)

// Case is what a person is shown to decide by (R39). Values of arguments are
// redacted; [Queue.Reveal] shows them.
type Case struct {
	CaseSummary
	Class   string
	Subject string
	Task    string
	Goal    string
	// Occurrence and Number place the operation on its node (R9, R10).
	Occurrence, Number int
	// CreatedAt is when it was first accepted, FirstSent when the first attempt began.
	CreatedAt, FirstSent time.Time
	// Moment is the instant after which none of the attempts can still take
	// effect; MomentPassed says that it lies behind (R21).
	Moment       time.Time
	MomentPassed bool
	// Attempts is how many were made, Doubts of how many nobody knows the end.
	Attempts, Doubts int
	// Checks and Verdict tell of the evidence sought so far (R36).
	Checks  int
	Verdict string
	// Fields are the arguments' names, each with what may be shown of it.
	Fields []CaseField
	// Resource is the effect's id, where one is known.
	Resource string
	// Related are operations with the same tool and identity in other intents.
	Related []Related
	// Held counts the calls that were refused because of this operation.
	Held int
	// Guidance is the tool's author's advice.
	Guidance string
	// Deciders is how many persons a decision takes (R41).
	Deciders int
	// Events are the operation's journal, oldest first.
	Events []CaseEvent
	// Decisions are what can be decided, and what each will do.
	Decisions []CaseDecision
	// Proposal waits for a second person.
	Proposal *CaseProposal
}

// CaseField is an argument's name with its redacted value.
type CaseField struct{ Name, Value string }

// CaseEvent is a line of the journal. Text is what an operator or the far
// side's lookup said, as plain quoted text; a model's text is never in it (R44).
type CaseEvent struct {
	At      time.Time
	Kind    string
	Actor   string
	From    string
	To      string
	Attempt int
	Reason  string
	Text    string
}

// CaseDecision is something that can be decided now, or why it can't.
type CaseDecision struct {
	Kind DecisionKind
	// Effect says what will happen.
	Effect string
	// Refused says why it can't be decided now, or "".
	Refused string
}

// CaseProposal is a decision that one person made and a second one has to confirm.
type CaseProposal struct {
	Kind     DecisionKind
	Operator string
	Reason   string
	Resource string
	At       time.Time
	// HasResult says that a result is given with it, which [Queue.Reveal] shows.
	HasResult bool
}

// Get returns a case.
func (q *Queue) Get(ctx context.Context, reference string) (Case, error) {
	c, err := q.open(ctx, reference, "show")
	if err != nil {
		return Case{}, err
	}
	return q.shown(ctx, c)
}

// left is how a case stands after what its operator was allowed to do. Who may not
// look at it is told that it was done, and no more.
func (q *Queue) left(ctx context.Context, reference string) (Case, error) {
	c, err := q.open(ctx, reference, "show")
	switch {
	case errors.Is(err, ErrNotAllowed):
		return Case{CaseSummary: summarize(q.x, store.CaseEntry{Case: c.file, Entry: c.entry})}, nil
	case err != nil:
		return Case{}, err
	}
	return q.shown(ctx, c)
}

func (q *Queue) shown(ctx context.Context, c *opened) (Case, error) {
	events, err := q.x.ledger.Events(ctx, c.entry.ID, 0)
	if err != nil {
		return Case{}, err
	}
	audits, err := q.x.ledger.Audits(ctx, c.entry.ID)
	if err != nil {
		return Case{}, err
	}
	view := c.view(q.x)
	view.Events = caseEvents(events)
	for _, a := range audits {
		if a.Kind == "held" || a.Kind == "conflict" {
			view.Held++
		}
	}
	view.Related, err = q.related(ctx, c)
	return view, err
}

func (c *opened) view(x *Executor) Case {
	row := c.entry.Operation
	moment := row.Moment
	if c.tool != nil {
		moment = row.MomentUnder(c.tool.contract.VisibilityDelay)
	}
	v := Case{
		CaseSummary: summarize(x, store.CaseEntry{Case: c.file, Entry: c.entry}),
		Class:       row.Class.String(), Subject: c.entry.Of.Subject, Task: c.entry.Of.Task, Goal: c.entry.Of.Goal,
		Occurrence: row.Occurrence, Number: row.Number, CreatedAt: row.CreatedAt, FirstSent: row.FirstSent,
		Moment: moment, MomentPassed: !row.Read.Before(moment), Attempts: row.Attempt, Doubts: row.Doubts,
		Checks: row.Checks, Verdict: row.Verdict, Resource: row.Resource, Guidance: c.record.Guidance, Deciders: c.record.Deciders,
		Fields: redacted(row.Arguments),
	}
	v.Decisions = c.decisions(moment)
	if p, waits := c.proposal(); waits {
		v.Proposal = &CaseProposal{Kind: p.Kind, Operator: p.Operator, Reason: p.Reason, Resource: p.Resource, At: p.At,
			HasResult: len(p.Result)+len(p.Sealed) > 0}
	}
	return v
}

// redacted shows of each argument its kind and size only.
func redacted(args []byte) []CaseField {
	value, err := canonical.Parse(args, canonical.Limits{Bytes: len(args) + 1})
	if err != nil {
		return nil
	}
	var fields []CaseField
	for name, v := range value.Members() {
		shown := v.Kind().String()
		switch v.Kind() {
		case canonical.String:
			shown = fmt.Sprintf("string of %d bytes", len(v.String()))
		case canonical.Array, canonical.Object:
			shown = fmt.Sprintf("%s of %d", v.Kind(), v.Len())
		}
		fields = append(fields, CaseField{Name: name, Value: shown})
	}
	return fields
}

// decisions lists what the state allows, with what each will do.
func (c *opened) decisions(moment time.Time) []CaseDecision {
	row := c.entry.Operation
	refusal := func(errs ...error) string {
		if err := cmp.Or(errs...); err != nil {
			return err.Error()
		}
		return ""
	}
	switch {
	case row.State == store.Manual:
		return []CaseDecision{
			{DecideHappened, "The operation completes with the resource and result that you give. Nothing is sent.", ""},
			{DecideRunOnce, "It is run once more, with the same key and the arguments as first accepted. One further effect, no more.", refusal(c.notHappened(), c.runnable())},
			{DecideFail, "It is closed as having had no effect. Nothing is sent; a corrected call may follow.", refusal(c.notHappened())},
			{DecideAbandon, "It is closed without knowing. Nothing is sent, and the same call is never executed again.", ""},
			{DecideHandBack, "The machine looks for evidence again.", refusal(c.unattached())},
		}
	case row.State == store.AwaitingApproval:
		return []CaseDecision{
			{DecideApprove, "It is run, once, with exactly these arguments.", refusal(c.approvable())},
			{DecideDeny, "It is closed as denied. Nothing is sent.", ""},
		}
	case c.file.Incident && c.file.ClosedAt.IsZero():
		return []CaseDecision{{DecideAcknowledge, "The incident is closed. The operation stays as it is and nothing is sent.", ""}}
	}
	return nil
}

// caseEvents renders the journal. Of an event's body only known words are shown.
func caseEvents(events []store.Event) []CaseEvent {
	lines := make([]CaseEvent, 0, len(events))
	for _, e := range events {
		var body struct {
			Note, Reason, Decision, Verdict, Resource, Effect string
		}
		_ = json.Unmarshal(e.Body, &body) //nolint:errcheck // a body of another shape has no words to show
		text := body.Note
		for _, part := range []string{body.Decision, body.Verdict, body.Effect, body.Resource, body.Reason} {
			if part != "" && text != "" {
				text += ": "
			}
			text += part
		}
		lines = append(lines, CaseEvent{At: e.At, Kind: e.Kind, Actor: e.Actor, From: e.Move.From.String(), To: e.Move.To.String(),
			Attempt: e.Attempt, Reason: e.Reason, Text: text})
	}
	return lines
}

// maxRelated bounds the related operations that a case shows.
const maxRelated = 20

// related finds the same side effect in other intents of the tenant (R39).
func (q *Queue) related(ctx context.Context, c *opened) ([]Related, error) {
	row := c.entry.Operation
	if row.Node.IsZero() || row.Source == store.FromStep || row.Source == store.FromOriginal {
		return nil, nil
	}
	// The ledger as it is: what is told of them isn't sealed, and a case must not be
	// lost with the key of another one.
	entries, err := q.x.watched.List(ctx, store.Filter{Tenant: c.entry.Of.TenantName, Tool: row.Tool, Node: row.Node, Limit: maxRelated + 1})
	if err != nil {
		return nil, err
	}
	var related []Related
	for _, e := range entries {
		if e.ID == row.ID {
			continue
		}
		related = append(related, Related{Operation: e.ID.String(), Tool: q.x.toolName(e.Tool), State: e.State.String(), Resource: e.Resource})
	}
	return related[:min(len(related), maxRelated)], nil
}

// Declare tells the ledger what people need to know of this executor's tools
// when they work without its code: guidance, how many persons decide, the
// schema of results. [Executor.Run] does it when it begins.
func (x *Executor) Declare(ctx context.Context) error {
	records := make([]store.ToolRecord, 0, len(x.byKey))
	for _, b := range x.byKey {
		if b.contract.hasEffects() {
			records = append(records, b.record())
		}
	}
	if len(records) == 0 {
		return nil
	}
	return x.ledger.Declare(ctx, records...)
}

// askForTwo declares a tool whose cases take two persons before it can have one:
// whoever works without its code would let one decide, and a host that never
// calls [Executor.Run] tells the ledger of its tools in no other way (R41).
func (x *Executor) askForTwo(ctx context.Context, b *binding) error {
	if b.contract.Deciders < 2 || b.declared.Load() {
		return nil
	}
	err := x.persist(detached(ctx), func(ctx context.Context) error { return x.ledger.Declare(ctx, b.record()) })
	b.declared.Store(err == nil)
	return err
}
