package settleeino_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	settleeino "github.com/settle-go/settle/tools/eino"
)

// graph is one tools node with checkpoints.
type graph = compose.Runnable[*schema.Message, []*schema.Message]

func (w *world) graph(config compose.ToolsNodeConfig, saved compose.CheckPointStore) graph {
	w.Helper()
	g := compose.NewGraph[*schema.Message, []*schema.Message]()
	for _, err := range []error{
		g.AddToolsNode("tools", w.node(config)), g.AddEdge(compose.START, "tools"), g.AddEdge("tools", compose.END),
	} {
		if err != nil {
			w.Fatal(err)
		}
	}
	r, err := g.Compile(w.ctx, compose.WithCheckPointStore(saved))
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// interrupted runs a turn that has to be interrupted, and returns where.
func (w *world) interrupted(ctx context.Context, r graph, turn *schema.Message) []*compose.InterruptCtx {
	w.Helper()
	results, err := r.Invoke(ctx, turn, compose.WithCheckPointID("turn"))
	info, ok := compose.ExtractInterruptInfo(err)
	if !ok {
		w.Fatalf("expected an interrupt, got %v, %v", results, err)
	}
	return info.InterruptContexts
}

// approval is book with eino's own way to ask a person first.
func approval(ctx context.Context, _ bookArgs) (string, error) {
	if was, _, _ := tool.GetInterruptState[any](ctx); !was {
		return "", tool.StatefulInterrupt(ctx, "may I?", "asked")
	}
	if target, _, _ := tool.GetResumeContext[any](ctx); !target {
		return "", tool.StatefulInterrupt(ctx, "may I?", "asked")
	}
	return "booked", nil
}

// ask counts as "ask" each time that it is entered, and as "book" when it acts.
func (w *world) ask(of func(w *world, run book) tool.BaseTool) tool.BaseTool {
	return of(w, func(ctx context.Context, in bookArgs) (string, error) { return approval(ctx, in) })
}

var namedTurn = schema.AssistantMessage("", []schema.ToolCall{
	call("1", "refund", `{"order":7,"cents":1}`), call("2", "book", `{"seat":1}`), call("3", "book", `{"seat":2}`)})

func TestAnInterruptPassesThroughAndIsNothingSent(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, _ ask) {
		saved := newCheckpoints()
		x := w.start(bySeat(nil))
		tools := func(x *settle.Executor) []tool.BaseTool { return append(w.executors(x), w.ask(of)) }
		at := w.interrupted(w.ctx, w.graph(w.guard(x, tools(x)), saved), namedTurn)
		if len(at) != 2 || at[0].Info != "may I?" {
			w.Fatalf("it was interrupted at %+v", at)
		}
		for _, row := range w.rows()[1:] {
			if row.Tool == "book" && (row.State != store.Retryable || row.Reason != "interrupted") {
				w.Errorf("%s is %v, %s", row.Tool, row.State, row.Reason)
			}
		}
		// Another process, with one of the two allowed, then the other.
		x = w.start(bySeat(nil))
		again := w.graph(w.guard(x, tools(x)), saved)
		left := w.interrupted(compose.Resume(w.ctx, at[0].ID), again, nil)
		if len(left) != 1 {
			w.Fatalf("it was interrupted at %+v", left)
		}
		results, err := again.Invoke(compose.Resume(w.ctx, left[0].ID), nil, compose.WithCheckPointID("turn"))
		if err != nil {
			w.Fatal(err)
		}
		if got := said(results); !strings.HasPrefix(got[0], "[completed;") || got[1] != "booked" || got[2] != "booked" {
			w.Errorf("got %q", got)
		}
		w.wantRefunds(1)
		w.wantRows(3)
		for _, row := range w.rows() {
			if row.State != store.Completed {
				w.Errorf("%s is %v", row.Tool, row.State)
			}
		}
	})
}

// S01, S02: the whole turn comes again after an interrupt, as a host without
// checkpoints sends it, with other ids and in another order.
func TestS01S02ATurnThatComesAgainRunsOnlyWhatWasInterrupted(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		x := w.start(bySeat(nil))
		answered := false
		config := w.guard(x, append(w.executors(x), of(w, func(ctx context.Context, _ bookArgs) (string, error) {
			if !answered {
				return "", tool.Interrupt(ctx, "which seat?")
			}
			return "booked", nil
		})))
		n := w.node(config)
		if _, err := n.Invoke(w.ctx, schema.AssistantMessage("", namedTurn.ToolCalls[:2])); err == nil {
			w.Fatal("expected an interrupt")
		}
		answered = true
		got := say(w, n, call("8", "book", `{"seat":1}`), call("9", "refund", `{"order":7,"cents":1}`))
		if got[0] != "booked" || !strings.HasPrefix(got[1], "[completed, replayed;") {
			w.Errorf("got %q", got)
		}
		w.wantRefunds(1)
	})
}

