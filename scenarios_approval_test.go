package settle_test

import (
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// Effects that a person has to allow first.

// approval is an edit: a person has to allow each effect.
func approval(c *settle.Contract) { c.Approval = true }

// gated are the standard tools, of which refunds and tickets need approval.
func (d *desk) gated(edits ...edit) []settle.AnyTool {
	return []settle.AnyTool{d.refund(append(edits, approval)...), d.createTicket(append(edits, approval)...), d.sendMail(), d.readBalance()}
}

func TestS02AnInterruptedTurnRunsOnce(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		tools := []settle.AnyTool{d.sendMail(), d.refund(approval), d.readBalance()}
		p := w.start(tools...)
		outs := p.turn(receipt(), refund("B", "5"), balance("B"))
		w.want(outs[0], settle.StatusCompleted)
		pending := w.want(outs[1], settle.StatusAwaitingApproval)
		p.stop()

		q := w.start(tools...)
		outs = q.turn(balance("B"), refund("B", "5"), receipt())
		w.want(outs[0], settle.StatusCompleted)
		w.want(outs[1], settle.StatusAwaitingApproval)
		w.wantReplay(outs[2], settle.StatusCompleted)
		q.person("ann").decides(pending.Operation, settle.DecideApprove)
		w.want(q.call(refund("B", "5")), settle.StatusCompleted)
		w.effects(w.payments.Server, 1)
		w.effects(w.mail.Server, 1)
		equal(w, "reads of the balance", w.balance.Acted(), 2)
	})
}

func TestS03SeveralApprovalsInOneTurn(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).gated()...)
		calls := []settle.Call{refund("A", "1"), refund("B", "2"), refund("C", "3")}
		outs := p.turn(calls...)
		for i, out := range outs {
			p.person("ann").decides(out.Operation, settle.DecideApprove)
			again := p.turn(calls...)
			for j := range again {
				want := settle.StatusAwaitingApproval
				if j <= i {
					want = settle.StatusCompleted
				}
				equal(w, "the status", again[j].Status, want)
			}
		}
		w.effects(w.payments.Server, 3)
	})
}

func TestS07ADenialStands(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).gated()...)
		out := w.want(p.call(refund("A", "1")), settle.StatusAwaitingApproval)
		ann := p.person("ann")
		approve := ann.decision(out.Operation, settle.DecideApprove)
		ann.decides(out.Operation, settle.DecideDeny)
		ann.refused(approve, "version")
		w.wantReplay(p.call(refund("A", "1")), settle.StatusDenied)
		w.effects(w.payments.Server, 0)
	})
}

func TestS36AnApprovalSurvivesTheProcess(t *testing.T) {
	onEachLedger(t, func(w *world) {
		k := w.dispatch(order{Calls: []settle.Call{refund("A", "1")}, Approval: true})
		out := w.want(k.outcomes()[0], settle.StatusAwaitingApproval)
		k.kill()
		p := w.start(newDesk(w.sides).gated()...)
		w.want(p.call(refund("A", "1")), settle.StatusAwaitingApproval)
		p.person("ann").decides(out.Operation, settle.DecideApprove)
		p.recover()
		w.wantReplay(p.call(refund("A", "1")), settle.StatusCompleted)
		w.effects(w.payments.Server, 1)
	})
}

func TestS37AnApprovalIsContinuedAfterACrash(t *testing.T) {
	for _, at := range []stage{claimed, answered} {
		t.Run(string(at), func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				p := w.start(newDesk(w.sides).gated()...)
				out := w.want(p.call(refund("A", "1")), settle.StatusAwaitingApproval)
				p.person("ann").decides(out.Operation, settle.DecideApprove)
				k := w.dispatch(order{Calls: []settle.Call{refund("A", "1")}, Approval: true, Stop: map[string]stage{"refund": at}})
				k.reaches(map[string]stage{"refund": at})
				k.kill()
				w.age(longEnough)
				done := p.call(refund("A", "1"))
				equal(w, "the status", done.Status, settle.StatusCompleted)
				equal(w, "the operation", done.Operation, out.Operation)
				w.effects(w.payments.Server, 1)
			})
		})
	}
}

