package settle_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/faulty"
	"github.com/settle-go/settle/internal/pgtest"
)

// Processes that are killed inside the ledger's transaction (R53).

// A process is killed at every request of its transaction in turn: before the
// server has it, which then comes late, and once the server has answered.
func TestR53KilledAnywhereInItsTransactionTheRowsStandOnce(t *testing.T) {
	t.Parallel()
	for _, do := range []faulty.Action{faulty.HoldRequest, faulty.HoldAnswer} {
		t.Run(do.String(), func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			w := newWorld(t, address{DSN: db.DSN(), Schema: db.Schema(t)})
			s := newShelf(w)
			p := w.start(s.reserve())
			proxy := faulty.NewProxy(t, db.Addr(t))
			killed, ended := 0, false
			for n := 0; !ended; n++ {
				call := reserving(fmt.Sprint("chair ", n), "ann")
				begun := proxy.Arm(faulty.Fault{Request: "begin; set local", Do: faulty.HoldAnswer})
				k := w.dispatch(order{Calls: []settle.Call{call}, Shelf: s.table, Via: proxy.Addr()})
				received(w, begun.Done())
				fault := proxy.Arm(faulty.Fault{Skip: n, Do: do})
				begun.Release()
				select {
				case <-fault.Done():
					k.kill()
					killed++
				case r := <-k.reports:
					equal(w, "status in a process that isn't killed", r.Outcome.Status, settle.StatusCompleted)
					k.kill()
					ended = true
					meet(w, db.Pool(t, pgtest.Via(t, proxy.Addr())), fault)
				}
				again := make(chan settle.Outcome, 1)
				go func() { again <- p.call(call) }()
				fault.Release() // what is under way arrives while the call is made again
				out := received(w, again)
				equal(w, fmt.Sprint("status after request ", n), out.Status, settle.StatusCompleted)
				if ended && !out.Replayed {
					w.Error("the same call made again isn't a replay")
				}
				s.holds(n + 1)
			}
			if killed < 3 { // a claim, a row and a commit
				w.Errorf("killed at %d requests of a transaction, want 3 at least", killed)
			}
		})
	}
}

// meet makes requests until a fault that waits for one has happened.
func meet(w *world, pool *pgxpool.Pool, fault *faulty.Armed) {
	w.Helper()
	for {
		ended := make(chan error, 1)
		go func() {
			_, err := pool.Exec(context.Background(), "SELECT 1")
			ended <- err
		}()
		select {
		case <-fault.Done():
			fault.Release()
			<-ended
			return
		case err := <-ended:
			if err != nil {
				w.Fatal(err)
			}
		}
	}
}

// Killed inside its handler, before and after it wrote, on each ledger.
func TestR53KilledInItsHandlerNothingStands(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		k := w.dispatch(order{Calls: []settle.Call{reserving("chair", "ann")}, Shelf: s.table, Stop: map[string]stage{"reserve": answered}})
		k.reaches(map[string]stage{"reserve": answered})
		k.kill()
		s.holds(0)
		p := w.start(s.reserve())
		if out := w.want(p.call(reserving("chair", "ann")), settle.StatusCompleted); out.Replayed {
			w.Error("nothing stood, and the call is answered as a replay")
		}
		s.holds(1)
	})
}
