package settle_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// Calls that wait for others, or that others have overtaken.

func TestS31TheSameIssueInOtherWords(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.want(p.call(createTicket("Late parcel", "Where is it?")), settle.StatusCompleted)
		w.want(p.call(createTicket("Late parcel", "It hasn't come.")), settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)
	})
}

func TestS31WhileTheFirstRuns(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		gate := farside.NewGate()
		w.tickets.Writes.Next(farside.Slow(gate))
		first := p.begin(createTicket("Late parcel", "Where is it?"))
		received(w, gate.Entered())

		impatient := w.start(newDesk(w.sides).createTicket(timeout(quick)))
		held := w.want(impatient.call(createTicket("Late parcel", "It hasn't come.")), settle.StatusHeld)
		w.wantRelated(held, w.only("create_ticket").ID.String())
		w.effects(w.tickets.Server, 0)

		second := p.begin(createTicket("Late parcel", "It hasn't come."))
		gate.Release()
		done := w.want(received(w, first), settle.StatusCompleted)
		equal(w, "the operation that it ran into", held.Related[0].Operation, done.Operation)
		w.want(received(w, second), settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)
	})
}

func TestS31WhileTheFirstIsUnsettled(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.tickets.Writes.Next(farside.CommitThenDrop())
		first := w.want(p.call(createTicket("Late parcel", "Where is it?")), settle.StatusUnknown)
		for range 2 {
			held := w.want(p.call(createTicket("Late parcel", "It hasn't come.")), settle.StatusHeld)
			w.wantReason(held, "unsettled_operation")
			w.wantRelated(held, first.Operation)
			w.age(longEnough)
			p.recover()
		}
		w.state(w.only("create_ticket"), store.Manual)
		w.want(p.call(createTicket("Late parcel", "It hasn't come.")), settle.StatusHeld)
		w.effects(w.tickets.Server, 1)
		// Another intent isn't held.
		w.want(p.inTask("case-43").call(createTicket("Late parcel", "It hasn't come.")), settle.StatusCompleted)
	})
}

func TestS31DoneUnderAKilledProcessAndNeverTold(t *testing.T) {
	onEachLedger(t, func(w *world) {
		k := w.dispatch(order{Calls: []settle.Call{createTicket("Late parcel", "Where is it?")}, Stop: map[string]stage{"create_ticket": recorded}})
		k.reaches(map[string]stage{"create_ticket": recorded})
		k.kill()

		p := w.start()
		reworded := createTicket("Late parcel", "It hasn't come.")
		held := w.want(p.call(reworded), settle.StatusHeld)
		w.wantReason(held, "done_before_restart")
		w.wantRelated(held, w.only("create_ticket").ID.String())
		equal(w, "what was done", held.Related[0].Resource, w.tickets.Effects()[0].Resource)
		w.says(held.ForModel(), "Not done", "carried out for this task already", held.Related[0].Resource)
		w.effects(w.tickets.Server, 1)

		w.want(p.call(reworded), settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)
		w.wantReplay(p.call(createTicket("Late parcel", "Where is it?")), settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)
	})
}

func TestS31ABriefTellsToo(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		w.want(p.call(createTicket("Late parcel", "Where is it?")), settle.StatusCompleted)
		p.stop()
		q := w.start()
		brief, err := q.x.Brief(q.ctx)
		if err != nil {
			w.Fatal(err)
		}
		w.says(brief, "don't do these again", "create_ticket", w.tickets.Effects()[0].Resource)
		w.want(q.call(createTicket("Late parcel", "It hasn't come.")), settle.StatusCompleted)
		w.effects(w.tickets.Server, 2)
	})
}

// label is what an issue shows.
func (w *world) label(issue string) string {
	w.Helper()
	found, err := newDesk(w.sides).labels.Get(w.Context(), issue)
	if err != nil {
		w.Fatal(err)
	}
	return found.Label
}

