package settle_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// Contracts, names, schemas and plans that change while an intent is live.

func TestS44TheStricterOfTwoContractsHolds(t *testing.T) {
	t.Parallel()
	keyed := func(d *desk) settle.AnyTool { return d.refund(func(c *settle.Contract) { c.Attempts = 1 }) }
	more := func(d *desk) settle.AnyTool { return d.refund() }
	unsafe := func(d *desk) settle.AnyTool {
		return d.refund(func(c *settle.Contract) { c.Class, c.KeyWindow = settle.Unsafe, 0 })
	}
	for name, change := range map[string]struct{ paused, resumed func(*desk) settle.AnyTool }{
		"Keyed, then Unsafe": {keyed, unsafe},
		"Unsafe, then Keyed": {unsafe, more},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				w.payments.Writes.Next(farside.DropBefore())
				w.payments.Reads.Set(farside.StatusBefore(http.StatusBadGateway))
				out := w.want(w.start(change.paused(newDesk(w.sides))).call(refund("A-1", "42")), settle.StatusUnknown)

				p := w.start(change.resumed(newDesk(w.sides)))
				w.want(p.call(refund("A-1", "42")), settle.StatusUnknown)
				w.age(longEnough)
				w.want(p.call(refund("A-1", "42")), settle.StatusUnknown)
				equal(w, "attempts by workers", p.recover().Resumed, 0)
				equal(w, "requests without evidence", w.writes(w.payments.Server), 1)

				// Evidence of absence lets a call run it again, under any class.
				w.payments.Reads.Set(farside.OK())
				w.age(longUnanswered / 6)
				done := w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
				equal(w, "the operation", done.Operation, out.Operation)
				w.effects(w.payments.Server, 1)
			})
		})
	}
}

func TestS44ADesiredStateIsAnotherIdentity(t *testing.T) {
	onEachLedger(t, func(w *world) {
		unsafe := newDesk(w.sides).setLabel(func(c *settle.Contract) { c.Class, c.NoLookup = settle.Unsafe, true })
		w.labels.Writes.Next(farside.CommitThenDrop())
		w.want(w.start(unsafe).call(setLabel("I-7", "urgent")), settle.StatusUnknown)

		// Under Idempotent the label is part of the node: what was done can't be found.
		p := w.start(newDesk(w.sides).setLabel())
		for _, label := range []string{"urgent", "done"} {
			w.wantReason(w.want(p.call(setLabel("I-7", label)), settle.StatusHeld), "contract_changed")
		}
		w.age(longEnough)
		equal(w, "attempts by workers", p.recover().Resumed, 0)
		equal(w, "requests", w.writes(w.labels.Server), 1)
	})
}

func TestS69ChangedIdentityIsHeld(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		call := sendMail("eve@example.org", "receipt", "Your receipt", "Here it is.")
		w.want(p.call(call), settle.StatusCompleted)
		q := w.start(newDesk(w.sides).sendMail(func(c *settle.Contract) { c.Identity = []string{"subject"} }))
		for _, c := range []settle.Call{call, sendMail("eve@example.org", "receipt", "The receipt", "Here it is.")} {
			w.wantReason(w.want(q.call(c), settle.StatusHeld), "contract_changed")
		}
		w.effects(w.mail.Server, 1)
		w.wantReplay(p.call(call), settle.StatusCompleted)
		w.want(q.inTask("case-43").call(call), settle.StatusCompleted)
		w.effects(w.mail.Server, 2)
	})
}

func TestS69ARenamedToolGoesOn(t *testing.T) {
	onEachLedger(t, func(w *world) {
		first := w.want(w.start().call(refund("A-1", "42")), settle.StatusCompleted)
		renamed := newDesk(w.sides).refund()
		renamed.Name, renamed.Formerly = "repay", []string{"refund"}
		q := w.start(renamed)
		for _, name := range []string{"repay", "refund"} {
			call := refund("A-1", "42")
			call.Tool = name
			out := w.wantReplay(q.call(call), settle.StatusCompleted)
			equal(w, "the operation", out.Operation, first.Operation)
		}
		w.effects(w.payments.Server, 1)
	})
}

