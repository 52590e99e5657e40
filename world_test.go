package settle_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// TestMain runs the tests, or, in a process that a test has started, a worker.
func TestMain(m *testing.M) {
	if order := os.Getenv(workerOrder); order != "" {
		os.Exit(work(order))
	}
	pgtest.Main(m)
}

// onEachLedger runs a scenario in a world of its own on each durable ledger.
func onEachLedger(t *testing.T, scenario func(w *world)) {
	t.Helper()
	t.Parallel()
	for _, l := range ledgers {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			scenario(newWorld(t, l.create(t)))
		})
	}
}

// world is what one scenario happens in: an empty ledger, the far sides of the
// standard tools, and the processes that a host runs on them.
type world struct {
	*testing.T
	at     address
	ledger store.Ledger // the test's own view
	clock  *storetest.Clock
	sides  sides

	payments *farside.Payments
	labels   *farside.Labels
	mail     *farside.Mail
	tickets  *farside.Tickets
	balance  *farside.Balance
}

func newWorld(t *testing.T, at address) *world {
	t.Helper()
	w := &world{T: t, at: at, clock: storetest.NewClock()}
	w.ledger = w.open()
	now := farside.Clock(w.clock.Now)
	w.payments, w.labels = farside.NewPayments(now), farside.NewLabels(now)
	w.mail, w.tickets = farside.NewMail(now, farside.Searchable()), farside.NewTickets(now)
	w.balance = farside.NewBalance(now)
	w.sides = sides{w.payments.URL(), w.labels.URL(), w.mail.URL(), w.tickets.URL(), w.balance.URL()}
	// Runs when all processes of the test have ended.
	t.Cleanup(w.check)
	return w
}

// servers are the far sides.
func (w *world) servers() []*farside.Server {
	return []*farside.Server{w.payments.Server, w.labels.Server, w.mail.Server, w.tickets.Server, w.balance.Server}
}

// closeSides lets go of every request that waits at a gate.
func (w *world) closeSides() {
	for _, s := range w.servers() {
		s.Close()
	}
}

// open opens the ledger once more, as another process would.
func (w *world) open() store.Ledger {
	w.Helper()
	l, err := w.at.open(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := l.Close(); err != nil {
			w.Error(err)
		}
	})
	return l
}

// age makes all that is recorded older by d, here and on the far sides.
func (w *world) age(d time.Duration) {
	w.Helper()
	w.clock.Age(w, d)
	if err := w.at.age(context.Background(), d); err != nil {
		w.Fatal(err)
	}
}

// longUnanswered is past every EscalateAfter of the standard tools.
const longUnanswered = time.Hour

// longEnough is past every lease and moment of the standard tools.
const longEnough = time.Minute

// check is what holds at the end of every scenario: an executor that knows no
// tool leaves nothing running under a dead owner in one scan (R38), every
// journal is whole (R57), and each planned fault was met.
func (w *world) check() {
	w.closeSides()
	w.age(longEnough)
	x, err := settle.New(w.ledger, settle.WithLogger(slog.New(slog.DiscardHandler)), settle.WithConcurrency(1000))
	if err != nil {
		w.Fatal(err)
	}
	report, err := x.Recover(context.Background())
	if err != nil || report.Failed > 0 {
		w.Errorf("a scan at the end: %d operations failed, error %v", report.Failed, err)
	}
	for _, e := range w.rows() {
		if e.State == store.Running {
			w.Errorf("operation %s of %s is left running under a dead owner", e.ID, e.Tool)
		}
		if err := store.VerifyChain(e.Operation, w.events(e.ID)); err != nil {
			w.Error(err)
		}
	}
	for _, s := range w.servers() {
		if n := s.Writes.Pending() + s.Reads.Pending(); n > 0 {
			w.Errorf("%d planned faults were met by no request", n)
		}
	}
}

