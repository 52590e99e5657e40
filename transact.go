package settle

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// ErrInTransaction says that a handler of a Transactional tool called another
// tool. Its transaction holds locks and can be rolled back, which a call that
// was made meanwhile couldn't be (R53).
var ErrInTransaction = errors.New("settle: a handler inside the ledger's transaction can't call a tool: let it return first, or make both the steps of a Composite (R53)")

// local is an operation of a Transactional tool on its way through one
// transaction of the ledger's database: the row that makes it an operation, what
// the handler writes, and the outcome commit together or not at all (R53). There
// is nothing for a lease to protect and nothing for recovery to find.
type local struct {
	*job
	ledger store.Transactor
	// enter brings the operation's row into the transaction, under the owner that
	// it is given. It is false where there is nothing to run.
	enter func(ctx context.Context, t store.Transaction, owner uuid.UUID) (row store.Operation, entered bool, err error)
	// rest records how it ended without an effect, unless another call was
	// recorded in its place meanwhile; recorded says that there is something to
	// record it on though the handler didn't refuse for good.
	rest     func(ctx context.Context, end ending) (done bool, err error)
	recorded bool
	// owners are those of the transactions so far, by which one is recognised
	// whose commit wasn't answered.
	owners []uuid.UUID
	// open says that nobody knows whether the last transaction was committed.
	open bool
	end  ending
	err  error

	mu sync.Mutex
	// entered says that the handler was, gone that the caller had left before.
	entered, gone bool
}

// faults bounds how often a transaction is made again because the ledger asks for
// it or its commit wasn't answered.
const faults = 5

// errUndone rolls back what a handler did that didn't bring it to its end.
var errUndone = errors.New("settle: the handler's transaction is rolled back")

// errFedOnce ends an attempt whose transaction was lost and that can't be run
// again within the call.
var errFedOnce = errors.New("settle: the transaction was broken off, and an attempt that was begun can't be run again by itself")

// transact makes the call's claim, runs its handler and records the outcome in
// one transaction, and waits for its end or for the caller to go.
func (f *flow) transact(ctx context.Context, claim *store.Claim) (Outcome, *store.Claim) {
	var claimed store.Claimed
	l := f.newLocal(ctx)
	l.enter = func(ctx context.Context, t store.Transaction, owner uuid.UUID) (row store.Operation, entered bool, err error) {
		c := *claim
		c.Operation.ID, c.Operation.Owner = newID(), owner
		if claimed, err = t.Claim(ctx, c); err != nil || claimed.Won {
			return claimed.Operation, claimed.Won, err
		}
		if n := slices.IndexFunc(claimed.Slot, l.committed); n >= 0 {
			l.row = claimed.Slot[n]
		}
		return row, false, nil
	}
	l.rest = func(ctx context.Context, end ending) (done bool, err error) {
		claimed, err = l.recordRest(ctx, *claim, end)
		return claimed.Won, err
	}
	out, left := f.accompany(ctx, l)
	switch {
	case !left && l.out.Status == StatusCompleted:
		f.x.seen.set(f.slot, struct{}{})
		f.x.known.set(knownTool{f.intent.ID, f.tool.identity}, f.definition)
		return out, nil
	case left || l.out.Status != "":
		return out, nil
	}
	if l.err != nil {
		return f.unavailable(l.err), nil
	}
	return f.decide(ctx, &claimed)
}

// transactGranted runs an operation that a person has approved (R43).
func (f *flow) transactGranted(ctx context.Context, change store.Change) (Outcome, *store.Claim) {
	l := f.newLocal(ctx)
	l.start(change)
	if out, left := f.accompany(ctx, l); left || l.out.Status != "" {
		return out, nil
	}
	return f.again(l.err)
}

func (f *flow) newLocal(ctx context.Context) *local {
	return newLocal(&job{x: f.x, r: f.request, caller: ctx, span: f.span, approved: f.granted})
}

func newLocal(j *job) *local {
	j.began, j.done = time.Now(), make(chan struct{})
	return &local{ledger: j.x.ledger.(store.Transactor), job: j}
}

// accompany runs l beside the caller, who may go. Left says that it has.
func (f *flow) accompany(ctx context.Context, l *local) (out Outcome, left bool) {
	if ctx.Err() != nil {
		return f.unavailable(errCallerGone), true
	}
	f.x.work.Add(1)
	f.x.crew.run(l.carry)
	select {
	case <-l.done:
		return l.out, false
	case <-ctx.Done():
	}
	if !l.leave() {
		return f.unavailable(errCallerGone), true
	}
	out = f.bare(StatusInProgress, reasonCallerGone)
	return f.x.signals.counted(out), true
}

// leave takes the caller out: where the handler isn't entered yet, it never is.
func (l *local) leave() (entered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = !l.entered
	return l.entered
}

