package settle

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

// renewals answers for the renewing of leases in place of a ledger's clock.
type renewals struct {
	store.Ledger
	asked [][]store.Held
	lost  []store.Held
	err   error
}

func (r *renewals) Renew(_ context.Context, _ time.Duration, held ...store.Held) ([]store.Held, error) {
	r.asked = append(r.asked, held)
	return r.lost, r.err
}

func renewing(t *testing.T) (*renewer, *renewals) {
	t.Helper()
	ledger := &renewals{Ledger: memory.New()}
	x, err := New(ledger, Volatile(), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return &x.renewer, ledger
}

func held() store.Held { return store.Held{Operation: uuid.New(), Owner: uuid.New()} }

func TestR22AllLongAttemptsAreRenewedInOneWrite(t *testing.T) {
	t.Parallel()
	r, ledger := renewing(t)
	soon := time.Now().Add(maxLease)
	first, second := held(), held()
	stopFirst := r.hold(first, soon, func() { t.Error("a renewed attempt was cancelled") })
	stopSecond := r.hold(second, soon, func() { t.Error("a renewed attempt was cancelled") })
	r.renew()
	stopFirst()
	r.renew()
	if len(ledger.asked) != 2 || len(ledger.asked[0]) != 2 || len(ledger.asked[1]) != 1 || ledger.asked[1][0] != second {
		t.Errorf("renewed %v, want both and then the second", ledger.asked)
	}
	if until := r.held[second].until; until.Before(soon) {
		t.Errorf("a renewed lease ends at %v, before the old one at %v", until, soon)
	}
	stopSecond()
	r.renew()
	if len(ledger.asked) != 2 {
		t.Error("the ledger was asked for nothing")
	}
	if err := r.executor.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestR22ALostLeaseCancelsTheHandler(t *testing.T) {
	t.Parallel()
	r, ledger := renewing(t)
	lost, kept := held(), held()
	cancelled := false
	defer r.hold(kept, time.Now().Add(maxLease), func() { t.Error("the wrong attempt was cancelled") })()
	defer r.hold(lost, time.Now().Add(maxLease), func() { cancelled = true })()
	ledger.lost = []store.Held{lost}
	r.renew()
	if !cancelled {
		t.Error("the handler runs on without a lease")
	}
}

func TestR22ALeaseThatCantBeRenewedCancelsTheHandlerBeforeItEnds(t *testing.T) {
	t.Parallel()
	r, ledger := renewing(t)
	ledger.err = errors.New("no answer")
	near := false
	defer r.hold(held(), time.Now().Add(maxLease), func() { t.Error("an attempt was cancelled that has time for another renewal") })()
	defer r.hold(held(), time.Now().Add(maxLease/3), func() { near = true })()
	r.renew()
	if !near {
		t.Error("the handler would outlive its lease before the next renewal")
	}
}

// A goroutine for each call, or one that outlives the last by a third of a
// lease, would keep Shutdown waiting.
func TestR22TheRenewerEndsWithTheLastLongAttempt(t *testing.T) {
	t.Parallel()
	ledger := memory.New()
	tool := RawTool{Name: "long", Schema: []byte(`{"type":"object"}`),
		Contract: Contract{WholeArguments: true, NoLookup: true, Timeout: time.Hour},
		Do:       func(context.Context, Op, json.RawMessage) (json.RawMessage, error) { return nil, nil }}
	x, err := New(ledger, WithTools(tool), Volatile(), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ctx := WithTask(WithPrincipal(t.Context(), Principal{"acme", "bot"}), Task{"case-1", "rules"})
	if out, err := x.Execute(ctx, Call{Tool: "long"}); err != nil || out.Status != StatusCompleted {
		t.Fatalf("%v, %v", out, err)
	}
	began := time.Now()
	if err := x.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Shutdown took %v with nothing at work", took)
	}
}
