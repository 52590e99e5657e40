package settle_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
)

// Tools whose effect is rows in the ledger's own database (R53).

type reserveArgs struct {
	Item string `json:"item" settle:"identity"`
	For  string `json:"for"`
}

type reserved struct {
	ID string `json:"id" settle:"resource"`
}

// shelf is the business table beside a world's ledger.
type shelf struct {
	*world
	table string
	// after is what the handler does once it has written; nil returns at once.
	after func(ctx context.Context, in reserveArgs) error
}

func newShelf(w *world) *shelf {
	w.Helper()
	s := &shelf{world: w, table: w.at.table("shelf")}
	if err := w.at.exec(context.Background(), "CREATE TABLE "+s.table+" (item text NOT NULL, customer text NOT NULL)"); err != nil {
		w.Fatal(err)
	}
	return s
}

// write writes a row in the transaction that the context carries.
func (s *shelf) write(ctx context.Context, in reserveArgs) error {
	statement := fmt.Sprintf("INSERT INTO %s VALUES ('%s', '%s')", s.table, in.Item, in.For)
	if tx, ok := postgres.Tx(ctx); ok {
		_, err := tx.Exec(ctx, statement)
		return err
	}
	tx, ok := sqlite.Tx(ctx)
	if !ok {
		return sqlite.ErrNoTx
	}
	_, err := tx.ExecContext(ctx, statement)
	return err
}

func (s *shelf) reserve(edits ...edit) settle.AnyTool {
	c := settle.Contract{Class: settle.Transactional}
	for _, e := range edits {
		e(&c)
	}
	return settle.Tool[reserveArgs, reserved]{Name: "reserve", Description: "Reserve an item.", Contract: c,
		Do: func(ctx context.Context, op settle.Op, in reserveArgs) (reserved, error) {
			if err := s.write(ctx, in); err != nil {
				return reserved{}, err
			}
			if s.after != nil {
				if err := s.after(ctx, in); err != nil {
					return reserved{}, err
				}
			}
			return reserved{ID: "on " + in.Item}, nil
		}}
}

func reserving(item, customer string) settle.Call {
	return settle.Call{Tool: "reserve", Args: fmt.Appendf(nil, `{"item":%q,"for":%q}`, item, customer)}
}

// holds requires that many rows of the business table.
func (s *shelf) holds(want int) {
	s.Helper()
	db, err := s.at.connect()
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow("SELECT count(*) FROM " + s.table).Scan(&n); err != nil {
		s.Fatal(err)
	}
	equal(s.world, "business rows", n, want)
}

func TestR53ClaimRowsAndOutcomeCommitTogether(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		p := w.start(s.reserve())
		out := w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		equal(w, "resource", out.Resource, "on chair")
		replay := w.wantReplay(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		equal(w, "operation", replay.Operation, out.Operation)
		w.want(p.call(reserving("chair", "ben")), settle.StatusConflict)
		s.holds(1)
		p.stop()
		q := w.start(s.reserve())
		w.wantReplay(q.call(reserving("chair", "ann")), settle.StatusCompleted)
		s.holds(1)
	})
}

func TestR53AnErrorRollsBackAndLeavesTheKeyFree(t *testing.T) {
	for name, after := range map[string]func(ctx context.Context, in reserveArgs) error{
		"an error": func(context.Context, reserveArgs) error { return errors.New("the price has changed") },
		"a panic":  func(context.Context, reserveArgs) error { panic("out of stock") },
		"too late": func(ctx context.Context, _ reserveArgs) error { <-ctx.Done(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				s := newShelf(w)
				s.after = after
				p := w.start(s.reserve(func(c *settle.Contract) { c.Timeout = 300 * time.Millisecond }))
				if name == "too late" {
					// The handler returns no error: what it wrote is in time.
					w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted)
					s.holds(1)
					return
				}
				out := w.want(p.call(reserving("chair", "ann")), settle.StatusNotDone)
				equal(w, "reason", out.Reason, "rolled_back")
				equal(w, "operations", len(w.rows()), 0)
				s.holds(0)
				s.after = nil
				w.want(p.call(reserving("chair", "ben")), settle.StatusCompleted)
				s.holds(1)
			})
		})
	}
}

func TestR53ARefusalRollsBackAndIsRecorded(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		s.after = func(_ context.Context, in reserveArgs) error {
			if in.For == "ann" {
				return settle.Rejected(errors.New("ann has one already"))
			}
			return nil
		}
		p := w.start(s.reserve())
		out := w.want(p.call(reserving("chair", "ann")), settle.StatusFailed)
		equal(w, "detail", out.Detail, "ann has one already")
		w.wantReplay(p.call(reserving("chair", "ann")), settle.StatusFailed)
		s.holds(0)
		w.want(p.call(reserving("chair", "ben")), settle.StatusCompleted) // a corrected call (R10)
		s.holds(1)
	})
}