// start makes l enter by the start of an attempt of a row that is there.
func (l *local) start(change store.Change) {
	before := change.Of
	l.row, l.recorded = before, true
	l.enter = func(ctx context.Context, t store.Transaction, owner uuid.UUID) (store.Operation, bool, error) {
		c, start := change, *change.Start
		start.Owner, c.Start = owner, &start
		row, err := t.Apply(ctx, c)
		var stale *store.StaleError
		if errors.As(err, &stale) && l.committed(stale.Current) {
			l.row = stale.Current
			return row, false, nil
		}
		return row, err == nil, err
	}
	l.rest = func(ctx context.Context, end ending) (done bool, err error) {
		l.row = before
		var c store.Change
		l.change(&c, end)
		c.Returned = false // no attempt of this row has begun
		l.row, err = l.x.apply(ctx, c)
		return true, err
	}
}

// committed recognises a transaction of this call whose commit wasn't answered.
func (l *local) committed(o store.Operation) bool {
	return o.State == store.Completed && slices.Contains(l.owners, o.Owner)
}

// carry takes the operation to its end. What it leaves behind is out, or err where
// the ledger refused, or neither where a call was recorded before or meanwhile.
func (l *local) carry() {
	defer l.x.work.Done()
	defer close(l.done)
	ctx := l.span.ctx
	if !l.r.tool.contract.Interruptible {
		ctx = detached(ctx)
	}
	l.err = l.toEnd(ctx)
	if l.entered {
		l.span.end(Outcome{Status: cmp.Or(l.out.Status, StatusNotDone), Reason: l.out.Reason})
	}
}

func (l *local) toEnd(ctx context.Context) error {
	met := 0
	for try := 1; ; try++ {
		if (try > 1 || l.worker) && l.denied(ctx) {
			l.end = ending{knownError: knownError{err: errNotAuthorized, effect: effectRejected}}
			return l.undone(ctx)
		}
		sent, err := l.once(ctx, try)
		switch {
		case err == nil:
			if l.committed(l.row) {
				l.out = l.outcome(l.end)
			}
			return nil
		case errors.Is(err, errUndone), sent && store.Unwritten(err) && !repeatable(err):
			if !errors.Is(err, errUndone) { // the database refused the commit: a constraint that is checked there
				l.end = ending{knownError: knownError{err: err, effect: effectNotSent}}
			}
			if wait, ok := l.mayRetry(try); !ok || !l.x.sleep(ctx, wait) {
				return l.undone(ctx)
			}
		default:
			if met++; met == faults || !repeatable(err) || !l.x.sleep(ctx, l.pauses.next()) {
				return l.brokenOff(err)
			}
		}
	}
}

// denied asks the host before an attempt that the call's own question doesn't
// cover (R46): one that is made again, or a worker's.
func (l *local) denied(ctx context.Context) bool {
	operation := ""
	if l.recorded {
		operation = l.row.ID.String()
	}
	return l.x.authorize(ctx, l.r, operation, "attempt") != nil
}

// brokenOff ends an operation whose ledger failed. What was sent to be committed
// may stand; what wasn't is gone.
func (l *local) brokenOff(err error) error {
	switch {
	case l.open:
		l.out = l.unanswered()
	case l.entered && !movedOn(err):
		l.end = ending{knownError: knownError{err: err, effect: effectNotSent}}
		l.out = l.notDone()
	default:
		return err
	}
	return nil
}

// movedOn says that the operation was changed by somebody else meanwhile.
func movedOn(err error) bool {
	var stale *store.StaleError
	return errors.As(err, &stale)
}

// once is one transaction. Sent says that its commit was.
func (l *local) once(ctx context.Context, try int) (sent bool, err error) {
	owner := uuid.New()
	l.owners = append(l.owners, owner)
	ctx, cancel := context.WithTimeout(ctx, l.r.tool.contract.Timeout+2*ledgerTimeout)
	defer cancel()
	inside := false
	err = l.ledger.Transact(ctx, func(ctx context.Context, t store.Transaction) error {
		row, entered, err := l.enter(ctx, t, owner)
		if err != nil || !entered {
			return err
		}
		l.open = false // what was open before doesn't stand, or this couldn't be entered
		if l.entered && l.r.once {
			l.end = ending{knownError: knownError{err: errFedOnce, effect: effectNotSent}}
			return errUndone
		}
		if !l.begin(row) {
			return errCallerGone
		}
		inside = true
		if l.end = l.handle(ctx, t, try); l.end.effect != effectHappened {
			return errUndone
		}
		var c store.Change
		l.change(&c, l.end)
		sent = true
		return l.commit(ctx, t, c)
	})
	l.open = l.open || inside && err != nil && !errors.Is(err, errUndone) && !store.Unwritten(err)
	return sent, err
}

