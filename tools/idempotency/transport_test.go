package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/tools/idempotency"
)

// far is a server that keeps what it was sent.
type far struct {
	*testing.T
	server *httptest.Server
	mu     sync.Mutex
	keys   []string
	bodies []string
}

// newFar answers the nth request, counted from 1, with the nth handler; the
// last one answers all others as well.
func newFar(t *testing.T, handlers ...http.HandlerFunc) *far {
	f := &far{T: t}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		f.keys, f.bodies = append(f.keys, r.Header.Get("Idempotency-Key")), append(f.bodies, string(body))
		n := len(f.keys)
		f.mu.Unlock()
		handlers[min(n, len(handlers))-1](w, r)
	}))
	t.Cleanup(f.server.Close)
	return f
}

// saw requires so many requests, all with one key and one body.
func (f *far) saw(want int, body string) string {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) != want {
		f.Fatalf("the server saw %d requests, want %d", len(f.keys), want)
	}
	if want == 0 {
		return ""
	}
	for i := range f.keys {
		if f.keys[i] != f.keys[0] || f.keys[i] == "" || f.bodies[i] != body {
			f.Fatalf("the server saw the keys %q and the bodies %q", f.keys, f.bodies)
		}
	}
	return f.keys[0]
}

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// counted counts what a Transport sends.
type counted struct {
	http.RoundTripper
	n int
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	return c.RoundTripper.RoundTrip(r)
}

func newRequest(t *testing.T, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sent sends and requires the status of the answer.
func sent(t *testing.T, client *http.Client, r *http.Request, want int) *http.Response {
	t.Helper()
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != want {
		t.Fatalf("got %d, want %d", resp.StatusCode, want)
	}
	return resp
}

func newClient(t *testing.T, edits ...func(*idempotency.Transport)) (*http.Client, *counted) {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	c := &counted{RoundTripper: base}
	transport := &idempotency.Transport{Base: c}
	for _, edit := range edits {
		edit(transport)
	}
	return &http.Client{Transport: transport}, c
}

func TestTransportKeepsTheKeyOverRetries(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		handlers []http.HandlerFunc
		sends    int
		status   int
	}{
		"an answer that is lost":        {[]http.HandlerFunc{hangUp, status(201)}, 2, 201},
		"in flight":                     {[]http.HandlerFunc{status(409, "Retry-After", "0"), status(201)}, 2, 201},
		"too many":                      {[]http.HandlerFunc{status(429, "Retry-After", "0"), status(425), status(408), status(201)}, 4, 201},
		"errors of the server":          {[]http.HandlerFunc{status(500), status(502), status(503), status(201)}, 4, 201},
		"not for ever":                  {[]http.HandlerFunc{status(503)}, 5, 503},
		"a conflict of the service":     {[]http.HandlerFunc{status(409)}, 1, 409},
		"a refusal":                     {[]http.HandlerFunc{status(422)}, 1, 422},
		"an outcome that isn't known":   {[]http.HandlerFunc{status(500, "Idempotency-Status", "unknown")}, 1, 500},
		"an outcome that is a person's": {[]http.HandlerFunc{status(500, "Idempotency-Status", "manual")}, 1, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t, tc.handlers...)
			client, base := newClient(t)
			r := newRequest(t, f.server.URL, strings.NewReader("body"))
			sent(t, client, r, tc.status)
			key := f.saw(tc.sends, "body")
			if base.n != tc.sends || !strings.HasPrefix(key, `"`) || len(key) != 38 {
				t.Errorf("%d sends under the key %s", base.n, key)
			}
			// Whoever sends the same request again means the same.
			r.Body, _ = r.GetBody()
			if _, err := client.Do(r); err != nil {
				t.Log(err)
			}
			if f.mu.Lock(); f.keys[len(f.keys)-1] != key {
				t.Error("the same request got another key")
			}
			f.mu.Unlock()
		})
	}
}

func TestTransportKeepsTheKeyOverRedirects(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"body", ""} {
		f := newFar(t, status(307, "Location", "/other"), status(308, "Location", "/third"), status(201))
		client, _ := newClient(t)
		sent(t, client, newRequest(t, f.server.URL, strings.NewReader(body)), 201)
		f.saw(3, body)
	}
}