func TestR53AHandlerThatNeverReturnsLosesItsTransaction(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		release := make(chan struct{})
		w.Cleanup(func() { close(release) })
		s.after = func(context.Context, reserveArgs) error { <-release; return nil }
		p := w.start(s.reserve(func(c *settle.Contract) { c.Timeout = time.Millisecond }))
		w.want(p.call(reserving("chair", "ann")), settle.StatusNotDone)
		quick := &shelf{world: w, table: s.table} // the stuck handler still has the other one
		w.want(w.start(quick.reserve()).call(reserving("chair", "ann")), settle.StatusCompleted)
		s.holds(1)
	})
}

func TestR53TwinsWaitForTheCommit(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		processes := []*process{w.start(s.reserve()), w.start(s.reserve())}
		outs := make([]settle.Outcome, 16)
		var group sync.WaitGroup
		for i := range outs {
			group.Go(func() { outs[i] = processes[i%2].call(reserving("chair", "ann")) })
		}
		group.Wait()
		first := 0
		for _, out := range outs {
			if out.Status != settle.StatusCompleted {
				w.Errorf("a twin was answered %s", out.Status)
			}
			equal(w, "operation", out.Operation, outs[0].Operation)
			if !out.Replayed {
				first++
			}
		}
		equal(w, "first executions", first, 1)
		s.holds(1)
	})
}

func TestR53ACallInsideATransactionIsRefused(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		var p *process
		var refused []error
		s.after = func(ctx context.Context, _ reserveArgs) error {
			_, err := p.x.Execute(ctx, refund("A", "1"))
			_, _, around := settle.Around(ctx, p.x, refund("A", "1"), func(context.Context) (string, error) { return "", nil })
			_, undo := p.x.Compensate(ctx, "0192d3a0-0000-7000-8000-000000000000")
			refused = append(refused, err, around, undo)
			return nil
		}
		p = w.start(append(newDesk(w.sides).tools(), s.reserve())...)
		w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		for _, err := range refused {
			if !errors.Is(err, settle.ErrInTransaction) {
				w.Errorf("a call inside the transaction: error %v, want ErrInTransaction", err)
			}
		}
		w.effects(w.payments.Server, 0)
	})
}

func TestS81ASlowTransactionBesideAnExternalOutcome(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		inside, goOn := make(chan struct{}), make(chan struct{})
		s.after = func(context.Context, reserveArgs) error { close(inside); <-goOn; return nil }
		p := w.start(append(newDesk(w.sides).tools(), s.reserve())...)
		slow := p.begin(reserving("chair", "ann"))
		<-inside
		external := p.begin(refund("A", "1")) // its claim or its outcome waits for the file's lock on SQLite
		close(goOn)
		w.want(received(w, slow), settle.StatusCompleted)
		w.want(received(w, external), settle.StatusCompleted)
		s.holds(1)
		w.effects(w.payments.Server, 1)
	})
}

func TestR53AnApprovedTransactionRunsOnce(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		p := w.start(s.reserve(approval))
		pending := w.want(p.call(reserving("chair", "ann")), settle.StatusAwaitingApproval)
		p.person("ann").decides(pending.Operation, settle.DecideApprove)
		s.after = func(context.Context, reserveArgs) error { return errors.New("not now") }
		w.want(p.call(reserving("chair", "ann")), settle.StatusNotDone)
		s.holds(0)
		s.after = nil
		w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted) // the approval isn't spent
		w.wantReplay(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		s.holds(1)

		worker := w.want(p.call(reserving("table", "ann")), settle.StatusAwaitingApproval)
		p.person("ann").decides(worker.Operation, settle.DecideApprove)
		w.age(longEnough)
		if _, err := p.x.Recover(p.ctx); err != nil {
			w.Fatal(err)
		}
		w.wantReplay(p.call(reserving("table", "ann")), settle.StatusCompleted)
		s.holds(2)
	})
}

func TestR53ACallerWhoGoesLeavesTheTransactionToItsEnd(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		inside, goOn := make(chan struct{}), make(chan struct{})
		s.after = func(context.Context, reserveArgs) error { close(inside); <-goOn; return nil }
		p := w.start(s.reserve())
		ctx, leave := context.WithCancel(context.Background())
		gone := p.until(ctx).begin(reserving("chair", "ann"))
		<-inside
		leave()
		w.want(received(w, gone), settle.StatusInProgress)
		close(goOn)
		w.wantReplay(p.call(reserving("chair", "ann")), settle.StatusCompleted)
		s.holds(1)
	})
}

