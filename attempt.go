package settle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// job is an operation at work in this process: its attempts, one after the
// other, and the writing down of how they end. It outlives the caller (R24).
type job struct {
	x     *Executor
	r     *request
	owner uuid.UUID
	// row is the operation as last written; asked is when the write that
	// started the attempt was sent.
	row   store.Operation
	asked time.Time
	// worker says that no caller waits: recovery resumes the operation.
	worker bool
	caller context.Context
	began  time.Time
	// approved says that the attempt uses up an approval or a person's grant,
	// which an attempt without effect gives back (R43).
	approved   bool
	duplicates int
	// toldNotDone says that the caller was told so though the ledger doesn't know (R37).
	toldNotDone bool
	pauses      pauses

	span *callSpan
	run  *running
	done chan struct{}
	out  Outcome
}

// ending is how an attempt ended, or that it didn't in time.
type ending struct {
	knownError
	value any
	// encoded is the result; stored is what the ledger keeps of it (R47).
	encoded, stored []byte
	resource        string
	flags           uint8
	// atWork says that the handler had not returned when its lease ended.
	atWork bool
	late   <-chan ending
	panic  bool
	// open is the outcome of the step that a composite waits for; spent says that a
	// step of it has used up its attempts.
	open  *Outcome
	spent bool
}

// start begins to run an operation that this call has claimed.
func (f *flow) start(ctx context.Context, row *store.Operation) {
	f.job = &job{x: f.x, r: f.request, owner: f.owner, row: *row, asked: f.asked, caller: ctx, span: f.span,
		began: time.Now(), approved: f.granted, duplicates: f.duplicates, done: make(chan struct{})}
	f.x.begin(f.job)
}

// launch runs an operation that this call has claimed, unless it runs already, and
// waits for its outcome, or for the caller to go.
func (f *flow) launch(ctx context.Context, row *store.Operation) Outcome {
	if f.job == nil {
		f.start(ctx, row)
	}
	j := f.job
	select {
	case <-j.done:
		return j.out
	case <-ctx.Done():
	}
	// An outcome that is there already is the better answer.
	select {
	case <-j.done:
		return j.out
	default:
		out := f.bare(StatusInProgress, reasonCallerGone)
		out.Operation, out.state = row.ID.String(), row.State
		return f.x.signals.counted(out)
	}
}

// begin starts a job's goroutine; Shutdown waits for it.
func (x *Executor) begin(j *job) {
	j.span.dispatch(j)
	x.mu.Lock()
	x.live[j.row.ID] = j
	x.mu.Unlock()
	x.work.Add(1)
	x.crew.run(j.work)
}

func (x *Executor) finish(j *job) {
	x.mu.Lock()
	if x.live[j.row.ID] == j {
		delete(x.live, j.row.ID)
	}
	x.mu.Unlock()
	close(j.done)
}

func (x *Executor) liveJob(id uuid.UUID) *job {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.live[id]
}

// work makes attempts until the operation rests, or until another goroutine goes
// on with the job.
func (j *job) work() {
	for j.attempt() {
	}
}

// attempt runs the handler once, and says whether there is one more attempt to
// make here.
func (j *job) attempt() (again bool) {
	j.run = &running{executor: j.x, binding: j.r.tool, key: j.r.operationKey(&j.row), reference: j.row.ID,
		attempt: j.row.Attempt, principal: j.r.principal, task: j.r.taskName, args: j.r.forTool()}
	ctx, span := j.x.signals.attempt(j.span.ctx, j)
	end, here := j.dispatch(ctx, span)
	return here && j.conclude(span, end)
}

// conclude records how an attempt ended. It says whether there is one more to
// make; without one the job is over.
func (j *job) conclude(span attemptSpan, end ending) (again bool) {
	span.end(end)
	if j.record(j.span.ctx, end) {
		return true
	}
	j.span.end(j.out)
	j.x.finish(j)
	j.x.work.Done()
	return false
}

// goOn takes the job over from a goroutine that can't conclude its attempt.
func (j *job) goOn(span attemptSpan, end ending) {
	if j.conclude(span, end) {
		j.work()
	}
}

