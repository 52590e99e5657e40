package settlemcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/settle-go/settle"
	settlemcpgo "github.com/settle-go/settle/tools/mcpgo"
)

type connect = func(w *world, options ...client.ClientOption) *client.Client

func TestAResultPassesUntouchedAndAReplaySaysThatItIsOne(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		c := to(w)
		first := w.call(c, "book", `{"seat":1}`)
		if texts(first.Content) != `{"id":"b1"}` || outcomeOf(first.Meta) != nil {
			t.Errorf("the first run came to %+v", first)
		}
		w.wantReplay(w.call(c, "book", `{"seat":1.0}`), `{"id":"b1"}`)

		w.restart(settle.WithGuarded(seat))
		w.addBook(bookIt)
		w.wantReplay(w.call(to(w), "book", `{ "seat": 1 }`), `{"id":"b1"}`)
		w.wantActs("book", 1)
		if rows := w.rows(); len(rows) != 1 || string(rows[0].Result) != `{"id":"b1"}` {
			t.Errorf("the ledger has %d rows, %s", len(rows), rows[0].Result)
		}
	})
}

func TestAnOutcomeThatIsNoResultIsAnOrdinaryResult(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want settle.Status
	}{
		"unknown":  {errors.New("connection reset"), settle.StatusUnknown},
		"not sent": {settle.NotSent(errors.New("no route")), settle.StatusNotDone},
		"rejected": {settle.Rejected(errors.New("sold out")), settle.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			everyLink(t, func(t *testing.T, to connect) {
				w := newWorld(t, settle.WithGuarded(seat))
				w.addBook(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, tc.err })
				w.wantAnswer(w.call(to(w), "book", `{"seat":1}`), tc.want)
			})
		})
	}
}

func TestR27AnErrorResultIsUnknownUnlessTheContractClassifiesIt(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		sure := settle.RawTool{Name: "sure", Contract: settle.Contract{WholeArguments: true, NoLookup: true, Classify: func(err error) error {
			var result *settlemcpgo.ResultError
			if errors.As(err, &result) && result.Error() == "full" {
				return settle.Rejected(err)
			}
			return err
		}}}
		w := newWorld(t, settle.WithGuarded(sure, settle.RawTool{Name: "read", Contract: settle.Contract{Class: settle.Read}}))
		for _, name := range []string{"sure", "unsure", "read"} {
			w.add(mcp.NewTool(name), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultError("full"), nil
			})
		}
		c := to(w)
		w.wantAnswer(w.call(c, "sure", `{}`), settle.StatusFailed)
		w.wantAnswer(w.call(c, "unsure", `{}`), settle.StatusUnknown)
		if r := w.call(c, "read", `{}`); !r.IsError || texts(r.Content) != "full" {
			t.Errorf("the error of a tool that only reads came to %+v", r)
		}
		w.wantActs("read", 1)
	})
}

func TestWhatCannotRunIsNotClaimed(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		c := to(w)
		for _, args := range []string{`{}`, `{"seat":"one"}`, `{"seat":1,"seat":2}`} {
			w.wantAnswer(w.call(c, "book", args), settle.StatusInvalidArguments)
		}
		if _, err := w.try(t.Context(), c, "made_up", `{}`); err == nil {
			t.Error("a name that was made up was called")
		}
		w.wantActs("book", 0)
		if rows := w.rows(); len(rows) != 0 {
			t.Errorf("the ledger has %d rows", len(rows))
		}
	})
}

func TestNumbersAreNotRounded(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		c := to(w)
		w.call(c, "book", `{"seat":9007199254740993}`)
		if r := w.call(c, "book", `{"seat":9007199254740992}`); outcomeOf(r.Meta) != nil {
			t.Errorf("another seat came to %q", texts(r.Content))
		}
		w.wantReplay(w.call(c, "book", `{"seat":9007199254740993}`), `{"id":"b1"}`)
		w.wantActs("book", 2)
	})
}

