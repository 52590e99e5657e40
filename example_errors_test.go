package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
)

// outcomeOf runs one call of an unsafe tool whose attempt ends with an error.
func outcomeOf(end error) settle.Outcome {
	tool := settle.Tool[ticketOrder, ticketBooked]{
		Name: "book", Description: "Book a seat.", Contract: settle.Contract{NoLookup: true},
		Do: func(context.Context, settle.Op, ticketOrder) (ticketBooked, error) { return ticketBooked{}, end },
	}
	x, err := settle.New(memory.New(), settle.WithTools(tool), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return settle.Outcome{}
	}
	out, err := x.Execute(exampleScope(), settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)})
	if err != nil {
		fmt.Println(err)
	}
	return out
}

// Proof that nothing left this machine, or that the far side refuses before it
// acts. A timeout is no such proof.
func ExampleNotSent() {
	refused := errors.New("dial tcp: connection refused")
	fmt.Println(outcomeOf(settle.NotSent(refused)).Status)

	throttled := settle.NotSent(errors.New("429 Too Many Requests"), settle.RetryAfter(time.Hour))
	out := outcomeOf(throttled)
	fmt.Println(out.Status, "not before:", time.Until(out.NotBefore) > 59*time.Minute)

	fmt.Println(outcomeOf(context.DeadlineExceeded).Status)
	// Output:
	// not_done
	// not_done not before: true
	// unknown
}

// A definite refusal by the far side. A corrected call may follow; the same one
// hears the same again.
func ExampleRejected() {
	out := outcomeOf(settle.Rejected(errors.New("seat 12A doesn't exist")))
	fmt.Println(out.Status, out.Detail)
	// Output:
	// failed seat 12A doesn't exist
}

// A write that found the state it wanted is done.
func ExampleAlreadySo() {
	type args struct {
		Issue string `json:"issue" settle:"identity"`
		Label string `json:"label"`
	}
	tool := settle.Tool[args, struct{}]{
		Name: "set_label", Description: "Set an issue's label.", Contract: settle.Contract{Class: settle.Idempotent},
		Do: func(_ context.Context, _ settle.Op, in args) (struct{}, error) {
			return struct{}{}, settle.AlreadySo(in.Issue)
		},
	}
	x, err := settle.New(memory.New(), settle.WithTools(tool), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := x.Execute(exampleScope(), settle.Call{Tool: "set_label", Args: json.RawMessage(`{"issue":"issue-7","label":"urgent"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Status, out.Resource)
	// Output:
	// completed issue-7
}