// R28: net/http repeats a request that has this header, on a connection that
// breaks; through a Transport it doesn't, and each send is counted.
func TestR28NoLayerBelowTheTransportRetries(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"body", ""} {
		t.Run(fmt.Sprintf("%q", body), func(t *testing.T) {
			t.Parallel()
			f := newFar(t, status(201), hangUp)
			client, base := newClient(t, func(tr *idempotency.Transport) { tr.Attempts = 1; tr.NewKey = func() string { return "k" } })
			sent(t, client, newRequest(t, f.server.URL, strings.NewReader(body)), 201)
			// The connection is used again now, and cut after the request was read.
			if resp, err := client.Do(newRequest(t, f.server.URL, strings.NewReader(body))); err == nil {
				resp.Body.Close()
				t.Error("got an answer")
			}
			f.saw(2, body)
			if base.n != 2 {
				t.Errorf("the transport sent %d times, the server saw 2", base.n)
			}
			// The same without a Transport, to show what is prevented.
			plain := newFar(t, status(201), hangUp)
			bare := &http.Client{Transport: &http.Transport{}}
			defer bare.CloseIdleConnections()
			for want := range 2 {
				r := newRequest(t, plain.server.URL, strings.NewReader(body))
				r.Header.Set("Idempotency-Key", "k")
				if resp, err := bare.Do(r); err == nil {
					resp.Body.Close()
				} else if want == 0 {
					t.Fatal(err)
				}
			}
			plain.saw(3, body)
		})
	}
}

// R28: a wait is never shortened; where it is too long the answer is returned.
func TestR28TransportNeverShortensAWait(t *testing.T) {
	t.Parallel()
	f := newFar(t, status(503, "Retry-After", "3600"))
	client, _ := newClient(t)
	sent(t, client, newRequest(t, f.server.URL, strings.NewReader("b")), 503)
	f.saw(1, "b")

	soon := newFar(t, status(409, "Retry-After", "20"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	sent(t, client, newRequest(t, soon.server.URL, strings.NewReader("b")).WithContext(ctx), 409)
	soon.saw(1, "b")

	waits := newFar(t, status(409, "Retry-After", "1"), status(201))
	began := time.Now()
	sent(t, client, newRequest(t, waits.server.URL, strings.NewReader("b")), 201)
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("it waited %v, asked for 1 s", waited)
	}
	waits.saw(2, "b")
}

func TestTransportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := newFar(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(503)
		cancel()
	})
	client, _ := newClient(t)
	resp, err := client.Do(newRequest(t, f.server.URL, strings.NewReader("b")).WithContext(ctx))
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	f.saw(1, "b")
}

func TestTransportBodies(t *testing.T) {
	t.Parallel()
	t.Run("without GetBody is kept", func(t *testing.T) {
		t.Parallel()
		f := newFar(t, status(503), status(201))
		client, _ := newClient(t)
		sent(t, client, newRequest(t, f.server.URL, io.MultiReader(strings.NewReader("a "), strings.NewReader("body"))), 201)
		f.saw(2, "a body")
	})
	t.Run("too long to be kept is sent once", func(t *testing.T) {
		t.Parallel()
		f := newFar(t, status(503), status(201))
		client, _ := newClient(t, func(tr *idempotency.Transport) { tr.MaxBody = 3 })
		sent(t, client, newRequest(t, f.server.URL, io.MultiReader(strings.NewReader("a "), strings.NewReader("body"))), 503)
		f.saw(1, "a body")
	})
	t.Run("that can't be read is an error", func(t *testing.T) {
		t.Parallel()
		f := newFar(t, status(201))
		client, _ := newClient(t)
		broken := errors.New("broken")
		if _, err := client.Do(newRequest(t, f.server.URL, io.NopCloser(errReader{broken}))); !errors.Is(err, broken) { //nolint:bodyclose // there is none
			t.Errorf("got %v", err)
		}
		f.saw(0, "")
	})
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestTransportLeavesOtherRequestsAlone(t *testing.T) {
	t.Parallel()
	f := newFar(t, status(503))
	client, _ := newClient(t)
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		r := newRequest(t, f.server.URL, nil)
		r.Method = method
		sent(t, client, r, 503)
	}
	if len(f.keys) != 3 || f.keys[0]+f.keys[1]+f.keys[2] != "" {
		t.Errorf("the server saw the keys %q", f.keys)
	}
}

