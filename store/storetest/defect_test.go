package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/store/storetest"
)

// defectVariable names the defect that a child process runs the suite on.
const defectVariable = "SETTLE_STORETEST_DEFECT"

// TestSuiteFindsDefects proves that the suite can fail: it runs it on ledgers
// that break one promise each, and requires the tests of that promise to fail.
// Since a failed subtest fails its parent, each run has a process of its own.
func TestSuiteFindsDefects(t *testing.T) {
	if name, ok := os.LookupEnv(defectVariable); ok {
		runOn(t, name)
		return
	}
	for name, d := range defects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := failuresOn(t, name, d.fails)
			for _, test := range d.fails {
				if !slices.Contains(failed, test) {
					t.Errorf("%s didn't fail; what failed: %v", test, failed)
				}
			}
		})
	}
}

// TestSuitePassesWithoutDefect runs the suite through the same wrapper.
func TestSuitePassesWithoutDefect(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.World { return worldOf(defect{}) })
}

func runOn(t *testing.T, name string) {
	d, ok := defects()[name]
	if !ok {
		t.Fatalf("there is no defect %q", name)
	}
	storetest.Run(t, func(*testing.T) storetest.World { return worldOf(d) })
}

func worldOf(d defect) storetest.World {
	clock := storetest.NewClock()
	l := memory.New(memory.WithClock(clock.Now))
	return storetest.World{Ledger: &faulty{Ledger: l, defect: d}, Age: clock.Age}
}

// failuresOn runs the topics of the given tests in a child process on the
// defect and returns which tests failed there, as "topic/test".
func failuresOn(t *testing.T, name string, tests []string) []string {
	var topics []string
	for _, test := range tests {
		topic, _, _ := strings.Cut(test, "/")
		topics = append(topics, topic)
	}
	run := "^TestSuiteFindsDefects$/^(" + strings.Join(topics, "|") + ")$"
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", run, "-test.timeout", "1m")
	child.Env = append(os.Environ(), defectVariable+"="+name)
	out, err := child.CombinedOutput()
	if err == nil {
		t.Fatal("the suite passed")
	}
	if strings.Contains(string(out), "panic:") {
		t.Fatalf("the suite panicked:\n%s", out)
	}
	var failed []string
	for line := range strings.Lines(string(out)) {
		if _, test, ok := strings.Cut(line, "--- FAIL: TestSuiteFindsDefects/"); ok {
			test, _, _ = strings.Cut(test, " ")
			failed = append(failed, test)
		}
	}
	return failed
}

// defect breaks one promise of a ledger. Its functions stand in for those of
// the ledger in memory, or change what goes in and what comes out.
type defect struct {
	fails []string // tests that must see it

	intent   func(l store.Ledger, p store.Intent) (store.Intent, error)
	claims   func(ctx context.Context, l store.Ledger, c []store.Claim) ([]store.Claimed, error)
	claim    func(c *store.Claim)
	claimed  func(c store.Claim, a *store.Claimed)
	apply    func(ctx context.Context, l store.Ledger, c store.Change) (store.Operation, error)
	change   func(c *store.Change)
	changed  func(o *store.Operation)
	renew    func(ctx context.Context, l store.Ledger, lease time.Duration, held []store.Held) ([]store.Held, error)
	take     func(t *store.Take)
	taken    func(e *store.Entry)
	takes    func(ctx context.Context, l store.Ledger, t store.Take) ([]store.Entry, error)
	get      func(ctx context.Context, l store.Ledger, tenant string, id uuid.UUID) (store.Entry, error)
	list     func(f *store.Filter)
	listed   func(entries []store.Entry)
	journal  func(id uuid.UUID, events []store.Event) []store.Event
	detached bool

	audits   func(rows []store.Audit) []store.Audit
	audited  func(rows []store.Audit) []store.Audit
	queue    func(f *store.CaseFilter)
	queued   func(entries []store.CaseEntry)
	purge    func(p *store.Purge)
	purges   func(ctx context.Context, l store.Ledger, p store.Purge) (store.Purged, error)
	purged   func(done *store.Purged)
	closes   func(ctx context.Context, l store.Ledger, tenant string, intent uuid.UUID) error
	declare  func(ctx context.Context, l store.Ledger, tools []store.ToolRecord) error
	declared func(t *store.ToolRecord)
}

// faulty is the ledger in memory with a defect.
type faulty struct {
	store.Ledger
	defect
}

