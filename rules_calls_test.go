package settle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/settle-go/settle"
)

// What a call costs at the ledger. The intent is known to the process after its
// first call.

func TestLedgerCallsOfEachOutcome(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		switch in.Amount {
		case 2:
			return paid{}, settle.Rejected(errors.New("sold out"))
		case 3:
			return paid{}, settle.NotSent(errors.New("no route"), settle.RetryAfter(time.Hour))
		}
		return act(), nil
	}
	s := &say{}
	write := newLabel()
	read := &pay{contract: settle.Contract{Class: settle.Read}}
	x := g.executor(p.tool(), s.tool(), write.tool("write"), read.tool("balance"))
	named := func(tool string, call settle.Call) settle.Call {
		call.Tool = tool
		return call
	}
	g.want(x, payCall("warm", 1), settle.StatusCompleted)
	repeat := payCall("A-1", 1)
	repeat.Occurrence = 2
	for _, step := range []struct {
		name string
		call settle.Call
		want settle.Status
		most int
	}{
		{"first execution", payCall("A-1", 1), settle.StatusCompleted, 2},
		{"replay", payCall("A-1", 1), settle.StatusCompleted, 1},
		{"conflict", payCall("A-1", 5), settle.StatusConflict, 2},
		{"refused", payCall("A-2", 2), settle.StatusFailed, 2},
		{"its replay", payCall("A-2", 2), settle.StatusFailed, 1},
		{"corrected", payCall("A-2", 1), settle.StatusCompleted, 3},
		{"not done", payCall("A-3", 3), settle.StatusNotDone, 2},
		{"not done before its time", payCall("A-3", 3), settle.StatusNotDone, 1},
		{"invalid", rawCall("pay", `{"order":"A-9"}`), settle.StatusInvalidArguments, 1},
		{"invalid without identity", rawCall("pay", `{}`), settle.StatusInvalidArguments, 0},
		{"unreadable", rawCall("pay", `{`), settle.StatusInvalidArguments, 0},
		{"no such tool", rawCall("nothing", `{}`), settle.StatusNoSuchTool, 0},
		{"meant repeat", repeat, settle.StatusCompleted, 4},
		{"its replay", repeat, settle.StatusCompleted, 1},
		{"whole arguments", sayCall("a"), settle.StatusCompleted, 2},
		{"another wording", sayCall("b"), settle.StatusCompleted, 2},
		{"idempotent write", named("write", payCall("A-1", 1)), settle.StatusCompleted, 2},
		{"newer write", named("write", payCall("A-1", 2)), settle.StatusCompleted, 2},
		{"overtaken", named("write", payCall("A-1", 1)), settle.StatusSuperseded, 1},
		{"read", named("balance", payCall("A-1", 1)), settle.StatusCompleted, 0},
	} {
		g.ledger.counted()
		g.want(x, step.call, step.want)
		if calls, total := g.ledger.counted(); total != step.most {
			t.Errorf("%s: %d calls of the ledger, want %d: %v", step.name, total, step.most, calls)
		}
	}
	// Another process pays for the intent once.
	y := g.executor(p.tool())
	for i, most := range []int{3, 2} {
		g.ledger.counted()
		g.want(y, payCall(fmt.Sprint("B-", i), 1), settle.StatusCompleted)
		if calls, total := g.ledger.counted(); total != most {
			t.Errorf("call %d of another process: %d calls of the ledger, want %d: %v", i, total, most, calls)
		}
	}
}

func TestATurnClaimsInOneCall(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	g.want(x, payCall("warm", 1), settle.StatusCompleted)
	g.ledger.counted()
	var turn []settle.Call
	for i := range 10 {
		turn = append(turn, payCall(fmt.Sprint("A-", i), 1))
	}
	if _, err := x.ExecuteAll(g.ctx, turn...); err != nil {
		t.Fatal(err)
	}
	if calls, total := g.ledger.counted(); calls["claim"] != 1 || calls["apply"] != 10 || total != 11 {
		t.Errorf("a turn of ten calls made %v", calls)
	}
	if _, err := x.ExecuteAll(g.ctx, turn...); err != nil {
		t.Fatal(err)
	}
	if calls, total := g.ledger.counted(); total != 1 {
		t.Errorf("its replay made %v", calls)
	}
}
