package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// The ledger breaks between the claim and the record.

func TestR24WhatTheLedgerCantTakeIsReturnedAndTriedOn(t *testing.T) {
	for name, tc := range map[string]struct {
		end  error
		want settle.Status
		then store.State
	}{
		"success":  {nil, settle.StatusCompleted, store.Completed},
		"rejected": {settle.Rejected(errors.New("sold out")), settle.StatusFailed, store.Failed},
		"not sent": {settle.NotSent(errors.New("no route")), settle.StatusNotDone, store.Retryable},
		"unknown":  {errors.New("connection reset"), settle.StatusUnknown, store.Unknown},
	} {
		// A lost request is made again four times before the outcome is returned.
		for how, faults := range map[string][]plan{"down": times(2, down), "request lost": times(6, lostRequest)} {
			t.Run(name+", "+how, func(t *testing.T) {
				g := onFile(t)
				p := &pay{contract: unsafeContract()}
				p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
					return act(), tc.end
				}
				x := g.executor(p.tool())
				g.ledger.next("apply", faults...)
				out := g.want(x, payCall("A-1", 5), tc.want)
				if out.Recorded || out.Settled() || out.Reason != "not_recorded" || out.Operation == "" {
					t.Errorf("got %+v", out)
				}
				if tc.end == nil && (out.Resource != "payment-1" || string(out.Result) != `{"id":"payment-1"}` || !strings.Contains(out.ForModel(), "could not be written down")) {
					t.Errorf("what the handler returned isn't returned: %s", out.ForModel())
				}
				g.eventually("the record", func() bool { return g.row(out).State == tc.then })
				g.did(p, 1)
				if n := g.ledger.pending(); n != 0 {
					t.Errorf("%d planned faults were not met", n)
				}
			})
		}
	}
}

func TestR24ALostAnswerToTheRecordIsNoFault(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	x := g.executor(p.tool())
	g.ledger.next("apply", lostAnswer)
	out := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if !out.Recorded || out.Replayed {
		t.Errorf("got %+v", out)
	}
	if kinds := g.kinds(g.row(out)); len(kinds) != 2 {
		t.Errorf("the journal is %v", kinds)
	}
}

func TestR24AnOutcomeOutlivesItsRecordByRecovery(t *testing.T) {
	// The ledger is gone when the attempt ends; recovery makes it unknown before
	// the write gets through, which then completes it as late evidence.
	g := onFile(t)
	p := &pay{contract: settle.Contract{NoLookup: true, AcceptDuplicates: "so that nobody is asked"}}
	x := g.executor(p.tool())
	g.ledger.next("apply", times(8, lostRequest)...)
	out := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	g.forward(time.Minute)
	row := g.row(out)
	_, err := g.ledger.Ledger.Apply(g.ctx, store.Change{Of: row, To: store.Unknown, Kind: "lease_expired", Actor: "recovery", Doubts: 1})
	if err != nil {
		t.Fatal(err)
	}
	g.eventually("the record", func() bool { return g.row(out).State == store.Completed })
	if got := g.row(out); got.Resource != "payment-1" {
		t.Errorf("it completed with %q", got.Resource)
	}
}

// Shutdown doesn't say that all is recorded while it isn't: it waits for a ledger
// that is away as long as its context allows.
func TestR24ShutdownWaitsForALedgerThatIsAway(t *testing.T) {
	g := onFile(t)
	p, s := &pay{contract: unsafeContract()}, newStuck(settle.Contract{NoLookup: true})
	late := s.tool()
	late.Name = "late"
	x := g.executor(p.tool(), late)
	call := payCall("A-1", 5)
	call.Tool = "late"
	unknown := g.want(x, call, settle.StatusUnknown)
	g.ledger.next("apply", times(1000, down)...)
	g.ledger.counted()
	out := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	s.release <- func(act func() paid) (paid, error) { return act(), nil }
	g.eventually("the late answer", func() bool { calls, _ := g.ledger.counted(); return calls["get"] > 0 })
	soon, cancel := context.WithTimeout(g.ctx, 20*time.Millisecond)
	defer cancel()
	if err := x.Shutdown(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown with an outcome that isn't recorded: %v", err)
	}
	g.ledger.mend("apply")
	if err := x.Shutdown(g.ctx); err != nil {
		t.Fatal(err)
	}
	for _, o := range []settle.Outcome{out, unknown} {
		if got := g.row(o).State; got != store.Completed {
			t.Errorf("after an orderly end %s is %s: its outcome was known", o.Tool, got)
		}
	}
}

