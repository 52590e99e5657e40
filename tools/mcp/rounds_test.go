package settlemcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// addConfirmed adds a booking that asks its user first, in rounds of 2026-07-28,
// which the SDK plays for older clients itself.
func (w *world) addConfirmed() {
	w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			w.act("entered")
			switch len(req.Params.RequestState) {
			case 0, 1:
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": &mcp.ElicitParams{Message: "Sure?",
					RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}}, RequestState: req.Params.RequestState + "r"}, nil
			}
			w.act("book")
			return &mcp.CallToolResult{StructuredContent: map[string]any{"id": "b1"}}, nil
		})
}

// accepting is a client whose user says yes.
func accepting() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}}
}

// All legs of a call are one operation, whoever plays them.
func TestTheLegsOfACallAreOneOperation(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"in memory", "http"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settle.WithGuarded(seat))
			w.addConfirmed()
			session := w.connect(links[name], accepting())
			if r := w.call(session, "book", `{"seat":1}`); texts(r) != "" || r.IsError {
				t.Errorf("got %q", texts(r))
			}
			w.wantReplay(w.call(session, "book", `{"seat":1}`), `{"id":"b1"}`)
			w.wantActs("book", 1)
			w.wantActs("entered", 3)
			rows := w.rows()
			if len(rows) != 1 || rows[0].State != store.Completed || rows[0].Attempt != 3 {
				t.Errorf("the ledger has %d rows, %v", len(rows), rows[0].State)
			}
		})
	}
}

// A client of before 2026-07-28 is asked by the SDK, within one attempt.
func TestAnOlderClientIsAskedWithinOneAttempt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"in memory, before", "http, 2025-11-25"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settle.WithGuarded(seat))
			w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if len(req.Params.InputResponses) == 0 {
						return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"sure": &mcp.ElicitParams{Message: "Sure?",
							RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}}}, nil
					}
					w.act("book")
					return &mcp.CallToolResult{StructuredContent: map[string]any{"id": "b1"}}, nil
				})
			session := w.connect(links[name], accepting())
			w.call(session, "book", `{"seat":1}`)
			w.wantReplay(w.call(session, "book", `{"seat":1}`), `{"id":"b1"}`)
			w.wantActs("book", 1)
			if rows := w.rows(); len(rows) != 1 || rows[0].Attempt != 1 {
				t.Errorf("the ledger has %d rows", len(rows))
			}
		})
	}
}

func TestALegThatAsksPassesUntouchedAndItsOperationIsTheCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settle.WithGuarded(seat))
	w.addConfirmed()
	session := w.connect(links["http"], &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}})
	first := w.call(session, "book", `{"seat":1}`)
	if !first.NeedsInput() || first.RequestState != "r" || first.InputRequests["sure"] == nil || len(first.Content) != 0 {
		t.Fatalf("the first leg came to %+v", first)
	}
	if rows := w.rows(); len(rows) != 1 || rows[0].State != store.Retryable || !rows[0].Told {
		t.Fatalf("the ledger has %d rows, %v", len(rows), rows[0].State)
	}
	leg := func(args string) *mcp.CallToolResult {
		r, err := session.CallTool(w.ctx, &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(args), RequestState: "rr",
			InputResponses: mcp.InputResponseMap{"sure": &mcp.ElicitResult{Action: "accept"}}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	leg(`{"seat":1}`)
	w.wantReplay(leg(`{"seat":1}`), `{"id":"b1"}`)
	w.wantAnswer(leg(`{"seat":1,"note":"other"}`), settle.StatusConflict)
	w.wantActs("book", 1)
}

// A tool that acts before it asks says so; its outcome is unknown then.
func TestAToolThatActsBeforeItAsksIsNotEnteredAgain(t *testing.T) {
	t.Parallel()
	acts := seat
	acts.Contract.ActsBeforeInterrupt = true
	w := newWorld(t, settle.WithGuarded(acts))
	w.addConfirmed()
	w.wantAnswer(w.call(w.connect(links["http"], accepting()), "book", `{"seat":1}`), settle.StatusUnknown)
	w.wantActs("entered", 1)
}

func TestTheDemandForAURLElicitationPassesAndSentNothing(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		asked := false
		w.server.AddTool(&mcp.Tool{Name: "book", InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if !asked {
					asked = true
					return nil, mcp.URLElicitationRequiredError(nil)
				}
				w.act("book")
				return &mcp.CallToolResult{}, nil
			})
		session := w.connect(l, nil)
		_, err := session.CallTool(w.ctx, &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(`{"seat":1}`)})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != mcp.CodeURLElicitationRequired {
			t.Fatalf("got %v", err)
		}
		w.call(session, "book", `{"seat":1}`)
		w.wantActs("book", 1)
	})
}

