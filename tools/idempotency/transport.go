package idempotency

import (
	"bytes"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
)

// Transport is the client's end: an [http.RoundTripper] that gives each request
// with an effect (POST, PATCH) a key before it is first sent, keeps it over
// retries and redirects, and is the one layer that retries. Use it for services
// that honour the header: to others a retry is a second request.
//
//	client := &http.Client{Transport: &idempotency.Transport{}}
//
// The key is the request's Idempotency-Key where it has one ([SetKey]); inside a
// tool's handler it is the operation's own ([settle.KeyFrom]), and a single send
// is made, since the executor retries (R28); otherwise it is a new random one.
// It stays on the request's headers, so that whoever sends the same
// *[http.Request] again asks about the first effect instead of making a second.
// In this one thing a Transport departs from what [http.RoundTripper] asks for.
// A new purpose takes a new request. Where the URL has a user and a password,
// http.Client sends headers of its own, and the key doesn't stay: use [SetKey].
//
// It sends again, with the same key, after an error of the connection, 409 with
// Retry-After (in flight), 408, 425, 429, and 5xx unless the answer says that the
// outcome is with the service now; after Retry-After, or a growing pause with
// full jitter. It doesn't wait beyond the context's deadline or MaxWait: then
// the answer is returned as it came. net/http on its own would repeat a request
// with this header; through a Transport it doesn't.
type Transport struct {
	// Base sends. Default: [http.DefaultTransport].
	Base http.RoundTripper
	// NewKey makes keys. Default: random UUIDs.
	NewKey func() string
	// Bare sends new keys without quotes, for services that don't read RFC 9651.
	Bare bool
	// Attempts bounds the sends of a request. Default: 5.
	Attempts int
	// MaxWait bounds one pause. Default: 30 s.
	MaxWait time.Duration
	// MaxBody bounds a body that is kept for another send, in bytes, where the
	// request has no GetBody. A longer one is sent once. Default: 1 MiB.
	MaxBody int64
}

const (
	defaultAttempts = 5
	defaultMaxWait  = 30 * time.Second
	firstPause      = 100 * time.Millisecond
	longestPause    = 5 * time.Second
)

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	attempts, err := t.setKey(r)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	if attempts == 0 {
		return t.base().RoundTrip(r)
	}
	body, repeatable, err := t.bodies(r)
	if err != nil {
		return nil, err
	}
	if !repeatable {
		attempts = 1
	}
	for try := 1; ; try++ {
		out, err := outgoing(r, body)
		if err != nil {
			return nil, err
		}
		resp, err := t.base().RoundTrip(out)
		wait, again := t.again(r.Context(), try, resp, err)
		if !again || try >= attempts {
			return resp, err
		}
		until := time.Now().Add(wait)
		if resp != nil {
			drain(resp, wait)
		}
		if err := pause(r.Context(), time.Until(until)); err != nil {
			return nil, err
		}
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}

// setKey finds or makes the request's key, and says how often it may be sent: 0
// for a request that needs no key.
func (t *Transport) setKey(r *http.Request) (attempts int, err error) {
	attempts = t.Attempts
	if attempts <= 0 {
		attempts = defaultAttempts
	}
	if len(r.Header.Values(Header)) > 0 {
		return attempts, nil
	}
	if r.Method != http.MethodPost && r.Method != http.MethodPatch {
		return 0, nil
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if key, ok := redirected(r); ok {
		r.Header.Set(Header, key)
		return attempts, nil
	}
	if key, ok := settle.KeyFrom(r.Context()); ok {
		return 1, t.put(r.Header, key)
	}
	if t.NewKey != nil {
		return attempts, t.put(r.Header, t.NewKey())
	}
	return attempts, t.put(r.Header, uuid.NewString())
}

func (t *Transport) put(h http.Header, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if !t.Bare {
		key = quote(key)
	}
	h.Set(Header, key)
	return nil
}

// redirected is the key of the request that was redirected to this one with its
// method and body: http.Client copies the headers as they were before the first
// send.
func redirected(r *http.Request) (string, bool) {
	if r.Response == nil || r.Response.Request == nil || r.Response.Request.Method != r.Method {
		return "", false
	}
	for _, name := range []string{Header, emptyHeader} {
		if values := r.Response.Request.Header[name]; len(values) == 1 {
			return values[0], true
		}
	}
	return "", false
}

// bodies returns what opens the request's body anew for each send, and whether
// it can more than once.
func (t *Transport) bodies(r *http.Request) (open func() (io.ReadCloser, error), repeatable bool, err error) {
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		return nil, true, nil
	case r.GetBody != nil:
		closeBody(r)
		return r.GetBody, true, nil
	}
	limit := t.MaxBody
	if limit <= 0 {
		limit = defaultMaxBody
	}
	limit = min(limit, math.MaxInt64-1) // one more is read, to see that it is too long
	kept, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		closeBody(r)
		return nil, false, err
	}
	if int64(len(kept)) > limit {
		once := struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(kept), r.Body), r.Body}
		return func() (io.ReadCloser, error) { return once, nil }, false, nil
	}
	closeBody(r)
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(kept)), nil }, true, nil
}

