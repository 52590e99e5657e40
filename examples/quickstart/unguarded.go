package main

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"github.com/settle-go/settle/internal/farside"
)

// functions are the tools as an agent loop without settle has them, by name.
type functions map[string]func(ctx context.Context, args json.RawMessage) (any, error)

// newFunctions makes the same three tools without settle. The refund has a key
// here too, but a new one for each call, as nobody remembers the last one: such
// a key deduplicates nothing.
func newFunctions(far addresses) functions {
	pay, desk, relay := far.clients()
	return functions{
		"refund": decoding(func(ctx context.Context, in RefundArgs) (any, error) {
			r, err := pay.Refund(ctx, rand.Text(), in.OrderID, in.Amount.StringFixed(2))
			return Refunded{r.ID}, err
		}),
		"open_ticket": decoding(func(ctx context.Context, in TicketArgs) (any, error) {
			t, err := desk.Open(ctx, in.title(), in.Details)
			return Opened{t.ID}, err
		}),
		"send_mail": decoding(func(ctx context.Context, in MailArgs) (any, error) {
			m, err := relay.Send(ctx, farside.Message{To: in.To, Subject: in.Subject, Body: in.Body})
			return Sent{m.ID}, err
		}),
	}
}

// call runs a tool and tells the model of its result or its error, as most
// frameworks do.
func (f functions) call(ctx context.Context, name string, args json.RawMessage) string {
	run, ok := f[name]
	if !ok {
		return "error: there is no such tool"
	}
	result, err := run(ctx, args)
	if err != nil {
		return "error: " + err.Error()
	}
	text, err := json.Marshal(result)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(text)
}

func decoding[In any](run func(context.Context, In) (any, error)) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, args json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		return run(ctx, in)
	}
}
