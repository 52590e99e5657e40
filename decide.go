package settle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/internal/schema"
	"github.com/settle-go/settle/store"
)

// DecisionKind is what a person decides (R40). There is no default.
type DecisionKind string

// The decisions.
const (
	// DecideHappened: it happened. The operation completes with the resource and
	// the result, if one is given. Nothing is sent.
	DecideHappened DecisionKind = "happened"
	// DecideRunOnce: it did not happen, and is to be run once more: one further
	// effect under the same key. Not before the moment.
	DecideRunOnce DecisionKind = "run_once_more"
	// DecideFail: it did not happen, and won't. Not before the moment.
	DecideFail DecisionKind = "fail"
	// DecideAbandon: closed without knowing; never executed again.
	DecideAbandon DecisionKind = "abandon"
	// DecideApprove allows the effect that waits for approval, once (R43).
	DecideApprove DecisionKind = "approve"
	// DecideDeny refuses it.
	DecideDeny DecisionKind = "deny"
	// DecideHandBack gives the operation back to the machine, which looks for
	// evidence again.
	DecideHandBack DecisionKind = "hand_back"
	// DecideAcknowledge closes an incident on a settled operation.
	DecideAcknowledge DecisionKind = "acknowledge"
)

var decisionKinds = []DecisionKind{DecideHappened, DecideRunOnce, DecideFail, DecideAbandon, DecideApprove, DecideDeny,
	DecideHandBack, DecideAcknowledge}

// actionConfirm is the action of a second person.
const actionConfirm = "confirm"

// Decision is a person's word on a case.
type Decision struct {
	// Operation is the case's reference.
	Operation string
	// Version is the one that the operator saw. The decision is refused where the
	// case has moved on (R41).
	Version int
	// ID names the decision, so that sending it again changes nothing: a UUID of
	// the caller's.
	ID   string
	Kind DecisionKind
	// Reason says in words how it was found out. It is mandatory.
	Reason string
	// Resource and Result tell what happened, for DecideHappened. A result has to
	// fit the tool's schema.
	Resource string
	Result   json.RawMessage
}

// proposal is a decision that waits for a second person (R41). It holds the
// version that it leads to: anything that happens to the case afterwards voids it,
// but for what says nothing about what happened ([opened.passing]).
type proposal struct {
	Decision
	Operator string    `json:"operator"`
	At       time.Time `json:"at"`
	Covers   int       `json:"covers"` // as in [store.CaseEntry.Proposed]
	// Result is the decision's, where it has one; Sealed is the same under a codec (R56).
	Result json.RawMessage `json:"Result,omitempty"`
	Sealed []byte          `json:"sealed,omitempty"`
}

// Decide settles a case, or proposes to where the tool asks for two persons; the
// case that it returns says which. A refusal changes nothing but the audit.
func (q *Queue) Decide(ctx context.Context, d Decision) (Case, error) {
	c, err := q.openToDecide(ctx, d.Operation, string(d.Kind))
	if err != nil {
		return Case{}, err
	}
	if err = checkWords(d.Reason, d.Resource); err == nil {
		err = q.decide(ctx, c, d, false)
	}
	if err != nil {
		return Case{}, q.refused(ctx, c, string(d.Kind), err)
	}
	return q.left(ctx, d.Operation)
}

// Confirm is the second person's word on a proposal. The version is the one that
// they saw, the id their own decision's.
func (q *Queue) Confirm(ctx context.Context, reference string, version int, id, reason string) (Case, error) {
	c, err := q.openToDecide(ctx, reference, actionConfirm)
	if err != nil {
		return Case{}, err
	}
	if err := q.confirm(ctx, c, version, id, reason); err != nil {
		return Case{}, q.refused(ctx, c, actionConfirm, err)
	}
	return q.left(ctx, reference)
}

func (q *Queue) confirm(ctx context.Context, c *opened, version int, id, reason string) error {
	before, err := q.decided(ctx, c, id)
	if before != nil && before.Kind != "decided" {
		err = ErrOtherDecision // the proposal's own id confirms nothing
	}
	if before != nil || err != nil {
		return err
	}
	p, waits := c.proposal()
	if !waits {
		return ErrNoProposal
	}
	if p.Operator == c.operator.Name {
		return ErrSamePerson
	}
	if err := checkWords(reason, ""); err != nil {
		return err
	}
	d := p.Decision
	if d.Result, err = q.x.openProposed(c.entry.ID, p); err != nil {
		return err
	}
	d.Version, d.ID = version, id
	d.Reason = p.Decision.Reason + " / " + reason
	return q.decide(ctx, c, d, true)
}

