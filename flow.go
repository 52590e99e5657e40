package settle

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// flow is one call on its way from arguments to outcome: the one path that
// every call takes.
type flow struct {
	x *Executor
	*request
	index int

	// early ends the call before the ledger is asked.
	early *Outcome
	// denied says that the principal may not run this.
	denied bool

	// asks is what the ledger is asked next, and has its place here, since a
	// claim is large and every call makes one.
	asks [1]store.Claim

	owner uuid.UUID
	// asked is when the claim was sent: a lease is never longer than the time
	// since then allows (R22).
	asked time.Time
	// claimed is the answer of a claim that was made together with others, job what
	// it has started already.
	claimed *store.Claimed
	job     *job

	// waitUntil bounds how long the call waits for others (R17).
	waitUntil    time.Time
	pause        time.Duration
	investigated bool
	duplicates   int
	// granted says that the attempt uses up an approval or a person's grant.
	granted bool
	// told are completed operations that don't hold this call any more, since
	// this process has told of them (R30).
	told []uuid.UUID
}

// patience is how long the call waits for others: never longer than the
// contract's timeout (R17).
func (f *flow) patience() time.Duration {
	if f.call.Wait == 0 {
		return f.tool.contract.Timeout
	}
	return min(max(f.call.Wait, 0), f.tool.contract.Timeout)
}

// go1 takes the call to its outcome, under a span of its own.
func (f *flow) go1(ctx context.Context) Outcome {
	f.open(ctx)
	out := f.toOutcome(f.span.ctx)
	f.span.answered(out)
	return out
}

func (f *flow) open(ctx context.Context) {
	if f.span == nil {
		f.span = f.x.signals.call(ctx, f.tool)
	}
}

func (f *flow) toOutcome(ctx context.Context) Outcome {
	if f.tool.contract.Class == Read {
		return f.read(ctx)
	}
	f.prepare(ctx)
	if f.early != nil {
		return *f.early
	}
	if f.claimed == nil {
		f.firstClaim()
	} else if out, next := f.decide(ctx, f.claimed); next == nil {
		return out
	}
	for range maxRounds {
		if out, next := f.settle(ctx); next == nil {
			return out
		}
	}
	return f.unavailable(errBusyRow)
}

// settle makes the claim that was prepared last and turns the ledger's answer into
// an outcome, or into the next claim.
func (f *flow) settle(ctx context.Context) (Outcome, *store.Claim) {
	if err := f.x.askForTwo(ctx, f.tool); err != nil {
		return f.unavailable(err), nil
	}
	if claim := &f.asks[0]; f.tool.contract.Class == Transactional && !claim.Look && claim.Operation.State == store.Running {
		return f.transact(ctx, claim)
	}
	claimed, err := f.claim(ctx)
	if err != nil {
		return f.unavailable(err), nil
	}
	return f.decide(ctx, claimed)
}

// maxRounds bounds how often a call goes back to the ledger: far beyond what
// waiting takes, so that a mistake ends in a refusal and not in a loop.
const maxRounds = 10_000

// firstClaim prepares to ask for number 1, or only looks where something has to be known
// before: a meant repeat, a replacement, arguments that only a record can save.
func (f *flow) firstClaim() {
	// A replay needs no transaction.
	replay := f.tool.contract.Class == Transactional && (f.call.Redelivered || f.x.seen.has(f.slot))
	if f.plain() && !replay {
		f.newClaim(1)
	} else {
		f.look()
	}
}

func (f *flow) plain() bool {
	return f.invalid == nil && !f.denied && f.occurrence == 1 && f.call.Replaces == ""
}