func TestS37WithoutALookupItIsACase(t *testing.T) {
	for _, at := range []stage{claimed, answered} {
		t.Run(string(at), func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				p := w.start(newDesk(w.sides).gated()...)
				ticket := createTicket("Late", "Where is it?")
				out := w.want(p.call(ticket), settle.StatusAwaitingApproval)
				p.person("ann").decides(out.Operation, settle.DecideApprove)
				k := w.dispatch(order{Calls: []settle.Call{ticket}, Approval: true, Stop: map[string]stage{"create_ticket": at}})
				k.reaches(map[string]stage{"create_ticket": at})
				k.kill()
				before := len(w.tickets.Effects())
				w.age(longUnanswered)
				p.recover()
				w.want(p.call(ticket), settle.StatusManual)
				equal(w, "tickets", len(w.tickets.Effects()), before)
			})
		})
	}
}

func TestS39OtherArgumentsAfterAnApproval(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).gated()...)
		out := w.want(p.call(refund("A", "1")), settle.StatusAwaitingApproval)
		p.person("ann").decides(out.Operation, settle.DecideApprove)
		w.want(p.call(refund("A", "100")), settle.StatusConflict)
		w.effects(w.payments.Server, 0)
	})
}

func TestS42AnApprovalIsForItsOwnCall(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).gated()...)
		out := w.want(p.call(withID("call_0", refund("A", "1"))), settle.StatusAwaitingApproval)
		p.person("ann").decides(out.Operation, settle.DecideApprove)
		w.want(p.call(withID("call_0", refund("B", "1"))), settle.StatusAwaitingApproval)
		w.want(p.call(withID("call_0", createTicket("Late", "Where?"))), settle.StatusAwaitingApproval)
		w.effects(w.payments.Server, 0)
		w.effects(w.tickets.Server, 0)
	})
}

func TestS46AnApprovedRefusalIsShown(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).gated()...)
		out := w.want(p.call(refund("A", "1")), settle.StatusAwaitingApproval)
		ann := p.person("ann")
		ann.decides(out.Operation, settle.DecideApprove)
		w.payments.Writes.Next(farside.Reject(422, "closed_account"))
		w.want(p.call(refund("A", "1")), settle.StatusFailed)
		var kinds []string
		for _, e := range ann.sees(out.Operation).Events {
			kinds = append(kinds, e.From+">"+e.To)
		}
		equal(w, "what the case shows", len(kinds), 4)
		equal(w, "the approval", kinds[1], "awaiting_approval>retryable")
		equal(w, "the execution", kinds[2], "retryable>running")
		equal(w, "the refusal", kinds[3], "running>failed")
	})
}

func TestS85AnApprovalAfterItsTime(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).gated(func(c *settle.Contract) { c.ApprovalTTL = time.Hour })...)
		out := w.want(p.call(refund("A", "1")), settle.StatusAwaitingApproval)
		late := p.person("ann").decision(out.Operation, settle.DecideApprove)
		w.age(2 * time.Hour)
		p.person("ann").refused(late, "expired")
		p.recover()
		w.state(w.row(out), store.Failed)
		w.wantReason(w.wantReplay(p.call(refund("A", "1")), settle.StatusDenied), "approval_expired")
		w.effects(w.payments.Server, 0)
	})
}

// R43: an attempt that had no effect doesn't use the approval up.
func TestR43AnApprovalSurvivesWhatHadNoEffect(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).gated(attempts(1))...)
		out := w.want(p.call(createTicket("Late", "Where?")), settle.StatusAwaitingApproval)
		p.person("ann").decides(out.Operation, settle.DecideApprove)
		w.tickets.Refuse()
		w.want(p.call(createTicket("Late", "Where?")), settle.StatusNotDone)
		w.tickets.Accept()
		w.want(p.call(createTicket("Late", "Where?")), settle.StatusCompleted)
		w.effects(w.tickets.Server, 1)
	})
}
