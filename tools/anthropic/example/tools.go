package main

import (
	"context"
	"strconv"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/toolrunner"

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

// order_courier is a tool that was there before. It has a contract now, and
// settle stands before each of its calls.
var orderCourier = settle.RawTool{
	Name:     "order_courier",
	Contract: settle.Contract{Identity: []string{"order_id"}, NoLookup: true},
}

type courierArgs struct {
	OrderID string `json:"order_id" jsonschema:"required"`
}

func newOrderCourier(couriers *farside.TicketsClient) (anthropic.BetaTool, error) {
	return toolrunner.NewBetaToolFromJSONSchema("order_courier", "Have a parcel fetched.",
		func(ctx context.Context, in courierArgs) (anthropic.BetaToolResultBlockParamContentUnion, error) {
			order, err := couriers.Open(ctx, "fetch "+in.OrderID, "")
			if err != nil {
				return anthropic.BetaToolResultBlockParamContentUnion{}, err
			}
			return anthropic.BetaToolResultBlockParamContentUnion{OfText: &anthropic.BetaTextBlockParam{Text: "Ordered as " + order.ID + "."}}, nil
		})
}
