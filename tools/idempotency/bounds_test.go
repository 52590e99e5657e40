package idempotency_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settle-go/settle/tools/idempotency"
)

// A limit that says "none" reads every body to its end, and none as empty.
func TestLargestLimitsTakeEveryBody(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Write(body)
	}, func(o *idempotency.Options) { o.MaxBody = math.MaxInt64 })
	if got := s.pay(200, "k", `{"amount":1}`); got.body != `{"amount":1}` {
		t.Errorf("the handler got the body %q", got.body)
	}
	s.refused(422, "key-reused", "k", `{"amount":2}`)
	client, _ := newClient(t, func(tr *idempotency.Transport) { tr.MaxBody = math.MaxInt64 })
	r := s.request("k2", "")
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(`{"amount":3}`)), -1, nil
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(resp); err != nil || got.body != `{"amount":3}` {
		t.Errorf("what the transport kept arrived as %q, error %v", got.body, err)
	}
}

// JSON with more values, depth or digits than can be compared counts byte for
// byte, as what is too long does.
func TestJSONBeyondWhatIsComparedCountsByteForByte(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body     string
		compared bool
	}{
		"9,990 values":  {`[` + strings.Repeat("7,", 9_988) + `7]`, true},
		"9,991 values":  {`[` + strings.Repeat("7,", 9_989) + `7]`, false},
		"20,000 values": {`[` + strings.Repeat("7,", 19_998) + `7]`, false},
		"63 levels":     {strings.Repeat("[", 63) + strings.Repeat("]", 63), true},
		"64 levels":     {strings.Repeat("[", 64) + strings.Repeat("]", 64), false},
		"2,000 digits":  {`{"n":` + strings.Repeat("7", 2_000) + `}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, unsafe, created())
			first := s.pay(201, "k", tc.body)
			s.replayed(first, "k", tc.body)
			if tc.compared {
				s.replayed(first, "k", " "+tc.body)
			} else {
				s.refused(422, "key-reused", "k", " "+tc.body)
			}
			s.runs(1)
		})
	}
}

// A wait that is longer than can be counted is a long one, not none.
func TestR28AWaitBeyondCountingIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, wait := range []string{"99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		s := serve(t, unsafe, status(http.StatusServiceUnavailable, "Retry-After", wait), func(o *idempotency.Options) { o.Free = []int{503} })
		s.pay(503, "k", `{}`)
		if got := s.refused(503, "not-done", "k", `{}`); got.header.Get("Retry-After") != "315360000" {
			t.Errorf("told to wait for %s s where the handler said %s", got.header.Get("Retry-After"), wait)
		}
		s.runs(1)
		client, base := newClient(t)
		sent(t, client, s.request("k", `{}`), 503)
		if base.n != 1 {
			t.Errorf("sent %d times before the wait of %s was over", base.n, wait)
		}
	}
}

// A status that is none is the handler's own panic: nothing is recorded that
// can't be sent.
func TestStatusThatIsNoneIsAPanicOfTheHandler(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 99, 1000} {
		s := serve(t, unsafe, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		s.refused(500, "outcome-unknown", "k", `{}`)
		s.refused(409, "outcome-unknown", "k", `{}`)
		s.runs(1)
	}
}

// trickle is a body that never ends, until it is closed.
type trickle struct{ closed chan struct{} }

func (b trickle) Read([]byte) (int, error) { <-b.closed; return 0, http.ErrBodyReadAfterClose }
func (b trickle) Close() error             { close(b.closed); return nil }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The rest of an answer that asks for another send isn't waited for beyond the
// pause.
func TestTransportDoesntHangOnABodyThatNeverEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		base := roundTrip(func(r *http.Request) (*http.Response, error) {
			if n.Add(1) == 1 {
				h := http.Header{"Retry-After": {"3"}}
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: h, Body: trickle{make(chan struct{})}, Request: r}, nil
			}
			w := httptest.NewRecorder()
			w.WriteHeader(http.StatusCreated)
			return w.Result(), nil
		})
		began := time.Now()
		resp, err := (&idempotency.Transport{Base: base}).RoundTrip(httptest.NewRequest(http.MethodPost, "/payments", nil))
		if err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("got %v, error %v", resp, err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 10*time.Second {
			t.Errorf("took %v, where the answer asked for 3 s", took)
		}
	})
}
