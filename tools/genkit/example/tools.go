package main

import (
	"context"
	"strconv"
	"time"

	"github.com/firebase/genkit/go/ai"

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

// textCustomer is the contract of a tool that is the framework's, as before.
var textCustomer = settle.RawTool{
	Name:     "text_customer",
	Contract: settle.Contract{Identity: []string{"order_id"}, Ignore: []string{"text"}, NoLookup: true},
}

type textArgs struct {
	OrderID string `json:"order_id"`
	Text    string `json:"text"`
}

func newText() ai.Tool {
	return ai.NewTool("text_customer", "Send the customer a text message.", func(_ *ai.ToolContext, in textArgs) (map[string]any, error) {
		return map[string]any{"sent_for": in.OrderID}, nil
	})
}
