package idempotency

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/settle-go/settle"
)

// Declare is a route's contract, to be given to [settle.WithGuarded]. The route
// is a method and a pattern, "POST /payments/{id}/refunds"; it is an identity,
// as a tool's name is: a route that is renamed lists its former name in
// Formerly. At most 128 bytes.
//
// The zero class is Unsafe: a request whose outcome isn't known is never run
// again. What identifies a request is its key, whatever the class. A contract's
// Identity, which is the key where none is named, decides what Idempotent and
// Unique mean: with {"body.order_id"} and Unique there is one payment for an
// order, under however many keys.
//
// Lookup, guidance and the rest are set on the value that Declare returns.
func Declare(route string, c settle.Contract) settle.Tool[Request, Response] {
	if len(c.Identity) == 0 && !c.WholeArguments {
		c.Identity = []string{"key"}
	}
	return settle.Tool[Request, Response]{Name: route, Contract: c}
}

// ErrForbidden is what [Options.Caller] returns, or wraps, for a caller whom it
// knows and who may not do this: the answer is 403 instead of 401.
var ErrForbidden = errors.New("idempotency: the caller may not do this")

// Options configure a [Guard]. Only Caller is needed. Routes that differ in them
// get guards of their own, on the same executor.
type Options struct {
	// Caller says who sent the request, from the host's authentication: a key
	// is its caller's, and nobody else's. An error is answered with 401, or 403
	// where it is [ErrForbidden], before the key or the body is read; its text is
	// shown to nobody.
	Caller func(*http.Request) (settle.Principal, error)
	// Challenge is the WWW-Authenticate of a 401, which RFC 9110 asks for.
	Challenge string
	// Task names what the caller's keys belong to. Default: one task for all
	// requests, so that a known caller's request costs no round trip for it.
	// Keys of different tasks are different keys. See "Retention" in the README.
	Task func(*http.Request) settle.Task
	// Free lists the statuses by which the handlers say that nothing happened, as
	// [NothingHappened] does for one request: 429 or 503, where they are sent
	// before anything is done. Default: none.
	Free []int
	// Headers are response headers to record beside the ones that are recorded
	// anyway: Content-Type, Content-Language, Content-Encoding,
	// Content-Disposition, Location, ETag, Last-Modified and Link. What is a
	// secret or belongs to a connection is refused.
	Headers []string
	// MaxBody bounds a request's body, in bytes. Default: 1 MiB. What is beyond
	// 1 MiB is kept in a temporary file while the request runs.
	MaxBody int64
	// MaxResponse bounds the body of a recorded response, in bytes. A longer one
	// goes out as it is written, and a replay has the status document instead of
	// it. Default: 1 MiB, at most 2 MiB.
	MaxResponse int
	// Wait is how long a request waits for another one with its key that is in
	// flight before it is answered 409; at most the contract's timeout. Default:
	// not at all.
	Wait time.Duration
	// StatusPath is where [Guard.Status] is served, to be named in problems.
	StatusPath string
	// Log gets the stack of a handler that panics. Default: [slog.Default].
	Log *slog.Logger
}

const (
	defaultMaxBody     = 1 << 20
	defaultMaxResponse = 1 << 20
	// longestResponse keeps a response in its encoded form well within an
	// executor's default limit on results, 4 MiB.
	longestResponse = 2 << 20
)

// Guard answers requests through a ledger. It is safe for concurrent use.
type Guard struct {
	executor *settle.Executor
	options  Options
	headers  []string
	routes   map[string]settle.Class
}

// recorded are the response headers that belong to what was answered.
var recorded = []string{"Content-Type", "Content-Language", "Content-Encoding", "Content-Disposition", "Location", "Etag", "Last-Modified", "Link"}

// neverRecorded are response headers that are secrets, belong to a connection
// or a message, or are the guard's own.
var neverRecorded = []string{"Set-Cookie", "Set-Cookie2", "Authorization", "Www-Authenticate", "Authentication-Info", "Proxy-Authenticate",
	"Proxy-Authorization", "Proxy-Authentication-Info", "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Content-Length", "Date", HeaderReplayed, HeaderOperation, HeaderStatus, HeaderCorrected}

