package settle_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// What time changes: windows, moments, waits that are over.

// lostRefund is a refund of which nobody knows: its one attempt was lost, and the
// far side can't be asked. Keys are forgotten there after a day.
func lostRefund(w *world, task string, loss farside.Mode, edits ...edit) settle.Outcome {
	w.Helper()
	w.payments.Configure(farside.ForgetsKeysAfter(24 * time.Hour))
	w.payments.Writes.Next(loss)
	w.payments.Reads.Set(farside.StatusBefore(http.StatusBadGateway))
	once := newDesk(w.sides).refund(append(edits, func(c *settle.Contract) { c.Attempts = 1 })...)
	return w.want(w.start(once).inTask(task).call(refund("A-1", "42")), settle.StatusUnknown)
}

func TestS21ADayLaterEvidenceSettlesIt(t *testing.T) {
	onEachLedger(t, func(w *world) {
		out := lostRefund(w, "case-42", farside.CommitThenDrop())
		w.age(25 * time.Hour)
		w.payments.Reads.Set(farside.OK())
		found := w.wantReplay(w.start().call(refund("A-1", "42")), settle.StatusCompleted)
		equal(w, "the operation", found.Operation, out.Operation)
		equal(w, "the resource", found.Resource, w.payments.Effects()[0].Resource)
		w.effects(w.payments.Server, 1)
		equal(w, "requests", w.writes(w.payments.Server), 1)
	})
}

func TestS21ADayLaterWithoutEvidenceItIsACase(t *testing.T) {
	onEachLedger(t, func(w *world) {
		lost := 0
		for name, edits := range map[string][]edit{
			"a lookup that doesn't answer": nil,
			"no lookup":                    {func(c *settle.Contract) { c.NoLookup = true }},
		} {
			for _, worker := range []bool{true, false} {
				task := fmt.Sprintf("%s, a worker comes first: %t", name, worker)
				out := lostRefund(w, task, farside.CommitThenDrop(), edits...)
				lost++
				w.age(25 * time.Hour)
				p := w.start(newDesk(w.sides).refund(edits...)).inTask(task)
				if worker {
					equal(w, "attempts by workers", p.recover().Resumed, 0)
					w.state(w.row(out), store.Manual)
				}
				w.want(p.call(refund("A-1", "42")), settle.StatusManual)
				w.state(w.row(out), store.Manual)
				w.effects(w.payments.Server, lost)
				equal(w, "requests, with "+task, w.writes(w.payments.Server), lost)
			}
		}
	})
}

func TestS21ADayLaterAbsenceGivesANewKey(t *testing.T) {
	onEachLedger(t, func(w *world) {
		for name, workers := range map[string]int{"a call": 0, "a worker, then a call": 1} {
			before := w.writes(w.payments.Server)
			lostRefund(w, name, farside.DropBefore())
			old := w.payments.Keys()[len(w.payments.Keys())-1]
			w.age(25 * time.Hour)
			w.payments.Reads.Set(farside.OK())
			p := w.start(newDesk(w.sides).refund(func(c *settle.Contract) { c.StaleAfter = 30 * 24 * time.Hour })).inTask(name)
			for range workers {
				equal(w, "attempts by workers", p.recover().Resumed, 0)
			}
			out := w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
			equal(w, "the number", w.row(out).Number, 2)
			equal(w, "requests", w.writes(w.payments.Server)-before, 2)
			if keys := w.payments.Keys(); keys[len(keys)-1] == old {
				w.Error("the old key was sent after the far side may have forgotten it")
			}
		}
		w.effects(w.payments.Server, 2)
	})
}

func TestS53AMonthLaterItIsStillBlocked(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.mail.Writes.Next(farside.CommitThenDrop())
		w.mail.Reads.Set(farside.StatusBefore(http.StatusBadGateway))
		out := w.want(p.call(receipt()), settle.StatusUnknown)
		for range 3 {
			w.age(10 * 24 * time.Hour)
			p.recover()
		}
		q := w.start()
		again := w.want(q.call(receipt()), settle.StatusManual)
		equal(w, "the operation", again.Operation, out.Operation)
		w.want(q.call(sendMail("eve@example.org", "receipt", "Your receipt", "Once more.")), settle.StatusConflict)
		w.effects(w.mail.Server, 1)
		equal(w, "requests", w.writes(w.mail.Server), 1)
		equal(w, "cases", w.openCases(), 1)
	})
}

func TestS67TheTimeoutIsLoweredWhileAnAttemptIsPending(t *testing.T) {
	onEachLedger(t, func(w *world) {
		entered, goOn := make(chan struct{}), make(chan struct{})
		d := newDesk(w.sides)
		d.reached = func(_ string, s stage) {
			if s == claimed {
				close(entered)
				<-goOn
			}
		}
		old := w.start(d.sendMail(timeout(20 * time.Second)))
		done := old.begin(receipt())
		received(w, entered)

		p := w.start(newDesk(w.sides).sendMail(timeout(quick), func(c *settle.Contract) { c.VisibilityDelay = settle.Immediately }))
		w.want(p.call(receipt()), settle.StatusInProgress)
		equal(w, "taken", p.recover().Taken, 0)
		// Past the new contract's lease, within the old one's.
		w.age(10 * time.Second)
		w.want(p.call(receipt()), settle.StatusInProgress)
		equal(w, "taken", p.recover().Taken, 0)
		// Past the old lease, before the old moment: absence doesn't count yet.
		w.age(13 * time.Second)
		w.want(p.call(receipt()), settle.StatusUnknown)
		w.effects(w.mail.Server, 0)

		close(goOn)
		w.want(received(w, done), settle.StatusCompleted)
		if kinds := w.kinds(w.only("send_mail")); kinds[len(kinds)-1] != "late_success" {
			w.Errorf("the old worker's own answer didn't settle it: %v", kinds)
		}
		w.wantReplay(p.call(receipt()), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)
		equal(w, "requests", w.writes(w.mail.Server), 1)
	})
}

