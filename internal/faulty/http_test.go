package faulty_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/settle-go/settle/internal/faulty"
)

// farSide is an HTTP server that counts its effects, behind a proxy.
type farSide struct {
	proxy   *faulty.Proxy
	client  *http.Client
	effects atomic.Int64
}

func newFarSide(t *testing.T) *farSide {
	t.Helper()
	var f farSide
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		f.effects.Add(1)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	f.proxy = faulty.NewProxy(t, server.Listener.Addr().String())
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	f.client = &http.Client{Transport: transport}
	return &f
}

// post returns what the far side answered.
func (f *farSide) post(t *testing.T, body string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+f.proxy.Addr(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}

func (f *farSide) mustPost(t *testing.T, body string) {
	t.Helper()
	answer, err := f.post(t, body)
	if err != nil || answer != body {
		t.Fatalf("posted %q, got %q and error %v", body, answer, err)
	}
}

func TestHTTPRequestsThroughFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		fault   faulty.Fault
		effects int64
	}{
		{"cut before", faulty.Fault{Request: "second", Do: faulty.CutBefore}, 1},
		{"lose the answer", faulty.Fault{Request: "second", Do: faulty.LoseAnswer}, 2},
		{"lose the next answer", faulty.Fault{Do: faulty.LoseAnswer}, 2},
		{"await a part of the answer", faulty.Fault{Do: faulty.LoseAnswer, Answer: "second"}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFarSide(t)
			f.mustPost(t, "first")
			fault := f.proxy.Arm(tc.fault)
			if answer, err := f.post(t, "second"); err == nil {
				t.Errorf("got the answer %q through a fault", answer)
			}
			<-fault.Done()
			if n := f.effects.Load(); n != tc.effects {
				t.Errorf("%d effects, want %d", n, tc.effects)
			}
			f.mustPost(t, "third")
		})
	}
}

func TestNextRequestIsCountedByTurns(t *testing.T) {
	t.Parallel()
	f := newFarSide(t)
	f.proxy.Arm(faulty.Fault{Skip: 2, Do: faulty.LoseAnswer})
	f.mustPost(t, "first")
	// Longer than one read: still one request.
	f.mustPost(t, strings.Repeat("x", 1<<20))
	if _, err := f.post(t, "third"); err == nil {
		t.Error("got an answer to the third request, want it lost")
	}
	if n := f.effects.Load(); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
}

func TestRefuseAndAdmit(t *testing.T) {
	t.Parallel()
	f := newFarSide(t)
	f.mustPost(t, "first")
	f.proxy.Refuse()
	f.mustPost(t, "on the present connection")
	f.client.CloseIdleConnections()
	if _, err := f.post(t, "refused"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v while connections are refused, want %v", err, syscall.ECONNREFUSED)
	}
	f.proxy.Admit()
	f.mustPost(t, "second")
	if n := f.effects.Load(); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
}
