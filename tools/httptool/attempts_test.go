package httptool_test

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/tools/httptool"
)

func TestS16TheFarSideSeesTheAttemptsOfTheLedger(t *testing.T) {
	t.Parallel()
	pay := farside.NewPayments(farside.KeepAlive())
	t.Cleanup(pay.Close)
	onEachLedger(t, []settle.AnyTool{refund(t, pay)}, func(h *host) {
		before, effects := len(pay.Requests()), len(pay.Effects())
		// Warm connections are what an HTTP client sends again on by itself.
		gate := farside.NewGate()
		pay.Writes.Next(farside.Late(gate), farside.Late(gate), farside.Late(gate))
		var warm sync.WaitGroup
		for _, order := range []string{"W1", "W2", "W3"} {
			warm.Go(func() { h.call("refund", map[string]any{"order_id": order, "amount": 1}) })
		}
		for range 3 {
			<-gate.Entered()
		}
		gate.Release()
		warm.Wait()

		pay.Writes.Next(farside.DropBefore(), farside.CommitThenDrop())
		out := h.want(h.call("refund", map[string]any{"order_id": "A1", "amount": 42}), settle.StatusCompleted)
		writes := 0
		for _, r := range pay.Requests()[before:] {
			if r.Method == http.MethodPost {
				writes++
			}
		}
		if n := h.attempts(out); writes-3 != n {
			t.Errorf("the far side saw %d requests, the ledger %d attempts", writes-3, n)
		}
		if n := len(pay.Effects()) - effects; n != 4 {
			t.Errorf("%d effects, want 4", n)
		}
	})
}

// A request without a body is one that net/http sends again by itself, a POST with
// a key among them.
func TestS16ARequestWithoutABodyIsSentOnce(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "GET", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			entered, release := make(chan struct{}), make(chan struct{})
			var mu sync.Mutex
			dropping := false
			far := newSide(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				drop := dropping
				mu.Unlock()
				if drop {
					conn, _, err := http.NewResponseController(w).Hijack()
					if err == nil {
						conn.Close()
					}
					return
				}
				entered <- struct{}{}
				<-release
				w.Write([]byte(`{"id":"c1"}`))
			})
			tool := declare[refundArgs, refunded](t, newClient(t, far.URL), httptool.Spec{
				Name: "cancel", Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true, Attempts: 1},
				Request: httptool.Request{Method: method, Path: "/orders/{order_id}/cancel", Query: map[string]string{"amount": "{amount}"}, NoBody: true},
			})
			h := onSQLite(t, tool)
			var warm sync.WaitGroup
			for _, order := range []string{"W1", "W2", "W3"} {
				warm.Go(func() { h.call("cancel", map[string]any{"order_id": order, "amount": 1}) })
			}
			for range 3 {
				<-entered
			}
			close(release)
			warm.Wait()
			mu.Lock()
			dropping = true
			mu.Unlock()
			h.want(h.call("cancel", map[string]any{"order_id": "A1", "amount": 1}), settle.StatusUnknown)
			if n := len(far.requests()); n != 3+1 {
				t.Errorf("the far side saw %d requests of one attempt", n-3)
			}
		})
	}
}

func TestR27WhatNeverHadAConnectionIsNotSent(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + closed.Addr().String()
	closed.Close()
	far := newSide(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"r1"}`)) })
	for name, base := range map[string]string{
		"refused":      refusing,
		"no TLS":       strings.Replace(far.URL, "http:", "https:", 1),
		"no such host": "http://nobody.invalid",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := unsafeRefund(t, newClient(t, base), nil)
			if out.Status != settle.StatusNotDone {
				t.Errorf("got %s, want not_done", out.Status)
			}
		})
	}
	t.Cleanup(func() {
		if n := len(far.requests()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// unsafeRefund makes one call of a tool that nothing repeats.
func unsafeRefund(t *testing.T, c *httptool.Client, edit func(*httptool.Spec)) settle.Outcome {
	t.Helper()
	spec := httptool.Spec{Name: "refund", Contract: settle.Contract{NoLookup: true, Timeout: 5 * time.Second},
		Request: httptool.Request{Method: "POST", Path: "/refunds"}}
	if edit != nil {
		edit(&spec)
	}
	h := onSQLite(t, declare[refundArgs, refunded](t, c, spec))
	return h.call("refund", map[string]any{"order_id": "order-s3cret", "amount": 42})
}

func TestR27FromTheFirstByteOnItIsUnknown(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				conn.Close()
			}
		},
		"never answered": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte(`{"id":`))
		},
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`<html>`)) },
		"wrong type": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":7}`)) },
		"too long": func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"id":"` + strings.Repeat("x", 5000) + `"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := newSide(t, answer)
			out := unsafeRefund(t, newClient(t, far.URL, httptool.MaxAnswer(4096)), func(s *httptool.Spec) { s.Contract.Timeout = time.Second })
			if out.Status != settle.StatusUnknown {
				t.Errorf("got %s, want unknown", out.Status)
			}
			if n := len(far.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestR27Statuses(t *testing.T) {
	t.Parallel()
	wants := map[settle.Status][]int{
		settle.StatusCompleted: {200, 201, 203, 204, 205},
		settle.StatusFailed:    {400, 401, 403, 404, 405, 410, 412, 413, 422, 451},
		settle.StatusUnknown:   {202, 206, 207, 226, 300, 301, 302, 303, 304, 307, 308, 408, 409, 425, 429, 500, 501, 502, 503, 504, 599},
	}
	for want, statuses := range wants {
		for _, status := range statuses {
			far := newSide(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			})
			out := unsafeRefund(t, newClient(t, far.URL), nil)
			if out.Status != want {
				t.Errorf("status %d: got %s, want %s", status, out.Status, want)
			}
			if n := len(far.requests()); n != 1 {
				t.Errorf("status %d: %d requests", status, n)
			}
		}
	}
}

