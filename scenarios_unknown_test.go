package settle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// Nobody knows whether it happened: what is told, what is looked for, and what
// is never done on a guess.

// quick is the timeout of attempts that a test holds until they end by it.
const quick = 200 * time.Millisecond

// receipt is a mail.
func receipt() settle.Call {
	return sendMail("eve@example.org", "receipt", "Your receipt", "Here it is.")
}

func TestS18ATimedOutMailIsFound(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.mail.Writes.Next(farside.CommitThenDrop())
		out := w.want(p.call(receipt()), settle.StatusCompleted)
		equal(w, "the resource", out.Resource, w.mail.Effects()[0].Resource)
		w.wantReplay(p.call(receipt()), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)
		equal(w, "requests", w.writes(w.mail.Server), 1)
	})
}

func TestS18AMailThatIsVisibleOnlyLater(t *testing.T) {
	onEachLedger(t, func(w *world) {
		w.mail.Configure(farside.VisibleAfter(3 * time.Second)) // within the contract's 5 s
		p := w.start()
		w.mail.Writes.Next(farside.CommitThenDrop())
		w.want(p.call(receipt()), settle.StatusUnknown)
		w.want(p.call(receipt()), settle.StatusUnknown)
		w.age(longEnough)
		w.wantReplay(p.call(receipt()), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)
	})
}

func TestS18AMailThatNeverArrivedIsRetriedOnce(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.mail.Writes.Next(farside.DropBefore())
		out := w.want(p.call(receipt()), settle.StatusUnknown)
		equal(w, "the verdict before the moment", w.row(out).Verdict, "not_visible_yet")
		w.want(p.call(receipt()), settle.StatusUnknown)
		w.effects(w.mail.Server, 0)
		w.age(longEnough)
		done := w.want(p.call(receipt()), settle.StatusCompleted)
		equal(w, "the operation", done.Operation, out.Operation)
		equal(w, "the attempts", w.row(done).Attempt, 2)
		w.effects(w.mail.Server, 1)
		equal(w, "requests", w.writes(w.mail.Server), 2)
	})
}

func TestS18AWorkerLooksButLeavesTheRetryToACall(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.mail.Writes.Next(farside.DropBefore())
		out := w.want(p.call(receipt()), settle.StatusUnknown)
		w.age(longEnough)
		for range 3 {
			equal(w, "attempts by workers", p.recover().Resumed, 0)
			w.age(longEnough)
		}
		w.state(w.row(out), store.Retryable)
		w.effects(w.mail.Server, 0)
		w.want(p.call(receipt()), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)
	})
}

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

func TestS43ACancelledCallerLeavesTheAttemptAtWork(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		gate := farside.NewGate()
		w.mail.Writes.Next(farside.Slow(gate))
		ctx, cancel := context.WithCancel(t.Context())
		done := p.until(ctx).begin(receipt())
		received(w, gate.Entered())
		cancel()
		out := w.want(received(w, done), settle.StatusInProgress)
		w.state(w.row(out), store.Running)

		gate.Release()
		again := w.wantReplay(p.call(receipt()), settle.StatusCompleted)
		equal(w, "the operation", again.Operation, out.Operation)
		equal(w, "the attempts", w.row(again).Attempt, 1)
		w.effects(w.mail.Server, 1)
		equal(w, "requests", w.writes(w.mail.Server), 1)
	})
}

func TestS43AnInterruptibleAttemptIsUnknownAndThenFound(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).sendMail(func(c *settle.Contract) { c.Interruptible = true }))
		gate := farside.NewGate()
		w.mail.Writes.Next(farside.Slow(gate))
		ctx, cancel := context.WithCancel(t.Context())
		done := p.until(ctx).begin(receipt())
		received(w, gate.Entered())
		cancel()
		received(w, done)
		w.want(p.call(receipt()), settle.StatusUnknown)
		gate.Release()
		w.lands(w.mail.Server, 1)
		w.age(longEnough)
		w.wantReplay(p.call(receipt()), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)
	})
}

