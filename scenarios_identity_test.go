package settle_test

import (
	"context"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// Which call is the same, and which isn't: call ids, turns, restarts, tenants,
// servers.

func TestS22OneCallIDInTwoTurns(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.want(p.call(withID("call_0", refund("A-1", "1"))), settle.StatusCompleted)
		w.want(p.call(withID("call_0", refund("B-1", "1"))), settle.StatusCompleted)
		w.effects(w.payments.Server, 2)
		equal(w, "keys", len(w.payments.Keys()), 2)
	})
}

func TestS23ConstantCallIDs(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		operations, resources := map[string]bool{}, map[string]bool{}
		for i := range 10 {
			out := w.want(p.call(withID("x", refund(string(rune('A'+i)), "1"))), settle.StatusCompleted)
			operations[out.Operation], resources[out.Resource] = true, true
		}
		equal(w, "operations", len(operations), 10)
		equal(w, "results", len(resources), 10)
		w.effects(w.payments.Server, 10)
	})
}

func TestS24OneCallIDForTwoCallsOfATurn(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		outs := p.turn(withID("x", refund("A-1", "1")), withID("x", refund("B-1", "1")))
		w.want(outs[0], settle.StatusCompleted)
		w.want(outs[1], settle.StatusCompleted)
		w.effects(w.payments.Server, 2)

		outs = p.turn(withID("y", createTicket("Late", "one")), withID("y", createTicket("Late", "two")))
		w.want(outs[0], settle.StatusCompleted)
		w.want(outs[1], settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)

		outs = p.turn(withID("z", refund("C-1", "1")), withID("z", refund("C-1", "1")))
		w.want(outs[0], settle.StatusCompleted)
		replay := w.wantReplay(outs[1], settle.StatusCompleted)
		w.says(replay.ForModel(), "nothing new was done")
		w.effects(w.payments.Server, 3)
	})
}

func TestS28ANewCallIDEachTurnAndARestart(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		first := w.want(p.call(withID("turn_3", refund("A-1", "42"))), settle.StatusCompleted)
		p.stop()
		out := w.wantReplay(w.start().call(withID("turn_5", refund("A-1", "42.00"))), settle.StatusCompleted)
		equal(w, "the operation", out.Operation, first.Operation)
		equal(w, "keys", len(w.payments.Keys()), 1)
		w.effects(w.payments.Server, 1)
	})
}

func TestS29NearIdenticalMessages(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		bodies := []string{"We are sorry.", "We're sorry!", "Sorry about that.", "Our apologies."}
		gate := farside.NewGate()
		w.mail.Writes.Next(farside.Slow(gate))
		first := p.begin(sendMail("eve@example.org", "apology", "Sorry", bodies[0]))
		received(w, gate.Entered())
		for _, body := range bodies[1:] {
			out := w.want(p.call(sendMail("eve@example.org", "apology", "Sorry", body)), settle.StatusConflict)
			equal(w, "the differing fields", len(out.Fields), 1)
			equal(w, "the differing field", out.Fields[0], "body")
			equal(w, "results shown", len(out.Result), 0)
			w.says(out.ForModel(), "Not done", "different: body", "not sent", out.Operation)
			w.hides(out.ForModel(), bodies...)
			w.hides(out.ForModel(), "was carried out", "again")
		}
		gate.Release()
		done := w.want(received(w, first), settle.StatusCompleted)
		late := w.want(p.call(sendMail("eve@example.org", "apology", "Sorry", bodies[3])), settle.StatusConflict)
		w.says(late.ForModel(), "different: body", "not sent", done.Operation+" is completed")
		w.hides(late.ForModel(), bodies...)
		w.effects(w.mail.Server, 1)
		equal(w, "the body that was sent", w.mail.Effects()[0].Fields["body"], bodies[0])
		equal(w, "operations", w.only("send_mail").ID.String(), done.Operation)
	})
}

func TestS32AnOldResultNeverAnswersOtherArguments(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		first := w.want(p.call(refund("A-1", "4711.03")), settle.StatusCompleted)
		out := w.want(p.call(refund("A-1", "815.09")), settle.StatusConflict)
		equal(w, "the reference", out.Operation, first.Operation)
		equal(w, "the differing field", out.Fields[0], "amount")
		equal(w, "results shown", len(out.Result), 0)
		equal(w, "the state named", out.Related[0].State, "completed")
		w.hides(out.ForModel(), "4711.03", "815.09")
		w.effects(w.payments.Server, 1)
	})
}

type bookArgs struct {
	Customer string `json:"customer" settle:"identity"`
	Slot     string `json:"slot"`
}

func TestS35ASecondBookingIsAConflict(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		p := w.start(settle.Tool[bookArgs, opened]{
			Name: "book", Contract: contract(settle.Contract{NoLookup: true}, nil),
			Do: func(ctx context.Context, _ settle.Op, in bookArgs) (opened, error) {
				k, err := d.tickets.Open(ctx, in.Customer, in.Slot)
				return opened{k.ID}, known(err)
			},
		})
		book := func(slot string) settle.Call {
			return settle.Call{Tool: "book", Args: args(bookArgs{"eve", slot})}
		}
		first := w.want(p.call(book("monday 9:00")), settle.StatusCompleted)
		out := w.want(p.call(book("monday 10:00")), settle.StatusConflict)
		w.wantRelated(out, first.Operation)
		equal(w, "the booking that stands", out.Related[0].Resource, first.Resource)
		equal(w, "the differing field", out.Fields[0], "slot")
		w.effects(w.tickets.Server, 1)
	})
}

