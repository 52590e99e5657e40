package main

import (
	"fmt"
	"io"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
)

// farSides are the services of one run. They count what truly happened.
type farSides struct {
	tickets  *farside.Tickets
	mail     *farside.Mail
	payments *farside.Payments
}

// newFarSides starts the services. The relay sends the first mail that it gets,
// but its answer is lost.
func newFarSides() farSides {
	f := farSides{farside.NewTickets(), farside.NewMail(), farside.NewPayments()}
	f.mail.Writes.Next(farside.CommitThenDrop())
	return f
}

func (f farSides) tools() []settle.AnyTool {
	return []settle.AnyTool{
		openTicket(farside.NewTicketsClient(f.tickets.URL())),
		sendMail(farside.NewMailClient(f.mail.URL())),
		refund(farside.NewPaymentsClient(f.payments.URL())),
	}
}

func (f farSides) close() {
	f.tickets.Close()
	f.mail.Close()
	f.payments.Close()
}

// report says what happened in this run, as the far sides have it.
func (f farSides) report(out io.Writer) {
	fmt.Fprintf(out, "\nAt the far sides of this run: tickets opened %d, mails sent %d, refunds made %d.\n",
		len(f.tickets.Effects()), len(f.mail.Effects()), len(f.payments.Effects()))
}
