package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/openai/openai-go/v3"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
)

type refundArgs struct {
	OrderID string `json:"order_id" settle:"identity"`
	Cents   int64  `json:"cents"`
	Note    string `json:"note,omitempty" settle:"ignore"`
}

type refunded struct {
	ID string `json:"id" settle:"resource"`
}

// newRefund is a tool that the executor runs.
func newRefund(pay *farside.PaymentsClient) settle.Tool[refundArgs, refunded] {
	return settle.Tool[refundArgs, refunded]{
		Name:        "refund",
		Description: "Refund an order.",
		Contract:    settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour},
		Do: func(ctx context.Context, op settle.Op, in refundArgs) (refunded, error) {
			r, err := pay.Refund(ctx, op.Key(), in.OrderID, strconv.FormatInt(in.Cents, 10))
			return refunded{r.ID}, err
		},
		Lookup: func(ctx context.Context, q settle.Query[refunded], _ refundArgs) (settle.Evidence, error) {
			found, err := pay.FindByKey(ctx, q.Key())
			if err != nil || len(found) == 0 {
				return q.NotHappened(), err
			}
			return q.Happened(found[0].ID, refunded{found[0].ID}), nil
		},
	}
}

// text_customer is a tool that the host ran before, and still does. It has a
// contract now, and settle stands before each of its calls.
var (
	textCustomer = settle.RawTool{
		Name: "text_customer",
		Contract: settle.Contract{
			Identity: []string{"order_id"}, Ignore: []string{"text"}, NoLookup: true,
		},
	}
	textDefinition = openai.FunctionDefinitionParam{
		Name:        "text_customer",
		Description: openai.String("Send the customer a text message."),
		Parameters: openai.FunctionParameters{
			"type":                 "object",
			"properties":           map[string]any{"order_id": map[string]any{"type": "string"}, "text": map[string]any{"type": "string"}},
			"required":             []string{"order_id", "text"},
			"additionalProperties": false,
		},
	}
)

func sendText(_ context.Context, args json.RawMessage) (string, error) {
	var in struct {
		OrderID string `json:"order_id"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", settle.NotSent(err)
	}
	return "Sent to the customer of " + in.OrderID + ".", nil
}