// Arguments that a middleware has set have no bytes; what may be rounded is refused.
func TestArgumentsWithoutBytesMayBeRounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settle.WithGuarded(seat))
	run := w.guard.Middleware(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		w.act("book")
		return mcp.NewToolResultText("booked"), nil
	})
	ctx := settle.WithPrincipal(w.ctx, caller)
	for name, tc := range map[string]struct {
		given   any
		refused bool
	}{
		"float64 that may be another": {map[string]any{"seat": float64(1 << 53)}, true}, "float64": {map[string]any{"seat": 1.0}, false},
		"int64": {map[string]any{"seat": int64(1<<53 + 1)}, false}, "bytes": {json.RawMessage(`{"seat":9007199254740995}`), false},
		"no object": {[]any{1.0}, true},
	} {
		req := mcp.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = "book", tc.given
		r, err := run(ctx, req)
		if err != nil || r.IsError != tc.refused {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
	w.wantActs("book", 3)
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.Arguments = "book", func() {}
	if _, err := run(ctx, req); err == nil || !strings.Contains(err.Error(), "nothing was done") {
		t.Errorf("got %v", err)
	}
}

func TestACallWithoutATaskOrAPrincipalIsRefused(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t)
		w.restart(settle.WithGuarded(seat), ownTool(w, "offered"))
		w.addBook(bookIt)
		if err := w.guard.Offer(w.server); err != nil {
			t.Fatal(err)
		}
		c := to(w)
		for _, tool := range []string{"book", "offered"} {
			for name, meta := range map[string]map[string]any{"none": nil, "a string": {"io.github.settle-go/task": "case-42"},
				"no goal": {"io.github.settle-go/task": map[string]any{"id": "case-42"}}} {
				req := request(tool, `{"seat":1}`)
				req.Params.Meta = mcp.NewMetaFromMap(meta)
				_, err := c.CallTool(settle.WithPrincipal(t.Context(), caller), req)
				if err == nil || !strings.Contains(err.Error(), "nothing was done") || !strings.Contains(err.Error(), "io.github.settle-go/task") {
					t.Errorf("%s, %s: got %v", tool, name, err)
				}
			}
			nobody := w.began(w.over(w.serve(), ""))
			if _, err := nobody.CallTool(t.Context(), settlemcpgo.SendTask(w.ctx, request(tool, `{"seat":1}`))); err == nil || !strings.Contains(err.Error(), "authenticate") {
				t.Errorf("%s: got %v", tool, err)
			}
		}
		w.wantActs("book", 0)
		w.wantActs("offered", 0)
		if rows := w.rows(); len(rows) != 0 {
			t.Errorf("the ledger has %d rows", len(rows))
		}
	})
}

func TestTheHostCanNamePrincipalAndTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settle.WithGuarded(seat))
	w.guarded(settlemcpgo.Options{
		Principal: func(_ context.Context, req mcp.CallToolRequest) (settle.Principal, error) {
			if req.Header.Get("User") != "ada" {
				return settle.Principal{}, errors.New("bob is locked out")
			}
			return settle.Principal{Tenant: "acme", Subject: "team"}, nil
		},
		Task: func(_ context.Context, req mcp.CallToolRequest) (settle.Task, error) {
			if _, sent := settlemcpgo.TaskOf(req); sent {
				return settle.Task{}, errors.New("no client names tasks here")
			}
			return task, nil
		},
	})
	w.addBook(bookIt)
	s := w.serve()
	ada, bob := w.began(w.over(s, "ada")), w.began(w.over(s, "bob"))
	if _, err := ada.CallTool(t.Context(), request("book", `{"seat":1}`)); err != nil {
		t.Error(err)
	}
	if _, err := w.try(t.Context(), ada, "book", `{"seat":2}`); err == nil {
		t.Error("a call was made though the host named no task for it")
	}
	if _, err := bob.CallTool(t.Context(), request("book", `{"seat":1}`)); err == nil || strings.Contains(err.Error(), "locked") {
		t.Errorf("got %v", err)
	}
	w.wantActs("book", 1)
	if rows := w.rows(); len(rows) != 1 || rows[0].Of.Subject != "team" {
		t.Errorf("the ledger has %+v", rows)
	}
}

