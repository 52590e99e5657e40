package main

import (
	"context"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
)

// The three tools of the agent, and with them three ways to learn what became of
// a call whose answer was lost: by its key, by a search, or not at all.

// RefundArgs are what the model gives to refund an order. The order tells one
// refund from another; a note in other words is still the same refund.
type RefundArgs struct {
	OrderID string          `json:"order_id" settle:"identity"`
	Amount  decimal.Decimal `json:"amount"`
	Note    string          `json:"note,omitempty" settle:"ignore"`
}

// Refunded is what a refund comes to.
type Refunded struct {
	ID string `json:"id" settle:"resource"`
}

// NewRefund makes a tool that the far side deduplicates: it is sent with a key,
// and that key also finds it again.
func NewRefund(pay *farside.PaymentsClient) settle.Tool[RefundArgs, Refunded] {
	return settle.Tool[RefundArgs, Refunded]{
		Name:        "refund",
		Description: "Refund an order.",
		Contract: settle.Contract{
			Class:     settle.Keyed,
			KeyWindow: 24 * time.Hour,
			// Both bound the lease, and so how long a dead worker is waited for.
			Timeout: 2 * time.Second, Attempts: 2,
			Classify: whatIsKnown,
		},
		Do: func(ctx context.Context, op settle.Op, in RefundArgs) (Refunded, error) {
			r, err := pay.Refund(ctx, op.Key(), in.OrderID, in.Amount.StringFixed(2))
			return Refunded{r.ID}, err
		},
		Lookup: func(ctx context.Context, q settle.Query[Refunded], _ RefundArgs) (settle.Evidence, error) {
			found, err := pay.FindByKey(ctx, q.Key())
			switch {
			case err != nil:
				return settle.Evidence{}, err
			case len(found) == 0:
				return q.NotHappened(), nil
			}
			return q.Happened(found[0].ID, Refunded{found[0].ID}), nil
		},
	}
}

// TicketArgs are what the model gives to open a ticket. Order and problem tell
// one ticket from another; the details may come in other words each time.
type TicketArgs struct {
	OrderID string `json:"order_id" settle:"identity"`
	Problem string `json:"problem" settle:"identity" jsonschema:"enum=late,enum=damaged"`
	Details string `json:"details" settle:"ignore"`
}

func (in TicketArgs) title() string {
	return fmt.Sprintf("order %s: parcel %s", in.OrderID, in.Problem)
}

// Opened is the ticket that was opened.
type Opened struct {
	ID string `json:"id" settle:"resource"`
}

// NewOpenTicket makes a tool whose far side knows no keys: sent twice, it opens
// two tickets. But it can be searched for what a ticket says.
func NewOpenTicket(desk *farside.TicketsClient) settle.Tool[TicketArgs, Opened] {
	return settle.Tool[TicketArgs, Opened]{
		Name:        "open_ticket",
		Description: "Open a ticket with the carrier.",
		Contract:    settle.Contract{Class: settle.Unsafe, Classify: whatIsKnown},
		Do: func(ctx context.Context, _ settle.Op, in TicketArgs) (Opened, error) {
			t, err := desk.Open(ctx, in.title(), in.Details)
			return Opened{t.ID}, err
		},
		Lookup: func(ctx context.Context, q settle.Query[Opened], in TicketArgs) (settle.Evidence, error) {
			found, err := desk.FindByTitle(ctx, in.title())
			switch {
			case err != nil:
				return settle.Evidence{}, err
			case len(found) == 0:
				return q.NotHappened(), nil
			case len(found) > 1:
				return q.Several("more than one ticket has this title"), nil
			}
			// The desk doesn't tell when a ticket was opened.
			return q.Happened(found[0].ID, Opened{found[0].ID}).ByAttribute(time.Time{}), nil
		},
	}
}

// MailArgs are what the model gives to send a mail.
type MailArgs struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

// Sent is the mail that was sent.
type Sent struct {
	ID string `json:"id" settle:"resource"`
}

// NewSendMail makes a tool of which nothing can be learnt once its answer is
// lost. No field of its arguments says which mail it is either, so while one of
// them isn't settled, no other goes out.
func NewSendMail(relay *farside.MailClient) settle.Tool[MailArgs, Sent] {
	return settle.Tool[MailArgs, Sent]{
		Name:        "send_mail",
		Description: "Send a mail to the customer.",
		Contract: settle.Contract{
			Class:          settle.Unsafe,
			WholeArguments: true,
			NoLookup:       true,
			Classify:       whatIsKnown,
			Guidance:       "Ask the customer whether the mail has come, then say what you found.",
		},
		Do: func(ctx context.Context, _ settle.Op, in MailArgs) (Sent, error) {
			m, err := relay.Send(ctx, farside.Message{To: in.To, Subject: in.Subject, Body: in.Body})
			return Sent{m.ID}, err
		},
	}
}

// whatIsKnown passes on what the far sides' clients know of an error. What they
// don't know either stays an unknown outcome.
func whatIsKnown(err error) error {
	switch {
	case farside.WasNotSent(err):
		return settle.NotSent(err)
	case farside.WasRejected(err):
		return settle.Rejected(err)
	}
	return err
}
