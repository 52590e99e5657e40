package farside_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle/internal/farside"
)

// effector is one acting request of a far side, and how many effects it has had.
type effector struct {
	name   string
	server *farside.Server
	act    func(context.Context) error
}

// effectors starts one far side of each kind that has effects.
func effectors(t *testing.T) []effector {
	t.Helper()
	pay, payClient := newPayments(t)
	desk := farside.NewTickets()
	deskClient := farside.NewTicketsClient(desk.URL())
	relay := farside.NewMail()
	relayClient := farside.NewMailClient(relay.URL())
	labels := farside.NewLabels()
	labelsClient := farside.NewLabelsClient(labels.URL())
	closeAfter(t, desk, deskClient, relay, relayClient, labels, labelsClient)
	return []effector{
		{"payments", pay.Server, func(ctx context.Context) error {
			_, err := payClient.Refund(ctx, "key-1", "A1", "42.10")
			return err
		}},
		{"tickets", desk.Server, func(ctx context.Context) error {
			_, err := deskClient.Open(ctx, "Late parcel", "It is late.")
			return err
		}},
		{"mail", relay.Server, func(ctx context.Context) error {
			_, err := relayClient.Send(ctx, farside.Message{To: "ann@example.org", Purpose: "refund"})
			return err
		}},
		{"labels", labels.Server, func(ctx context.Context) error {
			_, err := labelsClient.Set(ctx, "7", "urgent")
			return err
		}},
	}
}

func newPayments(t *testing.T, opts ...farside.Option) (*farside.Payments, *farside.PaymentsClient) {
	t.Helper()
	pay := farside.NewPayments(opts...)
	client := farside.NewPaymentsClient(pay.URL())
	closeAfter(t, pay, client)
	return pay, client
}

func closeAfter(t *testing.T, all ...interface{ Close() }) {
	t.Helper()
	for _, c := range all {
		t.Cleanup(c.Close)
	}
}

// clock is a clock that only the test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("expected no error, got %v", err)
	}
}

func requireKind(t *testing.T, err error, want farside.Kind) *farside.Error {
	t.Helper()
	if err == nil {
		t.Fatalf("expected an error of kind %d, got none", want)
	}
	e, ok := err.(*farside.Error)
	if !ok {
		t.Fatalf("expected a *farside.Error, got %T", err)
	}
	if e.Kind != want {
		t.Fatalf("expected kind %d, got %d: %v", want, e.Kind, err)
	}
	return e
}

func requireEffects(t *testing.T, s *farside.Server, want int) {
	t.Helper()
	if got := s.Effects(); len(got) != want {
		t.Fatalf("expected %d effects, got %+v", want, got)
	}
}

func requireRequests(t *testing.T, s *farside.Server, want int) {
	t.Helper()
	if got := s.Requests(); len(got) != want {
		t.Fatalf("expected %d requests, got %+v", want, got)
	}
}

const noError farside.Kind = -1

func TestModes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mode    farside.Mode
		name    string
		effects int
		kind    farside.Kind
		status  int
	}{
		{farside.Mode{}, "ok", 1, noError, 0},
		{farside.OK(), "ok", 1, noError, 0},
		{farside.CommitThenDrop(), "commit_then_drop", 1, farside.Unknown, 0},
		{farside.DropBefore(), "drop_before", 0, farside.Unknown, 0},
		{farside.Reject(http.StatusForbidden, "not_yours"), "reject", 0, farside.Rejected, 403},
		{farside.StatusBefore(http.StatusServiceUnavailable), "status_before", 0, farside.Unknown, 503},
		{farside.StatusAfter(http.StatusInternalServerError), "status_after", 1, farside.Unknown, 500},
		{farside.Unparsable(), "unparsable", 1, farside.Unknown, -1},
		{farside.Slow(farside.Delay(time.Nanosecond)), "slow", 1, noError, 0},
		{farside.Late(farside.Delay(time.Nanosecond)), "late", 1, noError, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, e := range effectors(t) {
				e.server.Writes.Next(tt.mode)
				err := e.act(t.Context())
				if tt.kind == noError {
					requireNoError(t, err)
				} else if got := requireKind(t, err, tt.kind); tt.status >= 0 && got.Status != tt.status {
					t.Fatalf("%s: expected status %d, got %d", e.name, tt.status, got.Status)
				}
				requireEffects(t, e.server, tt.effects)
				requireRequests(t, e.server, 1)
				if got := e.server.Requests()[0].Mode; got != tt.name {
					t.Fatalf("%s: expected mode %s in the journal, got %s", e.name, tt.name, got)
				}
			}
		})
	}
}

