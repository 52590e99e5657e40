package settle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Report says what one pass of recovery did.
type Report struct {
	// Taken is how many operations were due and taken.
	Taken int
	// States counts the states in which they were left, by name.
	States map[string]int
	// Resumed counts the attempts that were started.
	Resumed int
	// Failed counts the operations that could not be worked on, because of the
	// ledger or because others took too long before them; they are due again later.
	Failed int
}

const (
	// recoveryLease is how long a pass has for what it took.
	recoveryLease = time.Minute
	// recoveryLimit bounds the operations of one pass.
	recoveryLimit = 256
	// recoveryPause is the time between passes of Run, when nothing was due.
	recoveryPause = time.Second
)

// Recover makes one bounded pass over the operations that are due: expired
// leases, lookups, resumptions, escalations, approvals that nobody answered
// (R32-R38). Tools are served in turn, a tool's operations at most as many at
// once as [WithConcurrency] says. Any number of processes may recover at the
// same time; each operation goes to one of them.
func (x *Executor) Recover(ctx context.Context) (Report, error) {
	report := Report{States: map[string]int{}}
	due, err := x.take(ctx, store.Pair{}, nil)
	if err != nil || len(due) == 0 {
		return report, err
	}
	defer x.work.Done()
	report.Taken = len(due)
	x.workOn(ctx, due, &report)
	return report, nil
}

// Run recovers until the context ends. It returns nil then; a ledger that
// doesn't answer is logged and asked again.
func (x *Executor) Run(ctx context.Context) error {
	if err := x.Declare(ctx); err != nil && ctx.Err() == nil {
		x.log.Warn("settle: the ledger doesn't know the tools' guidance yet", "error", err)
	}
	if len(x.settings.sinks) > 0 {
		var relay sync.WaitGroup
		for range relayPasses {
			relay.Go(func() { x.runRelay(ctx) })
		}
		defer relay.Wait()
	}
	x.runRecovery(ctx)
	return nil
}

// runRecovery makes pass after pass until the context ends or the executor is
// shut down. A pass waits for none before it: a tool that has as much to do as it
// may, and is slow, is left out of the next and delays no other (R36).
func (x *Executor) runRecovery(ctx context.Context) {
	var passes sync.WaitGroup
	defer passes.Wait()
	var after store.Pair
	for {
		due, err := x.take(ctx, after, x.lanes.full())
		if errors.Is(err, ErrShutdown) {
			return
		}
		if err != nil && ctx.Err() == nil {
			x.log.Warn("settle: recovery could not read the ledger", "error", err)
		}
		pause := recoveryPause
		if n := len(due); n > 0 {
			// A pass takes a few rows of each tool and tenant: there may be more. What
			// it took isn't due again for a while, whatever became of it.
			after, pause = store.Pair{Tool: due[n-1].Tool, Tenant: due[n-1].Tenant}, 0
			passes.Go(func() {
				defer x.work.Done()
				x.workOn(ctx, due, &Report{States: map[string]int{}})
			})
		} else if err == nil {
			after = store.Pair{}
		}
		if !x.sleepUntil(ctx, pause, x.lanes.freed) {
			return
		}
	}
}

// taken is due work that this process has for a while.
type taken struct {
	store.Entry
	lane *lane
	at   time.Time
}

// take takes what is due behind a tool and tenant, so that the pass after goes on
// there and nobody starves (R36). Where it returns something, the caller works on
// it and then calls x.work.Done.
func (x *Executor) take(ctx context.Context, after store.Pair, except []string) ([]taken, error) {
	if err := x.enter(); err != nil {
		return nil, err
	}
	entries, err := x.ledger.Take(ctx, store.Take{Lease: recoveryLease, Limit: recoveryLimit, Each: x.settings.concurrency,
		After: after, Except: except})
	if err != nil || len(entries) == 0 {
		x.work.Done()
		return nil, err
	}
	due := make([]taken, len(entries))
	for i, e := range entries {
		due[i] = taken{e, x.lanes.enter(e.Tool), time.Now()}
	}
	return due, nil
}

// workOn works on what was taken, each tool's within its limit, and isolates each
// operation: one bad row stops nothing else.
func (x *Executor) workOn(ctx context.Context, due []taken, report *Report) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, t := range due {
		group.Go(func() {
			defer x.lanes.leave(t.Tool)
			state, resumed, err := x.inTurn(ctx, t)
			if err != nil && ctx.Err() == nil {
				x.log.Warn("settle: an operation could not be recovered", "operation", t.ID.String(), "state", t.State.String(), "error", err)
			}
			mu.Lock()
			defer mu.Unlock()
			report.add(state, resumed, err)
		})
	}
	group.Wait()
}

func (r *Report) add(state store.State, resumed bool, err error) {
	if resumed {
		r.Resumed++
	}
	if err != nil {
		r.Failed++
		return
	}
	r.States[state.String()]++
}