// emptyHeader is Header as it is sent with an empty body.
const emptyHeader = "idempotency-key"

// outgoing is the request as it is sent. net/http repeats a request on its own
// where it finds the header's canonical name and can have the body again:
// without GetBody it can't, and where there is no body the name is written in
// lower case, which means the same on the wire.
func outgoing(r *http.Request, body func() (io.ReadCloser, error)) (*http.Request, error) {
	out := r.WithContext(r.Context())
	out.GetBody = nil
	if body == nil {
		out.Header = r.Header.Clone()
		out.Header[emptyHeader] = out.Header[Header]
		delete(out.Header, Header)
		return out, nil
	}
	var err error
	out.Body, err = body()
	return out, err
}

// again says whether to send once more, and after which wait.
func (t *Transport) again(ctx context.Context, try int, resp *http.Response, err error) (time.Duration, bool) {
	wait := rand.N(min(firstPause<<min(try, 10), longestPause))
	if err != nil {
		return wait, ctx.Err() == nil
	}
	asked := retryAfter(resp.Header)
	if !sendAgain(resp) {
		return 0, false
	}
	wait = max(wait, asked)
	longest := t.MaxWait
	if longest <= 0 {
		longest = defaultMaxWait
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		return 0, false
	}
	return wait, wait <= longest
}

// sendAgain says whether an answer asks for another send, or leaves room for it.
func sendAgain(resp *http.Response) bool {
	switch resp.Header.Get(HeaderStatus) {
	case string(settle.StatusUnknown), string(settle.StatusManual), "not_recorded":
		return false // it isn't run again: sending it brings nothing new soon
	}
	switch resp.StatusCode {
	case http.StatusConflict:
		return resp.Header.Get("Retry-After") != ""
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return resp.StatusCode >= 500
}

// pause waits, or returns why the context ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drain makes the connection usable again, if the rest of the body comes within
// the pause that is made anyway.
func drain(resp *http.Response, within time.Duration) {
	giveUp := time.AfterFunc(within, func() { _ = resp.Body.Close() })
	io.CopyN(io.Discard, resp.Body, 64<<10) //nolint:errcheck // a connection is lost at most
	if giveUp.Stop() {
		_ = resp.Body.Close()
	}
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		r.Body.Close() //nolint:errcheck // nothing was read from it that counts
	}
}

// Replayed says whether a response was recorded before, so that nothing was
// executed for its request.
func Replayed(resp *http.Response) bool { return resp.Header.Get(HeaderReplayed) == "true" }

// Pending says whether a response tells that a request was begun and its
// outcome isn't known yet: it must not be sent under another key.
func Pending(resp *http.Response) bool {
	switch settle.Status(resp.Header.Get(HeaderStatus)) {
	case settle.StatusInProgress, settle.StatusUnknown, settle.StatusManual, settle.StatusAwaitingApproval:
		return true
	}
	return false
}

var _ http.RoundTripper = (*Transport)(nil)
