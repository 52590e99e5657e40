package settle_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// Processes that are killed by SIGKILL, and what comes after them.

// aTurn is a call of each tool with effects.
func aTurn() []settle.Call {
	return []settle.Call{
		setLabel("I-7", "urgent"), refund("A-1", "42"),
		sendMail("eve@example.org", "receipt", "Your receipt", "Here it is."), createTicket("Late parcel", "Where is it?"),
	}
}

// killedInABatch has a worker killed with a label at K4, a refund at K3, a mail
// and a ticket at K2, the mail's request meeting the mode that the gate makes.
func killedInABatch(w *world, mailMeets func(*farside.Gate) farside.Mode) {
	w.Helper()
	gate := farside.NewGate()
	w.mail.Writes.Next(mailMeets(gate))
	w.tickets.Writes.Next(farside.Late(gate))
	k := w.dispatch(order{Calls: aTurn(), Stop: map[string]stage{"set_label": recorded, "refund": answered}})
	k.reaches(map[string]stage{"set_label": recorded, "refund": answered})
	received(w, gate.Entered())
	received(w, gate.Entered())
	k.kill()
	gate.Release()
}

func TestS06ACrashInABatch(t *testing.T) {
	onEachLedger(t, func(w *world) {
		killedInABatch(w, func(g *farside.Gate) farside.Mode { return farside.Late(g) })
		w.age(longEnough)
		p := w.start()
		outs := p.turn(append(aTurn(), refund("B-1", "7"))...)
		w.wantReplay(outs[0], settle.StatusCompleted) // K4: the record
		w.wantReplay(outs[1], settle.StatusCompleted) // K3: evidence
		w.wantReplay(outs[2], settle.StatusCompleted) // K2: evidence
		w.want(outs[3], settle.StatusManual)          // K2, and nothing to look at
		w.want(outs[4], settle.StatusCompleted)       // K0
		w.effects(w.labels.Server, 1)
		equal(w, "labels written", w.labels.Acted(), 1)
		w.effects(w.payments.Server, 2)
		equal(w, "refunds asked for", w.writes(w.payments.Server), 2)
		w.effects(w.mail.Server, 1)
		w.effects(w.tickets.Server, 1)
		equal(w, "cases", w.openCases(), 1)
	})
}

func TestS06AMailThatNeverArrivedIsSentOnce(t *testing.T) {
	onEachLedger(t, func(w *world) {
		killedInABatch(w, func(g *farside.Gate) farside.Mode { return farside.DropBefore().Held(g) })
		w.age(longEnough)
		outs := w.start().turn(aTurn()...)
		out := w.want(outs[2], settle.StatusCompleted)
		equal(w, "the attempts", w.row(out).Attempt, 2)
		w.effects(w.mail.Server, 1)
	})
}

func TestS06RecoveryNeedsNoCaller(t *testing.T) {
	onEachLedger(t, func(w *world) {
		killedInABatch(w, func(g *farside.Gate) farside.Mode { return farside.Late(g) })
		w.age(longEnough)
		p := w.start()
		p.recover()
		w.state(w.only("set_label"), store.Completed)
		w.state(w.only("refund"), store.Completed)
		w.state(w.only("send_mail"), store.Completed)
		w.state(w.only("create_ticket"), store.Manual)
		for i, out := range p.turn(aTurn()...) {
			if i == 3 {
				w.want(out, settle.StatusManual)
				continue
			}
			w.wantReplay(out, settle.StatusCompleted)
		}
		for _, s := range []*farside.Server{w.labels.Server, w.payments.Server, w.mail.Server, w.tickets.Server} {
			w.effects(s, 1)
			equal(w, "requests", w.writes(s), 1)
		}
	})
}

func TestS08AReplayedTurnAfterTheHostCrashed(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
		p.stop()
		gate := farside.NewGate()
		w.payments.Writes.Next(farside.DropBefore().Held(gate))
		k := w.dispatch(order{Calls: []settle.Call{refund("B-1", "7")}})
		received(w, gate.Entered())
		k.kill()
		gate.Release()

		w.age(longEnough)
		outs := w.start().turn(refund("A-1", "42"), refund("B-1", "7"))
		w.wantReplay(outs[0], settle.StatusCompleted)
		out := w.want(outs[1], settle.StatusCompleted)
		equal(w, "attempts of the second", w.row(out).Attempt, 2)
		w.effects(w.payments.Server, 2)
		equal(w, "keys", len(w.payments.Keys()), 2)
	})
}

