package settle_test

import (
	"testing"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// Tools that have several side effects.

func TestS66StepsBelongToTheirComposite(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		p := w.start(append(d.tools(), d.handleReturn("handle_return"), d.handleReturn("handle_loss"))...)
		call := handleReturn("A-1", "eve@example.org", "42")
		first := w.want(p.call(call), settle.StatusCompleted)
		w.effects(w.payments.Server, 1)
		w.effects(w.mail.Server, 1)
		out := w.wantReplay(p.call(call), settle.StatusCompleted)
		equal(w, "the operation", out.Operation, first.Operation)

		w.want(p.call(again(2, call)), settle.StatusCompleted)
		w.effects(w.payments.Server, 2)
		w.effects(w.mail.Server, 2)

		other := call
		other.Tool = "handle_loss"
		w.want(p.call(other), settle.StatusCompleted)
		w.effects(w.payments.Server, 3)
		w.effects(w.mail.Server, 3)

		// The same tool on its own is another side effect again.
		w.want(p.call(refund("A-1", "42")), settle.StatusCompleted)
		w.effects(w.payments.Server, 4)
		equal(w, "keys", len(w.payments.Keys()), 4)
		equal(w, "refunds recorded", len(w.rowsOf("refund")), 4)
	})
}

// A composite's process is killed when its first step is done.
func TestS79KilledBetweenTheStepsOfAComposite(t *testing.T) {
	t.Parallel()
	late := func(g *farside.Gate) farside.Mode { return farside.Late(g) }
	never := func(g *farside.Gate) farside.Mode { return farside.DropBefore().Held(g) }
	for name, point := range map[string]struct {
		stop map[string]stage
		// mail is what the second step's request meets, if it is sent.
		mail func(*farside.Gate) farside.Mode
		// worker says that recovery goes on, and no call.
		worker bool
	}{
		"between the steps, then a call":        {stop: map[string]stage{"handle_return": between}},
		"between the steps, then a worker":      {stop: map[string]stage{"handle_return": between}, worker: true},
		"before the second was sent":            {stop: map[string]stage{"send_mail": claimed}, worker: true},
		"when the second was answered":          {stop: map[string]stage{"send_mail": answered}},
		"when the second was acted on":          {mail: late, worker: true},
		"when the second was not to arrive":     {mail: never},
		"when it was not, and a worker goes on": {mail: never, worker: true},
	} {
		t.Run(name, func(t *testing.T) {
			onEachLedger(t, func(w *world) {
				call := handleReturn("A-1", "eve@example.org", "42")
				killedInAComposite(w, call, point.stop, point.mail)
				d := newDesk(w.sides)
				p := w.start(append(d.tools(), d.handleReturn("handle_return"))...)
				w.age(longEnough)
				for i := 0; point.worker && i < 5 && w.only("handle_return").State != store.Completed; i++ {
					p.recover()
					w.age(longEnough)
				}
				out := p.call(call)
				equal(w, "the status", out.Status, settle.StatusCompleted)
				equal(w, "done by a worker", out.Replayed, point.worker)
				w.effects(w.payments.Server, 1)
				w.effects(w.mail.Server, 1)
				equal(w, "refunds asked for", w.writes(w.payments.Server), 1)
				equal(w, "operations", len(w.rows()), 3)
			})
		})
	}
}

// killedInAComposite has a worker killed where the call stops, or where the
// second step's request has met the mode that the gate makes.
func killedInAComposite(w *world, call settle.Call, stop map[string]stage, mail func(*farside.Gate) farside.Mode) {
	w.Helper()
	gate := farside.NewGate()
	if mail != nil {
		w.mail.Writes.Next(mail(gate))
	}
	k := w.dispatch(order{Calls: []settle.Call{call}, Stop: stop})
	if mail != nil {
		received(w, gate.Entered())
	}
	k.reaches(stop)
	k.kill()
	gate.Release()
}
