package settle

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

func TestR36LanesCountWhatIsTaken(t *testing.T) {
	t.Parallel()
	l := newLanes(2)
	freed := func() bool {
		select {
		case <-l.freed:
			return true
		default:
			return false
		}
	}
	l.enter("a")
	l.enter("b")
	l.enter("a")
	l.enter("a")
	if got := l.full(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("full are %q, want a", got)
	}
	l.leave("b")
	l.leave("a")
	if freed() {
		t.Error("freed, where as much is taken as may be worked on")
	}
	l.leave("a")
	if got := l.full(); !freed() || len(got) > 0 {
		t.Errorf("full are %q, want none, and word of it", got)
	}
	l.leave("a")
	if len(l.tools) > 0 {
		t.Errorf("%d tools are remembered of which nothing is taken", len(l.tools))
	}
}

// Whoever takes it next is its one recoverer: this one may be late.
func TestR36WhoseTurnComesLateLeavesTheOperationAlone(t *testing.T) {
	t.Parallel()
	x, err := New(memory.New(), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	report := Report{States: map[string]int{}}
	late := taken{store.Entry{}, x.lanes.enter("pay"), time.Now().Add(-recoveryLease)}
	if _, _, err := x.inTurn(t.Context(), late); !errors.Is(err, errLateTurn) {
		t.Errorf("got %v, want errLateTurn", err)
	}
	late.Tool = "pay"
	x.workOn(t.Context(), []taken{late}, &report)
	if report.Failed != 1 || len(late.lane.slots) != 0 || len(x.lanes.tools) != 0 {
		t.Errorf("the report is %+v, %d slots are taken", report, len(late.lane.slots))
	}
}

// What a process without the tool leaves alone is due again at a fixed pace: the
// others take it first then.
func TestR37WhatIsOfAnUnknownToolIsLeftToOthers(t *testing.T) {
	t.Parallel()
	x, err := New(memory.New(), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	row := store.Operation{Tool: "pay", State: store.Retryable, Reason: reasonApproved, Granted: true, CreatedAt: now, Read: now}
	state, resumed, err := x.recoverOne(t.Context(), store.Entry{Operation: row})
	if err != nil || resumed || state != store.Retryable {
		t.Errorf("it came to %s, resumed %v, error %v", state, resumed, err)
	}
	h := x.lanes.others["pay"]
	if due := now.Add(recoveryLease); !h.from.Before(due) || !h.until.After(time.Now().Add(recoveryLease)) {
		t.Errorf("it is due again at %v, and left to others from %v to %v", due, h.from, h.until)
	}
	if got := x.lanes.full(); len(got) > 0 {
		t.Errorf("the next pass leaves out %q, though nothing that was left is due", got)
	}
	// What was left first is due first, what was left last is the last to be.
	x.lanes.leaveToOthers("pay")
	if next := x.lanes.others["pay"]; !next.from.Equal(h.from) {
		t.Errorf("it is left to others from %v, and once more from %v", h.from, next.from)
	}
	x.lanes.others["pay"] = headStart{now.Add(-time.Minute), time.Now().Add(time.Minute)}
	if got := x.lanes.full(); !slices.Equal(got, []string{"pay"}) {
		t.Errorf("in its time %q are left out, want pay", got)
	}
	x.lanes.others["pay"] = headStart{now.Add(-time.Minute), now}
	if got := x.lanes.full(); len(got) > 0 || len(x.lanes.others) > 0 {
		t.Errorf("after its time %q are left out", got)
	}
}