func TestS44TheStricterOfTwoContractsHolds(t *testing.T) {
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

func TestS48AWriteThatOutlastsItsLease(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).sendMail(timeout(quick), func(c *settle.Contract) { c.VisibilityDelay = 10 * time.Minute }))
		gate := farside.NewGate()
		w.mail.Writes.Next(farside.Slow(gate))
		w.want(p.call(receipt()), settle.StatusUnknown)
		w.age(5 * time.Minute) // the lease is over, the moment isn't
		w.want(p.call(receipt()), settle.StatusUnknown)
		p.recover()
		w.state(w.only("send_mail"), store.Unknown)

		gate.Release()
		w.lands(w.mail.Server, 1)
		w.age(10 * time.Minute)
		w.wantReplay(p.call(receipt()), settle.StatusCompleted)
		w.effects(w.mail.Server, 1)
		equal(w, "requests", w.writes(w.mail.Server), 1)
	})
}

func TestS48AHandlerThatOutlastsItsLeaseReportsLate(t *testing.T) {
	onEachLedger(t, func(w *world) {
		// A handler that is deaf to its context.
		entered, goOn := make(chan struct{}), make(chan struct{})
		tool := newDesk(w.sides).createTicket(timeout(quick))
		open := tool.Do
		tool.Do = func(ctx context.Context, op settle.Op, in ticketArgs) (opened, error) {
			close(entered)
			<-goOn
			return open(context.WithoutCancel(ctx), op, in)
		}
		p := w.start(tool)
		call := createTicket("Late parcel", "Where is it?")
		done := p.begin(call)
		received(w, entered)
		w.want(received(w, done), settle.StatusUnknown)
		w.want(p.call(call), settle.StatusUnknown)
		w.effects(w.tickets.Server, 0)

		close(goOn)
		w.settles("create_ticket", store.Completed)
		out := w.wantReplay(p.call(call), settle.StatusCompleted)
		equal(w, "the resource", out.Resource, w.tickets.Effects()[0].Resource)
		w.effects(w.tickets.Server, 1)
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

func TestS59UnknownIsNoFailure(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.tickets.Writes.Next(farside.StatusAfter(http.StatusInternalServerError))
		out := w.want(p.call(createTicket("Late parcel", "Where is it?")), settle.StatusUnknown)
		w.says(out.ForModel(), "[unknown; operation "+out.Operation+"]", "not known", "Don't call it again", "don't tell anybody that it was done or that it failed")
		w.hides(out.ForModel(), "try again", "retry", "error")
		equal(w, "settled", out.Settled(), false)
		brief, err := p.x.Brief(p.ctx)
		if err != nil {
			w.Fatal(err)
		}
		w.says(brief, "Not settled", out.Operation)
		w.hides(brief, "Had no effect", "Done already")
		for _, e := range w.rows() {
			w.state(e.Operation, store.Unknown)
		}
		w.effects(w.tickets.Server, 1)
	})
}

// afterDoubt are ends of a second attempt that say nothing of the first.
var afterDoubt = map[string]func(w *world) farside.Mode{
	"a refused connection": func(w *world) farside.Mode { return farside.Mode{} },
	"401":                  func(w *world) farside.Mode { return farside.StatusBefore(http.StatusUnauthorized) },
	"429": func(w *world) farside.Mode {
		return farside.StatusBefore(http.StatusTooManyRequests).RetryAfter(time.Hour)
	},
}

func TestS65AFirstAttemptInDoubtStaysInDoubt(t *testing.T) {
	for name, second := range afterDoubt {
		for _, happened := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				onEachLedger(t, func(w *world) { firstInDoubt(w, second(w), happened) })
			})
		}
	}
}

func firstInDoubt(w *world, second farside.Mode, happened bool) {
	w.Helper()
	p := w.start(newDesk(w.sides).refund(func(c *settle.Contract) {
		c.Attempts = 2
		c.Classify = func(err error) error {
			var e *farside.Error
			if errors.As(err, &e) && e.Status == http.StatusTooManyRequests {
				return settle.NotSent(err, settle.RetryAfter(e.RetryAfter))
			}
			return err
		}
	}))
	first := farside.DropBefore()
	if happened {
		first = farside.CommitThenDrop()
	}
	w.payments.Reads.Set(farside.StatusBefore(http.StatusBadGateway))
	if second.String() == "ok" {
		w.payments.Writes.Next(first.ThenRefuse())
	} else {
		w.payments.Writes.Next(first, second)
	}
	out := w.want(p.call(refund("A-1", "42")), settle.StatusUnknown)
	row := w.row(out)
	w.state(row, store.Unknown)
	equal(w, "attempts", row.Attempt, 2)
	equal(w, "attempts in doubt", row.Doubts, 1)
	w.says(out.ForModel(), "not known whether")
	w.hides(out.ForModel(), "did not happen", "no effect", "refused")

	w.payments.Reads.Set(farside.OK())
	if err := w.payments.Accept(); err != nil {
		w.Fatal(err)
	}
	w.age(2 * time.Hour)
	done := p.call(refund("A-1", "42"))
	equal(w, "the status in the end", done.Status, settle.StatusCompleted)
	equal(w, "found rather than executed", done.Replayed, happened)
	w.effects(w.payments.Server, 1)
}