// twentyCalls are operations of which each has its own effect.
func twentyCalls() []settle.Call {
	var calls []settle.Call
	for i := range 10 {
		n := string(rune('A' + i))
		calls = append(calls, refund(n, "1"))
		if i < 5 {
			calls = append(calls, setLabel(n, "urgent"), sendMail("eve@example.org", n, "Hello", "Hello."))
		}
	}
	return calls
}

// eachOnce requires the effects of twentyCalls.
func eachOnce(w *world) {
	w.Helper()
	w.effects(w.payments.Server, 10)
	w.effects(w.labels.Server, 5)
	w.effects(w.mail.Server, 5)
	for _, s := range []*farside.Server{w.payments.Server, w.labels.Server, w.mail.Server} {
		if twice := s.Duplicates(); len(twice) > 0 {
			w.Errorf("done twice: %+v", twice)
		}
	}
}

func TestS49SevenProcessesResumeOneSession(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var workers []*worker
		for i := range 7 {
			workers = append(workers, w.dispatch(order{Calls: twentyCalls(), Together: i%2 == 0}))
		}
		for _, k := range workers {
			outs := k.outcomes()
			equal(w, "outcomes", len(outs), 20)
			for _, out := range outs {
				// Who waits for another one's attempt waits no longer than its timeout.
				if out.Status != settle.StatusCompleted && out.Status != settle.StatusInProgress {
					w.Errorf("a call of %s is %s", out.Tool, out.Status)
				}
			}
		}
		for _, out := range w.start().turn(twentyCalls()...) {
			w.wantReplay(out, settle.StatusCompleted)
		}
		eachOnce(w)
		equal(w, "operations", len(w.rows()), 20)
	})
}

func TestS49ProcessesThatAreKilledOneAfterTheOther(t *testing.T) {
	const many = 20 // attempts are counted over all of them (R28)
	onEachLedger(t, func(w *world) {
		w.payments.Writes.Next(farside.OK(), farside.CommitThenDrop(), farside.DropBefore(), farside.StatusAfter(500), farside.OK(), farside.StatusBefore(502))
		w.mail.Writes.Next(farside.DropBefore(), farside.CommitThenDrop(), farside.Unparsable())
		w.labels.Writes.Next(farside.CommitThenDrop(), farside.DropBefore())
		for round := range 4 {
			k := w.dispatch(order{Calls: twentyCalls(), Attempts: many})
			for range 1 + 2*round { // it dies wherever it is then
				k.next()
			}
			k.kill()
			w.age(longEnough)
		}
		p := w.start(newDesk(w.sides).tools(attempts(many))...)
		open := 1
		for round := 0; open > 0 && round < 5; round++ {
			open = 0
			for _, out := range p.turn(twentyCalls()...) {
				if out.Status != settle.StatusCompleted {
					open++
				}
			}
			w.age(longEnough)
		}
		equal(w, "calls that aren't completed", open, 0)
		eachOnce(w)
	})
}

func TestS50NothingStaysRunningUnderADeadOwner(t *testing.T) {
	onEachLedger(t, func(w *world) {
		gate := farside.NewGate()
		for _, s := range []*farside.Server{w.labels.Server, w.payments.Server, w.mail.Server, w.tickets.Server} {
			s.Writes.Next(farside.Late(gate))
		}
		w.balance.Reads.Next(farside.Late(gate))
		k := w.dispatch(order{Calls: append(aTurn(), balance("1234"))})
		for range 5 {
			received(w, gate.Entered())
		}
		k.kill()
		gate.Release()
		equal(w, "operations", len(w.rows()), 4)

		// A lease proves nothing before its end, and no other process touches it.
		p := w.start()
		equal(w, "taken within the leases", p.recover().Taken, 0)
		w.age(longEnough)
		p.recover()
		w.state(w.only("set_label"), store.Completed)
		w.state(w.only("refund"), store.Completed)
		w.state(w.only("send_mail"), store.Completed)
		w.state(w.only("create_ticket"), store.Manual)
		for _, s := range []*farside.Server{w.labels.Server, w.payments.Server, w.mail.Server, w.tickets.Server} {
			w.effects(s, 1)
		}
		equal(w, "labels written", w.labels.Acted(), 2)
		w.want(p.call(balance("1234")), settle.StatusCompleted)
	})
}

func TestS50KilledBetweenClaimAndSending(t *testing.T) {
	onEachLedger(t, func(w *world) {
		stop := map[string]stage{"set_label": claimed, "refund": claimed, "send_mail": claimed, "create_ticket": claimed}
		k := w.dispatch(order{Calls: aTurn(), Together: true, Stop: stop})
		k.reaches(stop)
		k.kill()
		w.age(longEnough)
		p := w.start()
		p.recover()
		w.state(w.only("set_label"), store.Completed)
		w.state(w.only("send_mail"), store.Retryable)
		w.state(w.only("create_ticket"), store.Manual) // a false case: stated openly
		for i, want := range []settle.Status{settle.StatusCompleted, settle.StatusCompleted, settle.StatusCompleted, settle.StatusManual} {
			equal(w, "the status of "+aTurn()[i].Tool, p.call(aTurn()[i]).Status, want)
		}
		w.effects(w.labels.Server, 1)
		w.effects(w.payments.Server, 1)
		w.effects(w.mail.Server, 1)
		w.effects(w.tickets.Server, 0)
	})
}

