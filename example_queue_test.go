package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/settletest"
	"github.com/settle-go/settle/store"
)

// openCase leaves a case for the examples of the queue: a booking whose answer
// was lost, at a box office that doesn't tell yet what it knows. It returns the
// queue, the context of the operator ann, and the operation's reference.
func openCase(deciders int) (*settle.Queue, context.Context, string) {
	clock := settletest.NewClock()
	book := settle.Tool[ticketOrder, ticketBooked]{
		Name: "book", Description: "Book a seat.",
		Contract: settle.Contract{EscalateAfter: time.Minute, Deciders: deciders, Guidance: "Call the box office."},
		Do: func(context.Context, settle.Op, ticketOrder) (ticketBooked, error) {
			return ticketBooked{}, errors.New("connection reset by peer")
		},
		Lookup: func(_ context.Context, q settle.Query[ticketBooked], _ ticketOrder) (settle.Evidence, error) {
			return q.Inconclusive("the box office is closed"), nil
		},
	}
	x, err := settle.New(clock.Ledger(), settle.WithTools(book), settle.Volatile())
	if err != nil {
		panic(err)
	}
	out, err := x.Execute(exampleScope(), settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)})
	if err != nil {
		panic(err)
	}
	clock.Advance(time.Hour) // the machine has looked for long enough
	if _, err := x.Recover(context.Background()); err != nil {
		panic(err)
	}
	return x.Queue(), asOperator("ann"), out.Operation
}

// asOperator is the context of a person whom the host has authenticated.
func asOperator(name string) context.Context {
	return settle.WithOperator(context.Background(), settle.Operator{Name: name})
}