// openToDecide is [Queue.open], and journals that the host's policy refused it.
func (q *Queue) openToDecide(ctx context.Context, reference, action string) (*opened, error) {
	c, err := q.open(ctx, reference, action)
	if errors.Is(err, ErrNotAllowed) {
		err = q.refused(ctx, c, action, err)
	}
	return c, err
}

// refused journals a refusal beside the operation and returns it (R41, R57).
func (q *Queue) refused(ctx context.Context, c *opened, kind string, err error) error {
	q.x.audit(ctx, store.Audit{Operation: c.entry.ID, Kind: "decision_refused", Actor: "operator:" + c.operator.Name, Detail: kind})
	return err
}

// decide checks a decision against the case and writes it. Confirmed says that
// a second person stands behind it.
func (q *Queue) decide(ctx context.Context, c *opened, d Decision, confirmed bool) error {
	before, err := q.decided(ctx, c, d.ID)
	switch {
	case err != nil:
		return err
	case before != nil:
		return before.again(d)
	}
	change, err := q.weigh(c, d)
	if err != nil {
		return err
	}
	if c.record.Deciders > 1 && !confirmed && d.Kind != DecideHandBack {
		return q.propose(ctx, c, d)
	}
	if err := q.write(ctx, change); err != nil {
		return err
	}
	q.x.signals.decided(ctx, c, d)
	return nil
}

// weigh turns a decision into its move, or refuses it.
func (q *Queue) weigh(c *opened, d Decision) (store.Change, error) {
	row := c.entry.Operation
	change := c.change("decided")
	change.Decision, _ = uuid.Parse(d.ID)
	if d.Version != row.Version {
		return change, &StaleVersionError{Seen: d.Version, Now: row.Version}
	}
	if c.file.Holder != "" && c.file.Holder != c.operator.Name && c.record.Deciders < 2 {
		return change, ErrTaken
	}
	var err error
	if change.Body, err = d.body(); err != nil {
		return change, err
	}
	return change, c.apply(&change, d, q.x.settings.resultLimit)
}

// apply fills in what a decision does (R40). The limit is that of results.
func (c *opened) apply(change *store.Change, d Decision, limit int) error {
	row := c.entry.Operation
	needs := store.Manual
	switch d.Kind {
	case DecideApprove, DecideDeny:
		needs = store.AwaitingApproval
	case DecideAcknowledge:
		if !c.file.Incident || !c.file.ClosedAt.IsZero() || row.State.NeedsCase() {
			return ErrNoCase
		}
		change.Resolve = true
		return nil
	}
	if row.State != needs {
		return ErrNoCase
	}
	change.Due = store.Due{}
	switch d.Kind {
	case DecideHappened:
		return c.happened(change, d, limit)
	case DecideRunOnce:
		if err := c.runnable(); err != nil {
			return err
		}
		change.To, change.Reason, change.Doubts, change.Granted, change.Told, change.Due = store.Retryable, reasonGranted, 0, true, false, store.DueIn(0)
		return c.notHappened()
	case DecideFail:
		change.To, change.Reason, change.Doubts, change.Granted = store.Failed, reasonDecided, 0, false
		return c.notHappened()
	case DecideAbandon:
		change.To, change.Reason, change.Granted = store.Abandoned, reasonDecided, false
	case DecideApprove:
		if err := c.approvable(); err != nil {
			return err
		}
		change.To, change.Reason, change.Granted, change.Told, change.Due = store.Retryable, reasonApproved, true, false, store.DueIn(0)
	case DecideDeny:
		change.To, change.Reason, change.Granted = store.Failed, reasonDenied, false
	case DecideHandBack:
		change.To, change.Reason, change.Due = store.Unknown, reasonHandedBack, store.DueIn(0)
		return c.unattached()
	default:
		return ErrNoSuchDecision
	}
	return nil
}

// runnable refuses what allows another effect where there is nothing to send.
func (c *opened) runnable() error {
	if c.entry.Flags&store.FlagPurged != 0 {
		return ErrErased
	}
	return nil
}

// approvable refuses what came too late; to deny that is what it counts as (R43).
func (c *opened) approvable() error {
	if c.entry.Due() {
		return ErrApprovalExpired
	}
	return cmp.Or(c.unattached(), c.runnable())
}

// notHappened holds for both decisions that say so: they wait for the moment,
// and an attempt that has reported success speaks against them (R40).
func (c *opened) notHappened() error {
	row := c.entry.Operation
	moment := row.Moment
	if c.tool != nil {
		moment = row.MomentUnder(c.tool.contract.VisibilityDelay)
	}
	if err := c.unattached(); err != nil {
		return err
	}
	if row.Read.Before(moment) {
		return &MomentError{Until: moment}
	}
	return nil
}

// unattached refuses what leads to another attempt, or denies one, where an attempt
// has reported success. The machine is no better judge: a far side that doesn't show
// the effect would have it made again.
func (c *opened) unattached() error {
	if c.entry.Flags&store.FlagAttached != 0 {
		return ErrAttached
	}
	return nil
}