// New builds a guard on an executor that has the contracts of its routes. Give
// the guard an executor of its own: routes are no tools for a model.
func New(x *settle.Executor, o Options) (*Guard, error) {
	var problems []error
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("idempotency: "+format, args...))
	}
	if x == nil {
		refuse("New needs an executor: settle.New makes one, with the routes' contracts in settle.WithGuarded")
	}
	if o.Caller == nil {
		refuse("Options.Caller is missing: a key is its caller's, so say who sent a request (R6)")
	}
	if o.MaxBody < 0 || o.MaxResponse < 0 || o.Wait < 0 {
		refuse("a limit in Options is negative: give a positive one, or leave it out for the default")
	}
	if o.MaxResponse > longestResponse {
		refuse("Options.MaxResponse is %d and at most %d is kept: longer responses are answered by reference", o.MaxResponse, longestResponse)
	}
	for _, status := range o.Free {
		if status < 400 || status > 599 {
			refuse("Options.Free has %d: only a status from 400 to 599 can say that nothing happened", status)
		}
	}
	headers := slices.Clone(recorded)
	for _, name := range o.Headers {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(neverRecorded, canonical) {
			refuse("Options.Headers has %s, which is never recorded", canonical)
		}
		headers = append(headers, canonical)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	g := &Guard{executor: x, options: o, headers: headers, routes: map[string]settle.Class{}}
	for _, tool := range x.Tools() {
		g.routes[tool.Name] = tool.Class
	}
	g.options.setDefaults()
	return g, nil
}

func (o *Options) setDefaults() {
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	o.MaxBody = min(o.MaxBody, math.MaxInt64-1) // one more is read, to see that it is too long
	if o.MaxResponse == 0 {
		o.MaxResponse = defaultMaxResponse
	}
	if o.Wait == 0 {
		o.Wait = settle.Immediately
	}
	if o.Task == nil {
		o.Task = func(*http.Request) settle.Task { return settle.Task{ID: "http", Goal: "idempotency-key"} }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

// RouteError says why a route can't be guarded.
type RouteError struct{ Route, Reason string }

func (e *RouteError) Error() string {
	return fmt.Sprintf("idempotency: route %q %s", e.Route, e.Reason)
}

// Protect wraps a route's handler. The route is one that was declared; its error
// is a [*RouteError]. Put it inside what authenticates, and inside what
// compresses or adds headers to every answer; what is to run once belongs
// inside of it.
//
// The handler runs on the request's own goroutine, at most once for a key and
// its content. Its context is detached from the client's connection unless the
// contract says Interruptible (R24), ends at the contract's Timeout, and carries
// the operation's key for far sides ([settle.KeyFrom]). Its ResponseWriter sends
// nothing before the outcome is recorded, unless the handler calls Flush or
// writes more than MaxResponse; it supports Flush, and no Hijack, deadlines,
// 1xx answers or trailers.
//
// Where the contract's class is Transactional the context carries the ledger's
// transaction (postgres.Tx, sqlite.Tx). It commits with a final answer, a refusal
// included, and is rolled back with any other one (R53). Nothing is sent before
// the commit has answered, so that Flush has no effect.
func (g *Guard) Protect(route string, h http.Handler) (http.Handler, error) {
	method, pattern, ok := strings.Cut(route, " ")
	class, declared := g.routes[route]
	switch {
	case !ok || method == "" || strings.TrimSpace(pattern) == "":
		return nil, &RouteError{route, `is no method and pattern: write it as in "POST /payments"`}
	case !declared:
		return nil, &RouteError{route, "has no contract: give idempotency.Declare of it to settle.WithGuarded"}
	case class == settle.Read:
		return nil, &RouteError{route, "is a Read: it changes nothing, leaves no record and needs no key"}
	case class == settle.Composite:
		return nil, &RouteError{route, "is a Composite, which has no effect of its own and may run again at any time: a handler isn't one"}
	case h == nil:
		return nil, &RouteError{route, "has no handler"}
	}
	return &protected{Guard: g, route: route, method: method, handler: h, transactional: class == settle.Transactional}, nil
}
