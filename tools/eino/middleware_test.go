package settleeino_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/settle-go/settle"
	settleeino "github.com/settle-go/settle/tools/eino"
)

// ask runs a turn in one piece or as a stream.
type ask func(w *world, n *compose.ToolsNode, calls ...schema.ToolCall) []string

var asks = map[string]ask{"invoked": (*world).say, "streamed": (*world).stream}

// everyKind runs a test for each kind of tool, asked in both ways.
func everyKind(t *testing.T, test func(w *world, make func(w *world, run book) tool.BaseTool, say ask)) {
	t.Helper()
	t.Parallel()
	for kind, of := range kinds {
		for way, say := range asks {
			t.Run(kind+" "+way, func(t *testing.T) { test(newWorld(t), of, say) })
		}
	}
}

// everyKindTogether is everyKind for turns with several calls of the tool. It
// leaves streams of enhanced tools out: where a turn has two, eino's own
// ToolsNode.Stream writes one variable from two goroutines.
func everyKindTogether(t *testing.T, test func(w *world, make func(w *world, run book) tool.BaseTool, say ask)) {
	t.Helper()
	t.Parallel()
	for kind, of := range kinds {
		for way, say := range asks {
			if way == "streamed" && strings.HasPrefix(kind, "enhanced") {
				continue
			}
			t.Run(kind+" "+way, func(t *testing.T) { test(newWorld(t), of, say) })
		}
	}
}

func TestAResultPassesUntouchedAndIsReplayed(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		tools := []tool.BaseTool{of(w, booked)}
		n := w.node(w.guard(w.start(), tools))
		if got := say(w, n, call("1", "book", `{"seat":1}`)); got[0] != "booked" {
			w.Errorf("the first run came to %q", got)
		}
		for name, again := range map[string]*compose.ToolsNode{"same process": n, "after a restart": w.node(w.guard(w.start(), tools))} {
			got := say(w, again, call("9", "book", `{"seat":1.0}`))[0]
			if !strings.HasPrefix(got, "[completed, replayed; operation ") || !strings.Contains(got, "booked") {
				w.Errorf("%s: the replay came to %q", name, got)
			}
		}
		w.wantActs(map[string]int{"book": 1})
	})
}

// A tool's error ends eino's node and drops what its siblings did. Ours doesn't.
func TestAnErrorIsContentAndEndsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"unknown":  {errors.New("connection reset"), "[unknown;"},
		"not sent": {settle.NotSent(errors.New("no route")), "[not_done;"},
		"rejected": {settle.Rejected(errors.New("sold out")), "[failed;"},
	} {
		t.Run(name, func(t *testing.T) {
			everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
				x := w.start()
				n := w.node(w.guard(x, append(w.executors(x), of(w, func(context.Context, bookArgs) (string, error) { return "", tc.err }))))
				got := say(w, n, call("1", "refund", `{"order":7,"cents":1}`), call("2", "book", `{"seat":1}`))
				if !strings.HasPrefix(got[0], "[completed;") || !strings.HasPrefix(got[1], tc.want) || strings.Contains(got[1], "try again") {
					w.Errorf("got %q", got)
				}
				w.wantRefunds(1)
			})
		})
	}
}

func TestR27APanicIsAnUnknownOutcome(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		n := w.node(w.guard(w.start(), []tool.BaseTool{of(w, func(context.Context, bookArgs) (string, error) { panic("seat map") })}))
		if got := say(w, n, call("1", "book", `{"seat":1}`)); !strings.HasPrefix(got[0], "[unknown;") {
			w.Errorf("got %q", got)
		}
	})
}

func TestWhatAToolWouldRefuseIsNeverClaimed(t *testing.T) {
	for _, args := range []string{`{"seat":"first"}`, `{}`, ``, `{"seat":1,"row":2}`, `null`, `[1]`, `{"seat":`, `{"seat":1,"seat":2}`, `{"seat":1.5}`} {
		t.Run(args, func(t *testing.T) {
			everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
				if got := say(w, w.node(w.guard(w.start(), []tool.BaseTool{of(w, booked)})), call("1", "book", args)); !strings.HasPrefix(got[0], "[invalid_arguments]") {
					w.Errorf("got %q", got)
				}
				w.wantActs(nil)
				w.wantRows(0)
			})
		})
	}
}