// dispatch runs the handler inside its lease (R22). It is false where the job
// goes on elsewhere: on the timer's goroutine when the handler didn't return in
// time, on another one when the handler ended this one.
func (j *job) dispatch(ctx context.Context, span attemptSpan) (_ ending, here bool) {
	if j.row.Attempt > 1 || j.worker {
		if err := j.x.authorize(ctx, j.r, j.row.ID.String(), "attempt"); err != nil {
			return ending{knownError: knownError{err: errNotAuthorized, effect: effectRejected}}, true
		}
	}
	if j.r.tool.contract.Class == Composite {
		steps, err := j.x.stepsFor(ctx, j)
		if err != nil {
			return ending{knownError: knownError{err: err, effect: effectNotSent}}, true
		}
		j.run.steps = steps
	}
	budget, left := j.r.tool.contract.Timeout, j.left()
	renewed := budget > j.r.tool.contract.lease()-recordMargin
	if left <= 0 || renewed && left <= renewalNeeds {
		return ending{knownError: knownError{err: errLeaseSpent, effect: effectNotSent}}, true
	}
	if !renewed {
		budget = min(budget, left)
	}
	ctx, cancel := context.WithTimeout(j.handlerContext(ctx), budget)
	release := func() { cancel() }
	if renewed {
		stop := j.x.renewer.hold(store.Held{Operation: j.row.ID, Owner: j.owner}, time.Now().Add(left+recordMargin/2), cancel)
		release = func() { stop(); cancel() }
	}

	late := make(chan ending, 1)
	timer := time.AfterFunc(budget+recordMargin/4, func() {
		release()
		j.goOn(span, ending{knownError: knownError{err: context.DeadlineExceeded, effect: effectUnknown}, atWork: true, late: late})
	})
	ended := func(end ending) (inTime bool) {
		if !timer.Stop() {
			late <- end
			return false
		}
		release()
		return true
	}
	end := j.call(ctx, j.run, func(end ending) {
		if ended(end) {
			j.x.crew.run(func() { j.goOn(span, end) })
		}
	})
	end.atWork = errors.Is(end.err, errNotEnded)
	return end, ended(end)
}

// left is the time that an attempt which begins now has: what the ledger gave
// when it answered, by its own clock, less the time since it was asked and half
// of the margin, which is kept for the record. The other half is there for the
// claim to travel, so that a slow ledger doesn't cut into the contract's timeout.
func (j *job) left() time.Duration {
	return j.row.LeaseUntil.Sub(j.row.Read) - elapsed(j.asked) - recordMargin/2
}

var (
	errLeaseSpent    = errors.New("settle: the lease was nearly over before the attempt could begin; nothing was sent")
	errNotAuthorized = errors.New("settle: the principal may not do this any more")
)

// elapsed is the longer of monotonic and wall time since then: the monotonic
// clock stands still while the machine sleeps, the wall clock may be set.
func elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// handlerContext carries the caller's values. Its cancellation is carried only
// where the contract says that the handler may be interrupted (R24).
func (j *job) handlerContext(ctx context.Context) context.Context {
	if !j.r.tool.contract.Interruptible {
		ctx = detached(ctx)
	}
	if j.worker {
		ctx = WithTask(WithPrincipal(ctx, j.r.principal), j.r.taskName)
	}
	above, _ := ctx.Value(operationKey).(*operationStack)
	return context.WithValue(ctx, operationKey, &operationStack{running: j.run, above: above})
}

// call runs the handler. A panic, and a goroutine that ends without returning,
// are unknown outcomes; the stack goes to the log only (R27). Where the goroutine
// ends, call doesn't return and gone has the ending.
func (j *job) call(ctx context.Context, run *running, gone func(ending)) (end ending) {
	end = ending{knownError: knownError{err: errGone, effect: effectUnknown}}
	returned := false
	defer func() {
		p := recover()
		if p != nil {
			// Not the job's row: another goroutine may have gone on with the job.
			j.x.log.Error("settle: a handler panicked", "tool", j.r.tool.name, "operation", run.reference.String(),
				"panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			end = ending{knownError: knownError{err: &PanicError{p}, effect: effectUnknown}, panic: true}
		}
		if run.steps != nil && end.effect == effectUnknown {
			end = run.judgeComposite(end)
		}
		if p == nil && !returned {
			gone(end)
		}
	}()
	in, err := j.r.input(run.attempt)
	if err != nil { // it was decoded before: only a decoder that changes its mind comes here
		returned = true
		return ending{knownError: knownError{err: err, effect: effectNotSent}}
	}
	value, err := j.r.run(ctx, Op{run}, in)
	end = j.x.judge(j.r.tool, value, err)
	if run.steps != nil {
		end = run.judgeComposite(end)
	}
	returned = true
	return end
}

// judge says what a handler's return proves, and encodes its result.
func (x *Executor) judge(b *binding, value any, err error) ending {
	end := ending{knownError: b.contract.classify(err), value: value}
	if end.effect != effectHappened {
		return end
	}
	if end.knownError.resource != "" || err != nil {
		end.resource = end.knownError.resource
		return end
	}
	if raw, ok := value.(json.RawMessage); ok && (raw == nil || json.Valid(raw)) {
		end.encoded = raw
	} else if end.encoded, err = encode(value); err != nil {
		end.encoded, end.flags = nil, store.FlagUnencodable
	}
	end.resource = cut(b.resource(value, end.encoded), maxResource)
	stored, oversize := kept(end.encoded, x.settings.resultLimit)
	end.stored, end.flags = stored, end.flags|oversize
	return end
}

// maxResource bounds a resource id, in bytes.
const maxResource = 1024

// cut shortens s to n bytes, between two characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