func TestS50AWorkerThatDiesWhileItRecovers(t *testing.T) {
	onEachLedger(t, func(w *world) {
		gate := farside.NewGate()
		w.payments.Writes.Next(farside.DropBefore().Held(gate))
		k := w.dispatch(order{Calls: []settle.Call{refund("A-1", "42")}})
		received(w, gate.Entered())
		k.kill()
		gate.Release()

		w.age(longEnough)
		k = w.dispatch(order{Recover: true, Stop: map[string]stage{"refund": answered}})
		k.reaches(map[string]stage{"refund": answered})
		k.kill()
		w.effects(w.payments.Server, 1)
		w.state(w.only("refund"), store.Running)

		w.age(longEnough)
		p := w.start()
		p.recover()
		row := w.only("refund")
		w.state(row, store.Completed)
		equal(w, "attempts", row.Attempt, 2)
		w.wantReplay(p.call(refund("A-1", "42")), settle.StatusCompleted)
		w.effects(w.payments.Server, 1)
	})
}

func TestS50ABacklogIsWorkedOffWithoutPauses(t *testing.T) {
	onEachLedger(t, func(w *world) {
		const lost = 40
		var calls []settle.Call
		for i := range lost {
			calls = append(calls, refund(strconv.Itoa(i), "1"))
		}
		w.payments.Writes.Set(farside.DropBefore())
		for _, out := range w.start(newDesk(w.sides).refund(attempts(1))).turn(calls...) {
			w.want(out, settle.StatusUnknown)
		}
		w.payments.Writes.Set(farside.OK())
		w.age(longEnough)

		// One at a time: with a pause after each this takes longer than anybody waits.
		p := w.startWith(settle.WithTools(newDesk(w.sides).refund()), settle.WithConcurrency(1))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.x.Run(ctx) }()
		w.lands(w.payments.Server, lost)
		cancel()
		if err := received(w, ended); err != nil {
			w.Error(err)
		}
	})
}

func TestS64ARewordedCallWithinTheLeaseOfTheDead(t *testing.T) {
	onEachLedger(t, func(w *world) {
		k := w.dispatch(order{Calls: []settle.Call{createTicket("Late parcel", "Where is it?")}, Stop: map[string]stage{"create_ticket": answered}})
		k.reaches(map[string]stage{"create_ticket": answered})
		k.kill()
		first := w.only("create_ticket")

		const patience = 200 * time.Millisecond
		p := w.start(newDesk(w.sides).createTicket(timeout(patience)))
		reworded := createTicket("Late parcel", "The parcel hasn't come.")
		began := time.Now()
		out := w.want(p.call(reworded), settle.StatusHeld)
		if waited := time.Since(began); waited < patience {
			w.Errorf("the call waited %v for what runs, want %v", waited, patience)
		}
		w.wantReason(out, "unsettled_operation")
		w.wantRelated(out, first.ID.String())
		w.want(p.call(createTicket("Late parcel", "Where is it?")), settle.StatusInProgress)

		w.age(longEnough)
		w.want(p.call(createTicket("Late parcel", "Where is it?")), settle.StatusManual)
		w.wantRelated(w.want(p.call(reworded), settle.StatusHeld), first.ID.String())
		w.effects(w.tickets.Server, 1)
		equal(w, "operations", len(w.rows()), 1)
	})
}

func TestS76AToolThatNoWorkerKnowsAnyMore(t *testing.T) {
	onEachLedger(t, func(w *world) {
		gate := farside.NewGate()
		w.payments.Writes.Next(farside.Late(gate))
		k := w.dispatch(order{Calls: []settle.Call{refund("A-1", "42")}})
		received(w, gate.Entered())
		k.kill()
		gate.Release()

		p := w.start(newDesk(w.sides).readBalance())
		w.age(longEnough)
		p.recover()
		w.state(w.only("refund"), store.Unknown)
		w.age(longUnanswered)
		p.recover()
		w.state(w.only("refund"), store.Manual)
		equal(w, "cases", w.openCases(), 1)
		equal(w, "due again", p.recover().Taken, 0)
		w.effects(w.payments.Server, 1)
	})
}
