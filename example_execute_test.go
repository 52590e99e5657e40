package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/store/sqlite"
)

// The arguments and the result of the tool in the examples.
type (
	ticketOrder struct {
		Seat string `json:"seat" settle:"identity"`
		Name string `json:"name"`
	}
	ticketBooked struct {
		ID string `json:"id" settle:"resource"`
	}
)

// boxOffice is a far side: it deduplicates on the keys that it is sent.
type boxOffice struct {
	mu     sync.Mutex
	booked map[string]string
}

func (b *boxOffice) book(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.booked == nil {
		b.booked = map[string]string{}
	}
	if _, ok := b.booked[key]; !ok {
		b.booked[key] = fmt.Sprint("ticket-", len(b.booked)+1)
	}
	return b.booked[key]
}

// newBook makes a tool whose far side deduplicates on the key for a day.
func newBook(office *boxOffice) settle.Tool[ticketOrder, ticketBooked] {
	return settle.Tool[ticketOrder, ticketBooked]{
		Name: "book", Description: "Book a seat.",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour, NoLookup: true},
		Do: func(ctx context.Context, op settle.Op, in ticketOrder) (ticketBooked, error) {
			return ticketBooked{office.book(op.Key())}, nil
		},
	}
}

// exampleScope names who acts, from the host's authentication, and what for, in
// ids and constants of its own.
func exampleScope() context.Context {
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "travel-agent"})
	return settle.WithTask(ctx, settle.Task{ID: "trip-7", Goal: "book-seats"})
}

// One call is one effect, however often a model, a framework or a restarted
// process makes it.
func ExampleExecutor_Execute() {
	folder, err := os.MkdirTemp("", "settle")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	ledger, err := sqlite.Open(context.Background(), filepath.Join(folder, "settle.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ledger.Close()

	office := &boxOffice{}
	for range 2 { // the second one is the process after a restart
		x, err := settle.New(ledger, settle.WithTools(newBook(office)))
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := x.Execute(exampleScope(), settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Status, out.Resource, "replayed:", out.Replayed)
	}
	fmt.Println("tickets:", len(office.booked))
	// Output:
	// completed ticket-1 replayed: false
	// completed ticket-1 replayed: true
	// tickets: 1
}

// The same seat for somebody else is no second effect and no old result: it is
// a conflict that names what differs.
func ExampleExecutor_Execute_conflict() {
	x, err := settle.New(memory.New(), settle.WithTools(newBook(&boxOffice{})), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"Eve", "Adam"} {
		out, err := x.Execute(exampleScope(), settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"` + name + `"}`)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Status, out.Fields)
	}
	// Output:
	// completed []
	// conflict [name]
}

// The parallel calls of one model turn are claimed together, and don't hold one
// another.
func ExampleExecutor_ExecuteAll() {
	x, err := settle.New(memory.New(), settle.WithTools(newBook(&boxOffice{})), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	outs, err := x.ExecuteAll(exampleScope(),
		settle.Call{Tool: "book", CallID: "call_1", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)},
		settle.Call{Tool: "book", CallID: "call_2", Args: json.RawMessage(`{"seat":"12B","name":"Adam"}`)},
		settle.Call{Tool: "book", CallID: "call_3", Args: json.RawMessage(`{"seat":12}`)},
		settle.Call{Tool: "look", CallID: "call_4"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, out := range outs {
		fmt.Println(out.Status)
	}
	// Output:
	// completed
	// completed
	// invalid_arguments
	// no_such_tool
}

// A contract that says too little is refused before anything can happen, with
// everything that is wrong at once.
func ExampleNew() {
	book := newBook(&boxOffice{})
	book.Contract = settle.Contract{Class: settle.Keyed, Identity: []string{"seta"}}
	_, err := settle.New(memory.New(), settle.WithTools(book), settle.Volatile())

	var wrong *settle.ToolError
	fmt.Println(errors.As(err, &wrong), wrong.Tool)
	// Output:
	// true book
}

// The plan has changed: the host names the settled operation that this call
// takes the place of. A model can't.
func ExampleCall() {
	office := &boxOffice{}
	x, err := settle.New(memory.New(), settle.WithTools(newBook(office)), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := exampleScope()
	first, err := x.Execute(ctx, settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := x.Execute(ctx, settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Adam"}`), Replaces: first.Operation})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first.Resource, second.Resource)
	// Output:
	// ticket-1 ticket-2
}

func ExampleDecode() {
	x, err := settle.New(memory.New(), settle.WithTools(newBook(&boxOffice{})), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := x.Execute(exampleScope(), settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"12A","name":"Eve"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	booked, err := settle.Decode[ticketBooked](out)
	fmt.Println(booked.ID, err)

	refused, err := x.Execute(exampleScope(), settle.Call{Tool: "book"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = settle.Decode[ticketBooked](refused)
	fmt.Println(errors.Is(err, settle.ErrNoResult))
	// Output:
	// ticket-1 <nil>
	// true
}

// The first turn after a restart gets the brief: a model that has forgotten its
// calls hears what was done.
func ExampleExecutor_Brief() {
	ledger := memory.New()
	ctx := exampleScope()
	for _, seat := range []string{"12A", "12B"} {
		x, err := settle.New(ledger, settle.WithTools(newBook(&boxOffice{})), settle.Volatile())
		if err != nil {
			fmt.Println(err)
			return
		}
		brief, err := x.Brief(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("empty:", brief == "")
		if _, err := x.Execute(ctx, settle.Call{Tool: "book", Args: json.RawMessage(`{"seat":"` + seat + `","name":"Eve"}`)}); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// empty: true
	// empty: false
}
