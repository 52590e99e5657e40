package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/settle-go/settle"
	settlemcpgo "github.com/settle-go/settle/tools/mcpgo"
)

// mcpGo is the other library for MCP.
func mcpGo() []situation {
	const framework = "mark3labs/mcp-go v1.2.1"
	return []situation{
		{framework, "a client's deadline passes, and it asks again", effects{"pay": 1}, mcpGoDeadline},
		{framework, "the server enters a tool, which has acted, again with the input that it asks for", effects{"pay": 1}, mcpGoRounds},
	}
}

// mcpGoServer is a server with a tool that pays.
func mcpGoServer(ctx context.Context, w *world, contract settle.Contract, pay server.ToolHandlerFunc) (*server.MCPServer, error) {
	var options []server.ServerOption
	if w.guarded {
		contract.WholeArguments, contract.NoLookup = true, true
		ex, err := w.executor(ctx, settle.WithGuarded(settle.RawTool{Name: "pay", Contract: contract}))
		if err != nil {
			return nil, err
		}
		guard := settlemcpgo.New(ex, settlemcpgo.Options{Principal: func(context.Context, mcp.CallToolRequest) (settle.Principal, error) {
			return settle.Principal{Tenant: "acme", Subject: "support-agent"}, nil
		}})
		options = append(options, server.WithToolHandlerMiddleware(guard.Middleware))
	}
	s := server.NewMCPServer("payments", "v1", options...)
	s.AddTool(mcp.NewTool("pay", mcp.WithNumber("order", mcp.Required())), pay)
	return s, nil
}

func mcpGoHello(ctx context.Context, c *client.Client) error {
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "agent", Version: "v1"}
	if err := c.Start(ctx); err != nil {
		return err
	}
	_, err := c.Initialize(ctx, hello)
	return err
}

func mcpGoPay(ctx context.Context, c *client.Client) error {
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.RawArguments = "pay", json.RawMessage(`{"order":7}`)
	_, err := c.CallTool(ctx, settlemcpgo.SendTask(ctx, req))
	return err
}

// mcpGoDeadline: the payment is made when the client gives up.
func mcpGoDeadline(ctx context.Context, w *world) error {
	paid, gone := make(chan struct{}, 2), make(chan struct{})
	s, err := mcpGoServer(ctx, w, settle.Contract{}, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		w.act("pay")
		paid <- struct{}{}
		<-gone
		return mcp.NewToolResultText("paid"), nil
	})
	if err != nil {
		return err
	}
	listening := httptest.NewServer(server.NewStreamableHTTPServer(s))
	defer listening.Close()
	c, err := client.NewStreamableHttpClient(listening.URL)
	if err != nil {
		return err
	}
	if err := mcpGoHello(ctx, c); err != nil {
		return err
	}
	impatient, giveUp := context.WithCancel(ctx)
	go func() { <-paid; giveUp() }()
	if err := mcpGoPay(impatient, c); !errors.Is(err, context.Canceled) {
		return errors.New("the client didn't give up")
	}
	close(gone)
	return errors.Join(mcpGoPay(ctx, c), c.Close())
}

// mcpGoRounds: a tool pays and then asks for more. For a client of the protocol
// before 2026-07-28 the server plays the rounds itself.
func mcpGoRounds(ctx context.Context, w *world) error {
	s, err := mcpGoServer(ctx, w, settle.Contract{ActsBeforeInterrupt: true}, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		w.act("pay")
		if len(req.Params.InputResponses) > 0 {
			return mcp.NewToolResultText("paid"), nil
		}
		return server.NewInputRequestBuilder("").Elicit("receipt", mcp.ElicitationParams{Message: "Send a receipt?",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}).ToolResult(), nil
	})
	if err != nil {
		return err
	}
	c, err := client.NewInProcessClientWithOptions(s, client.WithProtocolVersion("2025-11-25"), client.WithElicitationHandler(yes{}))
	if err != nil {
		return err
	}
	if err := mcpGoHello(ctx, c); err != nil {
		return err
	}
	return errors.Join(mcpGoPay(ctx, c), c.Close())
}

// yes is a user who accepts.
type yes struct{}

func (yes) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{}}}, nil
}