func TestR26ALedgerThatIsGoneBetweenClaimAndEndRepeatsNothing(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		if op.Attempt() == 1 {
			g.ledger.next("apply", times(4, lostRequest)...)
		}
		act()
		return paid{}, errors.New("connection reset")
	}
	x := g.executor(p.tool())
	out := g.do(g.ctx, x, payCall("A-1", 5))
	if p.effects.Load() != 1 || p.entered.Load() != 1 {
		t.Errorf("%d attempts without a lease in the ledger", p.entered.Load())
	}
	g.wantStatus(out, settle.StatusUnknown)
}

func TestShutdownFinishesWhatRuns(t *testing.T) {
	g := onFile(t)
	entered, release := make(chan struct{}), make(chan struct{})
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		close(entered)
		<-release
		return act(), nil
	}
	x := g.executor(p.tool())
	first := g.background(g.ctx, x, payCall("A-1", 5))
	after(g, "the attempt", entered)
	g.ledger.counted()
	waiting := g.background(g.ctx, x, payCall("A-1", 5))
	g.eventually("the second caller", func() bool { calls, _ := g.ledger.counted(); return calls["claim"] > 0 })

	soon, cancel := context.WithTimeout(g.ctx, 20*time.Millisecond)
	defer cancel()
	if err := x.Shutdown(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown with an attempt at work: %v", err)
	}
	if _, err := x.Execute(g.ctx, payCall("A-2", 5)); !errors.Is(err, settle.ErrShutdown) {
		t.Errorf("a new call: %v", err)
	}
	if _, err := x.Recover(g.ctx); !errors.Is(err, settle.ErrShutdown) {
		t.Errorf("recovery: %v", err)
	}
	if err := x.Run(g.ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	close(release)
	if err := x.Shutdown(g.ctx); err != nil {
		t.Fatal(err)
	}
	g.wantStatus(after(g, "the first", first), settle.StatusCompleted)
	out := after(g, "the waiting call", waiting)
	if out.Status != settle.StatusInProgress && out.Status != settle.StatusCompleted {
		t.Errorf("the waiting call got %s", out.Status)
	}
	g.did(p, 1)
}

func TestShutdownEndsThePausesBetweenAttempts(t *testing.T) {
	g := onFile(t)
	entered := make(chan struct{}, 8)
	p := &pay{contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true, Attempts: 5, Timeout: 5 * time.Second}}
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		entered <- struct{}{}
		return paid{}, settle.NotSent(errors.New("busy"), settle.RetryAfter(20*time.Second))
	}
	x := g.executor(p.tool())
	done := g.background(g.ctx, x, payCall("A-1", 5))
	after(g, "the attempt", entered)
	began := time.Now()
	if err := x.Shutdown(g.ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Shutdown took %v", took)
	}
	g.wantStatus(after(g, "the answer", done), settle.StatusNotDone)
}

// Results.

type result struct {
	ID   string          `json:"id" settle:"resource"`
	Data json.RawMessage `json:"data,omitempty"`
}

type panicking struct {
	ID string `settle:"resource"`
}

func (panicking) MarshalJSON() ([]byte, error) { panic("no form") }

type failing struct {
	ID string `settle:"resource"`
}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New("no form") }

