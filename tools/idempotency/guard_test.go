package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/idempotency"
)

func TestR48FirstAnswerIsTheHandlersAndLaterOnesAreReplays(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	first := s.pay(201, `"k-1"`, `{"amount":"42.10"}`)
	if first.body != `{"id":"pay_1"}` || first.header.Get("Set-Cookie") == "" || first.header.Get("Idempotency-Replayed") != "" ||
		first.header.Get("Idempotency-Status") != "completed" || first.header.Get("Idempotency-Operation") == "" {
		t.Errorf("the first answer is %+v", first)
	}
	s.replayed(first, `"k-1"`, `{"amount":"42.10"}`)
	again := s.pay(201, `"k-1"`, `{"amount":"42.10"}`)
	if again.header.Get("Set-Cookie") != "" || again.header.Get("Location") != "/payments/pay_1" ||
		again.header.Get("Idempotency-Operation") != first.header.Get("Idempotency-Operation") {
		t.Errorf("a replay has the headers %v", again.header)
	}
	if other := s.pay(201, `"k-2"`, `{"amount":"42.10"}`); other.body != `{"id":"pay_2"}` {
		t.Errorf("another key got %+v", other)
	}
	s.runs(2)
}

func TestKeyInQuotesAndWithoutIsOne(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	first := s.pay(201, `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, `{}`)
	s.replayed(first, `8e03978e-40d5-43dd-bc93-6894a57f9324`, `{}`)
	s.replayed(first, "  8e03978e-40d5-43dd-bc93-6894a57f9324\t", `{}`)
	quoted := s.pay(201, `"a \"b\" \\"`, `{}`)
	s.replayed(quoted, `"a \"b\" \\"`, `{}`)
	longest := strings.Repeat("k", idempotency.MaxKey)
	s.replayed(s.pay(201, longest, `{}`), `"`+longest+`"`, `{}`)
	s.runs(3)
}

func TestKeyThatIsMissingOrMalformedIs400(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	s.refused(400, "key-missing", "", `{}`)
	for name, key := range map[string]string{
		"empty quotes":       `""`,
		"no closing quote":   `"abc`,
		"a lone quote":       `"`,
		"behind the quote":   `"abc";a=1`,
		"two in one":         `"abc", "def"`,
		"a bad escape":       `"a\bc"`,
		"a trailing escape":  `"abc\`,
		"blank":              `abc def`,
		"comma":              `abc,def`,
		"parameter":          `abc;a=1`,
		"too long":           strings.Repeat("k", idempotency.MaxKey+1),
		"too long in quotes": `"` + strings.Repeat("k", idempotency.MaxKey+1) + `"`,
		"not ASCII":          `"ключ"`,
		"not ASCII and bare": "k\u00e9y",
		"a tab inside":       "\"a\tb\"",
	} {
		t.Run(name, func(t *testing.T) {
			got := s.refused(400, "key-malformed", key, `{}`)
			if len(key) > 9 && strings.Contains(got.body, strings.Trim(key, `"`)) {
				t.Errorf("the answer repeats the key: %s", got.body)
			}
		})
	}
	s.refused(400, "key-malformed", "abc", `{}`, func(r *http.Request) { r.Header.Add("Idempotency-Key", "abc") })
	s.runs(0)
}

func TestR17OtherContentUnderTheKeyIs422(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	const body = `{"order":"A-1","amount":10}`
	first := s.pay(201, "k", body)
	s.replayed(first, "k", `{ "amount": 10.0, "order": "\u0041-1" }`)
	s.replayed(first, "k", body, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") })
	for name, tc := range map[string]struct {
		body    string
		differs string
		edit    func(*http.Request)
	}{
		"another value":  {`{"order":"A-1","amount":11}`, "body", func(*http.Request) {}},
		"no body":        {``, "body", func(*http.Request) {}},
		"another target": {body, "target", at("/payments?dry=1")},
		"another type":   {body, "content_type", func(r *http.Request) { r.Header.Set("Content-Type", "application/x+json") }},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.refused(422, "key-reused", "k", tc.body, tc.edit)
			if !strings.Contains(got.body, `"differs":["`+tc.differs) || strings.Contains(got.body, "A-1") || strings.Contains(got.body, "pay_1") {
				t.Errorf("got %s, want what differs, and no value", got.body)
			}
		})
	}
	s.replayed(first, "k", body)
	s.runs(1)
}

func TestQueryParametersHaveNoOrder(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	first := s.pay(201, "k", `{}`, at("/payments?a=1&b=2"))
	s.replayed(first, "k", `{}`, at("/payments?b=2&a=1"))
	s.runs(1)
}

