package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/tools/webhook"
)

// answering is a receiver that answers everything in one way.
func answering(t testing.TB, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

func sinkTo(t testing.TB, to string, change ...func(*webhook.Config)) *webhook.Sink {
	t.Helper()
	c := webhook.Config{URL: to, Source: "https://desk.example/agents", Secrets: []string{vectorSecret}}
	for _, f := range change {
		f(&c)
	}
	s, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// delivery is an event with everything in it.
func delivery() settle.Delivery {
	return settle.Delivery{ID: "018f-1", Type: "item.reserved", Operation: "op-1", Tenant: "acme", Subject: "agent", Task: "case-42", Goal: "late-parcel",
		At: time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.FixedZone("", 3600)), Number: 3, Data: json.RawMessage(`{"sum":1234567890123456789012,"note":"a<b"}`)}
}

func TestDeliveryIsASignedCloudEvent(t *testing.T) {
	t.Parallel()
	erased := delivery()
	erased.Data, erased.Goal = nil, ""
	for name, tc := range map[string]struct {
		of   settle.Delivery
		want string
	}{
		"whole":  {delivery(), `{"specversion":"1.0","id":"018f-1","source":"https://desk.example/agents","type":"item.reserved","subject":"op-1","time":"2026-03-01T11:00:00.25Z","settletenant":"acme","settlesubject":"agent","settletask":"case-42","settlegoal":"late-parcel","datacontenttype":"application/json","data":{"sum":1234567890123456789012,"note":"a<b"}}`},
		"erased": {erased, `{"specversion":"1.0","id":"018f-1","source":"https://desk.example/agents","type":"item.reserved","subject":"op-1","time":"2026-03-01T11:00:00.25Z","settletenant":"acme","settlesubject":"agent","settletask":"case-42"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := time.Unix(vectorTimestamp, 0)
			receiver := answering(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != tc.want {
					t.Errorf("the body is\n%s\nand should be\n%s (%v)", body, tc.want, err)
				}
				if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/cloudevents+json" || r.Header.Get("webhook-id") != "018f-1" {
					t.Errorf("%s with the headers %v", r.Method, r.Header)
				}
				// Each secret signs: who knows the old or the new one accepts it.
				for _, known := range []string{vectorSecret, secret("new"), strings.TrimRight(secret("new"), "=")} {
					if err := verifier(t, at, known).Verify(r.Header, body); err != nil {
						t.Error(err)
					}
				}
				if err := verifier(t, at, secret("other")).Verify(r.Header, body); err == nil {
					t.Error("another secret accepts it")
				}
			})
			sink := sinkTo(t, receiver.URL, func(c *webhook.Config) {
				c.Secrets = []string{secret("new"), vectorSecret}
				c.Now = func() time.Time { return at }
			})
			if err := sink.Deliver(t.Context(), tc.of); err != nil {
				t.Error(err)
			}
		})
	}
}

// relayed makes one pass over one event to the sink, and says what became of it.
func relayed(t *testing.T, sink settle.Sink) (report settle.RelayReport, next time.Duration) {
	t.Helper()
	x, err := settle.New(memory.New(), settle.Volatile(), settle.WithTools(reserve()), settle.WithOutbox(sink),
		settle.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Shutdown(context.Background()) })
	ctx := scope(t.Context())
	if _, err := x.Execute(ctx, reserving("chair")); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if report, err = x.Relay(ctx); err != nil || report.Fetched != 1 {
		t.Fatalf("%+v, error %v", report, err)
	}
	waiting, err := x.Queue().Undelivered(operator(ctx), settle.OutgoingEventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range waiting[:min(len(waiting), 1)] {
		next = e.NextAt.Sub(before)
	}
	return report, next
}

func TestR54WhatAnswersMean(t *testing.T) {
	t.Parallel()
	const (
		taken = iota
		again
		dead
	)
	for status, want := range map[int]int{
		200: taken, 201: taken, 202: taken, 204: taken,
		301: again, 302: again, 307: again, 308: again,
		400: again, 401: again, 403: again, 404: again, 405: again, 408: again, 409: again, 425: again, 429: again,
		410: dead, 413: dead, 415: dead, 422: dead,
		500: again, 501: again, 502: again, 503: again, 504: again, 599: again,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var elsewhere atomic.Int64
			other := answering(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
			receiver := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", other.URL)
				w.WriteHeader(status)
			})
			report, next := relayed(t, sinkTo(t, receiver.URL))
			got := map[settle.RelayReport]int{{Fetched: 1, Delivered: 1}: taken, {Fetched: 1, Failed: 1}: again, {Fetched: 1, Dead: 1}: dead}[report]
			if got != want || report == (settle.RelayReport{Fetched: 1}) {
				t.Errorf("%d: %+v", status, report)
			}
			if next > 5*time.Second {
				t.Errorf("%d: it comes again in %v", status, next)
			}
			if n := elsewhere.Load(); n != 0 {
				t.Errorf("%d: the redirect was followed", status)
			}
		})
	}
}

func TestR54RetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		status int
		after  string
		want   time.Duration
	}{
		"seconds":              {503, "1800", 30 * time.Minute},
		"seconds of a limit":   {429, "90", 90 * time.Second},
		"a date":               {503, "Sun, 01 Mar 2026 13:00:00 GMT", time.Hour},
		"a date of a limit":    {429, "Sun, 01 Mar 2026 12:10:00 GMT", 10 * time.Minute},
		"a date that is past":  {503, "Sun, 01 Mar 2026 11:00:00 GMT", time.Second},
		"more than a day":      {503, "86400000", 24 * time.Hour},
		"beyond counting":      {503, "99999999999999999999", 24 * time.Hour},
		"a date in a decade":   {503, "Sun, 01 Mar 2036 12:00:00 GMT", 24 * time.Hour},
		"nothing of the kind":  {503, "soon", time.Second},
		"less than nothing":    {503, "-5", time.Second},
		"not with this status": {500, "1800", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver := answering(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tc.after)
				w.WriteHeader(tc.status)
			})
			report, next := relayed(t, sinkTo(t, receiver.URL, func(c *webhook.Config) { c.Now = func() time.Time { return at } }))
			if report.Failed != 1 || next < tc.want*3/4 || next > tc.want+20*time.Second {
				t.Errorf("%+v: it comes again in %v, want %v", report, next, tc.want)
			}
		})
	}
}

func TestR54NoAnswerComesAgain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"broken off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"too late": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the sender go
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver := answering(t, answer)
			sink := sinkTo(t, receiver.URL, func(c *webhook.Config) { c.Client = &http.Client{Timeout: 500 * time.Millisecond} })
			if report, _ := relayed(t, sink); report.Failed != 1 {
				t.Errorf("%+v", report)
			}
		})
	}
}

// A receiver that answers without an end is neither read to it nor waited for.
func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	receiver := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 32<<10); ; {
			n, err := w.Write(chunk)
			if written.Add(int64(n)); err != nil || written.Load() > 1<<30 {
				return
			}
		}
	})
	if err := sinkTo(t, receiver.URL).Deliver(t.Context(), delivery()); err != nil {
		t.Error(err)
	}
	receiver.Close()
	if n := written.Load(); n > 64<<20 {
		t.Errorf("%d bytes of the answer were taken", n)
	}
}

func TestR55ErrorsNameNeitherReceiverNorSecret(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	redirects := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://elsewhere.example/?token=s3cr3t")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "s3cr3t")
	})
	gone := answering(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	for name, to := range map[string]string{"closed": closed.URL, "redirect": redirects.URL, "gone": gone.URL, "no such host": "http://nowhere.invalid"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := sinkTo(t, to+"/hook?token=s3cr3t").Deliver(t.Context(), delivery())
			var failed *webhook.DeliveryError
			if !errors.As(err, &failed) || (failed.Status == 0) != (failed.Unwrap() != nil) {
				t.Fatalf("the error is %v", err)
			}
			for _, private := range []string{"s3cr3t", "127.0.0.1", "nowhere", "elsewhere", "MfKQ", "acme", "case-42"} {
				if strings.Contains(err.Error(), private) {
					t.Errorf("the error names %q: %v", private, err)
				}
			}
			if cause := failed.Unwrap(); cause != nil && strings.Contains(cause.Error(), "s3cr3t") {
				t.Errorf("the cause has the secret: %v", cause)
			}
		})
	}
}

func TestConfigThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]webhook.Config{
		"no URL":         {Source: "desk", Secrets: []string{vectorSecret}},
		"relative URL":   {URL: "/s3cr3t", Source: "desk", Secrets: []string{vectorSecret}},
		"another scheme": {URL: "ftp://s3cr3t.example", Source: "desk", Secrets: []string{vectorSecret}},
		"no URL at all":  {URL: "http://s3cr3t:port:", Source: "desk", Secrets: []string{vectorSecret}},
		"no source":      {URL: "https://example.com", Secrets: []string{vectorSecret}},
		"bad source":     {URL: "https://example.com", Source: "s3cr3t%zz", Secrets: []string{vectorSecret}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := webhook.New(c); err == nil || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