// The effect happened, whatever becomes of its result (R47).
func TestR47AResultThatCantBeEncodedIsCompletedWithoutBody(t *testing.T) {
	g := onFile(t)
	whole := settle.Contract{WholeArguments: true, NoLookup: true}
	x := g.executor(
		settle.Tool[sayArgs, panicking]{Name: "panics", Contract: whole,
			Do: func(context.Context, settle.Op, sayArgs) (panicking, error) { return panicking{"r-1"}, nil }},
		settle.Tool[sayArgs, failing]{Name: "fails", Contract: whole,
			Do: func(context.Context, settle.Op, sayArgs) (failing, error) { return failing{"r-1"}, nil }},
		settle.RawTool{Name: "raw", Schema: json.RawMessage(`{"type":"object"}`), Contract: whole,
			Do: func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`{"id":`), nil
			}})
	for _, name := range []string{"panics", "fails", "raw"} {
		call := sayCall("a")
		call.Tool = name
		for range 2 {
			out := g.do(g.ctx, x, call)
			if out.Status != settle.StatusCompleted || len(out.Result) > 0 || out.Reason != "result_not_encodable" {
				t.Errorf("%s: got %s (%s) with %q", name, out.Status, out.Reason, out.Result)
			}
			if name != "raw" && out.Resource != "r-1" {
				t.Errorf("%s: the resource is %q", name, out.Resource)
			}
		}
	}
}

func TestR47ALargeResultIsKeptByReference(t *testing.T) {
	g := onFile(t)
	large := json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)
	x := g.executorWith(settle.WithResultLimit(100), settle.WithTools(settle.Tool[sayArgs, result]{Name: "say", Contract: settle.Contract{WholeArguments: true, NoLookup: true},
		Do: func(context.Context, settle.Op, sayArgs) (result, error) { return result{"r-1", large}, nil }}))
	first := g.want(x, sayCall("a"), settle.StatusCompleted)
	if got, err := settle.Decode[result](first); err != nil || string(got.Data) != string(large) {
		t.Errorf("the first caller got %v, %v", got, err)
	}
	again := g.want(x, sayCall("a"), settle.StatusCompleted)
	if len(again.Result) > 0 || again.Resource != "r-1" || again.Reason != "result_too_large" || !strings.Contains(again.ForModel(), `"r-1"`) {
		t.Errorf("the replay is %+v", again)
	}
	if _, err := settle.Decode[result](again); !errors.Is(err, settle.ErrNoResult) {
		t.Errorf("decoding it: %v", err)
	}
	if row := g.row(again); len(row.Result) > 0 || row.Flags&store.FlagOversize == 0 {
		t.Error("it was stored")
	}
}

func TestR47AnotherVersionIsUpgradedOrAnsweredByReference(t *testing.T) {
	type newer struct {
		ID    string `json:"id" settle:"resource"`
		State string `json:"state"`
	}
	contract := settle.Contract{WholeArguments: true, NoLookup: true}
	g := onFile(t)
	old := g.executor(settle.Tool[sayArgs, paid]{Name: "say", Contract: contract,
		Do: func(context.Context, settle.Op, sayArgs) (paid, error) { return paid{"r-1"}, nil }})
	g.want(old, sayCall("a"), settle.StatusCompleted)

	for name, tc := range map[string]struct {
		upgrade func(int, json.RawMessage) (newer, error)
		result  string
	}{
		"none": {nil, ""},
		"upgraded": {func(version int, raw json.RawMessage) (newer, error) {
			if version != 0 || string(raw) != `{"id":"r-1"}` {
				t.Errorf("asked to upgrade version %d: %s", version, raw)
			}
			return newer{"r-1", "done"}, nil
		}, `{"id":"r-1","state":"done"}`},
		"fails":  {func(int, json.RawMessage) (newer, error) { return newer{}, errors.New("no") }, ""},
		"panics": {func(int, json.RawMessage) (newer, error) { panic("no") }, ""},
	} {
		x := g.executor(settle.Tool[sayArgs, newer]{Name: "say", Contract: contract, ResultVersion: 2, Upgrade: tc.upgrade, Do: does[sayArgs, newer]()})
		out := g.want(x, sayCall("a"), settle.StatusCompleted)
		if string(out.Result) != tc.result || out.Resource != "r-1" || !out.Replayed {
			t.Errorf("%s: got %s (%s) and %q", name, out.Result, out.Reason, out.Resource)
		}
	}
}