// eino hands the arguments on as the model's text.
func TestR16BigNumbersArentRounded(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		n := w.node(w.guard(w.start(), []tool.BaseTool{of(w, func(_ context.Context, in bookArgs) (string, error) { return fmt.Sprint("seat ", in.Seat), nil })}))
		for _, seat := range []string{"9007199254740992", "9007199254740993"} {
			if got := say(w, n, call("1", "book", `{"seat":`+seat+`}`)); got[0] != "seat "+seat {
				w.Errorf("got %q, want seat %s", got, seat)
			}
		}
	})
}

// Where the model sends no arguments at all, the executor and the tool read {}.
func TestACallWithoutArgumentsHasNone(t *testing.T) {
	w := newWorld(t)
	type none struct{}
	ping := must(w)(utils.InferTool("ping", "", func(context.Context, none) (string, error) { return "pong", nil }))
	if got := w.say(w.node(w.guard(w.start(), []tool.BaseTool{ping})), call("1", "ping", ``)); got[0] != "pong" {
		t.Errorf("got %q", got)
	}
}

func TestR01AToolWithoutAContractIsUnsafe(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		n := w.node(w.guard(w.start(), []tool.BaseTool{of(w, func(context.Context, bookArgs) (string, error) { return "", errors.New("connection reset") })}))
		for _, step := range []struct{ args, want string }{{`{"seat":1}`, "[unknown;"}, {`{"seat":1}`, "[unknown;"}, {`{"seat":2}`, "[held]"}} {
			if got := say(w, n, call("1", "book", step.args)); !strings.HasPrefix(got[0], step.want) {
				w.Errorf("%s was answered %q, want %s", step.args, got, step.want)
			}
		}
		w.wantActs(map[string]int{"book": 1})
		if rows := w.rows(); len(rows) != 1 || rows[0].Class != settle.Unsafe {
			w.Errorf("the ledger has %+v", rows)
		}
	})
}

// bySeat is a contract of book.
func bySeat(change func(*settle.Contract)) settle.Option {
	c := settle.Contract{Identity: []string{"seat"}, Ignore: []string{"note"}, NoLookup: true}
	if change != nil {
		change(&c)
	}
	return settle.WithGuarded(settle.RawTool{Name: "book", Contract: c})
}

func TestAContractIsFoundByNameAndByAlias(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		n := w.node(w.guardConfig(w.start(bySeat(nil)), compose.ToolsNodeConfig{
			Tools: []tool.BaseTool{of(w, booked)},
			ToolAliases: map[string]compose.ToolAliasConfig{"book": {
				NameAliases: []string{"reserve"}, ArgumentsAliases: map[string][]string{"seat": {"place"}}}},
		}))
		for i, c := range []schema.ToolCall{
			call("1", "book", `{"seat":1,"note":"window"}`), call("2", "book", `{"seat":1,"note":"aisle"}`),
			call("3", "reserve", `{"seat":1}`), call("4", "reserve", `{"place":1}`),
		} {
			got := say(w, n, c)[0]
			if i == 0 && got != "booked" || i > 0 && !strings.HasPrefix(got, "[completed, replayed;") {
				w.Errorf("call %d was answered %q", i+1, got)
			}
		}
		if got := say(w, n, call("5", "reserve", `{"seat":"x"}`)); !strings.HasPrefix(got[0], "[invalid_arguments]") {
			w.Errorf("got %q", got)
		}
		w.wantActs(map[string]int{"book": 1})
		w.wantRows(1)
	})
}

// R03: a tool under another name is another tool, unless it lists the former one.
func TestR03ARenamedToolListsItsFormerName(t *testing.T) {
	w := newWorld(t)
	w.say(w.node(w.guard(w.start(bySeat(nil)), []tool.BaseTool{invokable(w, booked)})), call("1", "book", `{"seat":1}`))
	reserve := must(w)(utils.InferTool("reserve", "", func(context.Context, bookArgs) (string, error) { w.act("reserve"); return "reserved", nil }))
	renamed := settle.WithGuarded(settle.RawTool{Name: "reserve", Formerly: []string{"book"},
		Contract: settle.Contract{Identity: []string{"seat"}, Ignore: []string{"note"}, NoLookup: true}})
	if got := w.say(w.node(w.guard(w.start(renamed), []tool.BaseTool{reserve})), call("2", "reserve", `{"seat":1}`)); !strings.HasPrefix(got[0], "[completed, replayed;") {
		t.Errorf("got %q", got)
	}
	w.wantActs(map[string]int{"book": 1})
}