// A handler may still ask its client, and tell how far it is.
func TestProgressAndElicitationReachTheClient(t *testing.T) {
	t.Parallel()
	for name, l := range links {
		if !l.old {
			continue // from 2026-07-28 on a server can't call its client
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settle.WithGuarded(seat))
			w.addBook(func(ctx context.Context, req *mcp.CallToolRequest, _ bookArgs) (*mcp.CallToolResult, booked, error) {
				if _, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}); err != nil {
					return nil, booked{}, err
				}
				return nil, booked{"b1"}, req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1})
			})
			told := make(chan any, 1)
			options := accepting()
			options.ProgressNotificationHandler = func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { told <- req.Params.ProgressToken }
			session := w.connect(l, options)
			params := &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(`{"seat":1}`)}
			params.SetProgressToken("p1")
			r, err := session.CallTool(w.ctx, params)
			if err != nil || texts(r) != `{"id":"b1"}` {
				t.Fatalf("got %v, %v", r, err)
			}
			if token := <-told; token != "p1" {
				t.Errorf("progress was told for %v", token)
			}
		})
	}
}

func TestProgressReachesTheClientOfToday(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settle.WithGuarded(seat))
	w.addBook(func(ctx context.Context, req *mcp.CallToolRequest, _ bookArgs) (*mcp.CallToolResult, booked, error) {
		return nil, booked{"b1"}, req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1})
	})
	told := make(chan any, 1)
	session := w.connect(links["http"], &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		told <- req.Params.ProgressToken
	}})
	params := &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(`{"seat":1}`)}
	params.SetProgressToken("p1")
	if r, err := session.CallTool(w.ctx, params); err != nil || texts(r) != `{"id":"b1"}` {
		t.Fatalf("got %v, %v", r, err)
	}
	if token := <-told; token != "p1" {
		t.Errorf("progress was told for %v", token)
	}
}

// R24: the effect goes on where its caller has gone, and is recorded; the client
// that asks again gets what came of it.
func TestR24AClientsDeadlineDoesNotReachTheTool(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		entered, release := make(chan struct{}), make(chan struct{})
		w.addBook(func(ctx context.Context, _ *mcp.CallToolRequest, _ bookArgs) (*mcp.CallToolResult, booked, error) {
			close(entered)
			select {
			case <-release:
				return nil, booked{"b1"}, nil
			case <-ctx.Done():
				return nil, booked{}, ctx.Err()
			}
		})
		session := w.connect(l, nil)
		ctx, gone := context.WithCancel(w.ctx)
		go func() { <-entered; gone() }()
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(`{"seat":1}`)})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		close(release)
		w.wantReplay(w.call(session, "book", `{"seat":1}`), `{"id":"b1"}`)
		w.wantActs("book", 1)
	})
}

func TestAnInterruptibleToolIsInterrupted(t *testing.T) {
	everyLink(t, testInterruptible)
}

func testInterruptible(t *testing.T, l link) {
	contract := seat
	contract.Contract.Interruptible = true
	w := newWorld(t, settle.WithGuarded(contract))
	entered, ended := make(chan struct{}), make(chan struct{})
	w.addBook(func(ctx context.Context, _ *mcp.CallToolRequest, _ bookArgs) (*mcp.CallToolResult, booked, error) {
		close(entered)
		<-ctx.Done()
		close(ended)
		return nil, booked{}, ctx.Err()
	})
	session := w.connect(l, nil)
	ctx, gone := context.WithCancel(w.ctx)
	go func() { <-entered; gone() }()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(`{"seat":1}`)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	<-ended
}

// S22..S24: ids of JSON-RPC play no part; calls run side by side, and equal ones once.
func TestS23ParallelCallsRunSideBySideAndEqualOnesOnce(t *testing.T) {
	everyLink(t, func(t *testing.T, l link) {
		w := newWorld(t, settle.WithGuarded(seat))
		var all sync.WaitGroup
		all.Add(4)
		w.addBook(func(ctx context.Context, _ *mcp.CallToolRequest, in bookArgs) (*mcp.CallToolResult, booked, error) {
			all.Done()
			met := make(chan struct{})
			go func() { all.Wait(); close(met) }()
			select {
			case <-met:
				return nil, booked{"b1"}, nil
			case <-ctx.Done():
				return nil, booked{}, ctx.Err()
			}
		})
		session := w.connect(l, nil)
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				args := []string{`{"seat":1}`, `{"seat":2}`, `{"seat":3}`, `{"seat":4}`}[i%4]
				r, err := session.CallTool(w.ctx, &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(args)})
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
