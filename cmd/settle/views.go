package main

import (
	"time"

	"github.com/settle-go/settle"
)

// The JSON forms of what the queue shows. Their names are a promise to scripts.

type caseLine struct {
	Operation string    `json:"operation"`
	Tool      string    `json:"tool"`
	Tenant    string    `json:"tenant"`
	State     string    `json:"state"`
	Reason    string    `json:"reason"`
	Incident  bool      `json:"incident"`
	Version   int       `json:"version"`
	OpenedAt  time.Time `json:"opened_at"`
	ClosedAt  time.Time `json:"closed_at,omitzero"`
	Owner     string    `json:"owner,omitempty"`
	// Proposed says that a decision waits for a second person.
	Proposed bool `json:"proposed"`
}

func newCaseLine(c settle.CaseSummary) caseLine {
	return caseLine{Operation: c.Operation, Tool: shown(c.Tool), Tenant: c.Tenant, State: c.State, Reason: c.Reason, Incident: c.Incident,
		Version: c.Version, OpenedAt: c.OpenedAt.UTC(), ClosedAt: c.ClosedAt.UTC(), Owner: c.Owner, Proposed: c.Proposed}
}

type caseView struct {
	caseLine
	Class        string    `json:"class"`
	Subject      string    `json:"subject"`
	Task         string    `json:"task"`
	Goal         string    `json:"goal"`
	Occurrence   int       `json:"occurrence"`
	Number       int       `json:"number"`
	CreatedAt    time.Time `json:"created_at"`
	FirstSent    time.Time `json:"first_sent,omitzero"`
	Moment       time.Time `json:"moment,omitzero"`
	MomentPassed bool      `json:"moment_passed"`
	// ApprovalUntil is when an approval that nobody gave counts as denied.
	ApprovalUntil time.Time      `json:"approval_until,omitzero"`
	Attempts      int            `json:"attempts"`
	Doubts        int            `json:"doubts"`
	Checks        int            `json:"checks"`
	Verdict       string         `json:"verdict,omitempty"`
	Arguments     []fieldView    `json:"arguments"`
	Resource      string         `json:"resource,omitempty"`
	Related       []relatedView  `json:"related"`
	Held          int            `json:"held"`
	Guidance      string         `json:"guidance,omitempty"`
	Declared      bool           `json:"declared"`
	Deciders      int            `json:"deciders"`
	Events        []eventView    `json:"events"`
	Proposal      *proposalView  `json:"proposal,omitempty"`
	Decisions     []decisionView `json:"decisions"`
}

type fieldView struct {
	Name  string `json:"name"`
	Shown string `json:"shown"`
}

type relatedView struct {
	Operation string `json:"operation"`
	Tool      string `json:"tool"`
	State     string `json:"state"`
	Resource  string `json:"resource,omitempty"`
}

type eventView struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Actor   string    `json:"actor"`
	From    string    `json:"from"`
	To      string    `json:"to"`
	Attempt int       `json:"attempt"`
	Reason  string    `json:"reason,omitempty"`
	Text    string    `json:"text,omitempty"`
}

type proposalView struct {
	Decision string `json:"decision"`
	Operator string `json:"operator"`
	Reason   string `json:"reason"`
	Resource string `json:"resource,omitempty"`
	// HasResult says that a result is given with it, which reveal shows.
	HasResult bool      `json:"has_result,omitempty"`
	At        time.Time `json:"at"`
	// Command confirms it.
	Command string `json:"command"`
}

type decisionView struct {
	Decision string `json:"decision"`
	Effect   string `json:"effect"`
	// Refused says why it can't be decided now.
	Refused string `json:"refused,omitempty"`
	// Command decides it.
	Command string `json:"command,omitempty"`
}

// file is a case with what lies beside it in the ledger.
type file struct {
	settle.Case
	// declared says that a worker has told the ledger of the tool: else nobody
	// knows here how many persons decide.
	declared bool
	until    time.Time
}