func TestBodiesThatAreNoJSONCountByteForByte(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	first := s.pay(201, "k", `a=1&b=2`, form)
	s.replayed(first, "k", `a=1&b=2`, form)
	s.refused(422, "key-reused", "k", `b=2&a=1`, form)
	for name, body := range map[string]string{"cut off": `{"a":`, "two values": `{} {}`, "a member in disguise": `{},"digest":"x"`,
		"a duplicate name": `{"a":1,"a":2}`, "invalid UTF-8": "{\"a\":\"\xff\"}"} {
		t.Run(name, func(t *testing.T) { s.refused(400, "body-unreadable", "k2", body) })
	}
	s.runs(1)
}

// A key is its caller's, and its route's.
func TestR6KeyBelongsToCallerMethodAndRoute(t *testing.T) {
	t.Parallel()
	s := serveOn(t, openLedger(t), []settle.AnyTool{idempotency.Declare(route, unsafe), idempotency.Declare("POST /payments/{id}/refunds", unsafe),
		idempotency.Declare("PATCH /payments", unsafe)}, created())
	echo := func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s", r.Method, r.PathValue("id")) }
	s.route("POST /payments/{id}/refunds", "POST /payments/{id}/refunds", echo)
	s.route("PATCH /payments", "PATCH /payments", echo)
	ann := s.pay(201, "k", `{}`)
	bob := s.pay(201, "k", `{}`, by("bob"))
	if ann.body == bob.body || bob.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("bob got ann's answer: %+v", bob)
	}
	if got := s.pay(200, "k", `{}`, at("/payments/7/refunds")); got.body != "POST 7" {
		t.Errorf("another route: %+v", got)
	}
	s.refused(422, "key-reused", "k", `{}`, at("/payments/8/refunds"))
	if got := s.pay(200, "k", `{}`, func(r *http.Request) { r.Method = http.MethodPatch }); got.body != "PATCH " {
		t.Errorf("another method: %+v", got)
	}
	s.ask(404, "k", by("carol"))
	s.runs(4)
}

func TestNobodysRequestIs401(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	got := s.refused(401, "unauthenticated", "k", `{}`, func(r *http.Request) { r.Header.Del("Authorization") })
	if got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("the answer has no challenge: %v", got.header)
	}
	s.refused(403, "denied", "k", `{}`, by("suspended"))
	s.refused(500, "misconfigured", "k", `{}`, by("two\tnames"))
	s.ask(401, "k", func(r *http.Request) { r.Header.Del("Authorization") })
	s.runs(0)
}

func TestR17TwinInFlightIs409OrWaits(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"at once": 0, "after a wait": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, release := make(chan struct{}), make(chan struct{})
			c := unsafe
			c.Timeout = time.Minute
			s := serve(t, c, func(w http.ResponseWriter, r *http.Request) {
				close(entered)
				<-release
				io.WriteString(w, "done")
			}, func(o *idempotency.Options) { o.Wait = wait })
			first := make(chan reply)
			go func() { first <- s.do(s.request("k", `{}`)) }()
			<-entered
			if wait == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				got := s.refused(409, "in-progress", "k", `{}`, func(r *http.Request) { *r = *r.WithContext(ctx) })
				if got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, `"ask":"/idempotency?route=POST+%2Fpayments"`) {
					t.Errorf("got %v %s, want when and where to ask", got.header, got.body)
				}
				if doc := s.ask(200, "k"); doc["status"] != "in_progress" {
					t.Errorf("the status endpoint says %v", doc)
				}
				s.refused(422, "key-reused", "k", `{"other":true}`)
				close(release)
				s.replayed(<-first, "k", `{}`)
			} else {
				twin := make(chan reply)
				go func() { twin <- s.do(s.request("k", `{}`)) }()
				close(release)
				<-first
				if got := <-twin; got.status != 200 || got.body != "done" || got.header.Get("Idempotency-Replayed") != "true" {
					t.Errorf("the twin got %+v", got)
				}
			}
			s.runs(1)
		})
	}
}

func TestR14UniqueHoldsOverAllKeys(t *testing.T) {
	t.Parallel()
	c := unsafe
	c.Identity, c.Unique = []string{"body.order"}, true
	s := serve(t, c, created())
	first := s.pay(201, "k-1", `{"order":"A-1"}`)
	s.refused(409, "not-unique", "k-2", `{"order":"A-1"}`)
	s.refused(409, "not-unique", "k-2", `{"order":"A-1"}`, by("bob"))
	s.pay(201, "k-3", `{"order":"A-2"}`)
	s.replayed(first, "k-1", `{"order":"A-1"}`)
	s.runs(2)
}
