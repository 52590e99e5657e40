package settle_test

import (
	"context"
	"errors"
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
		w.mail.Configure(farside.VisibleAfter(25 * time.Second))
		p := w.start(newDesk(w.sides).sendMail(func(c *settle.Contract) { c.VisibilityDelay = 30 * time.Second }))
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