func TestS55TwoTenantsShareNothing(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		q := p.ofTenant("globex")
		ours := w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
		theirs := w.want(q.call(refund("A-1", "42")), settle.StatusCompleted)
		w.effects(w.payments.Server, 2)
		equal(w, "keys", len(w.payments.Keys()), 2)
		if ours.Operation == theirs.Operation || ours.Resource == theirs.Resource {
			w.Error("two tenants share an operation")
		}
		rows := w.rowsOf("refund")
		if rows[0].Fingerprint == rows[1].Fingerprint || rows[0].Slot == rows[1].Slot || rows[0].Node == rows[1].Node {
			w.Error("two tenants share a digest")
		}
		q.notFound(ours.Operation)
		p.notFound(theirs.Operation)
		out, err := p.x.Get(p.ctx, ours.Operation)
		if err != nil {
			w.Fatal(err)
		}
		equal(w, "the own reference", out.Resource, ours.Resource)
	})
}

func TestS56ACorrectedCallIsTheNextNumber(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		credit := d.refund()
		credit.Name = "credit"
		p := w.start(d.refund(), credit)
		w.payments.Writes.Next(farside.Reject(422, "amount_too_high"))
		refused := w.want(p.call(refund("A-1", "420")), settle.StatusFailed)
		w.wantReason(refused, "rejected")

		corrected := w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
		rows := w.rowsOf("refund")
		equal(w, "operations", len(rows), 2)
		w.state(rows[0].Operation, store.Failed)
		equal(w, "the number of the refused one", rows[0].Number, 1)
		equal(w, "the number of the corrected one", rows[1].Number, 2)
		equal(w, "the slot", rows[1].Slot, rows[0].Slot)
		w.effects(w.payments.Server, 1)
		equal(w, "keys", len(w.payments.Keys()), 2)

		old := w.wantReplay(p.call(refund("A-1", "420")), settle.StatusFailed)
		equal(w, "the old call's operation", old.Operation, refused.Operation)
		now := w.wantReplay(p.call(refund("A-1", "42")), settle.StatusCompleted)
		equal(w, "the corrected call's operation", now.Operation, corrected.Operation)

		call := refund("A-1", "42")
		call.Tool = "credit"
		w.want(p.call(call), settle.StatusCompleted)
		w.effects(w.payments.Server, 2)
		equal(w, "keys", len(w.payments.Keys()), 3)
	})
}

type notifyArgs struct {
	OrderID string `json:"order_id" settle:"identity"`
	To      string `json:"to"`
	Body    string `json:"body"`
}

// notify sends a mail about an order: the recipient is business.
func (d *desk) notify() settle.Tool[notifyArgs, sent] {
	return settle.Tool[notifyArgs, sent]{
		Name: "notify", Contract: contract(settle.Contract{NoLookup: true}, nil),
		Do: func(ctx context.Context, _ settle.Op, in notifyArgs) (sent, error) {
			m, err := d.mail.Send(ctx, farside.Message{To: in.To, Purpose: in.OrderID, Body: in.Body})
			return sent{m.ID}, known(err)
		},
	}
}

func notify(order, to, body string) settle.Call {
	return settle.Call{Tool: "notify", Args: args(notifyArgs{order, to, body})}
}

func TestS63ConflictsAllAtOnceLeaveTheRowAlone(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		p := w.start(d.refund(), d.notify())
		w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
		w.want(p.call(notify("A-1", "eve@example.org", "It is on its way.")), settle.StatusCompleted)
		before := w.rows()
		changed := []settle.Call{refund("A-1", "43"), notify("A-1", "mallory@example.org", "It is on its way."), notify("A-1", "eve@example.org", "It is late.")}
		var calls []<-chan settle.Outcome
		for i := range 32 {
			calls = append(calls, p.begin(changed[i%len(changed)]))
		}
		for _, c := range calls {
			w.want(received(w, c), settle.StatusConflict)
		}
		for i, e := range w.rows() {
			w.unchanged(before[i].Operation, e.Operation)
		}
		w.effects(w.payments.Server, 1)
		w.effects(w.mail.Server, 1)
	})
}

func TestS83TwoServersWithOneToolName(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.startWith()
		d := newDesk(w.sides)
		keys := map[string]bool{}
		create := func(server string) settle.Outcome {
			call := createTicket("Late parcel", "Where is it?")
			call.Tool = server + "/create_ticket"
			_, out, err := settle.Around(p.ctx, p.x, fresh(call), func(ctx context.Context) (farside.Ticket, error) {
				if key, ok := settle.KeyFrom(ctx); ok {
					keys[key] = true
				}
				return d.tickets.Open(ctx, "Late parcel", "Where is it?")
			})
			if err != nil {
				w.Fatal(err)
			}
			return out
		}
		crm, desk := w.want(create("crm"), settle.StatusCompleted), w.want(create("desk"), settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)
		equal(w, "keys", len(keys), 2)
		equal(w, "operations", len(w.rows()), 2)
		equal(w, "crm's replay", w.wantReplay(create("crm"), settle.StatusCompleted).Operation, crm.Operation)
		equal(w, "desk's replay", w.wantReplay(create("desk"), settle.StatusCompleted).Operation, desk.Operation)
		w.effects(w.tickets.Server, 2)
	})
}
