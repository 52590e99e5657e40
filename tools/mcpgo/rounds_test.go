package settlemcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	settlemcpgo "github.com/settle-go/settle/tools/mcpgo"
)

// addConfirmed adds a booking that asks its user twice.
func (w *world) addConfirmed() {
	w.server.AddTool(bookTool, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		w.act("entered")
		if len(req.Params.RequestState) < 2 {
			return server.NewInputRequestBuilder(req.Params.RequestState+"r").Elicit("sure", mcp.ElicitationParams{Message: "Sure?",
				RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}).ToolResult(), nil
		}
		w.act("book")
		return mcp.NewToolResultStructuredOnly(booked{"b1"}), nil
	})
}

// accepts is a user who says yes.
type accepts struct{}

func (accepts) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{}}}, nil
}

// All entries of a call are one operation, whether the client plays the rounds or
// the server does for an older one: an entry that asks hasn't finished.
func TestTheLegsOfACallAreOneOperation(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat))
		w.addConfirmed()
		c := to(w, client.WithElicitationHandler(accepts{}))
		if r := w.call(c, "book", `{"seat":1}`); texts(r.Content) != `{"id":"b1"}` {
			t.Errorf("got %+v", r)
		}
		w.wantReplay(w.call(c, "book", `{"seat":1}`), `{"id":"b1"}`)
		w.wantActs("book", 1)
		w.wantActs("entered", 3)
		if rows := w.rows(); len(rows) != 1 || rows[0].State != store.Completed || rows[0].Attempt != 3 {
			t.Errorf("the ledger has %d rows, %v", len(rows), rows[0].State)
		}
	})
}

// A tool that acts before it asks says so; it isn't entered again.
func TestAToolThatActsBeforeItAsksIsNotEnteredAgain(t *testing.T) {
	everyLink(t, func(t *testing.T, to connect) {
		acts := seat
		acts.Contract.ActsBeforeInterrupt = true
		w := newWorld(t, settle.WithGuarded(acts))
		w.addConfirmed()
		w.wantAnswer(w.call(to(w, client.WithElicitationHandler(accepts{})), "book", `{"seat":1}`), settle.StatusUnknown)
		w.wantActs("entered", 1)
	})
}

func TestTheDemandForAURLElicitationPassesAndSentNothing(t *testing.T) {
	for name, demand := range map[string]error{"value": mcp.URLElicitationRequiredError{}, "pointer": &mcp.URLElicitationRequiredError{}} {
		t.Run(name, func(t *testing.T) {
			everyLink(t, func(t *testing.T, to connect) {
				w := newWorld(t, settle.WithGuarded(seat))
				asked := false
				w.addBook(func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if !asked {
						asked = true
						return nil, demand
					}
					return bookIt(ctx, req)
				})
				c := to(w)
				if _, err := w.try(t.Context(), c, "book", `{"seat":1}`); err == nil {
					t.Fatal("the demand didn't pass")
				}
				if rows := w.rows(); len(rows) != 1 || rows[0].State != store.Retryable {
					t.Errorf("the ledger has %+v", rows)
				}
				w.call(c, "book", `{"seat":1}`)
				w.wantActs("book", 2)
			})
		})
	}
}

// A handler may still ask the client of an older protocol.
func TestAHandlersOwnElicitationReachesTheClient(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"in process", "http, 2025-11-25"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settle.WithGuarded(seat))
			w.addBook(func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				_, err := server.ServerFromContext(ctx).RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "Sure?",
					RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}})
				if err != nil {
					return nil, err
				}
				return bookIt(ctx, req)
			})
			if r := w.call(w.began(links[name](w, client.WithElicitationHandler(accepts{}))), "book", `{"seat":1}`); texts(r.Content) != `{"id":"b1"}` {
				t.Errorf("got %q", texts(r.Content))
			}
		})
	}
}

