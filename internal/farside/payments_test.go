package farside_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/farside"
)

func TestPaymentsDeduplicateOnTheKey(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t)
	first, err := client.Refund(t.Context(), "k", "A1", "42.1")
	requireNoError(t, err)
	again, err := client.Refund(t.Context(), "k", "A1", "42.10") // the same amount
	requireNoError(t, err)
	if again != first {
		t.Fatalf("expected the first answer %+v again, got %+v", first, again)
	}
	for _, other := range [][2]string{{"A1", "42.11"}, {"A2", "42.1"}} {
		_, err = client.Refund(t.Context(), "k", other[0], other[1])
		if e := requireKind(t, err, farside.Rejected); e.Status != 422 || e.Code != "key_reused" {
			t.Fatalf("expected 422 key_reused, got %d %s", e.Status, e.Code)
		}
	}
	requireEffects(t, pay.Server, 1)
	for range 2 {
		_, err = client.Refund(t.Context(), "", "A1", "42.1") // no key, no deduplication
		requireNoError(t, err)
	}
	requireEffects(t, pay.Server, 3)
}

func TestPaymentsDeduplicateConcurrentRequests(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t)
	gate := farside.NewGate()
	pay.Writes.Set(farside.Slow(gate))
	const callers = 32
	ids := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			r, err := client.Refund(t.Context(), "k", "A1", "1")
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
			ids[i] = r.ID
		})
	}
	for range callers {
		<-gate.Entered()
	}
	gate.Release()
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("expected one refund for all, got %v", ids)
		}
	}
	requireEffects(t, pay.Server, 1)
	requireRequests(t, pay.Server, callers)
}

func TestPaymentsForgetKeys(t *testing.T) {
	t.Parallel()
	c := newClock()
	pay, client := newPayments(t, farside.Clock(c.now), farside.ForgetsKeysAfter(24*time.Hour))
	refund := func() {
		_, err := client.Refund(t.Context(), "k", "A1", "1")
		requireNoError(t, err)
	}
	refund()
	c.advance(24*time.Hour - time.Second)
	refund()
	requireEffects(t, pay.Server, 1)
	c.advance(time.Second)
	refund()
	requireEffects(t, pay.Server, 2)
	found, err := client.FindByKey(t.Context(), "k")
	requireNoError(t, err)
	if len(found) != 2 {
		t.Fatalf("expected the lookup to find both, got %+v", found)
	}
}

func TestLookupsSeeItOnlyOnceVisible(t *testing.T) {
	t.Parallel()
	c := newClock()
	pay, client := newPayments(t, farside.Clock(c.now))
	pay.Configure(farside.VisibleAfter(time.Minute))
	_, err := client.Refund(t.Context(), "k", "A1", "1")
	requireNoError(t, err)
	for _, step := range []struct {
		by   time.Duration
		want int
	}{{0, 0}, {time.Minute - 1, 0}, {1, 1}} {
		c.advance(step.by)
		found, err := client.FindByKey(t.Context(), "k")
		requireNoError(t, err)
		if len(found) != step.want {
			t.Fatalf("expected %d refunds to be visible, got %+v", step.want, found)
		}
	}
	again, err := client.Refund(t.Context(), "k", "A1", "1") // deduplication doesn't wait for that
	requireNoError(t, err)
	if again.ID != "re_0001" {
		t.Fatalf("expected the first refund again, got %+v", again)
	}
}

func TestPaymentsRefuseWhatIsNoRefund(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t)
	for _, amount := range []string{"0", "-1", "0.00", "1e9"} {
		_, err := client.Refund(t.Context(), "k", "A1", amount)
		if e := requireKind(t, err, farside.Rejected); e.Status != 422 {
			t.Fatalf("amount %s: expected 422, got %d", amount, e.Status)
		}
	}
	_, err := client.Refund(t.Context(), "k", "", "1")
	if e := requireKind(t, err, farside.Rejected); e.Status != 400 {
		t.Fatalf("expected 400 without an order, got %d", e.Status)
	}
	requireEffects(t, pay.Server, 0)

	// Amounts may come as JSON strings too.
	resp, err := http.Post(pay.URL()+"/refunds", "application/json", strings.NewReader(`{"order_id":"A1","amount":"42.10"}`))
	requireNoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated || pay.Effects()[0].Fields["amount"] != "42.10" {
		t.Fatalf("expected the amount to be taken, got status %d", resp.StatusCode)
	}
}
