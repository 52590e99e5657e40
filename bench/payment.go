package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// payment is what the measured tool is called with: about 200 bytes of JSON.
type payment struct {
	Order    string `json:"order" settle:"identity" jsonschema:"description=The order that is paid for"`
	Amount   int64  `json:"amount" jsonschema:"description=In cents"`
	Currency string `json:"currency"`
	Customer string `json:"customer"`
	Memo     string `json:"memo"`
}

// receipt is its result.
type receipt struct {
	ID     string `json:"id" settle:"resource"`
	Status string `json:"status"`
}

// paymentOf is the payment of one order.
func paymentOf(order string) payment {
	return payment{Order: order, Amount: 129_900, Currency: "EUR", Customer: "cus_9f8e7d6c5b4a",
		Memo: "Order of the spring catalogue, paid in one instalment, to be shipped"}
}

// pay is the tool: Keyed, without a lookup, and with a handler that takes no
// time, so that what is measured is settle.
func pay() settle.AnyTool {
	return settle.Tool[payment, receipt]{
		Name: "pay", Description: "Pay for an order",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true},
		Do: func(_ context.Context, op settle.Op, in payment) (receipt, error) {
			op.Key() // what the far side would deduplicate on
			return receipt{ID: "ch_" + in.Order, Status: "succeeded"}, nil
		},
	}
}

// perIntent is how many operations a worker runs in one intent.
const perIntent = 1000

// payer runs payments through an executor, each worker in intents of its own.
type payer struct {
	executor *settle.Executor
	run      string
	workers  []*payerWorker
}

type payerWorker struct {
	done int
	// ctx is that of the present intent, made of the turn's.
	ctx, turn context.Context
}

func newPayer(l store.Ledger, workers int) (*payer, error) {
	x, err := settle.New(l, settle.WithTools(pay()))
	if err != nil {
		return nil, err
	}
	p := &payer{executor: x, run: uuid.NewString(), workers: make([]*payerWorker, workers)}
	for i := range p.workers {
		p.workers[i] = &payerWorker{}
	}
	return p, nil
}

// next is a worker's next call, which no worker has made before.
func (p *payer) next(ctx context.Context, worker int) (context.Context, settle.Call, error) {
	w := p.workers[worker]
	if w.done%perIntent == 0 || w.turn != ctx {
		w.turn = ctx
		w.ctx = settle.WithTask(settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "agent"}),
			settle.Task{ID: fmt.Sprintf("%s-%d-%d", p.run, worker, w.done/perIntent), Goal: "pay"})
	}
	w.done++
	order := "ord_" + strconv.Itoa(worker) + "_" + strconv.Itoa(w.done)
	args, err := json.Marshal(paymentOf(order))
	return w.ctx, settle.Call{Tool: "pay", Args: args, CallID: "call_" + order}, err
}

// pay makes one call, from arguments to a recorded outcome.
func (p *payer) pay(ctx context.Context, worker int) error {
	ctx, call, err := p.next(ctx, worker)
	if err != nil {
		return err
	}
	out, err := p.executor.Execute(ctx, call)
	return completed(out, err)
}

// first makes a call and says which operation it was.
func (p *payer) first(ctx context.Context) (operation string, err error) {
	ctx, call, err := p.next(ctx, 0)
	if err != nil {
		return "", err
	}
	out, err := p.executor.Execute(ctx, call)
	return out.Operation, completed(out, err)
}

// completed makes an error of everything but a first and completed execution.
func completed(out settle.Outcome, err error) error {
	if err == nil && (out.Status != settle.StatusCompleted || out.Replayed) {
		err = fmt.Errorf("the outcome is %q (%s), replayed %v, where a first execution was expected to complete", out.Status, out.Reason, out.Replayed)
	}
	return err
}

// shutdown waits for what still runs.
func (p *payer) shutdown() error { return stop(p.executor) }

func stop(x *settle.Executor) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return x.Shutdown(ctx)
}

// done is how many payments were made.
func (p *payer) done() int {
	n := 0
	for _, w := range p.workers {
		n += w.done
	}
	return n
}