func TestAKeyedToolTakesItsKeyFromTheContext(t *testing.T) {
	w := newWorld(t)
	var keys []string
	n := w.node(w.guard(w.start(bySeat(func(c *settle.Contract) { c.Class, c.KeyWindow = settle.Keyed, settle.Permanent })), []tool.BaseTool{
		invokable(w, func(ctx context.Context, _ bookArgs) (string, error) {
			key, _ := settle.KeyFrom(ctx)
			if keys = append(keys, key); len(keys) == 1 {
				return "", errors.New("connection reset")
			}
			return "booked", nil
		})}))
	if got := w.say(n, call("1", "book", `{"seat":1}`)); got[0] != "booked" {
		t.Errorf("got %q", got)
	}
	if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("the attempts had the keys %q", keys)
	}
}

func TestANameThatTheNodeDoesntKnowIsNeverClaimed(t *testing.T) {
	w := newWorld(t)
	x := w.start()
	n := w.node(w.guard(x, append(w.executors(x), invokable(w, booked))))
	got := w.say(n, call("1", "refund_all", `{}`), call("2", "book", `{"seat":1}`))
	if !strings.HasPrefix(got[0], "[no_such_tool]") || got[1] != "booked" {
		t.Errorf("got %q", got)
	}
	w.wantRows(1)
}

// S22, S23, S24: call ids may be used again, constant or missing.
func TestS22S23S24CallIDsIdentifyNothing(t *testing.T) {
	everyKindTogether(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		n := w.node(w.guard(w.start(bySeat(nil)), []tool.BaseTool{of(w, booked)}))
		for seat, id := range []string{"x", "x", "x", "", ""} {
			if got := say(w, n, call(id, "book", fmt.Sprintf(`{"seat":%d}`, seat))); got[0] != "booked" {
				w.Errorf("call %d came to %q", seat, got)
			}
		}
		if got := say(w, n, call("y", "book", `{"seat":10}`), call("y", "book", `{"seat":11}`)); got[0] != "booked" || got[1] != "booked" {
			w.Errorf("got %q", got)
		}
		if got := say(w, n, call("z", "book", `{"seat":0}`)); !strings.HasPrefix(got[0], "[completed, replayed;") {
			w.Errorf("got %q", got)
		}
		w.wantActs(map[string]int{"book": 7})
	})
}

func TestTheCallIDIsStored(t *testing.T) {
	w := newWorld(t)
	w.say(w.node(w.guard(w.start(), []tool.BaseTool{invokable(w, booked)})), call("call_7", "book", `{"seat":1}`))
	if rows := w.rows(); len(rows) != 1 || rows[0].CallID != "call_7" {
		t.Errorf("the ledger has %+v", rows)
	}
}

// R30: eino calls the tools of a turn one by one, so that a call meets its
// sibling at work and waits for it.
func TestR30CallsOfOneTurnThatNameNoIdentityAllRun(t *testing.T) {
	everyKindTogether(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		n := w.node(w.guard(w.start(), []tool.BaseTool{of(w, booked)}))
		got := say(w, n, call("1", "book", `{"seat":1}`), call("2", "book", `{"seat":2}`), call("3", "book", `{"seat":3}`))
		if strings.Join(got, " ") != "booked booked booked" {
			w.Errorf("got %q", got)
		}
		w.wantActs(map[string]int{"book": 3})
	})
}

// Tools of a turn run at the same time, with and without settle.
func TestCallsOfOneTurnRunAtTheSameTime(t *testing.T) {
	everyKindTogether(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		meet := make(chan struct{})
		n := w.node(w.guard(w.start(bySeat(nil)), []tool.BaseTool{of(w, func(ctx context.Context, in bookArgs) (string, error) {
			select {
			case meet <- struct{}{}:
			case <-meet:
			case <-ctx.Done():
				return "", ctx.Err()
			}
			return "booked", nil
		})}))
		if got := say(w, n, call("1", "book", `{"seat":1}`), call("2", "book", `{"seat":2}`)); got[0] != "booked" || got[1] != "booked" {
			w.Errorf("got %q", got)
		}
	})
}