func (c *opened) happened(change *store.Change, d Decision, limit int) error {
	change.To, change.Reason, change.Doubts, change.Granted = store.Completed, "", 0, false
	change.Resource = d.Resource
	change.ResourceDigest = resourceDigest(change.Resource)
	if len(d.Result) == 0 {
		return nil
	}
	if !json.Valid(d.Result) {
		return &ResultError{errors.New("it is no JSON")}
	}
	if c.tool != nil {
		if err := c.tool.parseResult(d.Result); err != nil {
			return &ResultError{err}
		}
		change.ResultVersion = c.tool.resultVersion
	} else if len(c.record.ResultSchema) > 0 {
		change.ResultVersion = versionIn(c.record.ResultSchema)
		s, err := schema.Parse(c.record.ResultSchema)
		if err == nil {
			err = s.Validate(d.Result)
		}
		if err != nil {
			return &ResultError{err}
		}
	}
	change.Result, change.Flags = kept(d.Result, limit)
	return nil
}

// proposal is the one that waits for a second person, if one does.
func (c *opened) proposal() (p proposal, waits bool) {
	entry := store.CaseEntry{Case: c.file, Entry: c.entry}
	waits = entry.Proposed() && json.Unmarshal(c.file.Proposal, &p) == nil
	return p, waits
}

// propose keeps a decision with the case until a second person confirms it.
func (q *Queue) propose(ctx context.Context, c *opened, d Decision) error {
	change := c.change("proposed")
	change.Decision, _ = uuid.Parse(d.ID)
	p := proposal{Decision: d, Operator: c.operator.Name, At: c.entry.Read, Covers: c.entry.Version + 1, Result: d.Result}
	if err := q.x.sealProposed(c.entry.ID, &p); err != nil {
		return err
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return err
	}
	change.Proposal = &encoded
	if change.Body, err = d.body(); err != nil {
		return err
	}
	return q.write(ctx, change)
}

// record is what people without the tool's code need to know of it.
func (b *binding) record() store.ToolRecord {
	return store.ToolRecord{Tool: b.identity, Deciders: b.contract.Deciders, Guidance: b.contract.Guidance, ResultSchema: b.versionedSchema()}
}

// resultVersionWord is the word of a declared schema that says which version of
// the tool's result it describes (R47).
const resultVersionWord = "x-settle-result-version"

func (b *binding) versionedSchema() []byte {
	if b.resultVersion == 0 || len(b.resultSchema) < len("{}") {
		return b.resultSchema
	}
	versioned := fmt.Appendf(nil, "{%q:%d", resultVersionWord, b.resultVersion)
	if rest := bytes.TrimSpace(b.resultSchema[1:]); rest[0] != '}' {
		versioned = append(versioned, ',')
	}
	return append(versioned, b.resultSchema[1:]...)
}

func versionIn(declared []byte) int {
	var schema map[string]json.RawMessage
	_ = json.Unmarshal(declared, &schema) //nolint:errcheck // a schema that says nothing is of version 0
	version, _ := strconv.Atoi(string(schema[resultVersionWord]))
	return version
}

// lookForPerson asks the far side about a case, and writes down what it said
// without deciding anything (R42).
func (x *Executor) lookForPerson(ctx context.Context, e store.Entry, b *binding, actor string) (store.Operation, error) {
	// Also where nothing can be asked, whoever waits for the look gets its answer,
	// and once: a case whose version moves by itself can't be decided.
	unasked := func(verdict verdict, reason string) (store.Operation, error) {
		return x.lookedForPerson(ctx, e.Operation, string(verdict), lookupBody(Evidence{verdict: verdict, reason: reason}), actor)
	}
	if !b.hasLookup {
		return unasked(verdictInconclusive, "the tool can't ask its far side")
	}
	in, err := b.decode(e.Arguments)
	if err != nil {
		return unasked(verdictFailed, "the arguments are gone, or this version of the tool can't read them")
	}
	ctx, span := x.signals.lookup(ctx, b, e.Operation)
	evidence := x.ask(ctx, e, b, in)
	found := b.weigh(e, evidence)
	span.end(found.Verdict)
	return x.lookedForPerson(ctx, e.Operation, found.Verdict, found.Body, actor)
}

func (x *Executor) lookedForPerson(ctx context.Context, row store.Operation, verdict string, body []byte, actor string) (store.Operation, error) {
	return x.apply(ctx, store.Change{Of: row, To: row.State, Kind: "lookup", Actor: actor, Reason: row.Reason, Body: body,
		Checked: true, Verdict: verdict, Doubts: row.Doubts, Told: row.Told, Granted: row.Granted})
}
