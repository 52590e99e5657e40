package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	settlemcp "github.com/settle-go/settle/tools/mcp"
)

// mcpSDK is the SDK of MCP, on both sides of the wire.
func mcpSDK() []situation {
	const framework = "modelcontextprotocol/go-sdk v1.8.0"
	return []situation{
		{framework, "a client's deadline passes, and it asks again", effects{"pay": 1}, mcpDeadline},
		{framework, "a result that doesn't fit its schema is a protocol error, and the client asks again", effects{"pay": 1}, mcpOutput},
		{framework, "the client sends the call again with the input that the tool, which has acted, asks for", effects{"pay": 1}, mcpRounds},
		{framework, "somebody else's server acts and the stream is cut, and the agent asks again", effects{"pay": 1}, mcpCut},
	}
}

var paySchema = json.RawMessage(`{"type":"object","properties":{"order":{"type":"integer"}},"required":["order"]}`)

// mcpServer is a server with a tool that pays.
func mcpServer(ctx context.Context, w *world, contract settle.Contract, tool *mcp.Tool, pay mcp.ToolHandlerFor[map[string]any, any]) (*mcp.Server, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "payments", Version: "v1"}, nil)
	tool.Name, tool.InputSchema = "pay", paySchema
	mcp.AddTool(s, tool, pay)
	if !w.guarded {
		return s, nil
	}
	contract.WholeArguments, contract.NoLookup = true, true
	ex, err := w.executor(ctx, settle.WithGuarded(settle.RawTool{Name: "pay", Contract: contract}))
	if err != nil {
		return nil, err
	}
	guard, err := settlemcp.New(ex, settlemcp.Options{Tenant: "acme"})
	if err != nil {
		return nil, err
	}
	s.AddReceivingMiddleware(guard.Receiving)
	return s, nil
}

// mcpSession connects a client to a server, which works for the context's principal.
func mcpSession(ctx context.Context, s *mcp.Server, options *mcp.ClientOptions) (*mcp.ClientSession, error) {
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.Connect(ctx, there, nil); err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "v1"}, options)
	client.AddSendingMiddleware(settlemcp.SendTask)
	return client.Connect(ctx, here, nil)
}

func mcpPay(ctx context.Context, session *mcp.ClientSession) (*mcp.CallToolResult, error) {
	return session.CallTool(ctx, &mcp.CallToolParams{Name: "pay", Arguments: json.RawMessage(`{"order":7}`)})
}

// mcpDeadline: the payment is made when the client gives up, and nothing can fetch
// its answer later.
func mcpDeadline(ctx context.Context, w *world) error {
	paid, gone := make(chan struct{}, 2), make(chan struct{})
	s, err := mcpServer(ctx, w, settle.Contract{}, &mcp.Tool{}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		w.act("pay")
		paid <- struct{}{}
		<-gone
		return &mcp.CallToolResult{}, nil, nil
	})
	if err != nil {
		return err
	}
	session, err := mcpSession(ctx, s, nil)
	if err != nil {
		return err
	}
	impatient, giveUp := context.WithCancel(ctx)
	go func() { <-paid; giveUp() }()
	if _, err = mcpPay(impatient, session); !errors.Is(err, context.Canceled) {
		return errors.New("the client didn't give up")
	}
	close(gone)
	_, err = mcpPay(ctx, session)
	return errors.Join(err, session.Close())
}

// mcpOutput: the SDK checks a result after the effect.
func mcpOutput(ctx context.Context, w *world) error {
	tool := &mcp.Tool{OutputSchema: json.RawMessage(`{"type":"object","required":["id"]}`)}
	s, err := mcpServer(ctx, w, settle.Contract{}, tool, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		w.act("pay")
		return nil, map[string]any{}, nil
	})
	if err != nil {
		return err
	}
	session, err := mcpSession(ctx, s, nil)
	if err != nil {
		return err
	}
	if _, err := mcpPay(ctx, session); err != nil {
		_, err = mcpPay(ctx, session)
		if err == nil {
			return errors.New("the second result did fit")
		}
	}
	return session.Close()
}

// mcpRounds: a tool pays and then asks for more; the SDK's client sends the call
// again with the answer, and the handler is entered anew.
func mcpRounds(ctx context.Context, w *world) error {
	acts := settle.Contract{ActsBeforeInterrupt: true}
	s, err := mcpServer(ctx, w, acts, &mcp.Tool{}, func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		w.act("pay")
		if len(req.Params.InputResponses) > 0 {
			return &mcp.CallToolResult{}, nil, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"receipt": &mcp.ElicitParams{Message: "Send a receipt?",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}}}, nil, nil
	})
	if err != nil {
		return err
	}
	session, err := mcpSession(ctx, s, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}})
	if err != nil {
		return err
	}
	_, err = mcpPay(ctx, session)
	return errors.Join(err, session.Close())
}

// mcpCut: the server isn't ours, so the guard is on the client.
func mcpCut(ctx context.Context, w *world) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "payments", Version: "v1"}, nil)
	listening := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer listening.Close()
	var cut atomic.Bool
	s.AddTool(&mcp.Tool{Name: "pay", InputSchema: paySchema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if w.act("pay"); !cut.Swap(true) {
			listening.CloseClientConnections()
		}
		return &mcp.CallToolResult{}, nil
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "v1"}, nil)
	if w.guarded {
		ex, err := w.executor(ctx)
		if err != nil {
			return err
		}
		client.AddSendingMiddleware(settlemcp.Remote{Name: "payments"}.Sending(ex))
	}
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: listening.URL}, nil)
	if err != nil {
		return err
	}
	if _, err := mcpPay(ctx, session); err == nil && !w.guarded {
		return errors.New("the stream wasn't cut")
	}
	_, err = mcpPay(ctx, session)
	return errors.Join(err, session.Close())
}