// R3: a tool that lists its former name is the same tool.
func TestR3ARenamedToolIsStillTheSame(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addBook(bookIt)
		w.call(to(w), "book", `{"seat":1}`)
		renamed := seat
		renamed.Name, renamed.Formerly = "reserve", []string{"book"}
		w.restart(settle.WithGuarded(renamed))
		w.add(mcp.NewTool("reserve", mcp.WithNumber("seat")), bookIt)
		w.wantReplay(w.call(to(w), "reserve", `{"seat":1}`), `{"id":"b1"}`)
		w.wantActs("reserve", 0)
	})
}

// R24: the effect goes on where its caller has gone, and is recorded.
func TestR24AClientsDeadlineDoesNotReachTheTool(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		entered, release := make(chan struct{}), make(chan struct{})
		w.addBook(func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			close(entered)
			select {
			case <-release:
				return bookIt(ctx, req)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		c := to(w)
		ctx, gone := context.WithCancel(t.Context())
		go func() { <-entered; gone() }()
		if r, err := w.try(ctx, c, "book", `{"seat":1}`); err == nil {
			w.wantAnswer(r, settle.StatusInProgress) // in process the server's answer is there first
		}
		close(release)
		w.wantReplay(w.call(c, "book", `{"seat":1}`), `{"id":"b1"}`)
		w.wantActs("book", 1)
	})
}

// S22..S24: ids of JSON-RPC play no part; calls run side by side, and equal ones once.
func TestS23ParallelCallsRunSideBySideAndEqualOnesOnce(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		var all sync.WaitGroup
		all.Add(4)
		w.addBook(func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			all.Done()
			met := make(chan struct{})
			go func() { all.Wait(); close(met) }()
			select {
			case <-met:
				return bookIt(ctx, req)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		c := to(w)
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				r, err := w.try(t.Context(), c, "book", []string{`{"seat":1}`, `{"seat":2}`, `{"seat":3}`, `{"seat":4}`}[i%4])
				if err != nil || r.IsError || r.StructuredContent == nil {
					t.Errorf("got %v, %v", r, err)
				}
			})
		}
		group.Wait()
		w.wantActs("book", 4)
		if rows := w.rows(); len(rows) != 4 {
			t.Errorf("the ledger has %d rows, want 4", len(rows))
		}
	})
}

// The library drops what a handler tells right before it returns, so this one
// waits until it has been heard.
func TestProgressReachesTheClient(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		heard := make(chan any, 1)
		w.addBook(func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			told := map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": 1}
			if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", told); err != nil {
				return nil, err
			}
			select {
			case token := <-heard:
				return mcp.NewToolResultText(token.(string)), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		c := to(w)
		c.OnNotification(func(n mcp.JSONRPCNotification) {
			if n.Method == "notifications/progress" {
				heard <- n.Params.AdditionalFields["progressToken"]
			}
		})
		req := settlemcpgo.SendTask(w.ctx, request("book", `{"seat":1}`))
		req.Params.Meta.ProgressToken = "p1"
		if r, err := c.CallTool(settle.WithPrincipal(t.Context(), caller), req); err != nil || texts(r.Content) != "p1" {
			t.Errorf("got %v, %v", r, err)
		}
	})
}

func TestR09ARepeatThatIsMeantReachesTheToolWithoutTheOccurrence(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		again := seat
		again.Contract.Repeatable = true
		w := newWorld(t, settle.WithGuarded(again))
		w.addBook(func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if got := req.GetArguments(); len(got) != 1 || string(req.Params.RawArguments) != `{"seat":1}` {
				t.Errorf("the tool was given %v, %s", got, req.Params.RawArguments)
			}
			return bookIt(ctx, req)
		})
		c := to(w)
		w.call(c, "book", `{"seat":1}`)
		if second := w.call(c, "book", `{"seat":1,"settle_occurrence":2}`); texts(second.Content) != `{"id":"b1"}` {
			t.Errorf("the second booking came to %q", texts(second.Content))
		}
		w.wantActs("book", 2)
	})
}