func TestS67TheVisibilityDelayIsRaisedWhileAnOutcomeIsUnknown(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.tickets.Writes.Next(farside.CommitThenDrop())
		w.want(w.start().call(createTicket("Late parcel", "Where is it?")), settle.StatusUnknown)
		w.age(longEnough) // past the moment of then, not of now
		p := w.start(newDesk(w.sides).createTicket(func(c *settle.Contract) { c.VisibilityDelay = 10 * time.Minute }))
		equal(w, "looked at", p.recover().Taken, 1)
		w.state(w.only("create_ticket"), store.Unknown)
		equal(w, "looked at again before its moment", p.recover().Taken, 0)
		w.age(10 * time.Minute)
		p.recover()
		w.state(w.only("create_ticket"), store.Manual)
		w.effects(w.tickets.Server, 1)
	})
}

func TestS67AnOvertakenWriteWaitsForTheRaisedDelay(t *testing.T) {
	onEachLedger(t, func(w *world) {
		tool := func(d time.Duration) settle.AnyTool {
			return newDesk(w.sides).setLabel(func(c *settle.Contract) { c.Attempts, c.VisibilityDelay = 1, d })
		}
		w.labels.Writes.Next(farside.CommitThenDrop())
		older := w.want(w.start(tool(5*time.Second)).call(setLabel("I-7", "urgent")), settle.StatusUnknown)
		w.age(longEnough)
		p := w.start(tool(10 * time.Minute))
		w.want(p.call(setLabel("I-7", "done")), settle.StatusCompleted)
		p.recover()
		w.state(w.row(older), store.Unknown)
		equal(w, "looked at again before its moment", p.recover().Taken, 0)
		w.age(10 * time.Minute)
		p.recover()
		w.state(w.row(older), store.Superseded)
	})
}

func TestS68ALookupThatBeganBeforeTheMomentDoesNotCount(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).sendMail(timeout(quick), func(c *settle.Contract) { c.VisibilityDelay = time.Second }))
		request, lookup := farside.NewGate(), farside.NewGate()
		w.mail.Writes.Next(farside.Slow(request))
		w.mail.Reads.Next(farside.Late(lookup))
		done := p.begin(receipt())
		received(w, lookup.Entered()) // it has looked, and will answer "nothing here"
		row := w.only("send_mail")
		w.state(row, store.Unknown)
		request.Release()
		w.lands(w.mail.Server, 1)
		w.comes("the moment", func() bool { return w.only("send_mail").Read.After(row.Moment) })
		lookup.Release()
		out := w.want(received(w, done), settle.StatusUnknown)
		equal(w, "the verdict", w.row(out).Verdict, "not_visible_yet")

		w.age(longEnough)
		w.wantReplay(p.call(receipt()), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)
	})
}

func TestS73ToldNotDoneNoWorkerRunsIt(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).refund(func(c *settle.Contract) {
			c.Classify = func(err error) error { return settle.NotSent(err, settle.RetryAfter(time.Hour)) }
		}))
		w.payments.Writes.Next(farside.StatusBefore(http.StatusTooManyRequests))
		out := w.want(p.call(refund("A-1", "42")), settle.StatusNotDone)
		w.says(out.ForModel(), "did not happen", "must not be called before")
		if wait := time.Until(out.NotBefore); wait < 50*time.Minute || wait > time.Hour {
			w.Errorf("told to wait for %v, want an hour", wait)
		}
		w.want(p.call(refund("A-1", "42")), settle.StatusNotDone)
		equal(w, "requests before the time", w.writes(w.payments.Server), 1)

		for _, q := range []*process{p, w.start()} {
			w.age(2 * time.Hour)
			equal(w, "attempts by workers", q.recover().Resumed, 0)
		}
		w.state(w.row(out), store.Retryable)
		w.effects(w.payments.Server, 0)
		done := w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
		equal(w, "the operation", done.Operation, out.Operation)
		w.effects(w.payments.Server, 1)
	})
}

func TestS73ARefusedConnectionIsNotDone(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.mail.Refuse()
		out := w.want(p.call(receipt()), settle.StatusNotDone)
		if err := w.mail.Accept(); err != nil {
			w.Fatal(err)
		}
		w.age(longEnough)
		equal(w, "attempts by workers", p.recover().Resumed, 0)
		w.effects(w.mail.Server, 0)
		done := w.want(p.call(receipt()), settle.StatusCompleted)
		equal(w, "the operation", done.Operation, out.Operation)
		w.effects(w.mail.Server, 1)
	})
}

func TestS85AnApprovalThatNobodyGives(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).refund(func(c *settle.Contract) { c.Approval, c.ApprovalTTL = true, time.Hour }))
		out := w.want(p.call(refund("A-1", "42")), settle.StatusAwaitingApproval)
		equal(w, "cases", w.openCases(), 1)
		w.age(59 * time.Minute)
		equal(w, "attempts by workers", p.recover().Resumed, 0)
		w.want(p.call(refund("A-1", "42")), settle.StatusAwaitingApproval)
		w.age(2 * time.Minute)
		p.recover()
		denied := w.wantReplay(p.call(refund("A-1", "42")), settle.StatusDenied)
		equal(w, "the operation", denied.Operation, out.Operation)
		w.wantReason(denied, "approval_expired")
		w.says(denied.ForModel(), "nobody approved it in time", "Nothing was sent")
		w.state(w.row(out), store.Failed)
		equal(w, "cases", w.openCases(), 0)
		equal(w, "requests", w.writes(w.payments.Server), 0)
	})
}
