package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Tools that a framework owns.

// guarded is a contract without a Do.
func guarded(name string, c settle.Contract) settle.AnyTool {
	return settle.RawTool{Name: name, Contract: c}
}

func rawCall(tool, args string) settle.Call {
	return settle.Call{Tool: tool, Args: json.RawMessage(args)}
}

// frameworks have result types of their own.
type frameworkResult struct {
	Parts  []string `json:"parts"`
	secret int
}

func TestAroundPassesAResultThroughUntouched(t *testing.T) {
	g := onFile(t)
	x := g.executorWith(settle.WithGuarded(guarded("book", settle.Contract{WholeArguments: true, NoLookup: true})))
	mine := &frameworkResult{Parts: []string{"a"}, secret: 7}
	got, out, err := settle.Around(g.ctx, x, rawCall("book", `{"seat":1}`), func(context.Context) (*frameworkResult, error) { return mine, nil })
	if err != nil || got != mine || out.Status != settle.StatusCompleted || out.Replayed || out.Note() != "" {
		t.Fatalf("got %+v, %+v, %v", got, out, err)
	}
	again, out, err := settle.Around(g.ctx, x, rawCall("book", `{"seat":1.0}`), func(context.Context) (*frameworkResult, error) {
		t.Error("the tool ran again")
		return nil, nil
	})
	if err != nil || !out.Replayed || again == nil || len(again.Parts) != 1 || again.secret != 0 || out.Note() == "" {
		t.Errorf("the replay is %+v, %+v, %v", again, out, err)
	}
}

func TestAroundReturnsNoErrorThatWouldMakeAFrameworkRepeat(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want settle.Status
	}{
		"unknown":  {errors.New("connection reset"), settle.StatusUnknown},
		"not sent": {settle.NotSent(errors.New("no route")), settle.StatusNotDone},
		"rejected": {settle.Rejected(errors.New("sold out")), settle.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			x := g.executorWith()
			_, out, err := settle.Around(g.ctx, x, rawCall("book", `{"seat":1}`), func(context.Context) (string, error) { return "", tc.err })
			if err != nil || out.Status != tc.want {
				t.Errorf("got %+v, %v; want %s", out, err, tc.want)
			}
		})
	}
}

func TestAroundPassesControlFlowThroughAndRunsAgain(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	interrupt := errors.New("input required")
	for range 2 {
		_, out, err := settle.Around(g.ctx, x, rawCall("ask", `{"q":"?"}`), func(context.Context) (string, error) { return "", settle.Interrupted(interrupt) })
		if err != interrupt { //nolint:errorlint // it has to be the same one
			t.Errorf("the framework got %v back", err)
		}
		g.wantStatus(out, settle.StatusNotDone)
	}
	answer, out, err := settle.Around(g.ctx, x, rawCall("ask", `{"q":"?"}`), func(context.Context) (string, error) { return "yes", nil })
	if err != nil || answer != "yes" {
		t.Errorf("got %q, %v", answer, err)
	}
	g.wantStatus(out, settle.StatusCompleted)
}

