package idempotency

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/retryafter"
)

// protected is a route's handler behind the ledger.
type protected struct {
	*Guard
	route, method string
	handler       http.Handler
	// transactional says that the handler writes in the ledger's transaction.
	transactional bool
}

// ServeHTTP implements [http.Handler].
func (p *protected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != p.method {
		w.Header().Set("Allow", p.method)
		p.refuse(w, p.problem(methodNotAllowed))
		return
	}
	ctx, refused := p.scope(r)
	if refused != nil {
		p.refuse(w, *refused)
		return
	}
	key, err := keyOf(r.Header)
	if err != nil {
		p.refuse(w, keyProblem(p.problem, err))
		return
	}
	body, err := readBody(r, p.options.MaxBody)
	if err != nil {
		p.refuse(w, p.bodyProblem(err))
		return
	}
	defer body.close()
	args, err := arguments(r, key, body)
	if err != nil {
		p.refuse(w, p.problem(bodyUnreadable))
		return
	}
	attempt, out, err := p.executor.Begin(ctx, settle.Call{Tool: p.route, Node: key, Args: args, Wait: p.options.Wait, Redelivered: true})
	switch {
	case err != nil:
		p.refuse(w, p.mistake(err))
	case attempt == nil:
		p.answer(w, out)
	default:
		p.run(w, r, body, attempt)
	}
}

// scope is the request's context with its principal and task, or the answer to
// a caller who may not ask.
func (g *Guard) scope(r *http.Request) (context.Context, *problem) {
	principal, err := g.options.Caller(r)
	if err == nil {
		return settle.WithTask(settle.WithPrincipal(r.Context(), principal), g.options.Task(r)), nil
	}
	kind := unauthenticated
	if errors.Is(err, ErrForbidden) {
		kind = denied
	}
	refused := problemOf(kind)
	return nil, &refused
}

// mistake answers what only the host can cause, or a shutdown.
func (g *Guard) mistake(err error) problem {
	if errors.Is(err, settle.ErrShutdown) {
		return problemOf(unavailable)
	}
	g.options.Log.Error("idempotency: a request can't be guarded; nothing was done", "error", err)
	return problemOf(misconfigured)
}

// run runs the handler for a begun attempt, on this goroutine, and ends the
// attempt whatever the handler does.
func (p *protected) run(w http.ResponseWriter, r *http.Request, body *content, attempt *settle.Attempt) {
	said := &mark{}
	in := r.Clone(context.WithValue(attempt.Context, markKey{}, said))
	in.Body, in.ContentLength, in.TransferEncoding = body.open(), body.size, nil
	rec := newRecorder(w, p.options.MaxResponse, attempt.Op().Reference())
	rec.held = p.transactional
	returned := false
	defer func() {
		if in.MultipartForm != nil && in.MultipartForm != r.MultipartForm {
			in.MultipartForm.RemoveAll() //nolint:errcheck // the server removes only its own
		}
		if !returned {
			p.broken(rec, attempt, recover())
		}
	}()
	p.handler.ServeHTTP(rec, in)
	returned = true
	rec.finish()
	p.end(rec, attempt, said)
}

// errGone is what became of a handler that didn't return.
var errGone = errors.New("idempotency: the handler did not return")

// broken ends the attempt of a handler that panicked, or ended its goroutine:
// nobody knows how far it got (R27).
func (p *protected) broken(rec *recorder, attempt *settle.Attempt, panicked any) {
	err := errGone
	if panicked != nil {
		err = &settle.PanicError{Value: panicked}
	}
	out := attempt.End(nil, err)
	if panicked == http.ErrAbortHandler { //nolint:errorlint,err113 // as net/http compares it
		panic(http.ErrAbortHandler)
	}
	if panicked != nil {
		p.options.Log.Error("idempotency: a handler panicked", "operation", out.Operation, "panic", fmt.Sprintf("%T", panicked), "stack", string(debug.Stack()))
	}
	if rec.passing {
		panic(http.ErrAbortHandler) // the answer has begun: it must not look whole
	}
	switch out.Status {
	case settle.StatusUnknown, settle.StatusManual, settle.StatusInProgress:
		broke := p.problem(handlerBroke)
		broke.of(out)
		p.stamp(rec.w.Header(), out)
		p.refuse(rec.w, broke)
	default: // evidence was found at once
		p.answer(rec.w, out)
	}
}

// errNoEffect and errUnclear are what an answer says of the attempt it ends.
var (
	errNoEffect = errors.New("idempotency: the handler says that nothing happened")
	errUnclear  = errors.New("idempotency: the handler's answer doesn't say whether anything happened")
)

// end records what the handler's answer says, and sends it.
func (p *protected) end(rec *recorder, attempt *settle.Attempt, said *mark) {
	nothing, resource := said.said()
	var out settle.Outcome
	status := ""
	switch {
	case nothing || slices.Contains(p.options.Free, rec.status):
		out = attempt.End(nil, settle.NotSent(errNoEffect, settle.RetryAfter(retryAfter(rec.sent))))
		status = string(settle.StatusNotDone)
	case final(rec.status):
		out = attempt.End(rec.response(p.headers, resource), nil)
		if p.transactional && out.Status != settle.StatusCompleted {
			p.answer(rec.w, out) // what the handler answers for doesn't stand, or nobody knows
			return
		}
		status = statusOfFinal(out)
	default:
		out = attempt.End(nil, errUnclear)
		status = string(out.Status)
		if out.Status == settle.StatusCompleted && !rec.passing {
			p.answer(rec.w, out) // evidence was found at once
			return
		}
	}
	if !rec.passing {
		rec.send(status)
	}
}

// statusOfFinal is the code beside a final answer. Where the ledger couldn't take
// it, or not in time, it is returned as it is and not called settled (R24).
func statusOfFinal(out settle.Outcome) string {
	if out.Status == settle.StatusCompleted && out.Recorded {
		return string(out.Status)
	}
	return "not_recorded"
}

// final says whether a status is the handler's last word: that it did, or
// refused for good, what it was asked to do. What it sends because it couldn't
// wait, or broke, doesn't say whether anything happened (R27).
func final(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 200 && status < 500
}

// retryAfter is the wait that an answer asks for, 0 without one.
func retryAfter(h http.Header) time.Duration {
	wait, _ := retryafter.Wait(h.Get("Retry-After"), time.Now(), retryafter.Longest)
	return wait
}

// stamp puts on an answer what it is: a replay, of which operation.
func (p *protected) stamp(h http.Header, out settle.Outcome) {
	if out.Operation != "" {
		h.Set(HeaderOperation, out.Operation)
	}
	h.Set(HeaderStatus, string(out.Status))
	if out.Replayed {
		h.Set(HeaderReplayed, "true")
	}
	if out.CorrectedBy != "" {
		h.Set(HeaderCorrected, out.CorrectedBy)
	}
}

// answer answers a request for which nothing was executed.
func (p *protected) answer(w http.ResponseWriter, out settle.Outcome) {
	if out.Status == settle.StatusCompleted && out.Reason != string(settle.StatusDenied) {
		p.replay(w, out)
		return
	}
	answer := p.problem(p.kindOf(out))
	answer.of(out)
	p.stamp(w.Header(), out)
	p.refuse(w, answer)
}
