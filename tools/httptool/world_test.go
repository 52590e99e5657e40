package httptool_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/httptool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var loopback = httptool.AllowAddresses(netip.MustParsePrefix("127.0.0.0/8"))

// host runs tools on a ledger.
type host struct {
	*testing.T
	x   *settle.Executor
	ctx context.Context
}

func onSQLite(t *testing.T, tools ...settle.AnyTool) *host {
	t.Helper()
	l, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "settle.db"))
	if err != nil {
		t.Fatal(err)
	}
	return on(t, l, tools...)
}

func on(t *testing.T, l store.Ledger, tools ...settle.AnyTool) *host {
	t.Helper()
	x, err := settle.New(l, settle.WithTools(tools...), settle.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := x.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "agent"})
	return &host{t, x, settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})}
}

func onEachLedger(t *testing.T, tools []settle.AnyTool, test func(h *host)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(onSQLite(t, tools...)) })
	t.Run("postgres", func(t *testing.T) {
		db := pgtest.New(t)
		l, err := postgres.New(t.Context(), db.Pool(t), postgres.WithSchema(db.Schema(t)))
		if err != nil {
			t.Fatal(err)
		}
		test(on(t, l, tools...))
	})
}

func (h *host) call(tool string, args any) settle.Outcome {
	h.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		h.Fatal(err)
	}
	out, err := h.x.Execute(h.ctx, settle.Call{Tool: tool, Args: raw, CallID: rand.Text()})
	if err != nil {
		h.Fatal(err)
	}
	return out
}

func (h *host) want(out settle.Outcome, status settle.Status) settle.Outcome {
	h.Helper()
	if out.Status != status {
		h.Fatalf("got %s (%s), want %s: %s", out.Status, out.Reason, status, out.ForModel())
	}
	return out
}

func (h *host) attempts(out settle.Outcome) int {
	h.Helper()
	d, err := h.x.Queue().Operation(settle.WithOperator(h.ctx, settle.Operator{Name: "test"}), out.Operation)
	if err != nil {
		h.Fatal(err)
	}
	return d.Attempts
}

// side is a far side that a test writes: it keeps what it was sent.
type side struct {
	*httptest.Server
	mu   sync.Mutex
	sent []sent
}

type sent struct {
	method, path, query, body string
	header                    http.Header
}

func newSide(t *testing.T, answer http.HandlerFunc) *side {
	t.Helper()
	s := &side{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.sent = append(s.sent, sent{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header})
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *side) requests() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sent(nil), s.sent...)
}

func newClient(t *testing.T, base string, options ...httptool.Option) *httptool.Client {
	t.Helper()
	c, err := httptool.NewClient(base, append([]httptool.Option{loopback}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func declare[In, Out any](t *testing.T, c *httptool.Client, spec httptool.Spec) settle.Tool[In, Out] {
	t.Helper()
	tool, err := httptool.New[In, Out](c, spec)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

type refundArgs struct {
	OrderID string      `json:"order_id" settle:"identity"`
	Amount  json.Number `json:"amount"`
}

type refunded struct {
	ID string `json:"id" settle:"resource"`
}

// refund is a Keyed tool on the payment service, with a lookup by key.
func refund(t *testing.T, pay *farside.Payments) settle.AnyTool {
	t.Helper()
	return declare[refundArgs, refunded](t, newClient(t, pay.URL()), httptool.Spec{
		Name:     "refund",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, VisibilityDelay: settle.Immediately},
		Request:  httptool.Request{Method: "POST", Path: "/refunds"},
		Lookup: &httptool.Lookup{
			Request: httptool.Request{Path: "/refunds", Query: map[string]string{"key": "{settle_key}"}},
			List:    "refunds", Compare: map[string]string{"order_id": "order_id"},
		},
	})
}