// errLateTurn: whoever takes it next is its one recoverer (R36).
var errLateTurn = errors.New("its turn came when the time for which it was taken was nearly over: it is due again then")

// inTurn recovers an operation when its lane has a slot for it.
func (x *Executor) inTurn(ctx context.Context, t taken) (state store.State, resumed bool, err error) {
	select {
	case t.lane.slots <- struct{}{}:
		defer func() { <-t.lane.slots }()
	case <-ctx.Done():
		return t.State, false, ctx.Err()
	}
	if time.Since(t.at) > recoveryLease-lookupLease {
		return t.State, false, errLateTurn
	}
	return x.recoverOne(ctx, t.Entry)
}

// recoverOne brings one operation on. The binding is nil where this process
// doesn't know the tool: expiry and escalation need no handler (R38).
func (x *Executor) recoverOne(ctx context.Context, e store.Entry) (state store.State, resumed bool, err error) {
	b := x.byKey[e.Tool]
	row := e.Operation
	switch row.State {
	case store.Running, store.Unknown:
		if row, err = x.investigate(ctx, e, b); err != nil {
			return row.State, false, settledMeanwhile(err)
		}
	case store.Manual:
		row, err = x.lookAsked(ctx, e, b)
		return row.State, false, settledMeanwhile(err)
	case store.AwaitingApproval:
		row, err = x.apply(ctx, store.Change{Of: row, To: store.Failed, Kind: "approval_expired", Actor: "recovery", Reason: reasonApprovalExpired})
		return row.State, false, settledMeanwhile(err)
	}
	switch {
	case row.State == store.Unknown && x.workerMay(b, row) && b.mayRepeat(row):
		return x.resumeAsWorker(ctx, store.Entry{Operation: row, Of: e.Of}, b)
	case row.State == store.Retryable:
		return x.goOn(ctx, store.Entry{Operation: row, Of: e.Of}, b)
	}
	return row.State, false, settledMeanwhile(err)
}

// goOn resumes an operation that is known to have had no effect, gives it up, or
// leaves it to whoever may resume it (R37).
func (x *Executor) goOn(ctx context.Context, e store.Entry, b *binding) (state store.State, resumed bool, err error) {
	left, err := x.untilStale(ctx, e.Operation, b)
	if err != nil {
		return e.State, false, err
	}
	reason := givenUp(e.Operation, b, left)
	switch {
	case !e.Told && reason == "" && x.workerMay(b, e.Operation):
		return x.resumeAsWorker(ctx, e, b)
	case b == nil && reason == "" && e.Reason != reasonThrottled:
		// It stays due for a worker that has the tool: what this one wrote down would
		// put that one off.
		x.lanes.leaveToOthers(e.Tool)
		return e.State, false, nil
	case b == nil:
		left = 0
	}
	row, err := x.rest(ctx, e.Operation, reason, left)
	return row.State, false, settledMeanwhile(err)
}

// settledMeanwhile passes over a row that somebody else moved: that is progress.
func settledMeanwhile(err error) error {
	var stale *store.StaleError
	if errors.As(err, &stale) {
		return nil
	}
	return err
}

// workerMay says whether a worker goes on without a caller (R37): it has the
// handler and all of the arguments, and the class promises that it is safe. An
// operation that was claimed under another class is left to people.
func (x *Executor) workerMay(b *binding, row store.Operation) bool {
	switch {
	case b == nil || b.do == nil || b.hasSecrets():
		return false
	case row.State == store.Retryable && row.Granted:
		// A person has allowed exactly this effect (R40, R43).
		return true
	}
	return b.repeats() && b.effective(row) != Unsafe && (!b.contract.Approval || row.State == store.Unknown)
}

// lookAsked looks for evidence on a case because its operator asked for it
// (R42). A worker that doesn't know the tool leaves it due for one that does,
// and the case as it is.
func (x *Executor) lookAsked(ctx context.Context, e store.Entry, b *binding) (store.Operation, error) {
	if b == nil {
		return e.Operation, nil
	}
	return x.lookForPerson(ctx, e, b, "recovery")
}

// rest settles an operation without effect that won't run any more, or leaves
// it to the next call (R37).
func (x *Executor) rest(ctx context.Context, row store.Operation, reason string, left time.Duration) (store.Operation, error) {
	if row.Told && reason == reasonExhausted {
		reason = ""
	}
	why := row.Reason
	if why == reasonThrottled {
		// Its wait is over: the next look is no time that a caller has to wait for (R28).
		why = reasonNotSent
	}
	if left += time.Second; left <= 0 {
		left = day // a composite that only its caller can go on with
	}
	c := store.Change{Of: row, To: store.Retryable, Kind: "checked", Actor: "recovery", Reason: why, Told: row.Told, Granted: row.Granted,
		Due: store.DueIn(max(left, resumeAfter))}
	if reason != "" {
		c = store.Change{Of: row, To: store.Failed, Kind: "given_up", Actor: "recovery", Reason: reason}
	}
	return x.apply(ctx, c)
}