func TestR47AResourceIsFoundByPath(t *testing.T) {
	g := onFile(t)
	for i, tc := range []struct{ path, result, want string }{
		{"id", `{"id":"r-1"}`, "r-1"}, {"id", `{"id":42}`, "42"}, {"id", `{"id":9007199254740993}`, "9007199254740993"},
		{"a.id", `{"a":{"id":"r-1"}}`, "r-1"}, {"id", `{}`, ""}, {"id", `{"id":null}`, ""}, {"id", `{"id":{}}`, ""},
		{"id", `[]`, ""}, {"id", `"r-1"`, ""}, {"id", `{"id":"` + strings.Repeat("é", 600) + `"}`, strings.Repeat("é", 512)},
	} {
		c := settle.Contract{WholeArguments: true, NoLookup: true, Resource: tc.path}
		x := g.executor(settle.RawTool{Name: "raw", Schema: json.RawMessage(`{"type":"object"}`), Contract: c,
			Do: func(context.Context, settle.Op, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(tc.result), nil
			}})
		out := g.do(g.inTask("case-"+string(rune('a'+i))), x, rawCall("raw", `{}`))
		if out.Status != settle.StatusCompleted || out.Resource != tc.want {
			t.Errorf("%s in %.20s: got %q, want %q", tc.path, tc.result, out.Resource, tc.want)
		}
	}
}

// The host's own functions may panic too: a decoder on a model's arguments, a
// permission. That ends neither the process nor the claim.

type touchy string

func (t touchy) MarshalText() ([]byte, error) { return []byte(t), nil }

func (t *touchy) UnmarshalText(b []byte) error {
	if strings.Contains(string(b), "boom") {
		panic("boom")
	}
	*t = touchy(b)
	return nil
}

func TestAPanicInADecoderIsInvalid(t *testing.T) {
	type args struct {
		Text touchy `json:"text"`
	}
	g := onFile(t)
	tool := settle.Tool[args, paid]{Name: "say", Contract: settle.Contract{WholeArguments: true, NoLookup: true}, Do: does[args, paid]()}
	typed := g.executor(tool)
	g.want(typed, sayCall("boom"), settle.StatusInvalidArguments)
	outs, err := typed.ExecuteAll(g.ctx, sayCall("boom"), sayCall("fine"))
	if err != nil || outs[0].Status != settle.StatusInvalidArguments || outs[1].Status != settle.StatusCompleted {
		t.Errorf("a turn: %v, %v", outs, err)
	}
}

func TestAPanicInAuthorizeDenies(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	panics := true
	p.contract.Authorize = func(context.Context, settle.Authorization) error {
		if panics {
			panic("no policy")
		}
		return nil
	}
	x := g.executor(p.tool())
	g.want(x, payCall("A-1", 5), settle.StatusDenied)
	g.did(p, 0)
	panics = false
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		panics = true // for the second attempt, in a goroutine of the executor
		return paid{}, settle.NotSent(errors.New("no route"))
	}
	g.want(x, payCall("A-1", 5), settle.StatusDenied)
	if p.entered.Load() != 1 {
		t.Errorf("%d attempts", p.entered.Load())
	}
}

func TestAPanicInClassifyIsUnknown(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.contract.Classify = func(error) error { panic("no idea") }
	p.attempt = func(context.Context, settle.Op, payArgs, func() paid) (paid, error) {
		return paid{}, errors.New("reset")
	}
	g.want(g.executor(p.tool()), payCall("A-1", 5), settle.StatusUnknown)
}

// The write that is tried on and the end of its job meet; the race detector
// watches. The row has moved on under the same owner meanwhile.
func TestR24AWriteThatIsTriedOnKeepsToItself(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		if op.Attempt() == 1 {
			_ = op.Key()
			// The next attempt is recorded and its answer lost, and so are the next writes.
			g.ledger.next("apply", append([]plan{lostAnswer, lostRequest, lostRequest, lostRequest}, times(5, lostRequest)...)...)
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	out := g.do(g.ctx, x, payCall("A-1", 5))
	g.eventually("the record", func() bool { return g.row(out).State != store.Running })
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	g.did(p, 1)
}