func TestAToolThatActsBeforeItInterruptsIsUnknown(t *testing.T) {
	g := onFile(t)
	x := g.executorWith(settle.WithGuarded(guarded("ask", settle.Contract{WholeArguments: true, NoLookup: true, ActsBeforeInterrupt: true})))
	_, out, err := settle.Around(g.ctx, x, rawCall("ask", `{}`), func(context.Context) (string, error) { return "", settle.Interrupted(errors.New("stop")) })
	if err != nil || out.Status != settle.StatusUnknown {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestR01AnUnlistedToolIsUnsafe(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	run := func(args string, err error) settle.Outcome {
		_, out, e := settle.Around(g.ctx, x, rawCall("delete_everything", args), func(context.Context) (string, error) { return "gone", err })
		if e != nil {
			t.Fatal(e)
		}
		return out
	}
	out := run(`{"n":1}`, errors.New("connection reset"))
	g.wantStatus(out, settle.StatusUnknown)
	row := g.row(out)
	if row.Class != settle.Unsafe || row.Source != store.FromWhole || row.Escalate != 0 {
		t.Errorf("it was claimed as %s by %s, escalation after %v", row.Class, row.Source, row.Escalate)
	}
	g.wantStatus(run(`{"n":2}`, nil), settle.StatusHeld)
	g.wantStatus(run(`{"n":1}`, nil), settle.StatusUnknown)
	// Execute has nothing to run.
	g.wantStatus(g.do(g.ctx, x, rawCall("delete_everything", `{"n":3}`)), settle.StatusNoSuchTool)
}

func TestAKeyedToolWhoseKeyNobodyReadCountsAsUnsafe(t *testing.T) {
	for name, reads := range map[string]bool{"read": true, "not read": false} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			c := keyedContract()
			c.WholeArguments = true
			x := g.executorWith(settle.WithGuarded(guarded("charge", c)))
			runs := 0
			_, out, err := settle.Around(g.ctx, x, rawCall("charge", `{"n":1}`), func(ctx context.Context) (string, error) {
				runs++
				if reads {
					if key, ok := settle.KeyFrom(ctx); !ok || key == "" {
						t.Error("the context has no key")
					}
				}
				if runs == 1 {
					return "", errors.New("connection reset")
				}
				return "charged", nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]settle.Status{true: settle.StatusCompleted, false: settle.StatusUnknown}[reads]; out.Status != want {
				t.Errorf("got %s after %d runs, want %s", out.Status, runs, want)
			}
		})
	}
}

func TestKeyFromIsNothingOutsideAnOperation(t *testing.T) {
	t.Parallel()
	if key, ok := settle.KeyFrom(t.Context()); ok || key != "" {
		t.Errorf("got %q", key)
	}
}

func TestAroundTakesTheFrameworksSchema(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	call := rawCall("book", `{"seat":"first"}`)
	call.Schema = json.RawMessage(`{"type":"object","properties":{"seat":{"type":"integer"}},"required":["seat"]}`)
	run := func(context.Context) (string, error) { return "booked", nil }
	_, out, err := settle.Around(g.ctx, x, call, run)
	if err != nil || out.Status != settle.StatusInvalidArguments || strings.Contains(out.Detail, "first") {
		t.Errorf("got %+v, %v", out, err)
	}
	if len(g.all()) != 0 {
		t.Error("a call that the framework will refuse was claimed")
	}
	call.Args = json.RawMessage(`{"seat":1}`)
	if _, out, err = settle.Around(g.ctx, x, call, run); err != nil || out.Status != settle.StatusCompleted {
		t.Errorf("got %+v, %v", out, err)
	}
	call.Schema, call.Args = json.RawMessage(`{"type":`), json.RawMessage(`{"seat":2}`)
	if _, out, err = settle.Around(g.ctx, x, call, run); err != nil || out.Status != settle.StatusInvalidArguments {
		t.Errorf("with a schema that can't be read: %+v, %v", out, err)
	}
	// The model can't repair it.
	if said := out.ForModel(); strings.Contains(said, "welcome") || !strings.Contains(said, "Don't call it again") {
		t.Errorf("the model is told %q", said)
	}
	call.Schema, call.Args = json.RawMessage(`{"properties":{"mail":{"type":"string","pattern":"^(?!\\.).+@.+$"}},"required":["mail"]}`), json.RawMessage(`{"mail":"a@b"}`)
	if _, out, err = settle.Around(g.ctx, x, call, run); err != nil || out.Status == settle.StatusInvalidArguments {
		t.Errorf("with a pattern that Go doesn't have: %+v, %v", out, err)
	}
	call.Args = json.RawMessage(`{"post":"a"}`)
	if _, out, err = settle.Around(g.ctx, x, call, run); err != nil || out.Status != settle.StatusInvalidArguments || !strings.Contains(out.ForModel(), "welcome") {
		t.Errorf("what doesn't fit the rest of it came to %+v, %v", out, err)
	}
}

