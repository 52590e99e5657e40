package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Which call is the same.
func TestR08ANodeHasOneSource(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	named := func(order, node string) settle.Call {
		call := payCall(order, 5)
		call.Node = node
		return call
	}
	ctx := g.inTask("host")
	first := g.do(ctx, x, named("A-1", "first payment"))
	g.wantStatus(first, settle.StatusCompleted)
	if row := g.row(first); row.Source != store.FromHost {
		t.Errorf("the node comes from %s", row.Source)
	}
	if again := g.do(ctx, x, named("A-1", "first payment")); !again.Replayed {
		t.Error("the same node ran again")
	}
	g.wantStatus(g.do(ctx, x, named("A-2", "first payment")), settle.StatusConflict)
	if other := g.do(ctx, x, named("A-1", "second payment")); other.Status != settle.StatusCompleted || other.Replayed {
		t.Errorf("another node gave %s", other.Status)
	}
	// Without the host's name the identity fields would name it: another source.
	out := g.do(ctx, x, payCall("A-1", 5))
	g.wantStatus(out, settle.StatusHeld)
	if out.Reason != "contract_changed" {
		t.Errorf("the reason is %q", out.Reason)
	}
	g.did(p, 2)
}

func TestR08IdentityFieldsMustBeThere(t *testing.T) {
	type inner struct {
		ID string `json:"id"`
	}
	type args struct {
		Customer inner `json:"customer"`
	}
	g := onFile(t)
	c := unsafeContract()
	c.Identity = []string{"customer.id"}
	n := 0
	x := g.executor(settle.Tool[args, paid]{Name: "pay", Contract: c, Do: func(context.Context, settle.Op, args) (paid, error) { n++; return paid{}, nil }},
		settle.RawTool{Name: "raw", Schema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`),
			Contract: settle.Contract{Identity: []string{"id"}, NoLookup: true}, Do: does[json.RawMessage, json.RawMessage]()})
	for call, want := range map[string]settle.Status{
		`{"customer":{"id":"c-1"}}`: settle.StatusCompleted,
		`{"customer":{"id":null}}`:  settle.StatusInvalidArguments,
		`{"customer":{}}`:           settle.StatusInvalidArguments,
		`{"customer":null}`:         settle.StatusInvalidArguments,
		`{"customer":[]}`:           settle.StatusInvalidArguments,
		`{}`:                        settle.StatusInvalidArguments,
	} {
		if out := g.do(g.ctx, x, rawCall("pay", call)); out.Status != want {
			t.Errorf("%s: got %s (%s), want %s", call, out.Status, out.Detail, want)
		}
	}
	if n != 1 {
		t.Errorf("%d effects", n)
	}
	g.want(x, rawCall("raw", `{"id":null}`), settle.StatusInvalidArguments)
	g.want(x, rawCall("raw", `{}`), settle.StatusInvalidArguments)
	g.want(x, rawCall("raw", `{"id":""}`), settle.StatusCompleted)
}

func TestR08TwoToolsWithEqualArgumentsShareNothing(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool("pay"), p.tool("refund"))
	for _, name := range []string{"pay", "refund"} {
		call := payCall("A-1", 5)
		call.Tool = name
		if out := g.want(x, call, settle.StatusCompleted); out.Replayed {
			t.Errorf("%s replays the other tool", name)
		}
	}
	if len(p.keys) != 2 {
		t.Errorf("%d keys", len(p.keys))
	}
}

func repeatableSay() *say {
	return &say{contract: settle.Contract{Repeatable: true}}
}

func TestR09TheModelAsksForAMeantRepeat(t *testing.T) {
	g := onFile(t)
	s := repeatableSay()
	x := g.executor(s.tool())
	if schema := string(x.Tools()[0].Schema); !strings.Contains(schema, "settle_occurrence") {
		t.Errorf("the model isn't shown the parameter: %s", schema)
	}
	first := g.want(x, rawCall("say", `{"text":"hello"}`), settle.StatusCompleted)
	replay := g.want(x, rawCall("say", `{"text":"hello","settle_occurrence":null}`), settle.StatusCompleted)
	if !replay.Replayed || replay.Operation != first.Operation || !strings.Contains(replay.ForModel(), "settle_occurrence") {
		t.Errorf("the replay is %s", replay.ForModel())
	}
	second := g.want(x, rawCall("say", `{"text":"hello","settle_occurrence":2}`), settle.StatusCompleted)
	if second.Replayed || second.Operation == first.Operation {
		t.Error("the second occurrence wasn't executed")
	}
	if again := g.want(x, rawCall("say", `{"settle_occurrence":2.0,"text":"hello"}`), settle.StatusCompleted); !again.Replayed || again.Operation != second.Operation {
		t.Error("the second occurrence was executed twice")
	}
	if s.effects.Load() != 2 {
		t.Errorf("%d effects", s.effects.Load())
	}
}

func TestR09OccurrencesCantBeAbused(t *testing.T) {
	g := onFile(t)
	s := repeatableSay()
	p := &pay{contract: keyedContract()}
	x := g.executor(s.tool(), p.tool())
	g.want(x, rawCall("say", `{"text":"a"}`), settle.StatusCompleted)
	for _, n := range []string{"0", "-1", "1.5", `"2"`, "true", "[]", "1e99", "9223372036854775808", "3", "4", "1000000"} {
		if out := g.do(g.ctx, x, rawCall("say", `{"text":"a","settle_occurrence":`+n+`}`)); out.Status != settle.StatusInvalidArguments {
			t.Errorf("occurrence %s: got %s (%s)", n, out.Status, out.Detail)
		}
	}
	// A tool that isn't Repeatable has no such parameter.
	g.want(x, rawCall("pay", `{"order":"A-1","amount":5,"settle_occurrence":2}`), settle.StatusInvalidArguments)
	for _, n := range []int{-1, math.MinInt, 2, math.MaxInt} {
		call := payCall("A-1", 5)
		call.Occurrence = n
		if out := g.do(g.ctx, x, call); out.Status != settle.StatusInvalidArguments {
			t.Errorf("the host's occurrence %d of a call that was never made: got %s", n, out.Status)
		}
	}
	// The host's word counts before the model's.
	call := rawCall("say", `{"text":"a","settle_occurrence":2}`)
	call.Occurrence = 1
	if out := g.want(x, call, settle.StatusCompleted); !out.Replayed {
		t.Error("the model's occurrence counted before the host's")
	}
	if s.effects.Load() != 1 {
		t.Errorf("%d effects", s.effects.Load())
	}
	g.did(p, 0)
}

func TestR09AnOccurrenceWaitsForTheOneBefore(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, Timeout: 300 * time.Millisecond}}
	entered, release := make(chan struct{}), make(chan struct{})
	p.attempt = func(_ context.Context, op settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Order == "unknown" {
			return paid{}, errors.New("connection reset")
		}
		if p.entered.Load() == 1 {
			close(entered)
			<-release
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	occurrence := func(order string, n int) settle.Call {
		call := payCall(order, 5)
		call.Occurrence = n
		return call
	}
	first := g.background(g.ctx, x, occurrence("A-1", 1))
	after(g, "the first", entered)
	second := g.background(g.ctx, x, occurrence("A-1", 2))
	close(release)
	g.wantStatus(after(g, "the first", first), settle.StatusCompleted)
	if out := after(g, "the second", second); out.Status != settle.StatusCompleted || out.Replayed {
		t.Errorf("the second gave %+v", out)
	}
	g.did(p, 2)

	g.want(x, occurrence("unknown", 1), settle.StatusUnknown)
	out := g.want(x, occurrence("unknown", 2), settle.StatusHeld)
	if out.Reason != "occurrence" || len(out.Related) != 1 {
		t.Errorf("got %+v", out)
	}
}

func TestR09AfterAnAbandonedOneOnlyTheHostRepeats(t *testing.T) {
	g := onFile(t)
	s := repeatableSay()
	lost := true
	s.attempt = func(context.Context, settle.Op) error {
		if lost {
			return errors.New("connection reset")
		}
		return nil
	}
	x := g.executor(s.tool())
	g.abandoned(x, rawCall("say", `{"text":"a"}`))
	lost = false
	g.want(x, rawCall("say", `{"text":"a"}`), settle.StatusAbandoned)
	out := g.want(x, rawCall("say", `{"text":"a","settle_occurrence":2}`), settle.StatusHeld)
	if out.Reason != "occurrence" {
		t.Errorf("the reason is %q", out.Reason)
	}
	call := rawCall("say", `{"text":"a"}`)
	call.Occurrence = 2
	g.want(x, call, settle.StatusCompleted)
	if s.effects.Load() != 1 {
		t.Errorf("%d effects", s.effects.Load())
	}
}

// A normaliser is the host's function on a model's words.
func TestR16ANormaliserMakesEqualAndMayPanic(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.contract.Normalize = map[string]settle.Normalizer{"order": {Name: "upper", Func: func(s string) string {
		if s == "boom" {
			panic("no such order")
		}
		return strings.ToUpper(s)
	}}}
	x := g.executor(p.tool())
	first := g.want(x, payCall("a-1", 5), settle.StatusCompleted)
	if again := g.want(x, payCall("A-1", 5), settle.StatusCompleted); !again.Replayed || again.Operation != first.Operation {
		t.Error("what the normaliser makes equal ran twice")
	}
	for _, turn := range [][]settle.Call{{payCall("boom", 5)}, {payCall("boom", 5), payCall("A-2", 5)}} {
		outs, err := x.ExecuteAll(g.ctx, turn...)
		if err != nil || outs[0].Status != settle.StatusInvalidArguments || strings.Contains(outs[0].ForModel(), "no such order") {
			t.Errorf("got %+v, %v", outs, err)
		}
	}
	g.did(p, 2)
}
