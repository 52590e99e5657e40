package settle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// Transactional tools as the steps of a composite (R13, R53).

// ordering is a composite that reserves an item in the ledger's transaction and then
// tells the customer, whose name stands behind a slash.
func (s *shelf) ordering(tell error, edits ...edit) settle.AnyTool {
	told := settle.Tool[mailArgs, reserved]{Name: "tell", Contract: settle.Contract{Class: settle.Idempotent, NoLookup: true},
		Do: func(context.Context, settle.Op, mailArgs) (reserved, error) { return reserved{ID: "m-1"}, tell },
		Compensation: &settle.Compensation[mailArgs, reserved]{Contract: settle.Contract{Class: settle.Idempotent, NoLookup: true},
			Check: func(context.Context, settle.Original[mailArgs, reserved]) (settle.Standing, error) {
				return settle.Stands(""), nil
			},
			Do: func(context.Context, settle.Op, settle.Original[mailArgs, reserved]) error { return nil }}}
	reserve := s.reserve(edits...).(settle.Tool[reserveArgs, reserved])
	reserve.Compensation = &settle.Compensation[reserveArgs, reserved]{Contract: settle.Contract{Class: settle.Transactional},
		Check: func(context.Context, settle.Original[reserveArgs, reserved]) (settle.Standing, error) {
			return settle.Stands(""), nil
		},
		Do: func(ctx context.Context, _ settle.Op, o settle.Original[reserveArgs, reserved]) error {
			return s.write(ctx, reserveArgs{Item: "back", For: o.In.For})
		}}
	return settle.Tool[reserveArgs, reserved]{Name: "order", Contract: settle.Contract{Class: settle.Composite}, Steps: []settle.AnyTool{reserve, told},
		Do: func(ctx context.Context, op settle.Op, in reserveArgs) (reserved, error) {
			shop, _, _ := strings.Cut(in.For, "/")
			r, err := settle.Step(ctx, op, "take", reserve, reserveArgs{in.Item, shop})
			if err != nil {
				return r, err
			}
			_, err = settle.Step(ctx, op, "tell", told, mailArgs{"desk@example.org", "order", "An order", "For " + in.For}, settle.After("take"))
			return r, err
		}}
}

func ordered(item string) settle.Call {
	c := reserving(item, "plaintext-ann")
	c.Tool = "order"
	return c
}

func TestR13ATransactionalStepStandsOnce(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		closed := w.start(s.ordering(settle.NotSent(errors.New("closed"), settle.RetryAfter(time.Hour))))
		w.want(closed.call(ordered("chair")), settle.StatusNotDone)
		s.holds(1)
		w.age(2 * time.Hour)
		p := w.start(s.ordering(nil))
		out := w.want(p.call(ordered("chair")), settle.StatusCompleted)
		s.holds(1)
		w.want(p.compensates(out.Operation), settle.StatusCompleted)
		s.holds(2)
	})
}

// A corrected composite is undone with the steps that were done before the
// correction (R13, R49).
func TestR49ACorrectedCompositeIsUndoneWithItsFirstSteps(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		call := func(p *process, customer string) settle.Outcome {
			c := reserving("chair", customer)
			c.Tool = "order"
			return p.call(c)
		}
		w.want(call(w.start(s.ordering(settle.Rejected(errors.New("no such customer")))), "shop/nobody"), settle.StatusFailed)
		s.holds(1)
		p := w.start(s.ordering(nil))
		out := w.want(call(p, "shop/ann"), settle.StatusCompleted)
		s.holds(1)
		w.want(p.compensates(out.Operation), settle.StatusCompleted)
		s.holds(2)
		equal(w, "what is told of the corrected one", call(p, "shop/ann").CorrectedBy != "", true)
	})
}

// What refused a step is what the model has to know to correct the composite.
func TestR13ARefusedTransactionalStepIsCorrected(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		var says error
		s.after = func(context.Context, reserveArgs) error { return says }
		p := w.start(s.ordering(nil))
		call := func(customer string) settle.Outcome {
			c := reserving("chair", customer)
			c.Tool = "order"
			return p.call(c)
		}
		says = errors.New("the disk is full")
		w.want(call("bob"), settle.StatusNotDone)
		says = settle.Rejected(errors.New("who is that?"))
		w.says(w.want(call("bob"), settle.StatusFailed).ForModel(), "who is that?", "a corrected one may follow")
		s.holds(0)
		says = nil
		w.want(call("ann"), settle.StatusCompleted)
		s.holds(1)
	})
}

// A step waits for a person under one key of the codec, and is carried out by a
// process whose current key is another.
func TestR56ATransactionalStepIsApprovedOverARotation(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		one, two := newKey(), newKey()
		old := w.startWith(settle.WithTools(s.ordering(nil, approval)), settle.WithCodec(codec(t, "k1", map[string][]byte{"k1": one})))
		w.want(old.call(ordered("chair")), settle.StatusAwaitingApproval)
		old.stop()
		p := w.startWith(settle.WithTools(s.ordering(nil, approval)), settle.WithCodec(codec(t, "k2", map[string][]byte{"k1": one, "k2": two})))
		p.person("ann").decides(w.only("reserve").ID.String(), settle.DecideApprove)
		for range 3 {
			w.age(longEnough)
			p.recover()
		}
		out := w.wantReplay(p.call(ordered("chair")), settle.StatusCompleted)
		equal(w, "the result", string(out.Result), `{"id":"on chair"}`)
		s.holds(1)
	})
}