func TestRefusedConnectionIsNotSentAndThePortComesBack(t *testing.T) {
	t.Parallel()
	for _, e := range effectors(t) {
		url := e.server.URL()
		requireNoError(t, e.act(t.Context())) // leaves no idle connection behind
		for range 3 {
			e.server.Refuse()
			e.server.Refuse() // again is no change
			requireKind(t, e.act(t.Context()), farside.NotSent)
			requireNoError(t, e.server.Accept())
			requireNoError(t, e.server.Accept())
			if e.server.URL() != url {
				t.Fatalf("%s: the address changed", e.name)
			}
		}
		requireEffects(t, e.server, 1)
		requireRequests(t, e.server, 1)
		requireNoError(t, e.act(t.Context()))
		requireRequests(t, e.server, 2)
	}
}

func TestThenRefuseClosesThePortBeforeTheAnswerLeaves(t *testing.T) {
	t.Parallel()
	for _, e := range effectors(t) {
		e.server.Writes.Next(farside.CommitThenDrop().ThenRefuse())
		requireKind(t, e.act(t.Context()), farside.Unknown)
		requireKind(t, e.act(t.Context()), farside.NotSent)
		requireEffects(t, e.server, 1)
		requireRequests(t, e.server, 1)
	}
}

func TestSlowActsAfterTheGateAlthoughTheClientLeft(t *testing.T) {
	t.Parallel()
	for _, e := range effectors(t) {
		gate := farside.NewGate()
		e.server.Writes.Next(farside.Slow(gate))
		ctx, cancel := context.WithCancel(t.Context())
		answer := async(ctx, e.act)
		<-gate.Entered()
		requireEffects(t, e.server, 0)
		cancel()
		requireKind(t, <-answer, farside.Unknown)
		gate.Release()
		e.server.Close() // waits for what was let through
		requireEffects(t, e.server, 1)
	}
}

func TestLateHasActedBeforeItsGate(t *testing.T) {
	t.Parallel()
	for _, e := range effectors(t) {
		gate := farside.NewGate()
		e.server.Writes.Next(farside.Late(gate))
		answer := async(t.Context(), e.act)
		<-gate.Entered()
		requireEffects(t, e.server, 1)
		gate.Release()
		gate.Release() // again is no change
		requireNoError(t, <-answer)
		requireEffects(t, e.server, 1)
	}
}

func TestHeldDelaysAnyMode(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t)
	gate := farside.NewGate()
	pay.Writes.Next(farside.Reject(http.StatusForbidden, "not_yours").Held(gate))
	answer := async(t.Context(), func(ctx context.Context) error {
		_, err := client.Refund(ctx, "k", "A1", "1")
		return err
	})
	<-gate.Entered()
	gate.Release()
	if e := requireKind(t, <-answer, farside.Rejected); e.Code != "not_yours" {
		t.Fatalf("expected the code of the refusal, got %q", e.Code)
	}
	requireEffects(t, pay.Server, 0)
}

func async(ctx context.Context, act func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- act(ctx) }()
	return done
}

