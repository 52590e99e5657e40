package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
)

type refundArgs struct {
	OrderID string `json:"order_id"`
	Cents   int64  `json:"cents"`
}

type refunded struct {
	ID string `json:"id"`
}

// The server's own tool stays as it was, but for the key that it sends now. Its
// contract stands beside it.
var refundContract = settle.RawTool{
	Name: "refund",
	Contract: settle.Contract{
		Class: settle.Keyed, KeyWindow: 24 * time.Hour,
		Identity: []string{"order_id"}, Resource: "id", NoLookup: true,
	},
}

func refund(pay *farside.PaymentsClient) mcp.ToolHandlerFor[refundArgs, refunded] {
	return func(ctx context.Context, _ *mcp.CallToolRequest, in refundArgs) (*mcp.CallToolResult, refunded, error) {
		key, guarded := settle.KeyFrom(ctx)
		if !guarded {
			return nil, refunded{}, errors.New("the server runs without its guard")
		}
		r, err := pay.Refund(ctx, key, in.OrderID, strconv.FormatInt(in.Cents, 10))
		return nil, refunded{r.ID}, err
	}
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

// labelTool is what the other server says of its tool.
var labelTool = &mcp.Tool{
	Name: "set_label", Annotations: &mcp.ToolAnnotations{IdempotentHint: true},
	InputSchema: json.RawMessage(`{"properties":{"issue":{"type":"integer"},"label":{"type":"string"}},"required":["issue","label"],"type":"object"}`),
}
