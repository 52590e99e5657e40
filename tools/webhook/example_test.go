package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
	"github.com/settle-go/settle/tools/webhook"
)

// The whole way of an event: published by a tool's handler, sent by the relay,
// verified and taken by a receiver.
func Example() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of both sides

	// The receiver. Take would begin with inbox.Once in its own transaction.
	verifier, err := webhook.NewVerifier(secret)
	if err != nil {
		panic(err)
	}
	receiver := httptest.NewServer(webhook.Handler(verifier, func(_ context.Context, e webhook.Event) error {
		if e.Type != settle.EventSettled {
			fmt.Println(e.Type, string(e.Data))
			return nil
		}
		var data settle.EventData
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
		fmt.Println(e.Type, data.Tool, data.Status)
		return nil
	}))
	defer receiver.Close()

	// The sender. In a host, Run relays by itself.
	sink, err := webhook.New(webhook.Config{URL: receiver.URL, Source: "https://desk.example/agents", Secrets: []string{secret}})
	if err != nil {
		panic(err)
	}
	ex, err := settle.New(memory.New(), settle.Volatile(), settle.WithTools(reserve()), settle.WithOutbox(sink))
	if err != nil {
		panic(err)
	}
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	if _, err := ex.Execute(ctx, settle.Call{Tool: "reserve", Args: json.RawMessage(`{"item":"chair"}`), CallID: "call_1"}); err != nil {
		panic(err)
	}
	for range 2 {
		if _, err := ex.Relay(ctx); err != nil {
			panic(err)
		}
	}
	// Output:
	// item.reserved {"item":"chair"}
	// settle.settled reserve completed
}