// newClaim prepares the claim of a number in the call's slot, behind what must stand
// unchanged for it.
func (f *flow) newClaim(number int, after ...store.Guard) *store.Claim {
	c := f.tool.contract
	o := store.Operation{
		ID: newID(), Intent: f.intent.ID, Tenant: f.intent.Tenant, Slot: f.slot, Number: number,
		Tool: f.tool.identity, Class: c.Class, Contract: f.definition, Source: f.node.source, Node: f.node.digest,
		Occurrence: f.occurrence, State: store.Running, Owner: f.owner, Run: f.x.run, Batch: f.batch,
		Visibility: c.VisibilityDelay, Escalate: f.tool.escalation(), Retention: c.Retention,
		Fingerprint: f.print.whole, Fields: f.print.fields, Arguments: f.stored(), CallID: f.call.CallID, Trace: spanContext(f.span.ctx),
		Unique: f.unique, ResourceKey: f.resource,
	}
	if c.Deciders > 1 {
		o.Flags |= store.FlagTwoPersons
	}
	switch {
	case f.parent != nil:
		o.Parent = f.parent.reference
	case f.original != nil:
		o.Parent = f.original.ID
	}
	claim := &f.asks[0]
	*claim = store.Claim{Operation: o, Lease: c.lease(), After: after, Actor: "caller"}
	if c.Class == Keyed && c.KeyWindow != Permanent {
		claim.KeyWindow = c.KeyWindow
	}
	if c.Class == Idempotent {
		claim.Wait = resumeAfter
	}
	if c.Approval {
		claim.Operation.State, claim.Operation.Reason, claim.Wait = store.AwaitingApproval, reasonApproval, c.ApprovalTTL
	}
	if f.node.source == store.FromWhole {
		claim.Hold = &store.Hold{Told: f.told}
	}
	f.x.announceClaim(claim)
	claim.Likely = f.call.Redelivered || f.x.seen.has(f.slot)
	known, ok := f.x.known.get(knownTool{f.intent.ID, f.tool.identity})
	claim.Known = ok && known == f.definition
	return claim
}

// look prepares to read what is recorded in the call's slot.
func (f *flow) look() *store.Claim {
	f.asks[0] = store.Claim{Look: true, Operation: store.Operation{
		Intent: f.intent.ID, Tenant: f.intent.Tenant, Slot: f.slot, Number: 1,
		Tool: f.tool.identity, ResourceKey: f.resource,
	}}
	return &f.asks[0]
}

