package main

import (
	"context"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
)

// ticketArgs are what the agent gives to open a ticket.
type ticketArgs struct {
	Title   string `json:"title" settle:"identity"`
	Details string `json:"details" settle:"ignore"`
}

type opened struct {
	ID string `json:"id" settle:"resource"`
}

// openTicket makes a tool whose far side can be searched. It answers here, so
// nobody has to.
func openTicket(tickets *farside.TicketsClient) settle.Tool[ticketArgs, opened] {
	return settle.Tool[ticketArgs, opened]{
		Name:        "open_ticket",
		Description: "Open a ticket with the carrier.",
		Contract:    settle.Contract{Class: settle.Unsafe, Classify: whatIsKnown},
		Do: func(ctx context.Context, _ settle.Op, in ticketArgs) (opened, error) {
			t, err := tickets.Open(ctx, in.Title, in.Details)
			return opened{t.ID}, err
		},
		Lookup: func(ctx context.Context, q settle.Query[opened], in ticketArgs) (settle.Evidence, error) {
			found, err := tickets.FindByTitle(ctx, in.Title)
			switch {
			case err != nil:
				return settle.Evidence{}, err
			case len(found) == 0:
				return q.NotHappened(), nil
			case len(found) > 1:
				return q.Several("more than one ticket has this title"), nil
			}
			return q.Happened(found[0].ID, opened{found[0].ID}).ByAttribute(time.Time{}), nil
		},
	}
}

// mailArgs are what the agent gives to send a mail. Whom it is for and what for
// tell one mail from another; its words don't.
type mailArgs struct {
	To      string `json:"to" settle:"identity"`
	Purpose string `json:"purpose" settle:"identity"`
	Body    string `json:"body" settle:"ignore"`
}

type sent struct {
	ID string `json:"id" settle:"resource"`
}

// sendMail makes a tool of which nothing can be learnt once its answer is lost.
// It is a person's case at once: a mail goes out immediately or never, so there
// is nothing to wait for, and nothing to look up.
func sendMail(relay *farside.MailClient) settle.Tool[mailArgs, sent] {
	return settle.Tool[mailArgs, sent]{
		Name:        "send_mail",
		Description: "Send a mail to the customer.",
		Contract: settle.Contract{
			Class:           settle.Unsafe,
			NoLookup:        true,
			VisibilityDelay: settle.Immediately,
			Classify:        whatIsKnown,
			Guidance:        "Ask the customer whether the mail has come.",
		},
		Do: func(ctx context.Context, _ settle.Op, in mailArgs) (sent, error) {
			m, err := relay.Send(ctx, farside.Message{To: in.To, Purpose: in.Purpose, Subject: "Your parcel", Body: in.Body})
			return sent{m.ID}, err
		},
	}
}

// refundArgs are what the agent gives to refund an order.
type refundArgs struct {
	OrderID string `json:"order_id" settle:"identity"`
	Amount  string `json:"amount"`
}

type refunded struct {
	ID string `json:"id" settle:"resource"`
}

// refund makes a tool that the far side deduplicates. Nothing is sent before a
// person has approved it.
func refund(payments *farside.PaymentsClient) settle.Tool[refundArgs, refunded] {
	return settle.Tool[refundArgs, refunded]{
		Name:        "refund",
		Description: "Refund an order.",
		Contract: settle.Contract{
			Class:     settle.Keyed,
			KeyWindow: 24 * time.Hour,
			Approval:  true,
			Classify:  whatIsKnown,
			Guidance:  "Approve where the carrier has lost the parcel.",
		},
		Do: func(ctx context.Context, op settle.Op, in refundArgs) (refunded, error) {
			r, err := payments.Refund(ctx, op.Key(), in.OrderID, in.Amount)
			return refunded{r.ID}, err
		},
		Lookup: func(ctx context.Context, q settle.Query[refunded], _ refundArgs) (settle.Evidence, error) {
			found, err := payments.FindByKey(ctx, q.Key())
			switch {
			case err != nil:
				return settle.Evidence{}, err
			case len(found) == 0:
				return q.NotHappened(), nil
			}
			return q.Happened(found[0].ID, refunded{found[0].ID}), nil
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
