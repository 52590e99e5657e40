package settle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// What is delivered again: by a framework, an HTTP layer, a second run, a model.

func TestS01BesideAnInterruptNothingIsSentAgain(t *testing.T) {
	onEachLedger(t, func(w *world) {
		ask := settle.RawTool{Name: "ask_user", Contract: settle.Contract{WholeArguments: true, NoLookup: true}}
		p := w.startWith(settle.WithTools(newDesk(w.sides).tools()...), settle.WithGuarded(ask))
		interrupt := errors.New("the framework waits for input")
		asks := func(answer string, err error) (string, settle.Outcome, error) {
			return settle.Around(p.ctx, p.x, fresh(settle.Call{Tool: "ask_user", Args: args(map[string]string{"question": "which?"})}),
				func(context.Context) (string, error) { return answer, err })
		}
		mail := sendMail("eve@example.org", "receipt", "Your receipt", "Here it is.")

		_, out, err := asks("", settle.Interrupted(interrupt))
		if err != interrupt { //nolint:errorlint // it must come through untouched
			w.Fatalf("the framework's control flow came back as %v", err)
		}
		w.want(out, settle.StatusNotDone)
		w.want(p.call(mail), settle.StatusCompleted)

		answer, out, err := asks("the second", nil)
		if err != nil || answer != "the second" {
			w.Fatalf("the resumed question gave %q and the error %v", answer, err)
		}
		w.want(out, settle.StatusCompleted)
		w.wantReplay(p.call(mail), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)
	})
}

func TestS11ReplayAfterAgentRetry(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		first := w.want(p.call(refund("A-1", "42.10")), settle.StatusCompleted)
		for range 3 {
			out := w.wantReplay(p.call(refund("A-1", "42.10")), settle.StatusCompleted)
			equal(w, "the operation", out.Operation, first.Operation)
			equal(w, "the resource", out.Resource, first.Resource)
			equal(w, "the result", string(out.Result), string(first.Result))
			equal(w, "a possible repeat", out.PossibleRepeat, true)
		}
		w.effects(w.payments.Server, 1)
		equal(w, "keys at the far side", len(w.payments.Keys()), 1)
		equal(w, "requests", w.writes(w.payments.Server), 1)
	})
}

func TestS12SixtyFourCallersOfOneCall(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		var calls []<-chan settle.Outcome
		for range 64 {
			calls = append(calls, p.begin(refund("A-1", "42")))
		}
		resources, first := map[string]int{}, 0
		for _, c := range calls {
			out := received(w, c)
			equal(w, "the status", out.Status, settle.StatusCompleted)
			resources[out.Resource]++
			if !out.Replayed {
				first++
			}
		}
		equal(w, "different resources", len(resources), 1)
		equal(w, "calls that say they executed", first, 1)
		w.effects(w.payments.Server, 1)
		equal(w, "requests", w.writes(w.payments.Server), 1)
	})
}

func TestS13AToolThatRaisesAfterActingRunsOnce(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.tickets.Writes.Next(farside.Unparsable())
		call := createTicket("Late parcel", "Where is it?")
		out := w.want(p.call(call), settle.StatusUnknown)
		w.age(longEnough)
		for range 5 {
			again := w.want(p.call(call), settle.StatusManual)
			equal(w, "the operation", again.Operation, out.Operation)
		}
		w.state(w.only("create_ticket"), store.Manual)
		w.effects(w.tickets.Server, 1)
		equal(w, "requests", w.writes(w.tickets.Server), 1)
		equal(w, "cases", w.openCases(), 1)
	})
}

func TestS14ARetryPolicyOnUnsafeIsRefused(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		_, err := settle.New(w.ledger, settle.WithTools(d.createTicket(func(c *settle.Contract) { c.Attempts = 3 })))
		var wrong *settle.ToolError
		if !errors.As(err, &wrong) || wrong.Tool != "create_ticket" {
			w.Fatalf("an unsafe tool with a retry policy was accepted: %v", err)
		}
		w.says(err.Error(), "retry policy", "R2")
	})
}

func TestS15AJobThatRunsTwice(t *testing.T) {
	onEachLedger(t, func(w *world) {
		mail := sendMail("eve@example.org", "report", "Report", "As asked.")
		w.want(w.start().call(mail), settle.StatusCompleted)
		w.wantReplay(w.start().call(mail), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)

		w.want(w.start().inTask("case-43").call(mail), settle.StatusCompleted)
		w.effects(w.mail.Server, 2)
		rows := w.rowsOf("send_mail")
		equal(w, "operations", len(rows), 2)
		if rows[0].Slot == rows[1].Slot {
			w.Error("two intents share a slot")
		}
	})
}

