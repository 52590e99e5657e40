package httptool_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/httptool"
)

const raw = `{"type":"object","required":["id"],"properties":{
	"id":{"type":"string"},"note":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},
	"sum":{"type":"number"},"who":{"type":"object","properties":{"name":{"type":"string"}}}}}`

// sentBy makes one call of a raw tool and returns what the far side got.
func sentBy(t *testing.T, r httptool.Request, args string) (settle.Outcome, []sent) {
	t.Helper()
	far := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"data":{"id":"x1"}}`)) })
	tool := declare[json.RawMessage, json.RawMessage](t, newClient(t, far.URL+"/v1/", httptool.Header("Authorization", "Bearer s3cret")), httptool.Spec{
		Name: "send", Schema: json.RawMessage(raw), Request: r, Result: "data",
		Contract: settle.Contract{WholeArguments: true, NoLookup: true, Resource: "id", Ignore: []string{"id", "note", "tags", "sum", "who"}},
	})
	h := onSQLite(t, tool)
	return h.call("send", json.RawMessage(args)), far.requests()
}

func TestRequestsAreMadeOfArguments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		req  httptool.Request
		args string
		want sent
	}{
		{"the arguments as they are", httptool.Request{Method: "POST", Path: "/a"}, `{"id":"1","sum":1.10}`,
			sent{"POST", "/v1/a", "", `{"id":"1","sum":1.1}`, nil}}, // settle writes numbers in plain digits
		{"a path", httptool.Request{Method: "DELETE", Path: "/o/{id}.json"}, `{"id":"b?c#d e%2f"}`,
			sent{"DELETE", "/v1/o/b%3Fc%23d%20e%252f.json", "", "", nil}},
		{"a path with slashes", httptool.Request{Method: "GET", Path: "/o/{id}/raw", Slashes: []string{"id"}}, `{"id":"a/b\\c"}`,
			sent{"GET", "/v1/o/a%2Fb%5Cc/raw", "", "", nil}},
		{"braces", httptool.Request{Method: "GET", Path: "/o", Query: map[string]string{"q": "{{{id}}}"}}, `{"id":"1"}`,
			sent{"GET", "/v1/o", "q=%7B1%7D", "", nil}},
		{"a query", httptool.Request{Method: "GET", Path: "/o", Query: map[string]string{"id": "{id}", "tag": "{tags}", "note": "{note}"}}, `{"id":"a&b=c","tags":["x","y"]}`,
			sent{"GET", "/v1/o", "id=a%26b%3Dc&tag=x&tag=y", "", nil}},
		{"a body", httptool.Request{Method: "POST", Path: "/o", Body: `{"order":{"ref":"{id}","sum":"{sum}","note":"{note}","by":"{who.name}"},"text":"for \"{id}\"","on":true,"tags":["{note}","{id}"]}`},
			`{"id":"a\"b","sum":1.10,"who":{"name":"ann"}}`,
			sent{"POST", "/v1/o", "", `{"order":{"ref":"a\"b","sum":1.1,"by":"ann"},"text":"for \"a\"b\"","on":true,"tags":["a\"b"]}`, nil}},
		{"no body", httptool.Request{Method: "POST", Path: "/o/{id}", NoBody: true}, `{"id":"1"}`,
			sent{"POST", "/v1/o/1", "", "", nil}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out, got := sentBy(t, tc.req, tc.args)
			if out.Status != settle.StatusCompleted || out.Resource != "x1" || string(out.Result) != `{"id":"x1"}` {
				t.Fatalf("got %s, resource %q, result %s", out.Status, out.Resource, out.Result)
			}
			if g := got[0]; g.method != tc.want.method || g.path != tc.want.path || g.query != tc.want.query || g.body != tc.want.body {
				t.Errorf("got  %s %s?%s %s\nwant %s %s?%s %s", g.method, g.path, g.query, g.body, tc.want.method, tc.want.path, tc.want.query, tc.want.body)
			}
			if got[0].header.Get("Authorization") != "Bearer s3cret" {
				t.Error("the client's header is missing")
			}
		})
	}
}

func TestArgumentsStayInTheirPlace(t *testing.T) {
	t.Parallel()
	path := httptool.Request{Method: "GET", Path: "/o/{id}/lines"}
	slashes := httptool.Request{Method: "GET", Path: "/o/{id}", Slashes: []string{"id"}}
	header := httptool.Request{Method: "GET", Path: "/o", Header: map[string]string{"X-Note": "{id}"}}
	for name, tc := range map[string]struct {
		req  httptool.Request
		args string
	}{
		"empty":          {path, `{"id":""}`},
		"up":             {path, `{"id":".."}`},
		"here":           {path, `{"id":"."}`},
		"up and away":    {path, `{"id":"../../admin"}`},
		"backslashes":    {path, `{"id":"..\\admin"}`},
		"with parameter": {path, `{"id":"..;x"}`},
		"NUL":            {path, `{"id":"a\u0000"}`},
		"down":           {path, `{"id":"42/cancel"}`},
		"down, reversed": {path, `{"id":"42\\cancel"}`},
		"up by slashes":  {slashes, `{"id":"../admin"}`},
		"a line break":   {header, `{"id":"a\r\nX-Admin: 1"}`},
		"an object":      {httptool.Request{Method: "GET", Path: "/o", Query: map[string]string{"q": "{who}"}}, `{"id":"1","who":{"name":"ann"}}`},
		"a missing text": {httptool.Request{Method: "GET", Path: "/o", Query: map[string]string{"q": "by {who.name}"}}, `{"id":"1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, got := sentBy(t, tc.req, tc.args)
			if out.Status != settle.StatusFailed || len(got) != 0 {
				t.Errorf("got %s after %d requests, want failed after none", out.Status, len(got))
			}
		})
	}
}