// asTask calls a tool as a task and waits for what comes of it.
func (w *world) asTask(c *client.Client, tool, args string) *mcp.TaskResultResult {
	w.Helper()
	ctx := settle.WithPrincipal(w.T.Context(), caller)
	req := settlemcpgo.SendTask(w.ctx, request(tool, args))
	req.Params.Task = &mcp.TaskParams{}
	// The client has no call for it.
	response, err := c.GetTransport().SendRequest(ctx, transport.JSONRPCRequest{JSONRPC: "2.0", ID: mcp.NewRequestId("task of " + w.Name() + args),
		Method: "tools/call", Params: req.Params})
	if err != nil || response.Error != nil {
		w.Fatal(response, err)
	}
	var created mcp.CreateTaskResult
	if err := json.Unmarshal(response.Result, &created); err != nil {
		w.Fatal(err)
	}
	get := mcp.GetTaskRequest{}
	get.Params.TaskId = created.Task.TaskId
	if _, err := c.WaitForTask(ctx, get, time.Millisecond); err != nil {
		w.Fatal(err)
	}
	result := mcp.TaskResultRequest{}
	result.Params.TaskId = created.Task.TaskId
	got, err := c.TaskResult(ctx, result)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

// overTaskLinks runs a test over the links whose protocol has tasks.
func overTaskLinks(t *testing.T, test func(t *testing.T, to connect)) {
	t.Helper()
	t.Parallel()
	for _, name := range []string{"in process", "http, 2025-11-25"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(w *world, options ...client.ClientOption) *client.Client {
				return w.began(links[name](w, append(options, client.WithProtocolVersion("2025-11-25"))...))
			})
		})
	}
}

func TestCallsAsTasksAreGuarded(t *testing.T) {
	overTaskLinks(t, func(t *testing.T, to connect) {
		w := newWorld(t, settle.WithGuarded(seat, settle.RawTool{Name: "slow", Contract: seat.Contract}))
		optional := bookTool
		optional.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupportOptional}
		w.add(optional, bookIt)
		slow := mcp.NewTool("slow", mcp.WithNumber("seat"))
		slow.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupportRequired}
		w.server.AddTaskTool(slow, w.guard.Task(slow, func(context.Context, mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
			w.act("slow")
			return &mcp.CreateTaskResult{StructuredContent: booked{"b1"}, Content: []mcp.Content{mcp.NewTextContent("booked")}}, nil
		}))
		c := to(w)
		for _, tool := range []string{"book", "slow"} {
			first := w.asTask(c, tool, `{"seat":1}`)
			again := w.asTask(c, tool, `{"seat":1}`)
			if strings.Contains(texts(first.Content), "replayed") || !strings.HasPrefix(texts(again.Content), "[completed, replayed;") {
				t.Errorf("%s came to %q, then %q", tool, texts(first.Content), texts(again.Content))
			}
			if s, _ := again.StructuredContent.(map[string]any); s["id"] != "b1" {
				t.Errorf("%s: the replay has %v", tool, again.StructuredContent)
			}
			w.wantActs(tool, 1)
		}
		if bad := w.asTask(c, "slow", `{"seat":"one"}`); !bad.IsError || !strings.HasPrefix(texts(bad.Content), "[invalid_arguments") {
			t.Errorf("got %+v", bad)
		}
	})
}

func TestATaskThatFailsIsUnknown(t *testing.T) {
	overTaskLinks(t, func(t *testing.T, to connect) {
		w := newWorld(t)
		slow := mcp.NewTool("slow", mcp.WithNumber("seat"))
		slow.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupportRequired}
		w.server.AddTaskTool(slow, w.guard.Task(slow, func(context.Context, mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
			w.act("slow")
			return nil, errors.New("connection reset")
		}))
		c := to(w)
		for range 2 {
			if r := w.asTask(c, "slow", `{"seat":1}`); r.IsError || outcomeOf(r.Meta) != "unknown" && outcomeOf(r.Meta) != "manual" {
				t.Errorf("got %q, %+v", texts(r.Content), r.Meta)
			}
		}
		w.wantActs("slow", 1)
	})
}

func TestATasksReplayIsNotRounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.guard.Task(mcp.NewTool("slow"), func(context.Context, mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
		return &mcp.CreateTaskResult{StructuredContent: map[string]any{"id": int64(1<<53 + 1)}}, nil
	})
	ctx := settle.WithPrincipal(w.ctx, caller)
	for range 2 {
		r, err := run(ctx, request("slow", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(r.StructuredContent); err != nil || string(got) != `{"id":9007199254740993}` {
			t.Errorf("got %s, %v", got, err)
		}
	}
}