func TestR27TheHostMayKnowBetter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		status int
		header string
		edit   func(*httptool.Spec)
		want   settle.Status
		wait   time.Duration
	}{
		{"throttled", 429, "70", func(s *httptool.Spec) { s.ThrottlesBeforeActing = true }, settle.StatusNotDone, time.Minute},
		{"unavailable", 503, "70", func(s *httptool.Spec) { s.ThrottlesBeforeActing = true }, settle.StatusNotDone, time.Minute},
		{"throttled beyond counting", 429, "99999999999999999999", func(s *httptool.Spec) { s.ThrottlesBeforeActing = true }, settle.StatusNotDone, time.Minute},
		{"throttled without a time", 429, "", func(s *httptool.Spec) { s.ThrottlesBeforeActing = true }, settle.StatusUnknown, 0},
		{"a bad gateway isn't throttling", 502, "70", func(s *httptool.Spec) { s.ThrottlesBeforeActing = true }, settle.StatusUnknown, 0},
		{"not authorised", 401, "", func(s *httptool.Spec) { s.Meanings = map[int]httptool.Meaning{401: httptool.NotSent} }, settle.StatusNotDone, 0},
		{"accepted is done", 202, "", func(s *httptool.Spec) { s.Meanings = map[int]httptool.Meaning{202: httptool.Happened} }, settle.StatusCompleted, 0},
		{"already so", 409, "", func(s *httptool.Spec) {
			s.Meanings = map[int]httptool.Meaning{409: httptool.AlreadySo}
			s.Contract = settle.Contract{Class: settle.Idempotent}
		}, settle.StatusCompleted, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			far := newSide(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.header != "" {
					w.Header().Set("Retry-After", tc.header)
				}
				w.WriteHeader(tc.status)
				w.Write([]byte(`{"id":"r7"}`))
			})
			out := unsafeRefund(t, newClient(t, far.URL), tc.edit)
			if out.Status != tc.want {
				t.Errorf("got %s, want %s", out.Status, tc.want)
			}
			if tc.wait > 0 && time.Until(out.NotBefore) < tc.wait {
				t.Errorf("not before %v, and the far side asked for 70 s", out.NotBefore)
			}
			if out.Status == settle.StatusCompleted && out.Resource != "r7" {
				t.Errorf("the resource is %q", out.Resource)
			}
		})
	}
}

func TestR33LookupAnswers(t *testing.T) {
	t.Parallel()
	list := func(l *httptool.Lookup) { l.List = "data" }
	states := func(l *httptool.Lookup) {
		l.State, l.States = "state", map[string]httptool.State{"paid": httptool.Done, "queued": httptool.Running, "void": httptool.Void}
	}
	none := func(*httptool.Lookup) {}
	for _, tc := range []struct {
		name, answer string
		status       int
		edit         func(*httptool.Lookup)
		want         settle.Status
	}{
		{"one of a list", `{"data":[{"id":"r1"}]}`, 200, list, settle.StatusCompleted},
		{"none of a list", `{"data":[]}`, 200, list, settle.StatusNotDone},
		{"several", `{"data":[{"id":"r1"},{"id":"r2"}]}`, 200, list, settle.StatusManual},
		{"no list", `{"rows":[]}`, 200, list, settle.StatusUnknown},
		{"it itself", `{"id":"r1"}`, 200, none, settle.StatusCompleted},
		{"a 404 that isn't declared", `{}`, 404, none, settle.StatusUnknown},
		{"a 404 that is", `{}`, 404, func(l *httptool.Lookup) { l.NotFound = []int{404} }, settle.StatusNotDone},
		{"a 500", `{"id":"r1"}`, 500, none, settle.StatusUnknown},
		{"no JSON", `<html>`, 200, none, settle.StatusUnknown},
		{"done", `{"id":"r1","state":"paid"}`, 200, states, settle.StatusCompleted},
		{"at work", `{"id":"r1","state":"queued"}`, 200, states, settle.StatusUnknown},
		{"undone", `{"id":"r1","state":"void"}`, 200, states, settle.StatusNotDone},
		{"a new state", `{"id":"r1","state":"odd"}`, 200, states, settle.StatusUnknown},
		{"the same", `{"id":"r1","sum":42.0}`, 200, func(l *httptool.Lookup) { l.Compare = map[string]string{"amount": "sum"} }, settle.StatusCompleted},
		{"another", `{"id":"r1","sum":43}`, 200, func(l *httptool.Lookup) { l.Compare = map[string]string{"amount": "sum"} }, settle.StatusManual},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			far := newSide(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				w.WriteHeader(tc.status)
				w.Write([]byte(tc.answer))
			})
			l := &httptool.Lookup{Request: httptool.Request{Path: "/refunds/{settle_key}"}}
			tc.edit(l)
			tool := declare[refundArgs, refunded](t, newClient(t, far.URL), httptool.Spec{Name: "refund", Lookup: l,
				Contract: settle.Contract{VisibilityDelay: settle.Immediately}, Request: httptool.Request{Method: "POST", Path: "/refunds"}})
			h := onSQLite(t, tool)
			args := map[string]any{"order_id": "A1", "amount": 42}
			h.want(h.call("refund", args), tc.want) // it looks at once
		})
	}
}
