package settle_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Operators: what they may see and do, and of which operation.

// The nil UUID is what a variable holds that nobody has set. It is no operation's
// reference, and must not stand for whichever case is the oldest.
func TestR46TheNilReferenceIsNobodys(t *testing.T) {
	onEachLedger(t, func(w *world) {
		asks := partOf("ask", new(corrections))
		asks.Contract.Approval = true
		p := w.start(lost(settle.Contract{NoLookup: true}), asks)
		p.waitsForTwo()
		w.want(p.call(partCall("ask", "x")), settle.StatusAwaitingApproval)
		ann, queue, before := p.person("ann"), p.x.Queue(), w.dump()
		nobodys := uuid.Nil.String()
		for name, do := range map[string]func() error{
			"Get":       func() error { _, err := queue.Get(ann.ctx, nobodys); return err },
			"Reveal":    func() error { _, err := queue.Reveal(ann.ctx, nobodys); return err },
			"Take":      func() error { return queue.Take(ann.ctx, nobodys) },
			"TakeOver":  func() error { return queue.TakeOver(ann.ctx, nobodys, "bob") },
			"Release":   func() error { return queue.Release(ann.ctx, nobodys) },
			"Note":      func() error { return queue.Note(ann.ctx, nobodys, "seen") },
			"Look":      func() error { _, err := queue.Look(ann.ctx, nobodys); return err },
			"Confirm":   func() error { _, err := queue.Confirm(ann.ctx, nobodys, 3, uuid.NewString(), "seen"); return err },
			"Operation": func() error { _, err := queue.Operation(ann.ctx, nobodys); return err },
			"Brief":     func() error { _, err := queue.Brief(ann.ctx, nobodys); return err },
			"Decide": func() error {
				_, err := queue.Decide(ann.ctx, settle.Decision{Operation: nobodys, Version: 3, ID: uuid.NewString(), Kind: settle.DecideFail, Reason: "seen"})
				return err
			},
			"Redeliver":   func() error { return queue.Redeliver(ann.ctx, "acme", nobodys) },
			"Discard":     func() error { return queue.Discard(ann.ctx, "acme", nobodys) },
			"VerifyChain": func() error { _, err := p.x.VerifyChain(ann.ctx, nobodys); return err },
			"Wait":        func() error { _, err := p.x.Wait(p.ctx, nobodys); return err },
			"Compensate":  func() error { _, err := p.x.Compensate(p.ctx, nobodys); return err },
		} {
			if err := do(); !errors.Is(err, store.ErrNotFound) {
				w.Errorf("%s of the nil reference: %v, want ErrNotFound", name, err)
			}
		}
		if w.dump() != before {
			w.Error("the ledger has changed")
		}
	})
}
