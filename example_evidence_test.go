package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/settletest"
)

// The answer to a booking is lost. The far side is asked by the operation's key,
// and shows what it booked: the operation completes, and nothing is repeated.
func ExampleQuery_Happened() {
	office := &boxOffice{}
	book := settle.Tool[ticketOrder, ticketBooked]{
		Name: "book", Description: "Book a seat.",
		Do: func(_ context.Context, op settle.Op, _ ticketOrder) (ticketBooked, error) {
			office.book(op.Key())
			return ticketBooked{}, errors.New("connection reset by peer")
		},
		Lookup: func(_ context.Context, q settle.Query[ticketBooked], _ ticketOrder) (settle.Evidence, error) {
			id, ok := office.booked[q.Key()]
			if !ok {
				return q.NotHappened(), nil
			}
			return q.Happened(id, ticketBooked{id}).Comparing(map[string]string{"seat": "12A"}), nil
		},
	}
	x, err := settle.New(settletest.NewClock().Ledger(), settle.WithTools(book), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := x.Execute(exampleScope(), settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Status, out.Resource, "tickets:", len(office.booked))
	// Output:
	// completed ticket-1 tickets: 1
}

// "Not found" counts only when enough time has passed for a late effect to be
// seen. Until then the outcome is unknown.
func ExampleQuery_NotHappened() {
	clock, office := settletest.NewClock(), &boxOffice{}
	book := settle.Tool[ticketOrder, ticketBooked]{
		Name: "book", Description: "Book a seat.",
		Contract: settle.Contract{VisibilityDelay: time.Minute},
		Do: func(_ context.Context, op settle.Op, _ ticketOrder) (ticketBooked, error) {
			return ticketBooked{office.book(op.Key())}, nil
		},
		Lookup: func(_ context.Context, q settle.Query[ticketBooked], _ ticketOrder) (settle.Evidence, error) {
			return q.NotHappened(), nil
		},
	}
	x, err := settle.New(clock.Ledger(), settle.WithTools(settletest.LoseRequest(book, 1)), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := x.Execute(exampleScope(), settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Status)
		clock.Advance(2 * time.Minute)
	}
	// Output:
	// unknown
	// completed
}

// The process died in the middle of a keyed call. Any other one that knows the
// tool goes on with it: one pass of recovery is enough once its lease has ended.
func ExampleExecutor_Recover() {
	clock, office := settletest.NewClock(), &boxOffice{}
	ledger := clock.Ledger()
	ctx, gone := context.WithCancel(exampleScope())
	dying := newBook(office)
	dying.Do = func(context.Context, settle.Op, ticketOrder) (ticketBooked, error) {
		gone()
		select {} // it never comes back
	}
	old, err := settle.New(ledger, settle.WithTools(dying), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := old.Execute(ctx, settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Status)

	x, err := settle.New(ledger, settle.WithTools(newBook(office)), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	clock.Advance(time.Minute)
	report, err := x.Recover(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	settled, err := x.Get(exampleScope(), out.Operation)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("resumed:", report.Resumed, settled.Status, settled.Resource)
	// Output:
	// in_progress
	// resumed: 1 completed ticket-1
}
