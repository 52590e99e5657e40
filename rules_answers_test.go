package settle_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Who may hear what.

// asked is what Authorize was asked.
type asked struct {
	settle.Authorization
}

func TestR46AuthorizeIsAskedBeforeEveryAttemptAndAnswer(t *testing.T) {
	g := onFile(t)
	var questions []asked
	p := &pay{contract: keyedContract()}
	p.contract.Authorize = func(_ context.Context, a settle.Authorization) error {
		questions = append(questions, asked{a})
		return nil
	}
	p.attempt = func(_ context.Context, op settle.Op, _ payArgs, act func() paid) (paid, error) {
		if op.Attempt() == 1 {
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	purposes := func() (all []string) {
		for _, q := range questions {
			all = append(all, q.Purpose)
			if q.Principal != (settle.Principal{Tenant: "acme", Subject: "bot"}) || q.Task.ID != "case-1" || q.Tool != "pay" || len(q.Args) == 0 {
				t.Errorf("it was asked %+v", q)
			}
		}
		questions = nil
		return all
	}
	out := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if got := purposes(); !slices.Equal(got, []string{"attempt", "attempt"}) {
		t.Errorf("two attempts: asked %v", got)
	}
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if got := purposes(); !slices.Contains(got, "answer") {
		t.Errorf("a replay: asked %v", got)
	}
	g.want(x, payCall("A-1", 6), settle.StatusConflict)
	if got := purposes(); !slices.Contains(got, "answer") {
		t.Errorf("a conflict: asked %v", got)
	}
	if _, err := x.Get(g.ctx, out.Operation); err != nil {
		t.Fatal(err)
	}
	if got := purposes(); !slices.Equal(got, []string{"answer"}) {
		t.Errorf("Get: asked %v", got)
	}
	if _, err := x.Brief(g.ctx); err != nil {
		t.Fatal(err)
	}
	if got := purposes(); !slices.Equal(got, []string{"answer"}) {
		t.Errorf("Brief: asked %v", got)
	}
}

// A test's t.Fatal ends the goroutine that it is called on: callers and Shutdown
// wait for that of a second attempt.
func TestR46AuthorizeThatEndsItsGoroutineIsARefusal(t *testing.T) {
	onEachLedger(t, func(w *world) {
		s := newShelf(w)
		refuses := func(c *settle.Contract) {
			var asked atomic.Int32
			c.Authorize = func(context.Context, settle.Authorization) error {
				if asked.Add(1) == 2 {
					runtime.Goexit()
				}
				return nil
			}
		}
		busy := func(context.Context, reserveArgs) error { return settle.NotSent(errors.New("busy")) }
		s.after = busy
		remote := settle.Tool[reserveArgs, reserved]{Name: "remote", Contract: keyedContract(),
			Do: func(ctx context.Context, _ settle.Op, in reserveArgs) (reserved, error) {
				return reserved{}, busy(ctx, in)
			}}
		refuses(&remote.Contract)
		p := w.start(s.reserve(refuses), remote)
		for _, name := range []string{"reserve", "remote"} {
			call := reserving("chair", "ann")
			call.Tool = name
			w.want(received(w, p.begin(call)), settle.StatusDenied)
		}
		p.stop()
	})
}

func TestR46WithoutPermissionOnlyACodeIsSaid(t *testing.T) {
	g := onFile(t)
	allowed := true
	p := &pay{contract: keyedContract()}
	p.contract.Authorize = func(context.Context, settle.Authorization) error {
		if allowed {
			return nil
		}
		return errors.New("gone")
	}
	x := g.executor(p.tool())
	done := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	allowed = false

	replay := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	got, err := x.Get(g.ctx, done.Operation)
	if err != nil {
		t.Fatal(err)
	}
	brief, err := x.Brief(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	conflict := g.want(x, payCall("A-1", 6), settle.StatusConflict)
	for name, out := range map[string]settle.Outcome{"replay": replay, "Get": got, "conflict": conflict} {
		if len(out.Result) > 0 || out.Resource != "" || len(out.Fields) > 0 || len(out.Related) > 0 || out.Detail != "" {
			t.Errorf("%s tells %+v", name, out)
		}
		if text := out.ForModel() + out.Note(); strings.Contains(text, "payment-1") || strings.Contains(text, "amount") {
			t.Errorf("%s says %s", name, text)
		}
	}
	if strings.Contains(brief, "payment-1") {
		t.Errorf("the brief says %s", brief)
	}
	if !strings.Contains(replay.ForModel(), "completed before") {
		t.Errorf("the replay says %s", replay.ForModel())
	}
	g.want(x, payCall("A-2", 5), settle.StatusDenied)
	g.did(p, 1)
}

func TestR46AnotherTenantsReferenceIsNotFound(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if got, err := x.Get(g.ctx, out.Operation); err != nil || got.Resource != out.Resource || !got.Replayed {
		t.Errorf("the own one: %+v, %v", got, err)
	}
	other := settle.WithPrincipal(g.ctx, settle.Principal{Tenant: "other", Subject: "bot"})
	for _, reference := range []string{out.Operation, uuid.NewString(), "", "no reference", strings.Repeat("x", 10_000)} {
		if got, err := x.Get(other, reference); !errors.Is(err, store.ErrNotFound) || got.Status != "" {
			t.Errorf("%.40q: got %+v, %v", reference, got, err)
		}
	}
	if _, err := x.Get(context.Background(), out.Operation); !errors.Is(err, settle.ErrNoPrincipal) {
		t.Errorf("nobody: %v", err)
	}
}

func TestR46AToolThatIsGoneShowsNoBody(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	out := g.want(g.executor(p.tool()), payCall("A-1", 5), settle.StatusCompleted)
	got, err := g.executor().Get(g.ctx, out.Operation)
	if err != nil || got.Status != settle.StatusCompleted || len(got.Result) > 0 || got.Resource != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestR48AReplaySaysThatItIsOne(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: keyedContract()}
	x := g.executor(p.tool())
	first := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if first.Replayed || strings.Contains(first.ForModel(), "replayed") || first.Note() != "" {
		t.Errorf("the first execution says %s", first.ForModel())
	}
	again := g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	if !again.Replayed || !strings.HasPrefix(again.ForModel(), "[completed, replayed; operation "+first.Operation) ||
		!strings.Contains(again.Note(), "nothing new was done") || string(again.Result) != string(first.Result) || !again.Recorded {
		t.Errorf("the replay says %s", again.ForModel())
	}
}

func TestR60TheBriefTellsWhatWasDoneAndWhatIsOpen(t *testing.T) {
	g := onFile(t)
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		switch in.Order {
		case "unknown":
			return act(), errors.New("connection reset")
		case "refused":
			return paid{}, settle.Rejected(errors.New("sold out"))
		case "not sent":
			return paid{}, settle.NotSent(errors.New("no route"))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	if brief, err := x.Brief(g.ctx); err != nil || brief != "" {
		t.Errorf("before anything was done: %q, %v", brief, err)
	}
	outs := map[string]settle.Outcome{}
	for _, order := range []string{"done", "unknown", "refused", "not sent"} {
		outs[order] = g.do(g.ctx, x, payCall(order, 5))
	}
	g.do(g.inTask("another"), x, payCall("elsewhere", 5))
	brief, err := x.Brief(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	done, rest, _ := strings.Cut(brief, "Not settled;")
	open, refused, ok := strings.Cut(rest, "Had no effect:")
	if !ok {
		t.Fatalf("the brief has not all sections:\n%s", brief)
	}
	for order, section := range map[string]string{"done": done, "unknown": open, "refused": refused, "not sent": refused} {
		if !strings.Contains(section, outs[order].Operation) {
			t.Errorf("the operation of %q isn't in its section:\n%s", order, brief)
		}
	}
	if n := strings.Count(brief, "(operation "); n != 4 {
		t.Errorf("%d operations, want those of this task:\n%s", n, brief)
	}
	if !strings.Contains(done, `"payment-1"`) || strings.Contains(brief, "sold out") {
		t.Errorf("the brief is:\n%s", brief)
	}
}

func TestR60TheBriefIsBoundedAndTellsOnlyWhatItShows(t *testing.T) {
	g := inMemory(t)
	s := &say{}
	old := g.executor(s.tool())
	for i := range 105 {
		g.want(old, sayCall(fmt.Sprintf("word %d", i)), settle.StatusCompleted)
	}
	x := g.executor(s.tool())
	brief, err := x.Brief(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(brief, "(operation "); n != 100 || !strings.Contains(brief, "and 5 earlier ones") {
		t.Errorf("it lists %d operations:\n%s", n, brief)
	}
	// Those that were left out have not been told (R30).
	out := g.want(x, sayCall("another word"), settle.StatusHeld)
	if len(out.Related) != 5 {
		t.Errorf("%d operations hold the call, want the 5 that the brief left out", len(out.Related))
	}
	g.want(x, sayCall("another word"), settle.StatusCompleted)
}

func TestR60AfterTheBriefNothingHoldsAReworded(t *testing.T) {
	g := onFile(t)
	s := &say{}
	g.want(g.executor(s.tool()), sayCall("hello"), settle.StatusCompleted)
	x := g.executor(s.tool())
	if _, err := x.Brief(g.ctx); err != nil {
		t.Fatal(err)
	}
	g.want(x, sayCall("hello again"), settle.StatusCompleted)
}

// What the model hears beside the code.

func TestR28ThrottledIsNotDoneBeforeItsTime(t *testing.T) {
	g := onFile(t)
	throttled := true
	p := &pay{contract: unsafeContract()}
	p.attempt = func(_ context.Context, _ settle.Op, _ payArgs, act func() paid) (paid, error) {
		if throttled {
			return paid{}, settle.NotSent(errors.New("429"), settle.RetryAfter(time.Hour))
		}
		return act(), nil
	}
	x := g.executor(p.tool())
	out := g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	if until := out.NotBefore.Sub(g.row(out).Read); until < 59*time.Minute || until > time.Hour {
		t.Errorf("not before %v from now, want 1 h", until)
	}
	throttled = false
	early := g.want(x, payCall("A-1", 5), settle.StatusNotDone)
	if !early.NotBefore.Equal(out.NotBefore) || !strings.Contains(early.ForModel(), out.NotBefore.UTC().Format(time.RFC3339)) {
		t.Errorf("called early: not before %v, %s", early.NotBefore, early.ForModel())
	}
	g.did(p, 0)
	g.forward(time.Hour)
	g.recover(x) // looks at it and leaves it to the caller
	g.want(x, payCall("A-1", 5), settle.StatusCompleted)
	g.did(p, 1)
}