func (f *faulty) context(ctx context.Context) context.Context {
	if f.detached {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (f *faulty) Intent(ctx context.Context, p store.Intent) (store.Intent, error) {
	if f.intent != nil {
		return f.intent(f.Ledger, p)
	}
	return f.Ledger.Intent(f.context(ctx), p)
}

func (f *faulty) Claim(ctx context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	ctx = f.context(ctx)
	if f.claims != nil {
		return f.claims(ctx, f.Ledger, claims)
	}
	claims = slices.Clone(claims)
	if f.claim != nil {
		for n := range claims {
			f.claim(&claims[n])
		}
	}
	answers, err := f.Ledger.Claim(ctx, claims...)
	if f.claimed != nil {
		for n := range answers {
			f.claimed(claims[n], &answers[n])
		}
	}
	return answers, err
}

func (f *faulty) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	ctx = f.context(ctx)
	if f.apply != nil {
		return f.apply(ctx, f.Ledger, c)
	}
	if f.change != nil {
		f.change(&c)
	}
	o, err := f.Ledger.Apply(ctx, c)
	if f.changed != nil {
		f.changed(&o)
	}
	return o, err
}

func (f *faulty) Renew(ctx context.Context, lease time.Duration, held ...store.Held) ([]store.Held, error) {
	if f.renew != nil {
		return f.renew(ctx, f.Ledger, lease, held)
	}
	return f.Ledger.Renew(f.context(ctx), lease, held...)
}

func (f *faulty) Take(ctx context.Context, t store.Take) ([]store.Entry, error) {
	ctx = f.context(ctx)
	if f.takes != nil {
		return f.takes(ctx, f.Ledger, t)
	}
	if f.take != nil {
		f.take(&t)
	}
	entries, err := f.Ledger.Take(ctx, t)
	if f.taken != nil {
		for n := range entries {
			f.taken(&entries[n])
		}
	}
	return entries, err
}

func (f *faulty) Get(ctx context.Context, tenant string, id uuid.UUID) (store.Entry, error) {
	if f.get != nil {
		return f.get(ctx, f.Ledger, tenant, id)
	}
	return f.Ledger.Get(f.context(ctx), tenant, id)
}

func (f *faulty) List(ctx context.Context, filter store.Filter) ([]store.Entry, error) {
	if f.list != nil {
		f.list(&filter)
	}
	entries, err := f.Ledger.List(f.context(ctx), filter)
	if f.listed != nil {
		f.listed(entries)
	}
	return entries, err
}

func (f *faulty) Events(ctx context.Context, id uuid.UUID, after int) ([]store.Event, error) {
	events, err := f.Ledger.Events(f.context(ctx), id, after)
	if f.journal != nil {
		events = f.journal(id, events)
	}
	return events, err
}

func (f *faulty) Audit(ctx context.Context, rows ...store.Audit) error {
	if f.audits != nil {
		rows = f.audits(slices.Clone(rows))
	}
	return f.Ledger.Audit(f.context(ctx), rows...)
}

func (f *faulty) Audits(ctx context.Context, id uuid.UUID) ([]store.Audit, error) {
	rows, err := f.Ledger.Audits(f.context(ctx), id)
	if f.audited != nil {
		rows = f.audited(rows)
	}
	return rows, err
}

func (f *faulty) Cases(ctx context.Context, filter store.CaseFilter) ([]store.CaseEntry, error) {
	if f.queue != nil {
		f.queue(&filter)
	}
	entries, err := f.Ledger.Cases(f.context(ctx), filter)
	if f.queued != nil {
		f.queued(entries)
	}
	return entries, err
}

func (f *faulty) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	if f.purges != nil {
		return f.purges(ctx, f.Ledger, p)
	}
	if f.purge != nil {
		f.purge(&p)
	}
	done, err := f.Ledger.Purge(f.context(ctx), p)
	if f.purged != nil {
		f.purged(&done)
	}
	return done, err
}

func (f *faulty) CloseIntent(ctx context.Context, tenant string, intent uuid.UUID) error {
	if f.closes != nil {
		return f.closes(ctx, f.Ledger, tenant, intent)
	}
	return f.Ledger.CloseIntent(f.context(ctx), tenant, intent)
}

func (f *faulty) Declare(ctx context.Context, tools ...store.ToolRecord) error {
	if f.declare != nil {
		return f.declare(ctx, f.Ledger, tools)
	}
	return f.Ledger.Declare(f.context(ctx), tools...)
}

func (f *faulty) Declared(ctx context.Context, tool string) (store.ToolRecord, error) {
	t, err := f.Ledger.Declared(f.context(ctx), tool)
	if f.declared != nil {
		f.declared(&t)
	}
	return t, err
}
