package httptool

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	defaultMaxAnswer = 1 << 20 // bytes of a body
	maxAnswerHeader  = 64 << 10
	connectTimeout   = 10 * time.Second // for a connection, and again for TLS
	maxRedirects     = 5
)

// Client reaches one HTTP API: one origin, what every request to it carries, and
// the addresses that it may have. It sends each request at most once, over
// HTTP/1.1, without a proxy. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	header    http.Header
	sign      func(ctx context.Context, r *http.Request, body []byte) error
	dialer    dialer
	maxAnswer int64
	http      *http.Client
	problems  []error
}

// Option sets something of a [Client].
type Option interface{ apply(*Client) }

type option func(*Client)

func (o option) apply(c *Client) { o(c) }

// Header adds a header to every request, such as an API key. No argument of a
// tool can set it again.
func Header(name, value string) Option {
	return option(func(c *Client) {
		if err := checkHeader(name); err != nil {
			c.problems = append(c.problems, err)
		}
		if !fitsHeader(value) {
			c.problems = append(c.problems, fmt.Errorf("the value of the header %s has a control character", name))
		}
		c.header.Add(name, value)
	})
}

// Sign completes the header of each request right before it is sent, with a
// token that changes or a signature over the body. What else it changes in r is
// dropped. An error of it is proof that nothing was sent.
func Sign(sign func(ctx context.Context, r *http.Request, body []byte) error) Option {
	return option(func(c *Client) { c.sign = sign })
}

// AllowAddresses lets requests go to addresses that are refused otherwise:
// private, loopback, link-local and other special ones. Name as few as the API
// has: netip.MustParsePrefix("10.2.3.0/24").
func AllowAddresses(prefixes ...netip.Prefix) Option {
	return option(func(c *Client) { c.dialer.allowed = append(c.dialer.allowed, prefixes...) })
}

// TLS sets how the far side is verified, and the client's certificate.
func TLS(config *tls.Config) Option {
	return option(func(c *Client) { c.dialer.tls = config.Clone() })
}

// MaxAnswer bounds the body of an answer, in bytes. A longer one counts as one
// that can't be read. Default: 1 MiB.
func MaxAnswer(bytes int64) Option { return option(func(c *Client) { c.maxAnswer = bytes }) }

// NewClient makes a client of the API at the base URL: http or https, a host, and
// a path that those of the tools come after. A host that is an address, or
// localhost, has to be a public one or within [AllowAddresses]. Close the client
// when its tools are done.
func NewClient(baseURL string, options ...Option) (*Client, error) {
	c := &Client{header: http.Header{}, maxAnswer: defaultMaxAnswer}
	for _, o := range options {
		o.apply(c)
	}
	c.base = c.parseBase(baseURL)
	c.maxAnswer = min(c.maxAnswer, math.MaxInt64-1) // one more is read, to see that it is too long
	if c.maxAnswer <= 0 {
		c.problems = append(c.problems, errors.New("MaxAnswer takes a positive number of bytes"))
	}
	if len(c.problems) > 0 {
		return nil, fmt.Errorf("httptool: this client can't be made: %w", errors.Join(c.problems...))
	}
	c.dialer.net = net.Dialer{Timeout: connectTimeout, ControlContext: c.dialer.control}
	// A transport speaks HTTP/1.1 alone with dial functions of its own: one request
	// at a time on a connection, so that what was written on it is the request.
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: c.dialer.dial, DialTLSContext: c.dialer.dialTLS,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
			MaxResponseHeaderBytes: maxAnswerHeader,
			DisableCompression:     true, // a small answer must not become a large one
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func (c *Client) parseBase(text string) *url.URL {
	refuse := func(what string) {
		// Not the URL itself: it may hold a password.
		c.problems = append(c.problems, errors.New("the base URL "+what))
	}
	base, err := url.Parse(text)
	if err != nil {
		refuse("can't be read as a URL")
		return nil
	}
	if base.Scheme != "http" && base.Scheme != "https" {
		refuse("begins with neither http:// nor https://")
	}
	if base.Hostname() == "" {
		refuse("has no host")
	}
	if c.dialer.neverReaches(base.Hostname()) {
		refuse("names " + theAddress)
	}
	if base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "" {
		refuse("has more than scheme, host and path: credentials go into Header or Sign, parameters into Query")
	}
	return base
}

// Close closes the idle connections. Requests that are under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one that is ready to be sent.
type request struct {
	method, path string // path is escaped, and comes after the base's
	query        url.Values
	header       http.Header
	body         []byte // nil for none
	// follow says that sending it again changes nothing: redirects on the same
	// origin are followed.
	follow bool
}

// answer is a far side's, with as much of its body as is read.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	readErr error // why the body isn't whole
}

