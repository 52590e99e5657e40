package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/settletest"
	"github.com/settle-go/settle/store"
)

// undelivered leaves the event of a booking in the outbox: its receiver has taken
// none yet. It returns the queue and the context of the operator ann.
func undelivered() (*settle.Queue, context.Context) {
	book := settle.Tool[ticketOrder, ticketBooked]{Name: "book", Description: "Book a seat.", Contract: settle.Contract{NoLookup: true},
		Do: func(context.Context, settle.Op, ticketOrder) (ticketBooked, error) { return ticketBooked{"b-1"}, nil }}
	down := settle.SinkFunc(func(context.Context, settle.Delivery) error { return errors.New("the receiver is down") })
	x, err := settle.New(settletest.NewClock().Ledger(), settle.WithTools(book), settle.WithOutbox(down), settle.Volatile())
	if err != nil {
		panic(err)
	}
	if _, err := x.Execute(exampleScope(), settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)}); err != nil {
		panic(err)
	}
	if _, err := x.Relay(context.Background()); err != nil {
		panic(err)
	}
	return x.Queue(), asOperator("ann")
}

// What wasn't delivered yet; the filter's Dead asks for what was given up.
func ExampleQueue_Undelivered() {
	queue, ann := undelivered()
	events, err := queue.Undelivered(ann, settle.OutgoingEventFilter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range events {
		fmt.Println(e.Type, e.Tenant, "deliveries:", e.Deliveries, "given up:", e.Dead)
	}
	// Output:
	// settle.settled acme deliveries: 1 given up: false
}

// Once the receiver is repaired, an event needn't wait for its next turn.
func ExampleQueue_Redeliver() {
	queue, ann := undelivered()
	events, err := queue.Undelivered(ann, settle.OutgoingEventFilter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(queue.Redeliver(ann, "acme", events[0].ID))

	// Another tenant's event isn't found.
	fmt.Println(errors.Is(queue.Redeliver(ann, "globex", events[0].ID), store.ErrNotFound))
	// Output:
	// <nil>
	// true
}

// What nobody will ever take is given up by hand: nobody is told of it any more.
func ExampleQueue_Discard() {
	queue, ann := undelivered()
	events, err := queue.Undelivered(ann, settle.OutgoingEventFilter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(queue.Discard(ann, "acme", events[0].ID))
	events, err = queue.Undelivered(ann, settle.OutgoingEventFilter{})
	fmt.Println(len(events), err)
	// Output:
	// <nil>
	// 0 <nil>
}
