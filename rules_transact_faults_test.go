package settle_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/faulty"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
)

// What goes wrong around a transaction that a tool shares with its ledger (R53).

// sharing is a real ledger of which chosen transactions, or their commits, go wrong.
type sharing struct{ brokenLedger }

func share(l store.Ledger) *sharing { return &sharing{brokenLedger{Ledger: l}} }

func (l *sharing) Transact(ctx context.Context, do func(context.Context, store.Transaction) error) error {
	return l.through("transact", func() error {
		return l.Ledger.(store.Transactor).Transact(ctx, func(ctx context.Context, t store.Transaction) error {
			return do(ctx, sharedTransaction{t, l})
		})
	})
}

type sharedTransaction struct {
	store.Transaction
	ledger *sharing
}

func (t sharedTransaction) Commit(ctx context.Context, c store.Change) (o store.Operation, err error) {
	err = t.ledger.through("commit", func() (err error) { o, err = t.Transaction.Commit(ctx, c); return err })
	return o, err
}

// made makes the call as it is.
func made(call func() error) error { return call() }

func TestR53WhatWasRolledBackIsNeverCalledUnknown(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		l := share(w.open())
		p := w.startOn(l, settle.WithTools(s.reserve()))
		s.after = func(context.Context, reserveArgs) error { return settle.NotSent(errors.New("busy")) }
		l.next("transact", append([]plan{made}, times(10, down)...)...)
		out := p.call(reserving("chair", "ann"))
		if out.Status == settle.StatusUnknown {
			w.Errorf("the outcome is %s (%s), though no commit was ever sent", out.Status, out.Reason)
		}
		l.mend("transact")
		s.after = nil
		w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		s.holds(1)
	})
}

func TestR53TheLedgersOwnFaultsAreMetABoundedNumberOfTimes(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		l := share(w.open())
		tool := s.reserve(func(c *settle.Contract) { c.Attempts = 20; c.Timeout = 10 * time.Second })
		p := w.startOn(l, settle.WithTools(tool))
		var runs atomic.Int32
		s.after = func(context.Context, reserveArgs) error {
			runs.Add(1)
			return settle.NotSent(errors.New("busy"))
		}
		again := func(func() error) error { return &store.UnwrittenError{Err: errLink, Again: true} }
		l.next("transact", append(times(5, made), times(1000, again)...)...)
		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
		defer cancel()
		out := p.until(ctx).call(reserving("chair", "ann"))
		if out.Status == settle.StatusInProgress {
			w.Errorf("the call goes on for ever: %d faults left", l.pending())
		}
		l.mend("transact")
	})
}

func TestR17ARefusalDoesntHideWhatATwinRecorded(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		l := share(w.open())
		p, twin := w.startOn(l, settle.WithTools(s.reserve())), w.start(newShelfTool(s))
		s.after = func(context.Context, reserveArgs) error { return settle.Rejected(errors.New("sold out")) }
		var theirs settle.Outcome
		l.next("transact", made, func(call func() error) error {
			theirs = twin.call(reserving("chair", "ann"))
			return call()
		})
		out := p.call(reserving("chair", "ann"))
		equal(w, "the twin's status", theirs.Status, settle.StatusCompleted)
		equal(w, "status", out.Status, settle.StatusCompleted)
		equal(w, "operation", out.Operation, theirs.Operation)
		s.holds(1)
	})
}

// What the database refused to commit isn't told as done because somebody else
// was, meanwhile, in its place.
func TestR53ARefusedCommitIsntTakenForATwins(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		if err := w.at.exec(context.Background(), "CREATE TABLE "+w.at.table("rack")+" (id text PRIMARY KEY)"); err != nil {
			w.Fatal(err)
		}
		child := w.at.table("stands_on")
		if err := w.at.exec(context.Background(), "CREATE TABLE "+child+" (rack text REFERENCES "+w.at.table("rack")+" DEFERRABLE INITIALLY DEFERRED)"); err != nil {
			w.Fatal(err)
		}
		l := share(w.open())
		broken := *s
		broken.after = func(ctx context.Context, _ reserveArgs) (err error) {
			insert := "INSERT INTO " + child + " VALUES ('nowhere')"
			if tx, ok := postgres.Tx(ctx); ok {
				_, err = tx.Exec(ctx, insert)
			} else if tx, ok := sqlite.Tx(ctx); ok {
				_, err = tx.ExecContext(ctx, insert)
			}
			return err
		}
		p, twin := w.startOn(l, settle.WithTools(broken.reserve())), w.start(s.reserve())
		l.next("transact", made, func(call func() error) error {
			w.want(twin.call(reserving("chair", "ben")), settle.StatusCompleted)
			return call()
		})
		out := w.want(p.call(reserving("chair", "ann")), settle.StatusConflict)
		equal(w, "operation", out.Operation, w.only("reserve").ID.String())
		s.holds(1)
	})
}