func (c *Client) url(r *request) (*url.URL, error) {
	escaped := strings.TrimSuffix(c.base.EscapedPath(), "/") + r.path
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, errNoURL
	}
	return &url.URL{Scheme: c.base.Scheme, Host: c.base.Host, Path: path, RawPath: escaped, RawQuery: r.query.Encode()}, nil
}

var errNoURL = errors.New("the path can't be written as a URL")

// send sends a request. Its error says whether a byte of it can have left.
func (c *Client) send(ctx context.Context, r *request) (*answer, *Error) {
	target, err := c.url(r)
	if err != nil {
		return nil, &Error{notSent: true, cause: err}
	}
	for hop := 0; ; hop++ {
		a, failed := c.once(ctx, r, target)
		if failed != nil || !r.follow || hop == maxRedirects {
			return a, failed
		}
		next := c.redirect(target, a)
		if next == nil {
			return a, nil
		}
		target = next
	}
}

// redirect is where an answer sends a request that changes nothing: on the same
// origin, or nowhere.
func (c *Client) redirect(from *url.URL, a *answer) *url.URL {
	switch a.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to, err := from.Parse(a.header.Get("Location"))
	if err != nil || a.header.Get("Location") == "" || to.Scheme != c.base.Scheme || !strings.EqualFold(to.Host, c.base.Host) || to.User != nil {
		return nil
	}
	return to
}

func (c *Client) once(ctx context.Context, r *request, target *url.URL) (*answer, *Error) {
	req, err := c.prepare(ctx, r, target)
	if err != nil {
		return nil, &Error{notSent: true, cause: err}
	}
	var d dispatch
	resp, err := c.http.Do(req.WithContext(httptrace.WithClientTrace(ctx, d.trace())))
	if err != nil {
		return nil, &Error{notSent: d.notSent(), cause: withoutURL(err)}
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	a.body, a.readErr = io.ReadAll(io.LimitReader(resp.Body, c.maxAnswer+1))
	if int64(len(a.body)) > c.maxAnswer {
		a.body, a.readErr = nil, errTooLong
	}
	return a, nil
}

var errTooLong = errors.New("the answer is longer than MaxAnswer")

func (c *Client) prepare(ctx context.Context, r *request, target *url.URL) (*http.Request, error) {
	header := r.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	for name, values := range c.header {
		header[name] = slices.Clone(values) // Sign may add to them, in several requests at once
	}
	req := (&http.Request{Method: r.method, URL: target, Header: header}).WithContext(ctx)
	if c.sign != nil {
		copied := *target
		shown := (&http.Request{Method: r.method, URL: &copied, Host: target.Host, Header: header}).WithContext(ctx)
		if err := c.sign(ctx, shown, bytes.Clone(r.body)); err != nil {
			return nil, err
		}
		req.Header = shown.Header
	}
	if len(r.body) > 0 {
		// Without GetBody, which net/http would use to send the request again by
		// itself on another connection (S16).
		req.Body = io.NopCloser(bytes.NewReader(r.body))
		req.ContentLength = int64(len(r.body))
	}
	return req, nil
}

// withoutURL drops the address from an error of net/http: it holds values (R55).
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