func TestS16TheFarSideSeesTheAttemptsOfTheLedger(t *testing.T) {
	onEachLedger(t, func(w *world) {
		// Warm connections are what an HTTP client re-sends on by itself.
		w.payments.Configure(farside.KeepAlive())
		p := w.start()
		for _, order := range []string{"W-1", "W-2", "W-3"} {
			w.want(p.call(refund(order, "1")), settle.StatusCompleted)
		}
		warm := w.writes(w.payments.Server)
		w.payments.Writes.Next(farside.DropBefore(), farside.DropBefore())
		out := w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
		equal(w, "requests", w.writes(w.payments.Server)-warm, 3)
		equal(w, "attempts in the ledger", w.row(out).Attempt, 3)
		w.effects(w.payments.Server, 4)
		equal(w, "keys", len(w.payments.Keys()), 4)
	})
}

func TestS33AMeantRepeatIsNeitherSwallowedNorSilent(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		mail := sendMail("eve@example.org", "reminder", "Reminder", "Please pay.")
		w.want(p.call(mail), settle.StatusCompleted)
		replay := w.wantReplay(p.call(mail), settle.StatusCompleted)
		w.says(replay.ForModel(), "nothing new was done")
		w.effects(w.mail.Server, 1)

		w.want(p.call(again(2, mail)), settle.StatusCompleted)
		w.effects(w.mail.Server, 2)
		w.wantReplay(p.call(again(2, mail)), settle.StatusCompleted)
		w.want(p.inTask("case-43").call(mail), settle.StatusCompleted)
		w.effects(w.mail.Server, 3)

		headers := map[string]bool{}
		for _, e := range w.mail.Effects() {
			headers[e.Fields["header."+keyHeader]] = true
		}
		equal(w, "keys", len(headers), 3)
	})
}

func TestS33TheModelMayMeanARepeatOfARepeatableTool(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).sendMail(func(c *settle.Contract) { c.Repeatable = true }))
		mail := func(occurrence any) settle.Call {
			return settle.Call{Tool: "send_mail", Args: args(map[string]any{"to": "eve@example.org", "purpose": "reminder",
				"subject": "Reminder", "body": "Please pay.", "settle_occurrence": occurrence})}
		}
		w.want(p.call(mail(nil)), settle.StatusCompleted)
		replay := w.wantReplay(p.call(mail(nil)), settle.StatusCompleted)
		w.says(replay.ForModel(), "settle_occurrence")
		w.want(p.call(mail(2)), settle.StatusCompleted)
		w.effects(w.mail.Server, 2)
		w.want(p.call(mail(4)), settle.StatusInvalidArguments)
		w.effects(w.mail.Server, 2)
	})
}

func TestS80BatchesInOppositeOrder(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var there, back []settle.Call
		for _, order := range []string{"A", "B", "C", "D", "E", "F", "G", "H"} {
			there = append(there, refund(order, "1"))
			back = append([]settle.Call{refund(order, "1")}, back...)
		}
		p, q := w.start(), w.start()
		var turns []<-chan []settle.Outcome
		for range 8 {
			turns = append(turns, p.beginTurn(there...), q.beginTurn(back...))
		}
		for _, turn := range turns {
			for _, out := range received(w, turn) {
				equal(w, "the status", out.Status, settle.StatusCompleted)
			}
		}
		w.effects(w.payments.Server, len(there))
		equal(w, "operations", len(w.rows()), len(there))
	})
}

func TestS04OneOfTwoSlowCallsFinishes(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		gates := map[string]*farside.Gate{"A-1": farside.NewGate(), "B-1": farside.NewGate()}
		for order, gate := range gates {
			w.payments.Writes.When(func(r farside.Request) bool { return r.Fields["order_id"] == order }, farside.Slow(gate))
		}
		a, b := p.begin(refund("A-1", "1")), p.begin(refund("B-1", "2"))
		received(w, gates["A-1"].Entered())
		received(w, gates["B-1"].Entered())
		gates["A-1"].Release()
		w.want(received(w, a), settle.StatusCompleted)

		// The whole turn again, by a process that doesn't wait long.
		outs := w.start(newDesk(w.sides).refund(timeout(quick))).turn(refund("A-1", "1"), refund("B-1", "2"))
		w.wantReplay(outs[0], settle.StatusCompleted)
		w.want(outs[1], settle.StatusInProgress)
		w.effects(w.payments.Server, 1)

		gates["B-1"].Release()
		w.want(received(w, b), settle.StatusCompleted)
		for _, out := range p.turn(refund("A-1", "1"), refund("B-1", "2")) {
			w.wantReplay(out, settle.StatusCompleted)
		}
		w.effects(w.payments.Server, 2)
		equal(w, "requests", w.writes(w.payments.Server), 2)
	})
}
