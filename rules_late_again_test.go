package settle_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// A success that comes in while the next attempt runs.

// An attempt that ran again meanwhile may end in any way: what the earlier one did
// isn't undone by it. Nothing is closed as without effect then, nor made again.
func TestR23ALateSuccessOutlastsTheAttemptAfterIt(t *testing.T) {
	for name, end := range map[string]error{
		"rejected": settle.Rejected(errors.New("no")),
		"not sent": settle.NotSent(errors.New("no")),
		"unclear":  errors.New("no"),
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			s, first := g.overtaken(func() (paid, error) { return paid{}, end })
			x := g.executor(s.tool())
			g.forward(time.Minute)
			g.do(g.ctx, x, payCall("A-1", 5))
			g.forward(time.Hour)
			g.recover(x)
			g.want(x, payCall("A-1", 5), settle.StatusManual)
			g.did(&s.pay, 1)
			if row := g.row(first); row.State != store.Manual || row.Reason != "late_success" || row.Attempt != 2 {
				t.Errorf("after attempt %d it is %s (%s), want manual (late_success)", row.Attempt, row.State, row.Reason)
			}
			ann := settle.WithOperator(g.ctx, settle.Operator{Name: "ann"})
			c, err := x.Queue().Get(ann, first.Operation)
			if err != nil {
				t.Fatal(err)
			}
			_, err = x.Queue().Decide(ann, settle.Decision{Operation: first.Operation, Version: c.Version, ID: uuid.NewString(), Kind: settle.DecideFail, Reason: "the far side says so"})
			if !errors.Is(err, settle.ErrAttached) {
				t.Errorf("to decide that it didn't happen is %v", err)
			}
		})
	}
}

// The attempt after it may also end with its process.
func TestR22ALateSuccessOutlastsALeaseThatEnds(t *testing.T) {
	g := onFile(t)
	told, dead, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s, first := g.overtaken(func() (paid, error) {
		close(told)
		<-dead
		return paid{}, settle.Rejected(errors.New("no"))
	})
	x := g.executor(s.tool())
	g.forward(time.Minute)
	go func() {
		defer close(over)
		g.do(g.ctx, x, payCall("A-1", 5))
	}()
	<-told
	g.forward(time.Hour)
	g.recover(x)
	if row := g.row(first); row.State != store.Manual || row.Reason != "late_success" {
		t.Errorf("it is %s (%s), want manual (late_success)", row.State, row.Reason)
	}
	close(dead)
	<-over
	g.did(&s.pay, 1)
}

// overtaken is a payment that its far side doesn't show. Its first attempt is still
// at work when its lease has ended, and reports success once the second one runs,
// which then ends as said.
func (g *rig) overtaken(end func() (paid, error)) (s *stuck, first settle.Outcome) {
	s = newStuck(settle.Contract{VisibilityDelay: settle.Immediately})
	s.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.NotHappened(), nil
	}
	first = g.want(g.executor(s.tool()), payCall("A-1", 5), settle.StatusUnknown)
	s.contract.Timeout = time.Minute
	s.later = func(func() paid) (paid, error) {
		s.release <- func(act func() paid) (paid, error) { return act(), nil }
		g.eventually("the late answer", func() bool { return slices.Contains(g.kinds(g.row(first)), "late_success") })
		return end()
	}
	return s, first
}