// resumeAsWorker starts an attempt as the stored principal, with the stored
// arguments, authorised anew (R37), and waits for its end.
func (x *Executor) resumeAsWorker(ctx context.Context, e store.Entry, b *binding) (store.State, bool, error) {
	in, err := b.decode(e.Arguments)
	if err != nil {
		row, err := x.apply(ctx, store.Change{Of: e.Operation, To: store.Manual, Kind: "escalated", Actor: "recovery", Reason: reasonUndecodable, Doubts: e.Doubts})
		return row.State, false, settledMeanwhile(err)
	}
	owner, span := uuid.New(), x.signals.call(ctx, b)
	ctx = span.ctx
	change := x.startChange(ctx, e.Operation, b, owner, uuid.Nil, "")
	// Nobody in this run is told of it: it holds as the run's that began it (R30).
	change.Actor, change.Start.Run = "worker", e.Run
	if b.contract.Class == Transactional {
		return x.transactAsWorker(ctx, e, in, b, span, change)
	}
	asked := time.Now()
	row, err := x.apply(ctx, change)
	var blocked *store.BlockedError
	if err != nil {
		span.answered(Outcome{Status: StatusInProgress})
	}
	if errors.As(err, &blocked) {
		return x.standBack(ctx, e.Operation, b, blocked)
	}
	if err != nil {
		return e.State, false, settledMeanwhile(err)
	}
	j := &job{x: x, owner: owner, row: row, asked: asked, worker: true, caller: ctx, span: span, began: time.Now(), approved: e.Granted,
		done: make(chan struct{}), r: recordedRequest(b, e)}
	j.r.in, j.r.run = in, b.do
	x.begin(j)
	<-j.done
	if e.Source == store.FromOriginal {
		x.signals.compensated(b, j.out)
	}
	return j.row.State, true, nil
}

// transactAsWorker runs an operation of a Transactional tool that a person has
// approved.
func (x *Executor) transactAsWorker(ctx context.Context, e store.Entry, in any, b *binding, span *callSpan, change store.Change) (store.State, bool, error) {
	l := newLocal(&job{x: x, r: recordedRequest(b, e), worker: true, caller: ctx, span: span, approved: true})
	l.r.in, l.r.run = in, b.do
	l.start(change)
	x.work.Add(1)
	x.crew.run(l.carry)
	<-l.done
	if l.out.Status == "" {
		span.answered(Outcome{Status: StatusInProgress})
	}
	return l.row.State, l.out.Status != "", settledMeanwhile(l.err)
}

// standBack leaves an idempotent write that can't start: overtaken for good, or
// behind older ones that can still take effect (R31).
func (x *Executor) standBack(ctx context.Context, row store.Operation, b *binding, blocked *store.BlockedError) (store.State, bool, error) {
	if blocked.Overtaken {
		next, err := x.giveWay(ctx, row, b)
		return next.State, false, settledMeanwhile(err)
	}
	next, err := x.apply(ctx, store.Change{Of: row, To: row.State, Kind: "checked", Actor: "recovery", Reason: reasonWaiting,
		Doubts: row.Doubts, Told: row.Told, Granted: row.Granted, Due: store.DueIn(rerunIn(row))})
	return next.State, false, settledMeanwhile(err)
}

// giveWay settles an idempotent write that a newer one overtook (R31).
func (x *Executor) giveWay(ctx context.Context, row store.Operation, b *binding) (store.Operation, error) {
	c, yields := giving(row, b)
	if !yields {
		return row, nil
	}
	return x.apply(ctx, c)
}

// giving is the move of a write that was overtaken: it settles once none of its
// attempts can still take effect. It is false where only time helps.
func giving(row store.Operation, b *binding) (store.Change, bool) {
	c := store.Change{Of: row, To: store.Superseded, Kind: "superseded", Actor: "recovery", Reason: reasonOvertaken}
	visibility := row.Visibility
	if b != nil {
		visibility = b.contract.VisibilityDelay
	}
	switch {
	case row.State == store.AwaitingApproval:
		c.To = store.Failed
	case (row.Doubts > 0 || row.State == store.Running) && row.Read.Before(row.MomentUnder(visibility)):
		c.To, c.Kind, c.Doubts, c.Due = store.Unknown, "checked", row.Doubts, store.Due{Set: true, AtMoment: true}
		c.Visibility = visibility // or it would be due at the moment of the shorter delay, at once
		return c, row.State == store.Unknown
	}
	return c, true
}

// supersede settles the older writes that a started one overtakes. What it
// can't write now, recovery finds.
func (x *Executor) supersede(ctx context.Context, older []store.Entry) {
	for _, e := range older {
		if e.State.Settled() || e.State == store.Manual && e.Taken != "" {
			continue
		}
		if _, err := x.giveWay(ctx, e.Operation, x.byKey[e.Tool]); err != nil {
			x.log.Debug("settle: an overtaken write could not be settled now", "operation", e.ID.String(), "error", err)
		}
	}
}