func TestAHostThatForgetsItsNamesIsTold(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, _ ask) {
		x := w.start()
		n := w.node(w.guard(x, append(w.executors(x), of(w, booked))))
		for _, c := range []schema.ToolCall{call("1", "book", `{"seat":1}`), call("1", "refund", `{"order":7,"cents":1}`)} {
			turn := schema.AssistantMessage("", []schema.ToolCall{c})
			if _, err := n.Invoke(w.Context(), turn); !errors.Is(err, settle.ErrNoPrincipal) {
				w.Errorf("got %v", err)
			}
			if _, err := n.Stream(settle.WithPrincipal(w.Context(), principal("agent")), turn); !errors.Is(err, settle.ErrNoTask) {
				w.Errorf("got %v", err)
			}
		}
		w.wantActs(nil)
		w.wantRows(0)
	})
}

func TestUnguardedToolsPass(t *testing.T) {
	everyKind(t, func(w *world, of func(*world, book) tool.BaseTool, say ask) {
		n := w.node(w.guard(w.start(), []tool.BaseTool{of(w, booked)}, settleeino.Unguarded("book")))
		for range 2 {
			if got := say(w, n, call("1", "book", `{"seat":1}`)); got[0] != "booked" {
				w.Errorf("got %q", got)
			}
		}
		w.wantActs(map[string]int{"book": 2})
		w.wantRows(0)
	})
}

// A tool that comes with a call's options is guarded without its schema.
func TestAToolThatComesLaterIsGuarded(t *testing.T) {
	w := newWorld(t)
	x := w.start()
	n := w.node(w.guard(x, w.executors(x)))
	turn := schema.AssistantMessage("", []schema.ToolCall{call("1", "book", `{"seat":1}`)})
	later := compose.WithToolList(invokable(w, booked))
	for range 2 {
		if _, err := n.Invoke(w.ctx, turn, later); err != nil {
			t.Fatal(err)
		}
	}
	w.wantActs(map[string]int{"book": 1})
}

// A tool of the executor that the middleware doesn't know would be one
// operation inside itself.
func TestAToolThatIsGuardedTwiceIsTheHostsMistake(t *testing.T) {
	w := newWorld(t)
	x := w.start()
	n := w.node(w.guard(x, []tool.BaseTool{invokable(w, booked)}))
	turn := schema.AssistantMessage("", []schema.ToolCall{call("1", "refund", `{"order":7,"cents":1}`)})
	if _, err := n.Invoke(w.ctx, turn, compose.WithToolList(w.executors(x)...)); err == nil || !strings.Contains(err.Error(), "make the middleware with a config that has the tool") {
		t.Errorf("got %v", err)
	}
	w.wantRefunds(0)
}

// nameless is a tool that can't say what it is.
type nameless struct{ tool.InvokableTool }

func (nameless) Info(context.Context) (*schema.ToolInfo, error) { return nil, errors.New("no route") }

func TestMiddlewareRefusesAToolThatDoesntSayWhatItIs(t *testing.T) {
	w := newWorld(t)
	_, err := settleeino.Middleware(w.ctx, w.start(), compose.ToolsNodeConfig{Tools: []tool.BaseTool{invokable(w, booked), nameless{}}})
	if err == nil || !strings.Contains(err.Error(), "index 1") {
		t.Errorf("got %v", err)
	}
}

func TestR09ARepeatThatIsMeantReachesTheToolWithoutTheOccurrence(t *testing.T) {
	t.Parallel()
	for way, say := range asks {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t)
			var given []string
			book := plain{must(w)(utils.InferTool("book", "Book a seat.", func(context.Context, bookArgs) (string, error) { return "", nil })),
				func(args string) { given = append(given, args) }}
			again := settle.RawTool{Name: "book", Contract: settle.Contract{Identity: []string{"seat"}, NoLookup: true, Repeatable: true}}
			n := w.node(w.guard(w.start(settle.WithGuarded(again)), []tool.BaseTool{book}))
			for _, args := range []string{`{"seat":1.0}`, `{"seat":1,"settle_occurrence":2}`} {
				if got := say(w, n, call("1", "book", args)); got[0] != "booked" {
					t.Errorf("%s came to %q", args, got)
				}
			}
			if len(given) != 2 || given[0] != `{"seat":1.0}` || given[1] != `{"seat":1}` {
				t.Errorf("the tool was given %q", given)
			}
		})
	}
}

// plain is a tool that sees the bytes which it is given.
type plain struct {
	tool.BaseTool
	given func(args string)
}

func (p plain) InvokableRun(_ context.Context, args string, _ ...tool.Option) (string, error) {
	p.given(args)
	return "booked", nil
}
