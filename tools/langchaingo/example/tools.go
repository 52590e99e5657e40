package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

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

// textCustomer is a tool of langchaingo that was there before. It has a contract
// now, and settle stands before each of its calls.
type textCustomer struct{ send func() }

func (textCustomer) Name() string { return "text_customer" }
func (textCustomer) Description() string {
	return `Send the customer a text message. The input is JSON: {"order_id":"…","text":"…"}`
}

func (t textCustomer) Call(_ context.Context, input string) (string, error) {
	var in struct {
		OrderID string `json:"order_id"`
	}
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		return "", settle.NotSent(err)
	}
	t.send()
	return "Sent to the customer of " + in.OrderID + ".", nil
}

// What identifies a call is the order: a model words the same text differently
// each time.
var (
	textContract = settle.RawTool{
		Name:     "text_customer",
		Contract: settle.Contract{Identity: []string{"order_id"}, Ignore: []string{"text"}, NoLookup: true},
	}
	textSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["order_id","text"],` +
		`"properties":{"order_id":{"type":"string"},"text":{"type":"string"}}}`)
)