// process is one incarnation of the host, with a ledger and an executor of its
// own, that acts as a principal in a task.
type process struct {
	*world
	x   *settle.Executor
	ctx context.Context
}

// start starts a process with the given tools, or with the standard ones.
func (w *world) start(tools ...settle.AnyTool) *process {
	w.Helper()
	if len(tools) == 0 {
		tools = newDesk(w.sides).tools()
	}
	return w.startWith(settle.WithTools(tools...))
}

func (w *world) startWith(options ...settle.Option) *process {
	w.Helper()
	return w.startOn(w.open(), options...)
}

// startOn starts a process on an opened ledger.
func (w *world) startOn(l store.Ledger, options ...settle.Option) *process {
	w.Helper()
	x, err := settle.New(l, append(options, settle.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		w.Fatal(err)
	}
	p := &process{world: w, x: x, ctx: scope(context.Background())}
	w.Cleanup(func() {
		w.closeSides()
		p.stop()
	})
	return p
}

// scope is the principal and task of a scenario that needs only one.
func scope(ctx context.Context) context.Context {
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"})
	return settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
}

// stop ends the process in good order. Again is no change.
func (p *process) stop() {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.x.Shutdown(ctx); err != nil {
		p.Error(err)
	}
}

// inTask is the process at work on another task.
func (p *process) inTask(id string) *process {
	q := *p
	q.ctx = settle.WithTask(p.ctx, settle.Task{ID: id, Goal: "late-parcel"})
	return &q
}

// ofTenant is the process acting for another tenant.
func (p *process) ofTenant(tenant string) *process {
	q := *p
	q.ctx = settle.WithPrincipal(p.ctx, settle.Principal{Tenant: tenant, Subject: "support-agent"})
	return &q
}

// until is the process with a caller that the test may call off.
func (p *process) until(ctx context.Context) *process {
	q := *p
	q.ctx = scope(ctx)
	return &q
}

// call makes one call, with a fresh call id where it has none.
func (p *process) call(c settle.Call) settle.Outcome {
	p.Helper()
	out, err := p.x.Execute(p.ctx, fresh(c))
	if err != nil {
		p.Fatal(err)
	}
	return out
}

// turn makes the parallel calls of one model turn.
func (p *process) turn(calls ...settle.Call) []settle.Outcome {
	p.Helper()
	return received(p.world, p.beginTurn(calls...))
}

// beginTurn makes them in the background.
func (p *process) beginTurn(calls ...settle.Call) <-chan []settle.Outcome {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i] = fresh(calls[i])
	}
	done := make(chan []settle.Outcome, 1)
	go func() {
		outs, err := p.x.ExecuteAll(p.ctx, calls...)
		if err != nil {
			p.Error(err)
			outs = make([]settle.Outcome, len(calls))
		}
		done <- outs
	}()
	return done
}

// begin makes a call in the background; its outcome comes on the channel.
func (p *process) begin(c settle.Call) <-chan settle.Outcome {
	done := make(chan settle.Outcome, 1)
	go func() {
		out, err := p.x.Execute(p.ctx, fresh(c))
		if err != nil {
			p.Error(err)
		}
		done <- out
	}()
	return done
}

// recover makes one pass of recovery.
func (p *process) recover() settle.Report {
	p.Helper()
	report, err := p.x.Recover(p.ctx)
	if err != nil {
		p.Fatal(err)
	}
	if report.Failed > 0 {
		p.Errorf("recovery could not work on %d operations", report.Failed)
	}
	return report
}

// fresh gives a call the id of a new delivery.
func fresh(c settle.Call) settle.Call {
	if c.CallID == "" {
		c.CallID = "call_" + rand.Text()
	}
	return c
}

// received waits for something that must come.
func received[T any](w *world, from <-chan T) T {
	w.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	select {
	case v := <-from:
		return v
	case <-deadline.C:
		w.Fatal("what the test waits for didn't come")
	}
	panic("unreachable")
}
