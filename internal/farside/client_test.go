package farside_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/farside"
)

// idleConnections makes the client hold n idle connections to the far side:
// n requests at once, none answered before all have come.
func idleConnections(t *testing.T, f *farside.Faults, n int, act func(context.Context) error) {
	t.Helper()
	gate := farside.NewGate()
	f.Set(farside.Late(gate))
	var answers []<-chan error
	for range n {
		answers = append(answers, async(t.Context(), act))
	}
	for range n {
		<-gate.Entered()
	}
	gate.Release()
	for _, a := range answers {
		requireNoError(t, <-a)
	}
	f.Set(farside.DropBefore())
}

// plainRefund posts a refund as most HTTP clients do, with a body that net/http
// can rewind.
func plainRefund(ctx context.Context, client *http.Client, base string) error {
	body := bytes.NewReader([]byte(`{"order_id":"A1","amount":1}`))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/refunds", body)
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", "k")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func TestS16PlainClientResendsAKeyedPostOnIdleConnections(t *testing.T) {
	t.Parallel()
	pay, _ := newPayments(t, farside.KeepAlive())
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	act := func(ctx context.Context) error {
		return plainRefund(ctx, &http.Client{Transport: transport}, pay.URL())
	}
	idleConnections(t, &pay.Writes, 3, act)
	if err := act(t.Context()); err == nil {
		t.Fatal("expected the lost answer to be an error")
	}
	requireRequests(t, pay.Server, 3+4) // the last one was sent on each idle connection and on a new one
}

func TestS16ClientSendsEachRequestOnce(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t, farside.KeepAlive())
	refund := func(ctx context.Context) error {
		_, err := client.Refund(ctx, "k", "A1", "1")
		return err
	}
	idleConnections(t, &pay.Writes, 3, refund)
	requireKind(t, refund(t.Context()), farside.Unknown)
	requireRequests(t, pay.Server, 3+1)

	pay.Writes.Set(farside.OK())
	find := func(ctx context.Context) error {
		_, err := client.FindByKey(ctx, "k")
		return err
	}
	idleConnections(t, &pay.Reads, 3, find)
	requireKind(t, find(t.Context()), farside.Unknown)
	requireRequests(t, pay.Server, 3+1+3+1)
	requireEffects(t, pay.Server, 1)
}

func TestKeepAliveConnectionsBreakOnceTheFarSideRefuses(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t, farside.KeepAlive())
	refund := func(ctx context.Context) error {
		_, err := client.Refund(ctx, "k", "A1", "1")
		return err
	}
	requireNoError(t, refund(t.Context()))
	pay.Refuse()
	requireKind(t, refund(t.Context()), farside.Unknown) // the idle connection
	requireKind(t, refund(t.Context()), farside.NotSent)
	requireRequests(t, pay.Server, 1)
}

func TestR27StatusesAreClassified(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t)
	kinds := map[farside.Kind][]int{
		farside.Rejected: {400, 401, 403, 404, 410, 412, 422, 451},
		farside.Unknown:  {307, 308, 408, 409, 425, 429, 500, 501, 502, 503, 504},
	}
	for kind, statuses := range kinds {
		for _, status := range statuses {
			pay.Writes.Next(farside.StatusBefore(status).RetryAfter(7 * time.Second))
			_, err := client.Refund(t.Context(), "k", "A1", "1")
			e := requireKind(t, err, kind)
			if e.Status != status || e.RetryAfter != 7*time.Second || e.Code != "fault" {
				t.Fatalf("status %d: got %+v", status, e)
			}
			if farside.WasRejected(err) != (kind == farside.Rejected) || farside.WasNotSent(err) {
				t.Fatalf("status %d: the predicates disagree with kind %d", status, kind)
			}
		}
	}
	requireEffects(t, pay.Server, 0)
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}))
	client := farside.NewPaymentsClient(elsewhere.URL)
	closeAfter(t, elsewhere, client)
	_, err := client.Refund(t.Context(), "k", "A1", "1")
	if e := requireKind(t, err, farside.Unknown); e.Status != http.StatusFound || requests.Load() != 1 {
		t.Fatalf("expected one request and its redirect, got %d requests and status %d", requests.Load(), e.Status)
	}
}

func TestR27OnlyWhatNeverHadAConnectionIsNotSent(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t)
	refund := func(ctx context.Context, c *farside.PaymentsClient) error {
		_, err := c.Refund(ctx, "k", "A1", "1")
		return err
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	err := refund(cancelled, client)
	requireKind(t, err, farside.NotSent)
	if !farside.WasNotSent(err) || !errors.Is(err, context.Canceled) {
		t.Fatalf("expected a cancelled request that wasn't sent, got %v", err)
	}

	tls := farside.NewPaymentsClient(strings.Replace(pay.URL(), "http:", "https:", 1))
	closeAfter(t, tls)
	requireKind(t, refund(t.Context(), tls), farside.NotSent) // no handshake with a plain server

	_, err = client.Refund(t.Context(), "k", "A1", "no number")
	requireKind(t, err, farside.NotSent)
	requireRequests(t, pay.Server, 0)

	gate := farside.NewGate()
	pay.Writes.Next(farside.Slow(gate))
	ctx, stop := context.WithCancel(t.Context())
	answer := async(ctx, func(ctx context.Context) error { return refund(ctx, client) })
	<-gate.Entered()
	stop()
	requireKind(t, <-answer, farside.Unknown)
	gate.Release()
}

func TestR55ErrorsHoldNoValues(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t)
	modes := []farside.Mode{
		farside.DropBefore(), farside.Unparsable(), farside.Reject(422, "code-s3cret"), farside.StatusAfter(500),
		farside.OK().ThenRefuse(), farside.OK(),
	}
	pay.Writes.Next(modes...)
	pay.Reads.Next(modes[:4]...)
	var errs []error
	for range modes {
		_, err := client.FindByKey(t.Context(), "key-s3cret")
		errs = append(errs, err)
		_, err = client.Refund(t.Context(), "key-s3cret", "order-s3cret", "1")
		errs = append(errs, err)
	}
	seen := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		seen++
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("a value is in the error: %v", err)
		}
	}
	if seen < len(modes) {
		t.Fatalf("expected more than %d failures to look at, got %d", len(modes), seen)
	}
}
