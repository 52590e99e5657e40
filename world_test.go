package settle_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

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
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i] = fresh(calls[i])
	}
	outs, err := p.x.ExecuteAll(p.ctx, calls...)
	if err != nil {
		p.Fatal(err)
	}
	return outs
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

// rows are all operations of the ledger, in the order of their claims.
func (w *world) rows() []store.Entry {
	w.Helper()
	rows, err := w.ledger.List(context.Background(), store.Filter{})
	if err != nil {
		w.Fatal(err)
	}
	return rows
}

// rowsOf are the operations of a tool.
func (w *world) rowsOf(tool string) []store.Entry {
	w.Helper()
	return slices.DeleteFunc(w.rows(), func(e store.Entry) bool { return e.Tool != tool })
}

// only is the tool's one operation.
func (w *world) only(tool string) store.Operation {
	w.Helper()
	rows := w.rowsOf(tool)
	if len(rows) != 1 {
		w.Fatalf("%s has %d operations, want one", tool, len(rows))
	}
	return rows[0].Operation
}

// row is the operation that an outcome names.
func (w *world) row(out settle.Outcome) store.Operation {
	w.Helper()
	for _, e := range w.rows() {
		if e.ID.String() == out.Operation {
			return e.Operation
		}
	}
	w.Fatalf("the ledger has no operation %q; the outcome was %s", out.Operation, out.ForModel())
	panic("unreachable")
}

func (w *world) events(id uuid.UUID) []store.Event {
	w.Helper()
	events, err := w.ledger.Events(context.Background(), id, 0)
	if err != nil {
		w.Fatal(err)
	}
	return events
}

// kinds are the kinds of an operation's events, in order.
func (w *world) kinds(o store.Operation) []string {
	w.Helper()
	var kinds []string
	for _, e := range w.events(o.ID) {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// openCases counts what waits for a person (R39).
func (w *world) openCases() int {
	w.Helper()
	n, err := w.at.openCases(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// state requires the state of an operation's row.
func (w *world) state(o store.Operation, want store.State) {
	w.Helper()
	if o.State != want {
		w.Fatalf("the operation of %s is %s (%s), want %s", o.Tool, o.State, o.Reason, want)
	}
}

// unchanged requires a row to be as it was, to the byte.
func (w *world) unchanged(before, now store.Operation) {
	w.Helper()
	before.Read, now.Read = time.Time{}, time.Time{}
	if !reflect.DeepEqual(before, now) {
		w.Errorf("the row has changed:\n%+v\n%+v", before, now)
	}
}

// sql changes the ledger's tables behind its back.
func (w *world) sql(statement string) {
	w.Helper()
	if err := w.at.exec(context.Background(), statement); err != nil {
		w.Fatal(err)
	}
}

// want requires an outcome of a first execution, or of a call that did nothing.
func (w *world) want(out settle.Outcome, status settle.Status) settle.Outcome {
	w.Helper()
	if out.Status != status || out.Replayed {
		w.Fatalf("want %s, got %s (reason %q)", status, out.ForModel(), out.Reason)
	}
	return out
}

// wantReplay requires the replay of a recorded outcome.
func (w *world) wantReplay(out settle.Outcome, status settle.Status) settle.Outcome {
	w.Helper()
	if out.Status != status || !out.Replayed || !out.Recorded {
		w.Fatalf("want a replay of %s, got %s (reason %q)", status, out.ForModel(), out.Reason)
	}
	w.says(out.ForModel(), string(status)+", replayed")
	return out
}

// wantReason requires the code beside the status.
func (w *world) wantReason(out settle.Outcome, reason string) {
	w.Helper()
	if out.Reason != reason {
		w.Fatalf("%s has the reason %q, want %q", out.Status, out.Reason, reason)
	}
}

// wantRelated requires that an outcome points at exactly these operations.
func (w *world) wantRelated(out settle.Outcome, operations ...string) {
	w.Helper()
	var got []string
	for _, r := range out.Related {
		got = append(got, r.Operation)
	}
	slices.Sort(got)
	slices.Sort(operations)
	if !slices.Equal(got, operations) {
		w.Fatalf("%s names the operations %v, want %v", out.Status, got, operations)
	}
}

// says requires phrases in a text; hides forbids them.
func (w *world) says(text string, phrases ...string) {
	w.Helper()
	for _, p := range phrases {
		if !strings.Contains(text, p) {
			w.Errorf("a text doesn't say %q: %s", p, text)
		}
	}
}

func (w *world) hides(text string, phrases ...string) {
	w.Helper()
	for _, p := range phrases {
		if strings.Contains(text, p) {
			w.Errorf("a text says %q: %s", p, text)
		}
	}
}

// effects requires what truly happened on a far side, as a count.
func (w *world) effects(s *farside.Server, want int) {
	w.Helper()
	if got := s.Effects(); len(got) != want {
		w.Fatalf("the far side has %d effects, want %d: %+v", len(got), want, got)
	}
}

// lands waits until a far side has acted on a request that nobody waits for any
// more.
func (w *world) lands(s *farside.Server, effects int) {
	w.Helper()
	w.comes("an effect", func() bool { return len(s.Effects()) == effects })
}

// settles waits until the tool's one operation has come to a state by itself.
func (w *world) settles(tool string, want store.State) {
	w.Helper()
	w.comes("the state "+want.String(), func() bool { return w.only(tool).State == want })
}

// comes waits for what no channel tells of.
func (w *world) comes(what string, there func() bool) {
	w.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !there(); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("%s didn't come", what)
		}
	}
}

// writes counts the requests that came to act.
func (w *world) writes(s *farside.Server) (n int) {
	for _, r := range s.Requests() {
		if r.Method != "GET" {
			n++
		}
	}
	return n
}

// equal compares two values.
func equal[T comparable](w *world, what string, got, want T) {
	w.Helper()
	if got != want {
		w.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// args encodes arguments.
func args(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // the arguments of these tests are strings and numbers
	}
	return raw
}

// notFound requires that a reference leads nowhere.
func (p *process) notFound(operation string) {
	p.Helper()
	if out, err := p.x.Get(p.ctx, operation); !errors.Is(err, store.ErrNotFound) {
		p.Fatalf("want not found, got %q and the error %v", out.Status, err)
	}
}
