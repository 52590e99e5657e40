package settle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// What a host asks by the node that it named itself.

func TestFindTellsOfTheOperationThatTheHostNamed(t *testing.T) {
	g := onFile(t)
	x := g.executorWith(settle.WithGuarded(guarded("charge", settle.Contract{WholeArguments: true, NoLookup: true})))
	call := rawCall("charge", `{"amount":1}`)
	call.Node = "key-1"
	if _, err := x.Find(g.ctx, "charge", "key-1"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("before the call: %v, want ErrNotFound", err)
	}
	_, done, err := settle.Around(g.ctx, x, call, func(context.Context) (string, error) { return "ch_1", nil })
	if err != nil || done.Status != settle.StatusCompleted {
		t.Fatalf("%+v, %v", done, err)
	}
	out, err := x.Find(g.ctx, "charge", "key-1")
	if err != nil || out.Status != settle.StatusCompleted || out.Operation != done.Operation || string(out.Result) != `"ch_1"` || out.PossibleRepeat {
		t.Errorf("found %+v, %v", out, err)
	}
	if _, err := x.Find(g.inTask("another"), "charge", "key-1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("in another task: %v, want ErrNotFound", err)
	}
	if out, err := x.Find(g.ctx, "refund", "key-1"); err != nil || out.Status != settle.StatusNoSuchTool {
		t.Errorf("an unknown tool: %+v, %v", out, err)
	}
	var name *settle.NameError
	if _, err := x.Find(g.ctx, "charge", ""); !errors.As(err, &name) {
		t.Errorf("an empty node: %v, want a NameError", err)
	}
	if err := x.CloseTask(g.ctx); err != nil {
		t.Fatal(err)
	}
	if out, err := x.Find(g.ctx, "charge", "key-1"); err != nil || out.Status != settle.StatusExpired {
		t.Errorf("in a closed task: %+v, %v", out, err)
	}
}

// A host that answers twins itself doesn't let them wait.
func TestR17CallSaysHowLongItWaits(t *testing.T) {
	g := onFile(t)
	x := g.executorWith(settle.WithGuarded(guarded("charge", settle.Contract{WholeArguments: true, NoLookup: true, Timeout: time.Minute})))
	call := rawCall("charge", `{"amount":1}`)
	call.Node = "key-1"
	attempt, out, err := x.Begin(g.ctx, call)
	if err != nil || attempt == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, wait := range []time.Duration{settle.Immediately, time.Millisecond} {
		twin := call
		twin.Wait, twin.Redelivered = wait, true
		second, out, err := x.Begin(g.ctx, twin)
		if err != nil || second != nil || out.Status != settle.StatusInProgress {
			t.Errorf("the twin that waits %v: %+v, %v, want in_progress", wait, out, err)
		}
	}
	if out := attempt.End("ch_1", nil); out.Status != settle.StatusCompleted {
		t.Errorf("%+v", out)
	}
}