// An old error of eino's, which has no address, is an interrupt too.
func TestADeprecatedInterruptPassesThrough(t *testing.T) {
	w := newWorld(t)
	n := w.node(w.guard(w.start(), []tool.BaseTool{invokable(w, func(context.Context, bookArgs) (string, error) {
		//lint:ignore SA1019 users still have it
		return "", compose.InterruptAndRerun
	})}))
	if _, err := n.Invoke(w.ctx, oneBooking); !isInterrupt(err) {
		t.Errorf("got %v", err)
	}
	if row := w.rows()[0]; row.State != store.Retryable {
		t.Errorf("the operation is %v", row.State)
	}
}

func isInterrupt(err error) bool {
	_, ok := compose.IsInterruptRerunError(err)
	return ok
}

func TestAToolThatActsBeforeItInterruptsIsUnknown(t *testing.T) {
	w := newWorld(t)
	n := w.node(w.guard(w.start(bySeat(func(c *settle.Contract) { c.ActsBeforeInterrupt = true })), []tool.BaseTool{
		invokable(w, func(ctx context.Context, _ bookArgs) (string, error) { return "", tool.Interrupt(ctx, "which seat?") })}))
	if got := w.say(n, oneBooking.ToolCalls...); !strings.HasPrefix(got[0], "[unknown;") {
		t.Errorf("got %q", got)
	}
}

// R24: the graph is interrupted from outside while a tool is at work, and
// resumed: eino runs the tool again.
func TestR24ACancelledTurnThatIsResumedActsOnce(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, _ ask) {
		entered, release := make(chan struct{}), make(chan struct{})
		tools := []tool.BaseTool{of(w, func(context.Context, bookArgs) (string, error) {
			close(entered)
			<-release
			return "booked", nil
		})}
		saved := newCheckpoints()
		r := w.graph(w.guard(w.start(bySeat(nil)), tools), saved)
		ctx, interrupt := compose.WithGraphInterrupt(w.ctx)
		go func() { <-entered; interrupt(compose.WithGraphInterruptTimeout(0)) }()
		w.interrupted(ctx, r, oneBooking)
		go close(release)
		results, err := r.Invoke(w.ctx, nil, compose.WithCheckPointID("turn"))
		if err != nil || !strings.Contains(said(results)[0], "booked") {
			w.Errorf("got %v, %v", results, err)
		}
		w.wantActs(map[string]int{"book": 1})
	})
}

func TestR24ACallerWhoGoesIsToldInProgress(t *testing.T) {
	w := newWorld(t)
	entered, release := make(chan struct{}), make(chan struct{})
	n := w.node(w.guard(w.start(), []tool.BaseTool{invokable(w, func(ctx context.Context, _ bookArgs) (string, error) {
		close(entered)
		<-release
		return "booked", ctx.Err()
	})}))
	ctx, cancel := context.WithCancel(w.ctx)
	go func() { <-entered; cancel() }()
	results, err := n.Invoke(ctx, oneBooking)
	if err != nil || !strings.HasPrefix(said(results)[0], "[in_progress;") {
		t.Fatalf("got %v, %v", results, err)
	}
	close(release)
	if got := w.say(n, oneBooking.ToolCalls...); !strings.HasPrefix(got[0], "[completed, replayed;") {
		t.Errorf("got %q", got)
	}
}

// The checkpoint is neither used up nor locked: one approval is played twice.
func TestTheSameApprovalTwiceActsOnce(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, _ ask) {
		r := w.graph(w.guard(w.start(bySeat(nil)), []tool.BaseTool{w.ask(of)}), newCheckpoints())
		at := w.interrupted(w.ctx, r, oneBooking)
		for i, want := range []string{"booked", "[completed, replayed;"} {
			results, err := r.Invoke(compose.Resume(w.ctx, at[0].ID), nil, compose.WithCheckPointID("turn"))
			if err != nil || !strings.HasPrefix(said(results)[0], want) {
				w.Errorf("approval %d: got %v, %v", i+1, results, err)
			}
		}
		w.wantActs(map[string]int{"book": 2}) // entered once to ask, once to act
	})
}