func TestR11TheKeyIsSentWhereItIsDeclared(t *testing.T) {
	t.Parallel()
	keyed := settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true}
	for name, tc := range map[string]struct {
		edit func(*httptool.Spec)
		key  func(sent) string
		size int
	}{
		"by default":    {func(*httptool.Spec) {}, func(s sent) string { return s.header.Get("Idempotency-Key") }, 0},
		"a header":      {func(s *httptool.Spec) { s.KeyHeader = "X-Request-Id"; s.KeyIsUUID = true }, func(s sent) string { return s.header.Get("X-Request-Id") }, 36},
		"in the body":   {func(s *httptool.Spec) { s.Request.Body = `{"o":"{order_id}","a":"{amount}","k":"{settle_key}"}` }, bodyKey, 0},
		"in the path":   {func(s *httptool.Spec) { s.Request.Path = "/r/{settle_uuid}" }, func(s sent) string { return strings.TrimPrefix(s.path, "/r/") }, 36},
		"not by itself": {func(s *httptool.Spec) { s.Contract = settle.Contract{NoLookup: true} }, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"r1"}`)) })
			spec := httptool.Spec{Name: "refund", Contract: keyed, Request: httptool.Request{Method: "POST", Path: "/r"}}
			tc.edit(&spec)
			h := onSQLite(t, declare[refundArgs, refunded](t, newClient(t, far.URL), spec))
			h.want(h.call("refund", map[string]any{"order_id": "A1", "amount": 1}), settle.StatusCompleted)
			got := far.requests()[0]
			if tc.key == nil {
				if got.header.Get("Idempotency-Key") != "" {
					t.Error("a key was sent that the declaration doesn't have")
				}
				return
			}
			if key := tc.key(got); key == "" || tc.size > 0 && len(key) != tc.size {
				t.Errorf("the key has %d characters", len(key))
			}
			if name != "by default" && got.header.Get("Idempotency-Key") != "" {
				t.Error("the key was sent by the default header too")
			}
		})
	}
}

func bodyKey(s sent) string {
	var b struct{ K string }
	if json.Unmarshal([]byte(s.body), &b) != nil {
		return ""
	}
	return b.K
}

func TestRequestsDontLeaveTheirHost(t *testing.T) {
	t.Parallel()
	elsewhere := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"stolen"}`)) })
	far := newSide(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/here?x=1", http.StatusFound)
		case "/away":
			http.Redirect(w, r, elsewhere.URL+"/admin", http.StatusTemporaryRedirect)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		default:
			w.Write([]byte(`{"id":"` + r.Method + r.URL.RawQuery + `"}`))
		}
	})
	for _, tc := range []struct {
		path, method string
		class        settle.Class
		want         settle.Status
		requests     int
	}{
		{"/moved", "GET", settle.Read, settle.StatusCompleted, 2},
		{"/moved", "POST", settle.Unsafe, settle.StatusUnknown, 1},
		{"/away", "GET", settle.Read, settle.StatusUnknown, 1},
		{"/away", "POST", settle.Unsafe, settle.StatusUnknown, 1},
		{"/round", "GET", settle.Read, settle.StatusUnknown, 6},
	} {
		before := len(far.requests())
		out := unsafeRefund(t, newClient(t, far.URL), func(s *httptool.Spec) {
			s.Request = httptool.Request{Method: tc.method, Path: tc.path, Query: map[string]string{"o": "{order_id}", "a": "{amount}"}}
			s.Contract = settle.Contract{Class: tc.class, NoLookup: tc.class == settle.Unsafe, Attempts: int(tc.class) & 1}
		})
		if n := len(far.requests()) - before; n != tc.requests {
			t.Errorf("%s %s: %d requests, want %d", tc.method, tc.path, n, tc.requests)
		}
		if out.Status != tc.want && tc.class != settle.Read || tc.class == settle.Read && (out.Status == settle.StatusCompleted) != (tc.want == settle.StatusCompleted) {
			t.Errorf("%s %s: got %s, want %s", tc.method, tc.path, out.Status, tc.want)
		}
	}
	if n := len(elsewhere.requests()); n != 0 {
		t.Errorf("%d requests went to another host", n)
	}
}

