package farside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	maxAnswer     = 8 << 20          // bytes of an answer that a client reads
	clientTimeout = 30 * time.Second // of one request, where its context has no earlier end
)

// Kind says what a client knows about a request that failed (R27).
type Kind int

const (
	// Unknown: it may have been acted on. Everything that is neither of the others.
	Unknown Kind = iota
	// NotSent: no connection was made, so not a byte of it left.
	NotSent
	// Rejected: the far side answered with a definite 4xx: any but 408, 409, 425 and 429.
	Rejected
)

// Error is how every client method fails. Its text holds no values of the
// request or the answer.
type Error struct {
	Kind       Kind
	Status     int           // of the answer; 0 where there was none
	Code       string        // the far side's error code, where it sent one
	RetryAfter time.Duration // from the Retry-After header, in whole seconds; 0 where absent
	cause      error
}

func (e *Error) Error() string {
	switch {
	case e.Kind == NotSent:
		return fmt.Sprintf("farside: not sent, nothing happened: %v", e.cause)
	case e.Kind == Rejected:
		return fmt.Sprintf("farside: rejected with status %d, nothing happened: correct the request", e.Status)
	case e.Status != 0 && e.cause == nil:
		return fmt.Sprintf("farside: outcome unknown: the answer was status %d: look it up before sending again", e.Status)
	default:
		return fmt.Sprintf("farside: outcome unknown: %v: look it up before sending again", e.cause)
	}
}

// Unwrap is the error of the layer below, nil where the far side answered.
func (e *Error) Unwrap() error { return e.cause }

// WasNotSent tells that the request provably never left.
func WasNotSent(err error) bool { return kindOf(err) == NotSent }

// WasRejected tells that the far side refused it and did nothing.
func WasRejected(err error) bool { return kindOf(err) == Rejected }

func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Unknown
}

// client is what the typed clients share. It sends each request at most once.
type client struct {
	base string
	http *http.Client
}

func newClient(baseURL string) client {
	return client{base: baseURL, http: &http.Client{
		Transport: &http.Transport{IdleConnTimeout: 10 * time.Second, MaxIdleConnsPerHost: 64},
		Timeout:   clientTimeout,
		// A redirect of a write would be a second request.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the client's idle connections.
func (c client) Close() { c.http.CloseIdleConnections() }

// call sends in and decodes the answer into out; in may be nil.
func (c client) call(ctx context.Context, method, path string, header http.Header, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return &Error{Kind: NotSent, cause: err}
		}
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := onceRequest(ctx, method, c.base+path, header, body)
	if err != nil {
		return &Error{Kind: NotSent, cause: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &Error{Kind: sendFailure(connected.Load()), cause: withoutURL(err)}
	}
	defer resp.Body.Close()
	return readAnswer(resp, out)
}

// onceRequest makes a request that net/http can't send a second time by itself:
// a transport repeats one on a broken idle connection only where it can rewind the
// body, so the body has no GetBody, and even a GET has one (an empty one).
func onceRequest(ctx context.Context, method, target string, header http.Header, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return nil, withoutURL(err)
	}
	req.GetBody = nil
	req.ContentLength = int64(len(body))
	for name, values := range header {
		req.Header[name] = values
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// sendFailure: only a request that never had a connection is proven not sent. One
// that had may be on its way, even where the failure came before its first write.
func sendFailure(connected bool) Kind {
	if connected {
		return Unknown
	}
	return NotSent
}

func readAnswer(resp *http.Response, out any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 != 2 {
		return statusError(resp, body)
	}
	if err == nil {
		err = json.Unmarshal(body, out)
	}
	if err != nil {
		return &Error{Status: resp.StatusCode, cause: errors.New("the answer can't be read")}
	}
	return nil
}

func statusError(resp *http.Response, body []byte) *Error {
	e := &Error{Status: resp.StatusCode}
	if definite(resp.StatusCode) {
		e.Kind = Rejected
	}
	var b errorBody
	if json.Unmarshal(body, &b) == nil {
		e.Code = b.Error.Code
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// definite tells a business refusal from an answer that doesn't say what
// happened (R27).
func definite(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status/100 == 4
}

// withoutURL drops the address from an error of net/http: its query holds values.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