// claim asks the ledger what was prepared last, unless the caller has gone: then nothing new is begun.
// A claim that is on its way doesn't end with the caller, since one that was cut
// off halfway would be nobody's. An answer that was lost is asked for again under
// the same owner, by which the ledger recognises its own row; for a caller that has
// gone, a claim of which nothing was written isn't made again.
func (f *flow) claim(caller context.Context) (*store.Claimed, error) {
	if caller.Err() != nil {
		return nil, errCallerGone
	}
	var claimed []store.Claimed
	err := f.x.persist(detached(caller), func(ctx context.Context) error {
		f.asked = time.Now()
		return f.x.timed(ctx, "claim", func(ctx context.Context) (err error) {
			claimed, err = f.x.ledger.Claim(ctx, f.asks[:]...)
			if err != nil && store.Unwritten(err) {
				err = leftBehind(caller, err)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	f.x.sent(f.asks[0].Announce)
	return &claimed[0], nil
}

// claimTogether makes the first claims of one model turn in one round trip. A
// call that can't take part, or a ledger that didn't answer, is left to go1.
func (x *Executor) claimTogether(ctx context.Context, flows []*flow) {
	var together []*flow
	var claims []store.Claim
	for _, f := range flows {
		if class := f.tool.contract.Class; class == Read || class == Transactional {
			continue
		}
		f.open(ctx)
		if f.prepare(f.span.ctx); f.early == nil && f.plain() && x.askForTwo(ctx, f.tool) == nil {
			together = append(together, f)
			claims = append(claims, *f.newClaim(1))
		}
	}
	if len(claims) < 2 || ctx.Err() != nil {
		return
	}
	asked := time.Now()
	var answers []store.Claimed
	err := x.timed(ctx, "claim", func(ctx context.Context) (err error) {
		answers, err = x.ledger.Claim(ctx, claims...)
		return err
	})
	if err != nil {
		return
	}
	for i, f := range together {
		c := &answers[i]
		f.asked, f.claimed = asked, c
		if c.Won && c.Operation.State == store.Running && len(c.Others) == 0 {
			f.start(f.span.ctx, &c.Operation)
		}
	}
}

// decide turns a ledger's answer into an outcome, or into the next claim.
func (f *flow) decide(ctx context.Context, c *store.Claimed) (Outcome, *store.Claim) {
	f.x.seen.set(f.slot, struct{}{})
	if c.Won {
		f.x.known.set(knownTool{f.intent.ID, f.tool.identity}, f.definition)
		f.x.signals.opened(c.Operation.Tool, c.Operation.State)
		return f.won(ctx, c)
	}
	switch c.Refused {
	case store.RefusedContract:
		if _, recorded := f.own(c.Slot); !recorded || f.nextNumber(c.Slot) {
			return f.x.signals.counted(f.bare(StatusHeld, reasonContractChanged)), nil
		}
	case store.RefusedHold:
		if len(c.Slot) == 0 || f.nextNumber(c.Slot) {
			return f.held(ctx, c.Others)
		}
	case store.RefusedUnique:
		return f.taken(ctx, c.Others), nil
	}
	if len(c.Slot) == 0 {
		return f.absent(ctx)
	}
	return f.meet(ctx, c)
}

// won goes on with a row that this call recorded.
func (f *flow) won(ctx context.Context, c *store.Claimed) (Outcome, *store.Claim) {
	switch c.Operation.State {
	case store.Running:
		f.x.supersede(ctx, c.Others)
		return f.launch(ctx, &c.Operation), nil
	case store.Retryable:
		return f.rerun(ctx, c.Operation)
	default:
		return f.same(ctx, c.Operation, nil)
	}
}

// absent decides a call that has no record and was only looked for.
func (f *flow) absent(ctx context.Context) (Outcome, *store.Claim) {
	if out, no := f.barred(); no {
		return out, nil
	}
	if f.call.Replaces != "" {
		return f.x.invalid(f.tool, &invalidError{reason: "replaces names an operation and this call has none: call it without"}), nil
	}
	if f.occurrence > 1 {
		return f.repeat(ctx)
	}
	return Outcome{}, f.newClaim(1)
}

// barred says whether the call can't claim anything: invalid before denied (R18).
func (f *flow) barred() (Outcome, bool) {
	if f.invalid != nil {
		return f.x.invalid(f.tool, f.invalid), true
	}
	if f.denied {
		return f.x.signals.counted(f.bare(StatusDenied, reasonDenied)), true
	}
	return Outcome{}, false
}

// repeat admits occurrence n when n-1 is settled; after "abandoned" only where
// the host asks (R9).
func (f *flow) repeat(ctx context.Context) (Outcome, *store.Claim) {
	before := f.look()
	before.Operation.Slot = f.node.slot(f.byIntent, f.tool.identity, f.occurrence-1)
	claimed, err := f.claim(ctx)
	if err != nil {
		return f.unavailable(err), nil
	}
	if len(claimed.Slot) == 0 {
		return f.x.invalid(f.tool, &invalidError{fields: []string{occurrenceParameter},
			reason: "the occurrence before this one was never called: call it without an occurrence, or with the next one in order"}), nil
	}
	last := claimed.Slot[len(claimed.Slot)-1]
	switch {
	case last.State == store.Running && !last.Expired() && f.await(ctx, last.ID):
		return Outcome{}, f.look()
	case !last.State.Settled(), last.State == store.Abandoned && !f.fromHost:
		out := f.bare(StatusHeld, reasonOccurrence)
		out.Related = []Related{f.x.relate(ctx, f.request, last)}
		return f.x.signals.counted(out), nil
	}
	return Outcome{}, f.newClaim(1, store.Guard{ID: last.ID, Version: last.Version})
}

// await waits until an operation may have changed: for a running one in this
// process until it ends, otherwise for a pause. It is false when the call's
// context or its time for waiting is over, and for an operation that the call
// runs in, which can't end before it (R28).
func (f *flow) await(ctx context.Context, id uuid.UUID) bool {
	left := time.Until(f.waitUntil)
	stack, _ := ctx.Value(operationKey).(*operationStack)
	if left <= 0 || ctx.Err() != nil || stack.holds(id) {
		return false
	}
	f.pause = min(max(2*f.pause, 5*time.Millisecond), 250*time.Millisecond)
	var ended <-chan struct{}
	pause := min(f.pause, left)
	if j := f.x.liveJob(id); j != nil {
		ended, pause = j.done, left
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	case <-f.x.closing:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}
