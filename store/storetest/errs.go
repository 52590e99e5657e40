package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/settle-go/settle/store"
)

func errs(s suite) {
	s.test("R26ACallWithAnEndedContextWritesNothing", func(w *world) {
		i := w.intent()
		o := w.record(i)
		unmade := Operation(i)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		for name, call := range calls(ctx, w.Ledger, i, o, unmade) {
			err := call()
			if !errors.Is(err, context.Canceled) {
				w.Errorf("%s under an ended context gave the error %v", name, err)
			}
			if !store.Unwritten(err) {
				w.Errorf("%s: Unwritten doesn't hold for %q", name, err)
			}
		}
		w.unchanged(o)
		w.absent(unmade)
	})
	s.test("R26AnInterruptedClaimTellsTheTruth", interruptedClaims)
	s.test("R26AnInterruptedChangeTellsTheTruth", interruptedChanges)
	s.test("R26AClosedLedgerSaysSo", func(w *world) {
		if w.Again == nil {
			return // closing is for the ledger's own tests: nothing else could look at what was left
		}
		i := w.intent()
		o := w.record(i)
		unmade := Operation(i)
		closed := w.Again(w.T)
		w.must(closed.Close(), "Close")
		want(w, "what the ledger says that it is", closed.Info(), w.Ledger.Info())
		for name, call := range calls(w.ctx, closed, i, o, unmade) {
			if err := call(); !errors.Is(err, store.ErrClosed) {
				w.Errorf("%s on a closed ledger gave the error %v, want ErrClosed", name, err)
			}
		}
		w.unchanged(o)
		w.absent(unmade)
	})
	s.test("R26TheLedgerSaysWhatItIs", func(w *world) {
		info := w.Ledger.Info()
		if info.Name == "" {
			w.Error("the ledger has no name")
		}
		findings, err := w.Ledger.Check(w.ctx)
		w.must(err, "Check")
		if !info.Durable && len(findings) == 0 {
			w.Error("a ledger that doesn't survive the process reports nothing")
		}
		for _, f := range findings {
			if f.Setting == "" || f.Problem == "" || f.Advice == "" {
				w.Errorf("the finding on %q doesn't say what is wrong and what to do", f.Setting)
			}
		}
	})
}

// interruptions is how often a call is interrupted at some instant.
const interruptions = 40

// interrupted returns a context that ends after n hundredths of a millisecond:
// before the call, in the midst of it, or never noticed.
func (w *world) interrupted(n int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.ctx, time.Duration(n)*10*time.Microsecond)
}

// interruptedClaims ends calls at odd moments. Whatever the answer, it is true,
// and the same claim made again finds out.
func interruptedClaims(w *world) {
	i := w.intent()
	for n := range interruptions {
		c := Claim(Operation(i))
		ctx, cancel := w.interrupted(n)
		_, err := w.Ledger.Claim(ctx, c)
		cancel()
		_, there := w.Ledger.Get(w.ctx, i.TenantName, c.Operation.ID)
		switch {
		case err == nil:
			w.must(there, "Get after a claim that was made")
		case store.Unwritten(err) && !errors.Is(there, store.ErrNotFound):
			w.Errorf("Unwritten holds for %q and the operation is there", err)
		}
		w.won(c)
		want(w, "events", len(w.journal(c.Operation)), 1)
	}
}

func interruptedChanges(w *world) {
	i := w.intent()
	for n := range interruptions {
		before := w.record(i)
		ctx, cancel := w.interrupted(n)
		_, err := w.Ledger.Apply(ctx, Change(before, store.Unknown))
		cancel()
		after := w.read(before)
		switch {
		case err == nil:
			want(w, "the version after a change that was made", after.Version, 2)
		case store.Unwritten(err):
			want(w, "the version after a change that wasn't", after.Version, 1)
		}
		// The change may be made at this very moment: what the row doesn't know
		// of yet is left out.
		events := w.journal(before)
		if err := store.VerifyChain(after, events[:min(after.Version, len(events))]); err != nil {
			w.Error(err)
		}
	}
}

// calls lists every method that does I/O.
func calls(ctx context.Context, l store.Ledger, i store.Intent, o, unmade store.Operation) map[string]func() error {
	return map[string]func() error{
		"Intent": func() error { _, err := l.Intent(ctx, NewIntent()); return err },
		"Claim":  func() error { _, err := l.Claim(ctx, Claim(unmade)); return err },
		"Apply":  func() error { _, err := l.Apply(ctx, Change(o, store.Unknown)); return err },
		"Renew":  func() error { _, err := l.Renew(ctx, Lease, held(o)); return err },
		"Take":   func() error { _, err := l.Take(ctx, store.Take{Lease: Lease}); return err },
		"Get":    func() error { _, err := l.Get(ctx, i.TenantName, o.ID); return err },
		"List":   func() error { _, err := l.List(ctx, store.Filter{}); return err },
		"Events": func() error { _, err := l.Events(ctx, o.ID, 0); return err },
		"Audit":  func() error { return l.Audit(ctx, store.Audit{Operation: o.ID, Kind: "refused"}) },
		"Check":  func() error { _, err := l.Check(ctx); return err },
		"Audits": func() error { _, err := l.Audits(ctx, o.ID); return err },
		"Cases":  func() error { _, err := l.Cases(ctx, store.CaseFilter{}); return err },
		"Purge": func() error {
			_, err := l.Purge(ctx, store.Purge{Principal: i.Principal})
			return err
		},
		"CloseIntent": func() error { return l.CloseIntent(ctx, i.TenantName, i.ID) },
		"Declare":     func() error { return l.Declare(ctx, store.ToolRecord{Tool: "refund", Deciders: 2}) },
		"Declared":    func() error { _, err := l.Declared(ctx, "refund"); return err },
	}
}