// The open cases, oldest first; the filter asks for those that nobody has taken.
func ExampleQueue_List() {
	queue, ann, _ := openCase(1)
	page, err := queue.List(ann, settle.QueueFilter{Free: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range page.Cases {
		fmt.Println(c.Tool, c.State, c.Tenant)
	}
	// Output:
	// book manual acme
}

// A case holds what a decision needs. Arguments are shown by kind and size only.
func ExampleQueue_Get() {
	queue, ann, reference := openCase(1)
	c, err := queue.Get(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Guidance)
	for _, f := range c.Fields {
		fmt.Println(f.Name, "is a", f.Value)
	}
	for _, d := range c.Decisions {
		fmt.Println(d.Kind)
	}
	// Output:
	// Call the box office.
	// seat is a string of 3 bytes
	// name is a string of 3 bytes
	// happened
	// run_once_more
	// fail
	// abandon
	// hand_back
}

// Who takes a case has it: nobody else takes or decides it meanwhile.
func ExampleQueue_Take() {
	queue, ann, reference := openCase(1)
	fmt.Println(queue.Take(ann, reference))
	fmt.Println(errors.Is(queue.Take(asOperator("bob"), reference), settle.ErrTaken))
	// Output:
	// <nil>
	// true
}

// A released case is anybody's again.
// Who has a case may be asleep: another operator says whom they take it from.
func ExampleQueue_TakeOver() {
	queue, ann, reference := openCase(1)
	if err := queue.Take(ann, reference); err != nil {
		fmt.Println(err)
		return
	}
	bob := asOperator("bob")
	fmt.Println(errors.Is(queue.Take(bob, reference), settle.ErrTaken))
	if err := queue.TakeOver(bob, reference, "ann"); err != nil {
		fmt.Println(err)
		return
	}
	c, err := queue.Get(bob, reference)
	fmt.Println(c.Owner, err)
	// Output:
	// true
	// bob <nil>
}

func ExampleQueue_Release() {
	queue, ann, reference := openCase(1)
	fmt.Println(queue.Take(ann, reference))
	fmt.Println(queue.Release(ann, reference))
	fmt.Println(queue.Take(asOperator("bob"), reference))
	// Output:
	// <nil>
	// <nil>
	// <nil>
}

// A note is for whoever comes after, and stays in the journal.
func ExampleQueue_Note() {
	queue, ann, reference := openCase(1)
	if err := queue.Note(ann, reference, "the box office opens at nine"); err != nil {
		fmt.Println(err)
		return
	}
	c, err := queue.Get(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	last := c.Events[len(c.Events)-1]
	fmt.Println(last.Actor, last.Text)
	// Output:
	// operator:ann the box office opens at nine
}

// To see the arguments is an event of the operation.
func ExampleQueue_Reveal() {
	queue, ann, reference := openCase(1)
	shown, err := queue.Reveal(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(shown.Arguments))
	c, err := queue.Get(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	last := c.Events[len(c.Events)-1]
	fmt.Println(last.Kind, "by", last.Actor)
	// Output:
	// {"seat":"12A","name":"Eve"}
	// revealed by operator:ann
}

// The far side is asked once more. What it says is shown; it decides nothing.
func ExampleQueue_Look() {
	queue, ann, reference := openCase(1)
	c, err := queue.Look(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Verdict, c.State)
	// Output:
	// inconclusive manual
}

// A decision is for the version that the operator saw, has a reason, and an id
// that makes it safe to send again.
func ExampleQueue_Decide() {
	queue, ann, reference := openCase(1)
	c, err := queue.Get(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	decision := settle.Decision{
		Operation: reference, Version: c.Version, ID: uuid.NewString(),
		Kind: settle.DecideHappened, Reason: "the box office has the seat in Eve's name",
		Resource: "ticket-1", Result: json.RawMessage(`{"id":"ticket-1"}`),
	}
	for range 2 { // as if the first answer had been lost
		if c, err = queue.Decide(ann, decision); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(c.State, c.Resource, "at version", c.Version-decision.Version, "after the one seen")
	}

	decision.ID = uuid.NewString() // another decision, for what isn't there any more
	_, err = queue.Decide(ann, decision)
	var stale *settle.StaleVersionError
	fmt.Println(errors.As(err, &stale))
	// Output:
	// completed ticket-1 at version 1 after the one seen
	// completed ticket-1 at version 1 after the one seen
	// true
}

// Where the tool asks for two persons, the first one proposes and another one
// confirms.
func ExampleQueue_Confirm() {
	queue, ann, reference := openCase(2)
	c, err := queue.Get(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err = queue.Decide(ann, settle.Decision{Operation: reference, Version: c.Version, ID: uuid.NewString(),
		Kind: settle.DecideFail, Reason: "the seat is free"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.State, "proposed:", c.Proposal.Kind, "by", c.Proposal.Operator)

	_, err = queue.Confirm(ann, reference, c.Version, uuid.NewString(), "I am sure")
	fmt.Println(errors.Is(err, settle.ErrSamePerson))
	c, err = queue.Confirm(asOperator("bob"), reference, c.Version, uuid.NewString(), "it is free, I looked too")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.State)
	// Output:
	// manual proposed: fail by ann
	// true
	// failed
}

// Operations are listed whether or not they wait for a person.
func ExampleQueue_Operations() {
	queue, ann, _ := openCase(1)
	page, err := queue.Operations(ann, settle.OperationFilter{Task: "trip-7", Goal: "book-seats"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range page.Operations {
		fmt.Println(o.Tool, o.Class, o.State, "attempts:", o.Attempts)
	}
	// Output:
	// book unsafe manual attempts: 1
}

// What may be shown of one operation: its journal, its cases, what belongs to it.
func ExampleQueue_Operation() {
	queue, ann, reference := openCase(1)
	o, err := queue.Operation(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, last := o.Events[0], o.Events[len(o.Events)-1]
	fmt.Println(first.Kind, "by", first.Actor)
	fmt.Println(last.Kind, "to", last.To, "by", last.Actor)
	fmt.Println("cases:", len(o.Cases))
	// Output:
	// claimed by caller
	// escalated to manual by recovery
	// cases: 1
}

// The brief is what the task's own model is told of it, for an operator to read.
func ExampleQueue_Brief() {
	queue, ann, reference := openCase(1)
	brief, err := queue.Brief(ann, reference)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(brief != "")

	// Somebody who sees other tenants only learns that there is nothing.
	carol := settle.WithOperator(context.Background(), settle.Operator{Name: "carol", Tenants: []string{"globex"}})
	_, err = queue.Brief(carol, reference)
	fmt.Println(errors.Is(err, store.ErrNotFound))
	// Output:
	// true
	// true
}