func TestCloseDropsWhatWaitsAndWaitsForIt(t *testing.T) {
	t.Parallel()
	pauses := map[string]farside.Pause{"gate": farside.NewGate(), "delay": farside.Delay(time.Hour)}
	for name, pause := range pauses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pay, client := newPayments(t)
			arrived := make(chan struct{})
			pay.Writes.When(func(farside.Request) bool { close(arrived); return true }, farside.Slow(pause))
			answer := async(t.Context(), func(ctx context.Context) error {
				_, err := client.Refund(ctx, "k", "A1", "1")
				return err
			})
			<-arrived
			pay.Close()
			pay.Close() // again is no change
			requireKind(t, <-answer, farside.Unknown)
			requireEffects(t, pay.Server, 0)
			requireRequests(t, pay.Server, 1)
			if err := pay.Accept(); err == nil {
				t.Fatal("a closed far side opened again")
			}
			_, err := client.Refund(t.Context(), "k", "A1", "1")
			requireKind(t, err, farside.NotSent)
		})
	}
}

func TestFaultsAreMetInOrderAndWhereTheyMatch(t *testing.T) {
	t.Parallel()
	pay, client := newPayments(t)
	refund := func(order string) error {
		_, err := client.Refund(t.Context(), "key-"+order, order, "1")
		return err
	}
	pay.Writes.Set(farside.StatusBefore(http.StatusBadGateway))
	pay.Writes.When(func(r farside.Request) bool { return r.Fields["order_id"] == "B" }, farside.DropBefore())
	pay.Writes.Next(farside.OK(), farside.Reject(http.StatusGone, "gone"))
	if pay.Writes.Pending() != 3 {
		t.Fatalf("expected 3 pending modes, got %d", pay.Writes.Pending())
	}
	requireNoError(t, refund("A"))
	requireKind(t, refund("B"), farside.Unknown)
	requireKind(t, refund("B"), farside.Rejected)
	if e := requireKind(t, refund("C"), farside.Unknown); e.Status != http.StatusBadGateway {
		t.Fatalf("expected the standing mode once the queue is empty, got status %d", e.Status)
	}
	if pay.Writes.Pending() != 0 {
		t.Fatalf("expected no pending modes, got %d", pay.Writes.Pending())
	}
	found, err := client.FindByKey(t.Context(), "key-A")
	requireNoError(t, err) // reads have faults of their own
	if len(found) != 1 {
		t.Fatalf("expected one refund, got %+v", found)
	}
	pay.Reads.Next(farside.DropBefore())
	_, err = client.FindByKey(t.Context(), "key-A")
	requireKind(t, err, farside.Unknown)
	requireEffects(t, pay.Server, 1)
}

func TestJournalOverHTTPAndDuplicates(t *testing.T) {
	t.Parallel()
	c := newClock()
	pay, client := newPayments(t, farside.Clock(c.now))
	for _, r := range [][3]string{{"k1", "A1", "5"}, {"k2", "A1", "7"}, {"k2", "A1", "7"}, {"k3", "B1", "7"}} {
		_, err := client.Refund(t.Context(), r[0], r[1], r[2])
		requireNoError(t, err)
	}
	report, err := farside.Fetch(t.Context(), pay.URL())
	requireNoError(t, err)
	if len(report.Effects) != 3 || len(report.Requests) != 4 {
		t.Fatalf("expected 3 effects of 4 requests, got %+v", report)
	}
	first := report.Effects[0]
	if first.Kind != "refund" || first.Key != "k1" || first.Resource != "re_0001" || !first.At.Equal(c.now()) ||
		first.Fields["order_id"] != "A1" || first.Fields["amount"] != "5" {
		t.Fatalf("the first effect isn't what was sent: %+v", first)
	}
	twice := pay.Duplicates()
	if len(twice) != 1 || len(twice[0]) != 2 || twice[0][1].Key != "k2" {
		t.Fatalf("expected the two refunds of one order, got %+v", twice)
	}
	if got := pay.Duplicates("order_id", "amount"); len(got) != 0 {
		t.Fatalf("expected no two refunds of one order and amount, got %+v", got)
	}
	if keys := pay.Keys(); len(keys) != 3 || keys[0] != "k1" || keys[2] != "k3" {
		t.Fatalf("expected three keys in order, got %v", keys)
	}
	pay.Effects()[0].Fields["order_id"] = "changed"
	if pay.Effects()[0].Fields["order_id"] != "A1" {
		t.Fatal("the journal was changed through a copy")
	}
}