func TestR53AHandlerCannotEndItsTransaction(t *testing.T) {
	w := newWorld(t, ledgers[1].create(t))
	s := newShelf(w)
	s.after = func(ctx context.Context, _ reserveArgs) error {
		tx, _ := postgres.Tx(ctx)
		if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
			t.Error("the handler ended the ledger's transaction")
		}
		nested, err := tx.Begin(ctx) // a savepoint is the handler's own
		if err != nil {
			return err
		}
		return nested.Rollback(ctx)
	}
	w.want(w.start(s.reserve()).call(reserving("chair", "ann")), settle.StatusCompleted)
	s.holds(1)
}

// On SQLite nothing can keep a handler from calling Commit: its rows stand, and
// whether the operation does is left to a person.
func TestR53AHandlerThatEndsItsTransactionOnSQLiteRunsOnce(t *testing.T) {
	w := newWorld(t, ledgers[0].create(t))
	s := newShelf(w)
	s.after = func(ctx context.Context, _ reserveArgs) error {
		tx, _ := sqlite.Tx(ctx)
		return tx.Commit()
	}
	p := w.start(s.reserve())
	out := p.call(reserving("chair", "ann"))
	if out.Status == settle.StatusCompleted || out.Status == settle.StatusNotDone {
		t.Errorf("got %s, which nobody can know", out.Status)
	}
	s.holds(1)
}

func TestR53InTxGivesTheTransactionToATypedHandler(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		tool := settle.Tool[reserveArgs, reserved]{Name: "reserve", Contract: settle.Contract{Class: settle.Transactional},
			Do: postgres.InTx(func(ctx context.Context, tx pgx.Tx, _ settle.Op, in reserveArgs) (reserved, error) {
				_, err := tx.Exec(ctx, "INSERT INTO "+s.table+" VALUES ($1, $2)", in.Item, in.For)
				return reserved{ID: in.Item}, err
			})}
		if w.at.File != "" {
			tool.Do = sqlite.InTx(func(ctx context.Context, tx *sql.Tx, _ settle.Op, in reserveArgs) (reserved, error) {
				_, err := tx.ExecContext(ctx, "INSERT INTO "+s.table+" VALUES (?, ?)", in.Item, in.For)
				return reserved{ID: in.Item}, err
			})
		}
		w.want(w.start(tool).call(reserving("chair", "ann")), settle.StatusCompleted)
		s.holds(1)
	})
}

func TestR53WhatATransactionalToolCantHave(t *testing.T) {
	do := func(context.Context, settle.Op, reserveArgs) (reserved, error) { return reserved{}, nil }
	for name, tool := range map[string]settle.Tool[reserveArgs, reserved]{
		"a lookup": {Name: "reserve", Contract: settle.Contract{Class: settle.Transactional}, Do: do,
			Lookup: func(_ context.Context, q settle.Query[reserved], _ reserveArgs) (settle.Evidence, error) {
				return q.NotHappened(), nil
			}},
		"NoLookup":      {Name: "reserve", Contract: settle.Contract{Class: settle.Transactional, NoLookup: true}, Do: do},
		"a long time":   {Name: "reserve", Contract: settle.Contract{Class: settle.Transactional, Timeout: time.Minute}, Do: do},
		"a memory only": {Name: "reserve", Contract: settle.Contract{Class: settle.Transactional}, Do: do},
	} {
		ledger := store.Ledger(memory.New())
		if name != "a memory only" {
			l, err := sqlite.Open(t.Context(), t.TempDir()+"/ledger.db")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ledger = l
		}
		var wrong *settle.ToolError
		if _, err := settle.New(ledger, settle.Volatile(), settle.WithTools(tool)); !errors.As(err, &wrong) {
			t.Errorf("with %s: error %v, want a ToolError", name, err)
		}
	}
}

func TestR56ATransactionalToolUnderACodec(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		p := w.startWith(settle.WithTools(s.reserve()), settle.WithCodec(codec(t, "k1", map[string][]byte{"k1": newKey()})))
		out := w.want(p.call(reserving("chair", "plaintext-ann")), settle.StatusCompleted)
		replay := w.wantReplay(p.call(reserving("chair", "plaintext-ann")), settle.StatusCompleted)
		equal(w, "result", string(replay.Result), string(out.Result))
		for _, e := range w.rows() {
			if len(e.Arguments) == 0 || bytes.Contains(e.Arguments, []byte("plaintext")) {
				w.Error("the arguments stand in the ledger as they are")
			}
		}
		s.holds(1)
	})
}