func TestPrivateAddressesAreRefusedAtTheConnect(t *testing.T) {
	t.Parallel()
	far := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"r1"}`)) })
	at, err := url.Parse(far.URL)
	if err != nil {
		t.Fatal(err)
	}
	// A name is looked at where it leads, at the connect: one of localhost's two
	// addresses is allowed, and the far side has the other.
	base := "http://localhost:" + at.Port()
	c, err := httptool.NewClient(base, httptool.AllowAddresses(netip.MustParsePrefix("::1/128")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if out := unsafeRefund(t, c, nil); out.Status != settle.StatusNotDone {
		t.Errorf("got %s, want not_done", out.Status)
	}
	if n := len(far.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	if out := unsafeRefund(t, newClient(t, base), nil); out.Status != settle.StatusCompleted {
		t.Errorf("allowed: got %s, want completed", out.Status)
	}
}

func TestAHostThatCannotBeReachedIsRefusedWhenTheClientIsMade(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"http://127.0.0.1:8080", "http://LocalHost", "http://[::ffff:127.0.0.1]", "http://[::1]/v1", "https://10.2.3.4", "http://169.254.169.254", "http://192.0.2.1"} {
		if _, err := httptool.NewClient(base); err == nil || !strings.Contains(err.Error(), "AllowAddresses") {
			t.Errorf("%s: want an error that names AllowAddresses, got %v", base, err)
		}
	}
	for _, base := range []string{"http://127.0.0.1:8080", "http://localhost", "https://1.1.1.1"} {
		c, err := httptool.NewClient(base, loopback)
		if err != nil {
			t.Errorf("%s: %v", base, err)
			continue
		}
		c.Close()
	}
}

func TestSignSeesTheRequestAndChangesItsHeaderOnly(t *testing.T) {
	t.Parallel()
	far := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"r1"}`)) })
	sign := httptool.Sign(func(_ context.Context, r *http.Request, body []byte) error {
		r.Header.Set("X-Signature", string(body[:1])+r.URL.Path)
		r.URL.Host, r.Method = "evil.example", "DELETE"
		return nil
	})
	if out := unsafeRefund(t, newClient(t, far.URL, sign), nil); out.Status != settle.StatusCompleted {
		t.Fatalf("got %s", out.Status)
	}
	if got := far.requests()[0]; got.header.Get("X-Signature") != "{/refunds" || got.method != "POST" {
		t.Errorf("got %s with signature %q", got.method, got.header.Get("X-Signature"))
	}
	failing := httptool.Sign(func(context.Context, *http.Request, []byte) error { return context.DeadlineExceeded })
	if out := unsafeRefund(t, newClient(t, far.URL, failing), nil); out.Status != settle.StatusNotDone {
		t.Errorf("got %s, want not_done", out.Status)
	}
}

