package idempotency_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/idempotency"
)

// asService makes the test's program a service on a ledger's file, to be killed.
const asService = "SETTLE_TEST_SERVICE_ON"

func TestMain(m *testing.M) {
	if file := os.Getenv(asService); file != "" {
		serveAndHang(file)
		return
	}
	pgtest.Main(m)
}

const route = "POST /payments"

// unsafe is the contract of a route that promises nothing.
var unsafe = settle.Contract{NoLookup: true, VisibilityDelay: settle.Immediately}

// lines is a log that a test can read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// service is an HTTP service behind a guard.
type service struct {
	*testing.T
	ledger   store.Ledger
	executor *settle.Executor
	guard    *idempotency.Guard
	mux      *http.ServeMux
	server   *httptest.Server
	log      *lines
	ran      atomic.Int64
	// front stands before the service, if it is set.
	front atomic.Pointer[http.Handler]
}

// tokens are the callers that the service knows.
func caller(r *http.Request) (settle.Principal, error) {
	switch token := r.Header.Get("Authorization"); token {
	case "":
		return settle.Principal{}, errors.New("no token")
	case "suspended":
		return settle.Principal{}, idempotency.ErrForbidden
	default:
		return settle.Principal{Tenant: "shop", Subject: token}, nil
	}
}

func openLedger(t *testing.T) store.Ledger {
	t.Helper()
	return openFile(t, filepath.Join(t.TempDir(), "settle.db"))
}

func openFile(t *testing.T, file string) store.Ledger {
	t.Helper()
	l, err := sqlite.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// serve starts a service with one route, POST /payments.
func serve(t *testing.T, c settle.Contract, handler http.HandlerFunc, edits ...func(*idempotency.Options)) *service {
	t.Helper()
	return serveOn(t, openLedger(t), []settle.AnyTool{idempotency.Declare(route, c)}, handler, edits...)
}

func serveOn(t *testing.T, ledger store.Ledger, declared []settle.AnyTool, handler http.HandlerFunc, edits ...func(*idempotency.Options)) *service {
	t.Helper()
	s := &service{T: t, ledger: ledger, mux: http.NewServeMux(), log: &lines{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	var err error
	if s.executor, err = settle.New(ledger, settle.WithGuarded(declared...), settle.WithLogger(log)); err != nil {
		t.Fatal(err)
	}
	o := idempotency.Options{Caller: caller, Challenge: "Bearer", StatusPath: "/idempotency", Log: log}
	for _, edit := range edits {
		edit(&o)
	}
	if s.guard, err = idempotency.New(s.executor, o); err != nil {
		t.Fatal(err)
	}
	s.route(route, "POST /payments", handler)
	s.mux.Handle("GET /idempotency", s.guard.Status())
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if front := s.front.Load(); front != nil {
			(*front).ServeHTTP(w, r)
			return
		}
		s.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.executor.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// route serves a guarded handler, and counts its runs.
func (s *service) route(name, pattern string, handler http.HandlerFunc) {
	s.Helper()
	h, err := s.guard.Protect(name, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ran.Add(1)
		handler(w, r)
	}))
	if err != nil {
		s.Fatal(err)
	}
	s.mux.Handle(pattern, h)
}

// request is a payment by ann under a key.
func (s *service) request(key, body string, edits ...func(*http.Request)) *http.Request {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.server.URL+"/payments", strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "ann")
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func by(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", token) }
}

func at(target string) func(*http.Request) {
	return func(r *http.Request) {
		u, err := r.URL.Parse(target)
		if err != nil {
			panic(err)
		}
		r.URL = u
	}
}

// reply is a response that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

func read(resp *http.Response) (reply, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

func (s *service) do(r *http.Request) reply {
	s.Helper()
	resp, err := s.server.Client().Do(r)
	if err != nil {
		s.Fatal(err)
	}
	got, err := read(resp)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

// pay sends a request and requires the status of its answer.
func (s *service) pay(status int, key, body string, edits ...func(*http.Request)) reply {
	s.Helper()
	got := s.do(s.request(key, body, edits...))
	if got.status != status {
		s.Fatalf("got %d %s, want %d", got.status, got.body, status)
	}
	return got
}

// refused sends a request and requires a problem.
func (s *service) refused(status int, problem, key, body string, edits ...func(*http.Request)) reply {
	s.Helper()
	got := s.pay(status, key, body, edits...)
	s.isProblem(got, problem)
	return got
}

func (s *service) isProblem(got reply, problem string) {
	s.Helper()
	var p struct {
		Type   string
		Status int
	}
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.header.Get("Content-Type") != "application/problem+json" {
		s.Fatalf("%d %q is no problem: %v", got.status, got.body, err)
	}
	if _, name, _ := strings.Cut(p.Type, "#"); name != problem || p.Status != got.status {
		s.Fatalf("got the problem %q with status %d in an answer of %d, want %q", name, p.Status, got.status, problem)
	}
}

// replayed sends a request and requires the recorded answer.
func (s *service) replayed(first reply, key, body string, edits ...func(*http.Request)) {
	s.Helper()
	got := s.pay(first.status, key, body, edits...)
	if got.body != first.body || got.header.Get("Idempotency-Replayed") != "true" || got.header.Get("Content-Type") != first.header.Get("Content-Type") {
		s.Fatalf("the replay is %+v, want what was answered first: %+v", got, first)
	}
}

func (s *service) runs(want int64) {
	s.Helper()
	if got := s.ran.Load(); got != want {
		s.Fatalf("the handler ran %d times, want %d", got, want)
	}
}

// ask asks the status endpoint.
func (s *service) ask(status int, key string, edits ...func(*http.Request)) map[string]any {
	s.Helper()
	r := s.request(key, "", append([]func(*http.Request){at("/idempotency?route=POST+%2Fpayments"), func(r *http.Request) {
		r.Method, r.Body, r.GetBody, r.ContentLength = http.MethodGet, nil, nil, 0
	}}, edits...)...)
	got := s.do(r)
	if got.status != status {
		s.Fatalf("the status endpoint answers %d %s, want %d", got.status, got.body, status)
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil {
		s.Fatal(err)
	}
	return doc
}

// created answers as a payment service does, with a number that grows.
func created() http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		id := "pay_" + string('0'+rune(n.Add(1)))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "/payments/"+id)
		w.Header().Set("Set-Cookie", "session=secret")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"id":"`+id+`"}`)
	}
}

// listAll is every operation of the tenant.
var listAll = store.Filter{Tenant: "shop"}
