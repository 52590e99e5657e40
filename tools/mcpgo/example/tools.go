package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
)

// The server's own tools stay as they were, but for the key that one sends now.
// Their contracts stand beside them.
var (
	refundContract = settle.RawTool{Name: "refund", Contract: settle.Contract{
		Class: settle.Keyed, KeyWindow: 24 * time.Hour, Identity: []string{"order_id"}, Resource: "id", NoLookup: true,
	}}
	bookContract = settle.RawTool{Name: "book", Contract: settle.Contract{Identity: []string{"seat"}, NoLookup: true}}

	refundTool = mcp.NewTool("refund", mcp.WithString("order_id", mcp.Required()), mcp.WithNumber("cents", mcp.Required()))
	bookTool   = mcp.NewTool("book", mcp.WithNumber("seat", mcp.Required()))
)

// desk is what the tools work with.
type desk struct {
	pay    *farside.PaymentsClient
	booked atomic.Int32
}

func (d *desk) refund(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	key, guarded := settle.KeyFrom(ctx)
	if !guarded {
		return nil, errors.New("the server runs without its guard")
	}
	r, err := d.pay.Refund(ctx, key, req.GetString("order_id", ""), strconv.Itoa(req.GetInt("cents", 0)))
	if err != nil {
		return nil, err
	}
	return mcp.NewToolResultStructuredOnly(map[string]any{"id": r.ID}), nil
}

// book asks its user first: the call comes a second time with the answer.
func (d *desk) book(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if server.ElicitationResponse(req.Params.InputResponses, "sure") == nil {
		return server.NewInputRequestBuilder("").Elicit("sure", mcp.ElicitationParams{Message: "Book this seat?",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}).ToolResult(), nil
	}
	d.booked.Add(1)
	return mcp.NewToolResultText("Booked."), nil
}

// user says yes.
type user struct{}

func (user) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{}}}, nil
}

// ticket is a tool of the executor's, which the server offers.
var ticket = settle.Tool[ticketArgs, opened]{
	Name: "ticket", Description: "Open a ticket.",
	Contract: settle.Contract{NoLookup: true},
	Do: func(context.Context, settle.Op, ticketArgs) (opened, error) {
		return opened{"T-1"}, nil
	},
}

type ticketArgs struct {
	OrderID string `json:"order_id" settle:"identity"`
}

type opened struct {
	ID string `json:"id" settle:"resource"`
}