// What one request's Sign adds to a header of the client's is in no other request.
func TestSignAddsToItsOwnRequestOnly(t *testing.T) {
	t.Parallel()
	far := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"r1"}`)) })
	var n atomic.Int64
	client := newClient(t, far.URL, httptool.Header("X-Key", "a"), httptool.Header("X-Key", "b"), httptool.Header("X-Key", "c"),
		httptool.Sign(func(_ context.Context, r *http.Request, _ []byte) error {
			r.Header.Add("X-Key", strconv.FormatInt(n.Add(1), 10))
			return nil
		}))
	tool := declare[refundArgs, refunded](t, client, httptool.Spec{Name: "refund", Contract: settle.Contract{NoLookup: true},
		Request: httptool.Request{Method: "POST", Path: "/refunds"}})
	h := onSQLite(t, tool)
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() { h.call("refund", refundArgs{OrderID: strconv.Itoa(i), Amount: "1"}) })
	}
	group.Wait()
	signed := map[string]bool{}
	for _, got := range far.requests() {
		signed[strings.Join(got.header.Values("X-Key"), " ")] = true
	}
	if len(signed) != 32 {
		t.Errorf("32 requests have %d signatures: %v", len(signed), signed)
	}
}

func TestNumbersOfAnAnswerAreNotRounded(t *testing.T) {
	t.Parallel()
	far := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":9007199254740993}`)) })
	h := onSQLite(t, declare[refundArgs, map[string]any](t, newClient(t, far.URL), httptool.Spec{Name: "refund",
		Contract: settle.Contract{NoLookup: true}, Request: httptool.Request{Method: "POST", Path: "/refunds"}}))
	if out := h.call("refund", refundArgs{"A-1", "1"}); string(out.Result) != `{"id":9007199254740993}` {
		t.Errorf("got %s: %s", out.Result, out.ForModel())
	}
}