func TestS75AnOlderWriteIsRedelivered(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start()
		older := w.want(p.call(setLabel("I-7", "urgent")), settle.StatusCompleted)
		newer := w.want(p.call(setLabel("I-7", "done")), settle.StatusCompleted)
		for _, q := range []*process{p, w.start()} {
			out := w.wantReplay(q.call(setLabel("I-7", "urgent")), settle.StatusSuperseded)
			equal(w, "the operation", out.Operation, older.Operation)
			w.wantRelated(out, newer.Operation)
			w.wantReplay(q.call(setLabel("I-7", "done")), settle.StatusCompleted)
		}
		equal(w, "the label", w.label("I-7"), "done")
		equal(w, "labels written", w.labels.Acted(), 2)

		w.want(p.call(again(2, setLabel("I-7", "urgent"))), settle.StatusCompleted)
		equal(w, "the label", w.label("I-7"), "urgent")
		w.wantReplay(p.call(setLabel("I-7", "done")), settle.StatusSuperseded)
		equal(w, "labels written", w.labels.Acted(), 3)
		// Another resource is another order.
		w.want(p.call(setLabel("I-8", "urgent")), settle.StatusCompleted)
	})
}

func TestS75ANewerWriteWaitsForAnOlderOneInDoubt(t *testing.T) {
	onEachLedger(t, func(w *world) {
		p := w.start(newDesk(w.sides).setLabel(timeout(quick), func(c *settle.Contract) { c.Attempts = 1 }))
		gate := farside.NewGate()
		w.labels.Writes.Next(farside.Slow(gate))
		older := w.want(p.call(setLabel("I-7", "urgent")), settle.StatusUnknown)
		newer := w.want(p.call(setLabel("I-7", "done")), settle.StatusInProgress)
		equal(w, "requests", w.writes(w.labels.Server), 1)
		gate.Release()
		w.lands(w.labels.Server, 1)

		w.age(longEnough)
		p = w.start() // with more time
		done := w.want(p.call(setLabel("I-7", "done")), settle.StatusCompleted)
		equal(w, "the operation", done.Operation, newer.Operation)
		equal(w, "the label", w.label("I-7"), "done")
		p.recover()
		w.state(w.row(older), store.Superseded)
		w.wantReplay(p.call(setLabel("I-7", "urgent")), settle.StatusSuperseded)
		equal(w, "the label", w.label("I-7"), "done")
		equal(w, "labels written", w.labels.Acted(), 2)
	})
}

func TestS75AnOvertakenWriteInDoubtIsNobodysCase(t *testing.T) {
	onEachLedger(t, func(w *world) {
		d := newDesk(w.sides)
		lookup := func(ctx context.Context, q settle.Query[labelled], in labelArgs) (settle.Evidence, error) {
			issue, err := d.labels.Get(ctx, in.Issue)
			return q.Happened(issue.ID, labelled{issue.ID, issue.Label}).Comparing(map[string]string{"label": issue.Label}), err
		}
		for name, find := range map[string]func(context.Context, settle.Query[labelled], labelArgs) (settle.Evidence, error){
			"no lookup": nil, "a lookup that sees the newer state": lookup,
		} {
			start := func(d time.Duration) *process {
				tool := newDesk(w.sides).setLabel(timeout(d), func(c *settle.Contract) { c.Attempts, c.VisibilityDelay = 1, time.Hour })
				tool.Lookup = find
				return w.start(tool)
			}
			gate, before := farside.NewGate(), len(w.labels.Effects())
			w.labels.Writes.Next(farside.Slow(gate))
			w.labels.Reads.Set(farside.StatusBefore(http.StatusBadGateway))
			older := w.want(start(quick).call(setLabel(name, "urgent")), settle.StatusUnknown)
			gate.Release()
			w.lands(w.labels.Server, before+1)
			w.labels.Reads.Set(farside.OK())
			w.age(time.Hour + longEnough)
			p := start(10 * time.Second)
			w.want(p.call(setLabel(name, "done")), settle.StatusCompleted)
			p.recover()
			w.state(w.row(older), store.Superseded)
			w.wantReplay(p.call(setLabel(name, "urgent")), settle.StatusSuperseded)
			equal(w, "the label", w.label(name), "done")
		}
		equal(w, "cases", w.openCases(), 0)
	})
}
