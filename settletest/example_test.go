package settletest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/settletest"
)

// A mail whose answer was lost, and a far side that can't be asked: the outcome
// is unknown, and past its moment it is a person's. However often the agent
// calls, the mail was sent once.
func Example() {
	clock := settletest.NewClock()
	far := &relay{}
	tool := settletest.LoseAnswer(far.tool(settle.Contract{NoLookup: true}), 1)
	x, err := settle.New(clock.Ledger(), settle.WithTools(tool), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "welcome"})
	call := settle.Call{Tool: "send_mail", Args: []byte(`{"to":"eve@example.org","text":"hello"}`)}

	for range 3 {
		out, err := x.Execute(ctx, call)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Status)
		clock.Advance(time.Minute)
		if _, err := x.Recover(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("mails sent:", len(far.sent))
	// Output:
	// unknown
	// manual
	// manual
	// mails sent: 1
}