// newShelfTool is the shelf's tool without what its handler does afterwards.
func newShelfTool(s *shelf) settle.AnyTool {
	other := *s
	other.after = nil
	return other.reserve()
}

func TestR53ABegunAttemptIsntEnteredAgain(t *testing.T) {
	for name, commit := range map[string]plan{
		"whose commit was lost":                lostRequest,
		"whose commit was refused for another": func(func() error) error { return &store.UnwrittenError{Err: errLink, Again: true} },
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				l := share(w.open())
				guarded := settle.Tool[reserveArgs, reserved]{Name: "reserve", Contract: settle.Contract{Class: settle.Transactional, Timeout: 3 * time.Second}}
				p := w.startOn(l, settle.WithGuarded(guarded))
				l.next("commit", commit)
				a, out, err := p.x.Begin(p.ctx, fresh(reserving("chair", "ann")))
				if err != nil || a == nil {
					w.Fatalf("outcome %+v, error %v", out, err)
				}
				began := time.Now()
				w.want(a.End(reserved{ID: "x"}, nil), settle.StatusNotDone)
				if took := time.Since(began); took > 2*time.Second {
					w.Errorf("End waited %v for an attempt that nobody feeds", took)
				}
				equal(w, "operations", len(w.rows()), 0)
			})
		})
	}
}

func TestR54AHandlersSavepointLosesNoEvent(t *testing.T) {
	w := newWorld(t, ledgers[1].create(t))
	s := newShelf(w)
	var in inbox
	s.after = func(ctx context.Context, _ reserveArgs) error {
		tx, _ := postgres.Tx(ctx)
		_, err := tx.Begin(ctx) // and never ends it
		return err
	}
	p := w.startWith(settle.WithTools(s.reserve()), settle.WithOutbox(&in))
	w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted)
	p.relays()
	equal(w, "events", len(in.received), 1)
	s.holds(1)
}

func TestR53AHandlerThatIgnoresItsContextFreesTheKey(t *testing.T) {
	w := newWorld(t, ledgers[1].create(t))
	s := newShelf(w)
	s.after = func(ctx context.Context, _ reserveArgs) error {
		tx, _ := postgres.Tx(ctx)
		_, err := tx.Exec(context.Background(), "SELECT pg_sleep(40)")
		return err
	}
	p := w.start(s.reserve(func(c *settle.Contract) { c.Timeout = 100 * time.Millisecond }))
	w.want(p.call(reserving("chair", "ann")), settle.StatusNotDone)
	began := time.Now()
	w.want(w.start(newShelfTool(s)).call(reserving("chair", "ann")), settle.StatusCompleted)
	if took := time.Since(began); took > 2*time.Second {
		w.Errorf("the next call waited %v", took)
	}
	s.holds(1)
}

func TestR53AHandlerThatCommitsByTextIsntCalledRolledBack(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		s.after = func(ctx context.Context, _ reserveArgs) error {
			return errors.Join(s.says(ctx, "COMMIT"), errors.New("no"))
		}
		p := w.start(s.reserve())
		out := p.call(reserving("chair", "ann"))
		s.holds(1)
		if out.Status == settle.StatusNotDone {
			w.Errorf("%s (%s), and its row stands", out.Status, out.Reason)
		}
	})
}

func (s *shelf) says(ctx context.Context, statement string) error {
	if tx, ok := postgres.Tx(ctx); ok {
		_, err := tx.Exec(ctx, statement)
		return err
	}
	tx, _ := sqlite.Tx(ctx)
	_, err := tx.ExecContext(ctx, statement)
	return err
}