func TestAroundRefusesIntegersThatMayHaveBeenRounded(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	for args, want := range map[string]settle.Status{
		`{"id":9007199254740991}`:           settle.StatusCompleted,
		`{"id":9007199254740992}`:           settle.StatusInvalidArguments,
		`{"id":-9007199254740992}`:          settle.StatusInvalidArguments,
		`{"id":9.007199254740992e15}`:       settle.StatusInvalidArguments,
		`{"in":{"side":[1,1e300]}}`:         settle.StatusInvalidArguments,
		`{"id":"9007199254740993"}`:         settle.StatusCompleted,
		`{"id":0.5}`:                        settle.StatusCompleted,
		`{"id":9007199254740992.5}`:         settle.StatusCompleted,
		`{"id":1e-300,"other":-1.5e-7}`:     settle.StatusCompleted,
		`{"id":18446744073709551616,"n":1}`: settle.StatusInvalidArguments,
	} {
		call := rawCall("book", args)
		call.Rounded = true
		_, out, err := settle.Around(g.ctx, x, call, func(context.Context) (string, error) { return "booked", nil })
		if err != nil || out.Status != want {
			t.Errorf("%s: got %s (%s), %v; want %s", args, out.Status, out.Detail, err, want)
		}
		// Exact bytes are taken.
		call.Rounded = false
		if _, out, err = settle.Around(g.ctx, x, call, func(context.Context) (string, error) { return "booked", nil }); err != nil || out.Status != settle.StatusCompleted {
			t.Errorf("%s, exact: got %s, %v", args, out.Status, err)
		}
	}
}

// Streams.

func TestBeginRecordsAtTheEnd(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	attempt, _, err := x.Begin(g.ctx, rawCall("draw", `{"n":1}`))
	if err != nil || attempt == nil {
		t.Fatalf("got %v, %v", attempt, err)
	}
	if key, ok := settle.KeyFrom(attempt.Context); !ok || key != attempt.Op().Key() {
		t.Error("the attempt's context has another key than its operation")
	}
	if got := g.all()[0].State; got != store.Running {
		t.Errorf("while the stream is open it is %s", got)
	}
	out := attempt.End(json.RawMessage(`{"drawn":true}`), nil)
	g.wantStatus(out, settle.StatusCompleted)
	if second := attempt.End(nil, errors.New("closed twice")); second.Status != settle.StatusCompleted || second.Operation != out.Operation {
		t.Errorf("the second End gave %+v", second)
	}
	again, out, err := x.Begin(g.ctx, rawCall("draw", `{"n":1}`))
	if err != nil || again != nil || !out.Replayed || string(out.Result) != `{"drawn":true}` {
		t.Errorf("the replay is %v, %+v, %v", again, out, err)
	}
}