func TestKeyOfTheCallersOwn(t *testing.T) {
	t.Parallel()
	f := newFar(t, status(503), status(201))
	client, _ := newClient(t)
	r := newRequest(t, f.server.URL, strings.NewReader("b"))
	if err := idempotency.SetKey(r.Header, `order "7"`); err != nil {
		t.Fatal(err)
	}
	sent(t, client, r, 201)
	if key := f.saw(2, "b"); key != `"order \"7\""` {
		t.Errorf("the server saw %s", key)
	}
	var wrong *idempotency.KeyError
	for _, key := range []string{"", strings.Repeat("k", 256), "a\nb"} {
		if err := idempotency.SetKey(http.Header{}, key); !errors.As(err, &wrong) {
			t.Errorf("a bad key: %v, want a KeyError", err)
		}
	}
	client, _ = newClient(t, func(tr *idempotency.Transport) { tr.NewKey = func() string { return "" } })
	if _, err := client.Do(newRequest(t, f.server.URL, nil)); !errors.As(err, &wrong) { //nolint:bodyclose // there is none
		t.Errorf("a NewKey that makes none: %v", err)
	}
	client, _ = newClient(t, func(tr *idempotency.Transport) { tr.Bare, tr.NewKey = true, func() string { return "bare" } })
	bare := newFar(t, status(201))
	sent(t, client, newRequest(t, bare.server.URL, nil), 201)
	if key := bare.saw(1, ""); key != "bare" {
		t.Errorf("the server saw %s", key)
	}
}

// R11, R28: inside a tool the key is the operation's, over the executor's own
// retries, and the transport makes none.
func TestR28InsideAToolTheExecutorRetries(t *testing.T) {
	t.Parallel()
	f := newFar(t, status(503), status(201))
	client, _ := newClient(t)
	attempts := 0
	tool := settle.Tool[struct {
		Order string `json:"order" settle:"identity"`
	}, string]{
		Name:     "charge",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true},
		Do: func(ctx context.Context, op settle.Op, in struct {
			Order string `json:"order" settle:"identity"`
		}) (string, error) {
			attempts = op.Attempt()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL, strings.NewReader(in.Order))
			if err != nil {
				return "", settle.NotSent(err)
			}
			resp, err := client.Do(r)
			if err != nil {
				return "", err
			}
			resp.Body.Close()
			if resp.StatusCode != 201 {
				return "", errors.New(resp.Status)
			}
			return op.Key(), nil
		},
	}
	x, err := settle.New(memory.New(), settle.Volatile(), settle.WithTools(tool))
	if err != nil {
		t.Fatal(err)
	}
	ctx := settle.WithTask(settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "shop", Subject: "agent"}), settle.Task{ID: "1", Goal: "charge"})
	out, err := x.Execute(ctx, settle.Call{Tool: "charge", Args: []byte(`{"order":"A-1"}`)})
	if err != nil || out.Status != settle.StatusCompleted {
		t.Fatalf("%+v, %v", out, err)
	}
	key, err := settle.Decode[string](out)
	if seen := f.saw(2, "A-1"); err != nil || seen != `"`+key+`"` || attempts != 2 {
		t.Errorf("the server saw %s in %d attempts, the operation's key is %s, %v", seen, attempts, key, err)
	}
}

// Both ends together, over a connection that loses the first answer.
func TestBothEndsTogether(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	lost := &losing{RoundTripper: &http.Transport{}}
	client := http.Client{Transport: &idempotency.Transport{Base: lost}}
	resp, err := client.Do(s.request("", `{"amount":1}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(resp)
	if err != nil || got.status != 201 || got.body != `{"id":"pay_1"}` || !idempotency.Replayed(resp) || idempotency.Pending(resp) || lost.n != 2 {
		t.Errorf("%+v after %d sends, %v", got, lost.n, err)
	}
	s.runs(1)
}

// losing loses the first answer.
type losing struct {
	http.RoundTripper
	n int
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if l.n++; l.n == 1 && err == nil {
		resp.Body.Close()
		return nil, errors.New("connection reset by peer")
	}
	return resp, err
}