func TestS69AnIntentOfANewerVersionIsLeftAlone(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.want(w.start().call(refund("A-1", "42")), settle.StatusCompleted)
		w.sql("UPDATE " + w.at.table("intent") + " SET version = version + 1")
		q := w.start()
		for _, call := range []settle.Call{refund("A-1", "42"), refund("B-1", "42")} {
			w.wantReason(w.want(q.call(call), settle.StatusUnavailable), "newer_version")
		}
		w.effects(w.payments.Server, 1)
		w.sql("UPDATE " + w.at.table("intent") + " SET version = version - 1")
		w.wantReplay(w.start().call(refund("A-1", "42")), settle.StatusCompleted)
		w.effects(w.payments.Server, 1)
	})
}

func TestS71ThePlanChanges(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		mail := sendMail("eve@example.org", "receipt", "Your receipt", "Here it is.")
		old := w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
		w.want(p.call(mail), settle.StatusCompleted)
		w.want(p.call(refund("A-1", "24")), settle.StatusConflict)

		changed := refund("A-1", "24")
		changed.Replaces = old.Operation
		next := w.want(p.call(changed), settle.StatusCompleted)
		w.effects(w.payments.Server, 2)
		equal(w, "keys", len(w.payments.Keys()), 2)

		// Redelivered, after a restart too, each finds its own.
		for _, q := range []*process{p, w.start()} {
			equal(w, "the replacement", w.wantReplay(q.call(changed), settle.StatusCompleted).Operation, next.Operation)
			equal(w, "the replaced one", w.wantReplay(q.call(refund("A-1", "42")), settle.StatusCompleted).Operation, old.Operation)
			w.wantReplay(q.call(mail), settle.StatusCompleted)
		}
		w.effects(w.payments.Server, 2)
		w.effects(w.mail.Server, 1)
	})
}

func TestS71AbandonedStaysClosed(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.mail.Writes.Next(farside.DropBefore())
		w.mail.Reads.Set(farside.StatusBefore(500))
		mail := sendMail("eve@example.org", "receipt", "Your receipt", "Here it is.")
		out := w.want(p.call(mail), settle.StatusUnknown)
		w.age(longUnanswered)
		p.recover()
		row := w.row(out)
		w.state(row, store.Manual)
		// What a person decides.
		if _, err := w.ledger.Apply(p.ctx, store.Change{Of: row, To: store.Abandoned, Kind: "decision", Actor: "operator"}); err != nil {
			w.Fatal(err)
		}
		w.mail.Reads.Set(farside.OK())
		w.wantReplay(p.call(mail), settle.StatusAbandoned)
		changed := sendMail("eve@example.org", "receipt", "Your receipt", "Here it is again.")
		changed.Replaces = out.Operation
		w.wantReplay(p.call(changed), settle.StatusAbandoned)
		w.effects(w.mail.Server, 0)
		equal(w, "requests", w.writes(w.mail.Server), 1)
	})
}

type refundArgsWithReason struct {
	OrderID string `json:"order_id" settle:"identity"`
	Amount  string `json:"amount" jsonschema:"format=decimal"`
	Reason  string `json:"reason"`
}

func TestS74ARequiredFieldIsAdded(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		first := w.want(w.start(d.refund()).call(refund("A-1", "42.10")), settle.StatusCompleted)
		p := w.start(settle.Tool[refundArgsWithReason, refunded]{
			Name: "refund", Contract: contract(settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true}, nil),
			Do: func(ctx context.Context, op settle.Op, in refundArgsWithReason) (refunded, error) {
				r, err := d.payments.Refund(ctx, op.Key(), in.OrderID, in.Amount)
				return refunded{r.ID}, known(err)
			},
		})
		out := w.wantReplay(p.call(refund("A-1", "42.10")), settle.StatusCompleted)
		equal(w, "the operation", out.Operation, first.Operation)
		invalid := w.want(p.call(refund("B-1", "42.10")), settle.StatusInvalidArguments)
		equal(w, "the field that is missing", invalid.Fields[0], "reason")
		w.effects(w.payments.Server, 1)
		equal(w, "operations", len(w.rows()), 1)
	})
}