func TestLargestAnswerIsRead(t *testing.T) {
	t.Parallel()
	far := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"r1"}`)) })
	if out := unsafeRefund(t, newClient(t, far.URL, httptool.MaxAnswer(math.MaxInt64)), nil); out.Resource != "r1" {
		t.Errorf("got %s with the resource %q", out.Status, out.Resource)
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	far := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`{"id":"` + r.Proto + `"}`)) }))
	far.EnableHTTP2 = true
	far.Config.ErrorLog = log.New(io.Discard, "", 0)
	far.StartTLS()
	t.Cleanup(far.Close)
	trusting := httptool.TLS(far.Client().Transport.(*http.Transport).TLSClientConfig)
	if out := unsafeRefund(t, newClient(t, far.URL, trusting), nil); out.Status != settle.StatusCompleted || out.Resource != "HTTP/1.1" {
		t.Errorf("got %s, resource %q", out.Status, out.Resource)
	}
	if out := unsafeRefund(t, newClient(t, far.URL), nil); out.Status != settle.StatusNotDone {
		t.Errorf("an unknown certificate: got %s, want not_done", out.Status)
	}
}

func TestR55ErrorsHoldNoValues(t *testing.T) {
	t.Parallel()
	far := newSide(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		w.Write([]byte(`{"error":{"message":"order-s3cret is\npaid"},"other":"s3cret"}`))
	})
	if out := unsafeRefund(t, newClient(t, far.URL), nil); strings.Contains(out.Detail, "s3cret") || !strings.Contains(out.Detail, "422") {
		t.Errorf("the detail is %q", out.Detail)
	}
	asked := unsafeRefund(t, newClient(t, far.URL), func(s *httptool.Spec) { s.Refusal = "error.message" })
	if !strings.HasSuffix(asked.Detail, "order-s3cret is paid") {
		t.Errorf("the detail is %q", asked.Detail)
	}
	if _, err := httptool.NewClient("https://user:s3cret@example.org/%zz"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error %v", err)
	}
}

func TestWrongDeclarationsAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t, "http://127.0.0.1:1", httptool.Header("X-Api-Key", "k"))
	for says, edit := range map[string]func(*httptool.Spec){
		"Method":                       func(s *httptool.Spec) { s.Request.Method = "post" },
		"is no field of Path":          func(s *httptool.Spec) { s.Request.Slashes = []string{"order_id"} },
		"begin with a slash":           func(s *httptool.Spec) { s.Request.Path = "//evil"[2:] },
		"parameters go into Query":     func(s *httptool.Spec) { s.Request.Path = "/a?b={order_id}" },
		"dot or two":                   func(s *httptool.Spec) { s.Request.Path = "/a/../{order_id}" },
		"leads to no field":            func(s *httptool.Spec) { s.Request.Path = "/{orderid}" },
		"the facts of an operation":    func(s *httptool.Spec) { s.Request.Path = "/{settle_secret}" },
		"no } closes it":               func(s *httptool.Spec) { s.Request.Path = "/{order_id" },
		"closes no field":              func(s *httptool.Spec) { s.Request.Path = "/order_id}" },
		"is set by HTTP itself":        func(s *httptool.Spec) { s.Request.Header = map[string]string{"host": "x"} },
		"no name of a header":          func(s *httptool.Spec) { s.Request.Header = map[string]string{"a b": "x"} },
		"not strict JSON":              func(s *httptool.Spec) { s.Request.Body = "{" },
		"and NoBody":                   func(s *httptool.Spec) { s.Request.Body = "{}"; s.Request.NoBody = true },
		"nothing is done with amount":  func(s *httptool.Spec) { s.Request.Body = `{"o":"{order_id}"}` },
		"is the client's as well":      func(s *httptool.Spec) { s.KeyHeader = "x-api-key" },
		"is under Header as well":      func(s *httptool.Spec) { s.KeyHeader = "X-K"; s.Request.Header = map[string]string{"x-k": "1"} },
		"isn't an answer's":            func(s *httptool.Spec) { s.Meanings = map[int]httptool.Meaning{100: httptool.Happened} },
		"asks for no {settle_key}":     func(s *httptool.Spec) { s.Lookup = &httptool.Lookup{Request: httptool.Request{Path: "/"}} },
		"no top-level argument":        func(s *httptool.Spec) { s.Lookup = lookupBy(&httptool.Lookup{Compare: map[string]string{"sum": "x"}}) },
		"State and States go together": func(s *httptool.Spec) { s.Lookup = lookupBy(&httptool.Lookup{State: "state"}) },
		"is ByAttribute":               func(s *httptool.Spec) { s.Lookup = lookupBy(&httptool.Lookup{Created: "at"}) },
		"Schema is for raw tools":      func(s *httptool.Spec) { s.Schema = json.RawMessage(raw) },
	} {
		spec := httptool.Spec{Name: "refund", Request: httptool.Request{Method: "POST", Path: "/refunds"}}
		edit(&spec)
		if _, err := httptool.New[refundArgs, refunded](c, spec); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error that says %q, got %v", says, err)
		}
	}
	for _, base := range []string{"ftp://example.org", "example.org", "https://", "https://a@example.org", "https://example.org?a", "https://example.org#a"} {
		if _, err := httptool.NewClient(base); err == nil {
			t.Errorf("the base URL %s was accepted", base)
		}
	}
	if _, err := httptool.NewClient("https://example.org", httptool.Header("X", "a\nb"), httptool.MaxAnswer(0)); err == nil {
		t.Error("a header with a line break was accepted")
	}
}

func lookupBy(l *httptool.Lookup) *httptool.Lookup {
	l.Request.Path = "/refunds/{settle_key}"
	return l
}