func TestAStreamThatIsClosedEarlyIsUnknown(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	attempt, _, err := x.Begin(g.ctx, rawCall("draw", `{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	g.wantStatus(attempt.End(nil, errors.New("the reader has gone")), settle.StatusUnknown)
	again, out, err := x.Begin(g.ctx, rawCall("draw", `{"n":1}`))
	if err != nil || again != nil {
		t.Errorf("it was begun again: %v, %v", again, err)
	}
	g.wantStatus(out, settle.StatusUnknown)
}

// A stream can't be fed twice, so nothing retries it; the attempts that its
// contract has left are there for another call.
func TestABegunAttemptIsNotRetried(t *testing.T) {
	g := onFile(t)
	c := keyedContract()
	c.WholeArguments = true
	x := g.executorWith(settle.WithGuarded(guarded("draw", c)))
	for i, end := range []error{errors.New("connection reset"), settle.NotSent(errors.New("no route"))} {
		attempt, _, err := x.Begin(g.ctx, rawCall("draw", fmt.Sprintf(`{"n":%d}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		_ = attempt.Op().Key()
		out := attempt.End(nil, end)
		if row := g.row(out); row.Attempt != 1 {
			t.Errorf("%v: %d attempts, want 1", end, row.Attempt)
		}
		again, _, err := x.Begin(g.ctx, rawCall("draw", fmt.Sprintf(`{"n":%d}`, i)))
		if err != nil || again == nil {
			t.Fatalf("%v: another call can't go on: %v", end, err)
		}
		_ = again.Op().Key()
		g.wantStatus(again.End("done", nil), settle.StatusCompleted)
	}
}

// A stream that wasn't ended in time may still be acting (R21), and what it says
// in the end is evidence (R25).
func TestR25AStreamThatEndsAfterItsTimeIsEvidence(t *testing.T) {
	g := onFile(t)
	x := g.executorWith(settle.WithGuarded(guarded("draw",
		settle.Contract{WholeArguments: true, NoLookup: true, Timeout: 20 * time.Millisecond, VisibilityDelay: settle.Immediately})))
	attempt, _, err := x.Begin(g.ctx, rawCall("draw", `{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	<-attempt.Context.Done()
	g.eventually("the record", func() bool { return g.all()[0].State == store.Unknown })
	row := g.all()[0].Operation
	if !row.Moment.After(row.FirstSent.Add(time.Second)) {
		t.Errorf("the moment is %v after the first attempt: an open stream has its lease of 2 s", row.Moment.Sub(row.FirstSent))
	}
	g.wantStatus(attempt.End("drawn", nil), settle.StatusUnknown)
	g.eventually("the late answer", func() bool { return g.all()[0].State == store.Completed })
}

func TestBeginAnswersWhatDoesNotRun(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	if attempt, out, err := x.Begin(g.ctx, rawCall("draw", `{"n":`)); err != nil || attempt != nil || out.Status != settle.StatusInvalidArguments {
		t.Errorf("got %v, %+v, %v", attempt, out, err)
	}
	if attempt, _, err := x.Begin(context.Background(), rawCall("draw", `{}`)); attempt != nil || !errors.Is(err, settle.ErrNoPrincipal) {
		t.Errorf("got %v, %v", attempt, err)
	}
}

func TestAReadCanBeBegun(t *testing.T) {
	g := inMemory(t)
	x := g.executorWith(settle.WithGuarded(guarded("tail", settle.Contract{Class: settle.Read})))
	attempt, _, err := x.Begin(g.ctx, rawCall("tail", `{}`))
	if err != nil || attempt == nil {
		t.Fatalf("got %v, %v", attempt, err)
	}
	g.wantStatus(attempt.End("lines", nil), settle.StatusCompleted)
	failed, _, err := x.Begin(g.ctx, rawCall("tail", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	g.wantStatus(failed.End(nil, errors.New("connection reset")), settle.StatusNotDone)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("End took %v: it waited for another attempt to be ended", took)
	}
}

// Panics, in whatever way.

func TestR27APanicIsUnknownAndAnswersTheCaller(t *testing.T) {
	for name, leave := range map[string]func(){
		"panic": func() { panic("secret-4711") },
		"index": func() { none := []int{}; none[len(none)] = 1 },
		"exit":  runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			p := &pay{contract: unsafeContract()}
			p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
				act()
				leave()
				return paid{}, nil
			}
			x := g.executor(p.tool())
			out := g.want(x, payCall("A-1", 5), settle.StatusUnknown)
			if strings.Contains(out.ForModel(), "secret") {
				t.Error("the panic's value reached the model")
			}
			g.want(x, payCall("A-1", 5), settle.StatusUnknown)
			g.did(p, 1)
		})
	}
}

func TestR47AFrameworksResultThatCantBeEncodedPassesThrough(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	mine := make(chan int)
	got, out, err := settle.Around(g.ctx, x, rawCall("book", `{"seat":1}`), func(context.Context) (chan int, error) { return mine, nil })
	if err != nil || got != mine || out.Status != settle.StatusCompleted {
		t.Errorf("got %v, %+v, %v", got, out, err)
	}
	again, out, err := settle.Around(g.ctx, x, rawCall("book", `{"seat":1}`), func(context.Context) (chan int, error) { return mine, nil })
	if err != nil || again != nil || !out.Replayed || out.Reason != "result_not_encodable" {
		t.Errorf("the replay is %v, %+v, %v", again, out, err)
	}
}

func TestEndCountsOnceHoweverOftenItIsCalled(t *testing.T) {
	g := onFile(t)
	x := g.executorWith()
	attempt, _, err := x.Begin(g.ctx, rawCall("draw", `{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]int{}
	for _, out := range g.storm(16, func(i int) settle.Outcome {
		if i%2 == 0 {
			return attempt.End(nil, errors.New("closed early"))
		}
		return attempt.End(fmt.Sprint(i), nil)
	}) {
		results[string(out.Status)+string(out.Result)]++
	}
	if len(results) != 1 {
		t.Errorf("one attempt ended in %v", results)
	}
}

func TestShutdownDoesNotWaitForAStreamThatNobodyEnds(t *testing.T) {
	g := onFile(t)
	x := g.executorWith(settle.WithGuarded(guarded("draw",
		settle.Contract{WholeArguments: true, NoLookup: true, Timeout: 50 * time.Millisecond})))
	if _, _, err := x.Begin(g.ctx, rawCall("draw", `{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := x.Shutdown(g.ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Shutdown took %v", took)
	}
	if row := g.all()[0]; row.State != store.Unknown || !row.Moment.After(row.FirstSent.Add(2*time.Second)) {
		t.Errorf("it is %s, with its moment %v after the beginning: the stream may still be open", row.State, row.Moment.Sub(row.FirstSent))
	}
}

// A framework that checks the arguments again would refuse the occurrence after
// the claim, which nobody could tell from a call that was made.
func TestR09AFrameworksToolIsGivenTheOccurrenceOnlyWhereItTakesIt(t *testing.T) {
	const text = `"text":{"type":"string"}`
	for name, tc := range map[string]struct{ schema, declared, sent, given string }{
		"it doesn't":          {`{"type":"object","properties":{` + text + `},"additionalProperties":false}`, ``, `{ "text":"a","settle_occurrence":2 }`, `{"text":"a"}`},
		"it says nothing":     {``, ``, `{"text":"a","settle_occurrence":2}`, `{"text":"a"}`},
		"the contract says":   {``, `{"type":"object","properties":{` + text + `}}`, `{"text":"a","settle_occurrence":2}`, `{"text":"a"}`},
		"it may take it":      {`{"type":"object","properties":{` + text + `,"settle_occurrence":{"type":["integer","null"]}}}`, ``, `{ "text":"a","settle_occurrence":2 }`, `{ "text":"a","settle_occurrence":2 }`},
		"it wants it":         {`{"type":"object","properties":{` + text + `,"settle_occurrence":{"type":["integer","null"]}},"required":["settle_occurrence"]}`, ``, `{"text":"a","settle_occurrence":2}`, `{"text":"a","settle_occurrence":2}`},
		"nothing to take out": {``, ``, `{ "text" : "b" }`, `{ "text" : "b" }`},
	} {
		t.Run(name, func(t *testing.T) {
			g := onFile(t)
			tool := settle.RawTool{Name: "remind", Schema: json.RawMessage(tc.declared),
				Contract: settle.Contract{WholeArguments: true, NoLookup: true, Repeatable: true}}
			x := g.executorWith(settle.WithGuarded(tool))
			var given []string
			run := func(ctx context.Context) (string, error) {
				args, ok := settle.ArgumentsFrom(ctx)
				given = append(given, fmt.Sprint(string(args), ok))
				return "reminded", nil
			}
			first := rawCall("remind", `{"text":"a","settle_occurrence":null}`)
			first.Schema = json.RawMessage(tc.schema)
			again := rawCall("remind", tc.sent)
			again.Schema = first.Schema
			for _, call := range []settle.Call{first, again} {
				if _, out, err := settle.Around(g.ctx, x, call, run); err != nil || out.Status != settle.StatusCompleted || out.Replayed {
					t.Fatalf("%s came to %+v, %v", call.Args, out, err)
				}
			}
			if len(given) != 2 || given[1] != tc.given+"true" {
				t.Errorf("the tool was given %q, want %s", given, tc.given)
			}
		})
	}
	if args, ok := settle.ArgumentsFrom(t.Context()); ok || args != nil {
		t.Errorf("outside of a call there is %s", args)
	}
}
