package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
)

type refundArgs struct {
	OrderID string `json:"order_id" settle:"identity"`
	Amount  int    `json:"amount"`
	Note    string `json:"note,omitempty" settle:"ignore"`
}
type refunded struct {
	ID string `json:"id" settle:"resource"`
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	n := 0
	var fail error
	tool := settle.Tool[refundArgs, refunded]{
		Name: "refund", Description: "x",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true},
		Do: func(ctx context.Context, op settle.Op, in refundArgs) (refunded, error) {
			n++
			_ = op.Key()
			return refunded{ID: op.Key()}, fail
		},
	}
	x, err := settle.New(memory.New(), settle.WithTools(tool), settle.Volatile())
	if err != nil {
		t.Fatal(err)
	}
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "bot"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "t1", Goal: "g"})
	call := func(args string) settle.Outcome {
		out, err := x.Execute(ctx, settle.Call{Tool: "refund", Args: json.RawMessage(args), CallID: "c"})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(out.ForModel())
		return out
	}
	call(`{"order_id":"a","amount":1}`)
	call(`{"order_id":"a","amount":1e0,"note":"x"}`)
	call(`{"order_id":"a","amount":2}`)
	call(`{"order_id":"a"}`)
	fail = errors.New("boom")
	call(`{"order_id":"b","amount":2}`)
	fail = settle.Rejected(errors.New("no such order"))
	call(`{"order_id":"c","amount":2}`)
	fail = nil
	call(`{"order_id":"c","amount":3}`)
	outs, err := x.ExecuteAll(ctx, settle.Call{Tool: "refund", Args: json.RawMessage(`{"order_id":"d","amount":1}`)}, settle.Call{Tool: "refund", Args: json.RawMessage(`{"order_id":"d","amount":1}`)}, settle.Call{Tool: "zap"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outs {
		t.Log(o.ForModel())
	}
	b, _ := x.Brief(ctx)
	t.Log("\n" + b)
	t.Log(n)
	t.Log(string(x.Tools()[0].Schema))
}