func TestS65AKilledAttemptInDoubtStaysInDoubt(t *testing.T) {
	for name, second := range afterDoubt {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				gate := farside.NewGate()
				w.payments.Writes.Next(farside.Late(gate))
				k := w.dispatch(order{Calls: []settle.Call{refund("A-1", "42")}})
				received(w, gate.Entered())
				k.kill()
				gate.Release()
				w.age(longEnough)

				w.payments.Reads.Set(farside.StatusBefore(http.StatusBadGateway))
				if m := second(w); m.String() == "ok" {
					w.payments.Refuse()
				} else {
					w.payments.Writes.Set(m)
				}
				p := w.start()
				out := w.want(p.call(refund("A-1", "42")), settle.StatusUnknown)
				w.hides(out.ForModel(), "did not happen", "no effect", "refused")
				if err := w.payments.Accept(); err != nil {
					w.Fatal(err)
				}
				w.payments.Reads.Set(farside.OK())
				w.age(longEnough)
				w.wantReplay(p.call(refund("A-1", "42")), settle.StatusCompleted)
				w.effects(w.payments.Server, 1)
			})
		})
	}
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

// fileTool opens tickets and finds them by their title: an attribute.
func (d *desk) fileTool() settle.Tool[ticketArgs, opened] {
	return settle.Tool[ticketArgs, opened]{
		Name: "file", Contract: contract(settle.Contract{Identity: []string{"title"}}, nil),
		Do: func(ctx context.Context, _ settle.Op, in ticketArgs) (opened, error) {
			k, err := d.tickets.Open(ctx, in.Title, in.Description)
			return opened{k.ID}, known(err)
		},
		Lookup: func(ctx context.Context, q settle.Query[opened], in ticketArgs) (settle.Evidence, error) {
			found, err := d.tickets.FindByTitle(ctx, in.Title)
			if err != nil || len(found) == 0 {
				return q.NotHappened(), err
			}
			newest := found[len(found)-1].ID
			return q.Happened(newest, opened{newest}).ByAttribute(time.Time{}), nil
		},
	}
}

func TestS70WhatAnAttributeFindsMayBeAnothers(t *testing.T) {
	file := settle.Call{Tool: "file", Args: args(ticketArgs{"Late parcel", "Where is it?"})}
	for name, other := range map[string]func(p *process) (*process, settle.Call){
		"occurrence 1's":   func(p *process) (*process, settle.Call) { return p, again(2, file) },
		"another intent's": func(p *process) (*process, settle.Call) { return p.inTask("case-43"), file },
		"another tenant's": func(p *process) (*process, settle.Call) { return p.ofTenant("globex"), file },
		"another process's": func(p *process) (*process, settle.Call) {
			return p.start(newDesk(p.sides).fileTool()).ofTenant("globex"), file
		},
		"a replaced number's": func(p *process) (*process, settle.Call) {
			call := settle.Call{Tool: "file", Args: args(ticketArgs{"Late parcel", "Found."}), Replaces: p.only("file").ID.String()}
			return p, call
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				p := w.start(newDesk(w.sides).fileTool())
				first := w.want(p.call(file), settle.StatusCompleted)
				q, call := other(p)
				w.tickets.Writes.Next(farside.DropBefore())
				out := w.want(q.call(call), settle.StatusManual)
				w.wantReason(out, "resource_settles_another")
				w.hides(out.ForModel(), first.Resource, first.Operation)
				equal(w, "the resource", out.Resource, "")
				row := w.row(out)
				equal(w, "the row's resource", row.Resource, "")
				equal(w, "the row's result", len(row.Result), 0)
				w.age(longEnough)
				w.want(q.call(call), settle.StatusManual)
				w.effects(w.tickets.Server, 1)
				equal(w, "cases", w.openCases(), 1)
			})
		})
	}
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