// begin says that the handler is entered with the row, unless the caller has gone.
func (l *local) begin(row store.Operation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return false
	}
	l.row = row
	if !l.entered {
		l.span.dispatch(l.job)
	}
	l.entered = true
	return true
}

// handle runs the handler inside the transaction. One that doesn't return in
// time has its transaction taken away, so that nothing of it can stand.
func (l *local) handle(ctx context.Context, t store.Transaction, try int) ending {
	l.run = &running{executor: l.x, binding: l.r.tool, key: l.r.operationKey(&l.row), reference: l.row.ID,
		attempt: try, principal: l.r.principal, task: l.r.taskName, args: l.r.forTool()}
	run, budget := l.run, l.r.tool.contract.Timeout
	ctx, span := l.x.signals.attempt(ctx, l.job)
	ctx, cancel := context.WithTimeout(l.handlerContext(ctx), budget)
	defer cancel()
	ended := make(chan ending, 1)
	l.x.crew.run(func() { ended <- l.call(ctx, run, func(end ending) { ended <- end }) })
	overdue := time.NewTimer(budget + recordMargin)
	defer overdue.Stop()
	var end ending
	select {
	case end = <-ended:
	case <-overdue.C:
		t.Abandon()
		end = ending{knownError: knownError{err: context.DeadlineExceeded, effect: effectUnknown}, atWork: true}
	}
	span.end(end)
	return end
}

// mayRetry says whether the handler is entered again: where it says that it may
// be, or the database broke its transaction off in favour of another one.
func (l *local) mayRetry(try int) (time.Duration, bool) {
	var state interface{ SQLState() string }
	broken := errors.As(l.end.err, &state) && (state.SQLState() == "40001" || state.SQLState() == "40P01")
	if l.end.effect != effectNotSent && !broken || l.r.once || try >= l.r.tool.contract.Attempts {
		return 0, false
	}
	wait := max(l.pauses.next(), l.end.wait)
	return wait, time.Since(l.began)+wait <= l.r.tool.contract.lease()
}

// undone ends an operation whose transaction was rolled back: nothing of it
// stands, and its key is free unless the handler refused for good or makes a case
// of it (R50).
func (l *local) undone(ctx context.Context) error {
	if l.end.effect == effectUnknown {
		l.end.effect = effectNotSent // whatever its error says
	}
	if l.end.effect != effectRejected && l.end.effect != effectCase && !l.recorded {
		l.out = l.notDone()
		return nil
	}
	var done bool
	err := l.x.persist(ctx, func(ctx context.Context) (err error) {
		done, err = l.rest(ctx, l.end)
		return err
	})
	switch {
	case movedOn(err):
		return err
	case err != nil && l.open:
		l.out = l.unanswered()
	case err != nil:
		l.x.log.Warn("settle: an operation without effect could not be written down", "operation", l.row.ID.String(), "error", err)
		l.out = l.notDone()
	case done:
		l.out = l.outcome(l.end)
	}
	return nil
}

// notDone is the outcome of a call that left nothing behind.
func (l *local) notDone() Outcome {
	out := Outcome{Status: StatusNotDone, Tool: l.r.tool.name, Reason: reasonRolledBack, err: l.end.err, repeatable: l.r.tool.contract.Repeatable}
	switch {
	case l.end.effect == effectInterrupted:
		out.Reason = reasonInterrupted
	case l.end.wait > 0:
		out.Reason, out.NotBefore, out.wait = reasonThrottled, time.Now().Add(l.end.wait).UTC(), l.end.wait
	}
	return l.x.signals.counted(out)
}

// unanswered is the outcome of a commit that nobody has answered for: the same
// call, made again, reads the key back or carries it out.
func (l *local) unanswered() Outcome {
	return l.x.signals.counted(Outcome{Status: StatusUnknown, Tool: l.r.tool.name, Reason: reasonUnanswered})
}

// recordRest records a claim as it ended without an effect, in a transaction of
// its own. What another call has recorded in its place meanwhile is the answer
// then (R17).
func (l *local) recordRest(ctx context.Context, c store.Claim, end ending) (claimed store.Claimed, err error) {
	err = l.ledger.Transact(ctx, func(ctx context.Context, t store.Transaction) error {
		if claimed, err = t.Claim(ctx, c); err != nil || !claimed.Won {
			return err
		}
		if l.row = claimed.Operation; l.row.State != store.Running {
			return nil // by a commit that wasn't answered
		}
		var change store.Change
		l.change(&change, end)
		return l.commit(ctx, t, change)
	})
	return claimed, err
}

// commit records the outcome and ends the transaction. The row is as it was where
// that failed: a completed one would be taken for what stands.
func (l *local) commit(ctx context.Context, t store.Transaction, c store.Change) error {
	l.x.announce(&c)
	row, err := t.Commit(ctx, c)
	if err == nil {
		l.row = row
		l.x.sent(c.Announce)
	}
	return err
}
