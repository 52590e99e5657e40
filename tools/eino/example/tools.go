package main

import (
	"context"
	"strconv"
	"time"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"

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

// send_voucher is a tool of eino that was there before. It asks a person first,
// by an interrupt; it has a contract now, and settle stands before each call.
var sendVoucher = settle.RawTool{
	Name:     "send_voucher",
	Contract: settle.Contract{Identity: []string{"customer"}, Ignore: []string{"text"}, NoLookup: true},
}

type voucherArgs struct {
	Customer string `json:"customer"`
	Text     string `json:"text"`
}

// newSendVoucher calls send once a person has allowed it.
func newSendVoucher(send func()) (tool.InvokableTool, error) {
	return utils.InferTool("send_voucher", "Send a customer a voucher.", func(ctx context.Context, in voucherArgs) (string, error) {
		if asked, _, _ := tool.GetInterruptState[any](ctx); !asked {
			return "", tool.StatefulInterrupt(ctx, "Send a voucher to "+in.Customer+"?", "asked")
		}
		send()
		return "Sent to " + in.Customer + ".", nil
	})
}