// R43: settle's own approval is waited for with the turn going on.
func TestR43AnApprovalIsToldToTheModel(t *testing.T) {
	everyKindTogether(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		x := w.start(bySeat(func(c *settle.Contract) { c.Approval = true }))
		got := say(w, w.node(w.guard(x, append(w.executors(x), of(w, booked)))), namedTurn.ToolCalls...)
		if !strings.HasPrefix(got[0], "[completed;") || !strings.HasPrefix(got[1], "[awaiting_approval;") || !strings.HasPrefix(got[2], "[awaiting_approval;") {
			w.Errorf("got %q", got)
		}
		w.wantActs(nil)
	})
}

// With Parking the graph waits, and the approved call runs when it is resumed,
// in another process too.
func TestR43AParkedApprovalRunsOnceWhenTheGraphIsResumed(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, _ ask) {
		approved := bySeat(func(c *settle.Contract) { c.Approval = true })
		saved := newCheckpoints()
		start := func() (*settle.Executor, graph) {
			x := w.start(approved)
			return x, w.graph(w.guard(x, append(w.executors(x), of(w, booked)), settleeino.Parking()), saved)
		}
		_, r := start()
		turn := schema.AssistantMessage("", namedTurn.ToolCalls[:2])
		at := w.interrupted(w.ctx, r, turn)
		if len(at) != 1 || !strings.HasPrefix(at[0].Info.(string), "[awaiting_approval; operation ") {
			w.Fatalf("it is parked at %+v", at)
		}
		// Resumed too early, it parks again.
		at = w.interrupted(w.ctx, r, nil)
		w.approve()
		_, r = start()
		results, err := r.Invoke(compose.Resume(w.ctx, at[0].ID), nil, compose.WithCheckPointID("turn"))
		if err != nil {
			w.Fatal(err)
		}
		if got := said(results); !strings.HasPrefix(got[0], "[completed;") || !strings.Contains(got[1], "booked") {
			w.Errorf("got %q", got)
		}
		w.wantActs(map[string]int{"book": 1})
		w.wantRefunds(1)
	})
}

// approve allows every case that is open, as an operator does.
func (w *world) approve() {
	w.Helper()
	x := w.start(bySeat(func(c *settle.Contract) { c.Approval = true }))
	ctx := settle.WithOperator(w.ctx, settle.Operator{Name: "olga", Tenants: []string{"acme"}})
	open, err := x.Queue().List(ctx, settle.QueueFilter{})
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range open.Cases {
		if _, err := x.Queue().Decide(ctx, settle.Decision{Operation: c.Operation, Version: c.Version, ID: uuid.NewString(), Kind: settle.DecideApprove, Reason: "as agreed"}); err != nil {
			w.Fatal(err)
		}
	}
}

func TestAParkedUnknownOutcomeIsAskedForAgain(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, _ ask) {
		x := w.start(bySeat(nil))
		r := w.graph(w.guard(x, append(w.executors(x), of(w, func(context.Context, bookArgs) (string, error) {
			return "", errors.New("connection reset")
		})), settleeino.Parking()), newCheckpoints())
		at := w.interrupted(w.ctx, r, schema.AssistantMessage("", namedTurn.ToolCalls[:2]))
		if len(at) != 1 || !strings.HasPrefix(at[0].Info.(string), "[unknown; operation ") {
			w.Fatalf("it is parked at %+v", at)
		}
		w.interrupted(w.ctx, r, nil)
		w.wantActs(map[string]int{"book": 1})
		w.wantRefunds(1)
	})
}

// A held call may mean what was done under other words: only the model knows.
func TestAHeldCallIsToldAndNotParked(t *testing.T) {
	w := newWorld(t)
	note := must(w)(utils.InferTool("note", "", func(_ context.Context, in bookArgs) (string, error) {
		return "", errors.New("connection reset")
	}))
	n := w.node(w.guard(w.start(), []tool.BaseTool{note}, settleeino.Parking()))
	if _, err := n.Invoke(w.ctx, schema.AssistantMessage("", []schema.ToolCall{call("1", "note", `{"seat":1}`)})); !isInterrupt(err) {
		t.Fatalf("got %v", err)
	}
	if got := w.say(n, call("2", "note", `{"seat":2}`)); !strings.HasPrefix(got[0], "[held]") {
		t.Errorf("got %q", got)
	}
}