func TestR46AuthorizeIsAskedBeforeEachTransaction(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		var allowed atomic.Bool
		allowed.Store(true)
		var runs atomic.Int32
		s.after = func(context.Context, reserveArgs) error {
			runs.Add(1)
			allowed.Store(false)
			return settle.NotSent(errors.New("busy"))
		}
		p := w.start(s.reserve(func(c *settle.Contract) {
			c.Authorize = func(context.Context, settle.Authorization) error {
				if allowed.Load() {
					return nil
				}
				return errors.New("no more")
			}
		}))
		p.call(reserving("chair", "ann"))
		equal(w, "runs", runs.Load(), 1)
	})
}

func TestR46AnApprovedTransactionOfAWorkerIsAuthorisedAnew(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		var denied atomic.Bool
		p := w.start(s.reserve(approval, func(c *settle.Contract) {
			c.Authorize = func(context.Context, settle.Authorization) error {
				if denied.Load() {
					return errors.New("no more")
				}
				return nil
			}
		}))
		pending := w.want(p.call(reserving("chair", "ann")), settle.StatusAwaitingApproval)
		p.person("ann").decides(pending.Operation, settle.DecideApprove)
		denied.Store(true)
		w.age(longEnough)
		p.recover()
		s.holds(0)
	})
}

func TestR50AChangeSinceIsACaseOfATransactionalCompensationToo(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		undo := &settle.Compensation[reserveArgs, reserved]{Contract: settle.Contract{Class: settle.Transactional},
			Check: func(context.Context, settle.Original[reserveArgs, reserved]) (settle.Standing, error) {
				return settle.ChangedSince(), nil
			},
			Do: func(context.Context, settle.Op, settle.Original[reserveArgs, reserved]) error { return nil }}
		tool := settle.Tool[reserveArgs, reserved]{Name: "reserve", Contract: settle.Contract{Class: settle.Transactional}, Compensation: undo,
			Do: func(ctx context.Context, _ settle.Op, in reserveArgs) (reserved, error) {
				return reserved{ID: in.Item}, s.write(ctx, in)
			}}
		p := w.start(tool)
		out := w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		w.want(p.compensates(out.Operation), settle.StatusManual)
		equal(w, "open cases", w.openCases(), 1)
	})
}

// The link to the database breaks at every request of a call in turn.
func TestR53WhereverTheLinkBreaksTheRowsStandOnce(t *testing.T) {
	t.Parallel()
	for _, do := range []faulty.Action{faulty.CutBefore, faulty.CutAfter, faulty.LoseAnswer} {
		t.Run(do.String(), func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			w := newWorld(t, address{DSN: db.DSN(), Schema: db.Schema(t)})
			s := newShelf(w)
			proxy := faulty.NewProxy(t, db.Addr(t))
			l, err := postgres.New(t.Context(), db.Pool(t, pgtest.Via(t, proxy.Addr()), pgtest.MaxConns(1)), postgres.WithSchema(w.at.Schema))
			if err != nil {
				t.Fatal(err)
			}
			p := w.startOn(l, settle.WithTools(s.reserve()))
			direct := w.start(s.reserve())
			item := 0
			for n := range 10 {
				fault := proxy.Arm(faulty.Fault{Skip: n, Do: do})
				for met := false; !met; item++ {
					call := reserving(fmt.Sprint("chair ", item), "ann")
					out, after := p.call(call), direct.call(call)
					equal(w, "status of the same call made again", after.Status, settle.StatusCompleted)
					if out.Status == settle.StatusCompleted && out.Operation != after.Operation {
						w.Errorf("request %d: told of operation %s, and %s is recorded", n, out.Operation, after.Operation)
					}
					select {
					case <-fault.Done():
						met = true
					default:
					}
				}
			}
			s.holds(item)
		})
	}
}

// What the handler itself rolled back is known: nothing of it stands.
func TestR53AHandlerThatRollsBackOnSQLiteDidNothing(t *testing.T) {
	w := newWorld(t, ledgers[0].create(t))
	s := newShelf(w)
	s.after = func(ctx context.Context, _ reserveArgs) error {
		tx, _ := sqlite.Tx(ctx)
		return tx.Rollback()
	}
	p := w.start(s.reserve())
	w.want(p.call(reserving("chair", "ann")), settle.StatusNotDone)
	equal(w, "operations", len(w.rows()), 0)
	s.holds(0)
}