func (a *app) caseView(f file) caseView {
	c := f.Case
	v := caseView{caseLine: newCaseLine(c.CaseSummary), Class: c.Class, Subject: shown(c.Subject), Task: shown(c.Task), Goal: shown(c.Goal),
		Occurrence: c.Occurrence, Number: c.Number, CreatedAt: c.CreatedAt.UTC(), FirstSent: c.FirstSent.UTC(), Moment: c.Moment.UTC(), MomentPassed: c.MomentPassed,
		ApprovalUntil: f.until.UTC(), Attempts: c.Attempts, Doubts: c.Doubts, Checks: c.Checks, Verdict: c.Verdict, Resource: c.Resource,
		Held: c.Held, Guidance: c.Guidance, Declared: f.declared, Deciders: c.Deciders,
		Arguments: []fieldView{}, Decisions: []decisionView{}, Related: newRelated(c.Related), Events: newEvents(c.Events)}
	for _, field := range c.Fields {
		v.Arguments = append(v.Arguments, fieldView{field.Name, field.Value})
	}
	for _, d := range c.Decisions {
		view := decisionView{Decision: string(d.Kind), Effect: d.Effect, Refused: d.Refused}
		if d.Refused == "" {
			view.Command = a.decideCommand(c, d.Kind)
		}
		v.Decisions = append(v.Decisions, view)
	}
	if p := c.Proposal; p != nil {
		v.Proposal = &proposalView{Decision: string(p.Kind), Operator: p.Operator, Reason: p.Reason, Resource: p.Resource, HasResult: p.HasResult, At: p.At.UTC(), Command: a.confirmCommand(c)}
	}
	return v
}

func newRelated(all []settle.Related) []relatedView {
	views := []relatedView{}
	for _, r := range all {
		views = append(views, relatedView{r.Operation, shown(r.Tool), r.State, r.Resource})
	}
	return views
}

func newEvents(all []settle.CaseEvent) []eventView {
	views := []eventView{}
	for _, e := range all {
		views = append(views, eventView{e.At.UTC(), e.Kind, e.Actor, e.From, e.To, e.Attempt, e.Reason, e.Text})
	}
	return views
}

type operationLine struct {
	Operation  string    `json:"operation"`
	Tool       string    `json:"tool"`
	Class      string    `json:"class"`
	State      string    `json:"state"`
	Reason     string    `json:"reason,omitempty"`
	Version    int       `json:"version"`
	Tenant     string    `json:"tenant"`
	Subject    string    `json:"subject"`
	Task       string    `json:"task"`
	Goal       string    `json:"goal"`
	Resource   string    `json:"resource,omitempty"`
	Attempts   int       `json:"attempts"`
	Doubts     int       `json:"doubts"`
	Owner      string    `json:"owner,omitempty"`
	Purged     bool      `json:"purged"`
	CreatedAt  time.Time `json:"created_at"`
	FirstSent  time.Time `json:"first_sent,omitzero"`
	DueAt      time.Time `json:"due_at,omitzero"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	Moment     time.Time `json:"moment,omitzero"`
	SettledAt  time.Time `json:"settled_at,omitzero"`
}

func newOperationLine(o settle.OperationSummary) operationLine {
	return operationLine{Operation: o.Operation, Tool: shown(o.Tool), Class: o.Class, State: o.State, Reason: o.Reason, Version: o.Version,
		Tenant: o.Tenant, Subject: shown(o.Subject), Task: shown(o.Task), Goal: shown(o.Goal), Resource: o.Resource,
		Attempts: o.Attempts, Doubts: o.Doubts, Owner: o.Owner, Purged: o.Purged, CreatedAt: o.CreatedAt.UTC(), FirstSent: o.FirstSent.UTC(),
		DueAt: o.DueAt.UTC(), LeaseUntil: o.LeaseUntil.UTC(), Moment: o.Moment.UTC(), SettledAt: o.SettledAt.UTC()}
}

type operationView struct {
	operationLine
	Occurrence int           `json:"occurrence"`
	Number     int           `json:"number"`
	Checks     int           `json:"checks"`
	Verdict    string        `json:"verdict,omitempty"`
	Arguments  []fieldView   `json:"arguments"`
	Parent     string        `json:"parent,omitempty"`
	Children   []relatedView `json:"children"`
	Cases      []caseLine    `json:"cases"`
	Events     []eventView   `json:"events"`
	Notices    []noticeView  `json:"notices"`
}

func newNotices(notices []settle.AuditNotice) []noticeView {
	views := []noticeView{}
	for _, n := range notices {
		views = append(views, noticeView{n.At.UTC(), n.Kind, n.Actor, n.Detail})
	}
	return views
}

type noticeView struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`
	Actor  string    `json:"actor"`
	Detail string    `json:"detail,omitempty"`
}

func newOperationView(d settle.OperationDetail) operationView {
	v := operationView{operationLine: newOperationLine(d.OperationSummary), Occurrence: d.Occurrence, Number: d.Number,
		Checks: d.Checks, Verdict: d.Verdict, Parent: d.Parent, Arguments: []fieldView{}, Cases: []caseLine{},
		Children: newRelated(d.Children), Events: newEvents(d.Events)}
	for _, f := range d.Fields {
		v.Arguments = append(v.Arguments, fieldView{f.Name, f.Value})
	}
	for _, c := range d.Cases {
		v.Cases = append(v.Cases, newCaseLine(c))
	}
	v.Notices = newNotices(d.Notices)
	return v
}
