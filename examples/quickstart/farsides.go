package main

import (
	"strings"

	"github.com/settle-go/settle/internal/farside"
)

// farSides are the services that the tools act on: a payment API that
// deduplicates on keys, a ticket system that can be searched, a mail relay that
// can do neither. They keep a journal of what truly happened, which is what this
// program counts in the end.
type farSides struct {
	pay   *farside.Payments
	desk  *farside.Tickets
	relay *farside.Mail
}

func newFarSides() farSides {
	return farSides{farside.NewPayments(), farside.NewTickets(), farside.NewMail()}
}

func (f farSides) close() {
	f.pay.Close()
	f.desk.Close()
	f.relay.Close()
}

// loseAnswers makes the first ticket and the first mail happen without an
// answer. The first refund happens too; its answer waits at the gate.
func (f farSides) loseAnswers() (refunded *farside.Gate) {
	f.desk.Writes.Next(farside.CommitThenDrop())
	f.relay.Writes.Next(farside.CommitThenDrop())
	refunded = farside.NewGate()
	f.pay.Writes.Next(farside.Late(refunded))
	return refunded
}

// addresses are where the far sides are found.
type addresses struct{ pay, desk, relay string }

func (f farSides) addresses() addresses {
	return addresses{f.pay.URL(), f.desk.URL(), f.relay.URL()}
}

func (a addresses) clients() (*farside.PaymentsClient, *farside.TicketsClient, *farside.MailClient) {
	return farside.NewPaymentsClient(a.pay), farside.NewTicketsClient(a.desk), farside.NewMailClient(a.relay)
}

// effect is one thing that happened on a far side.
type effect struct {
	at, resource, what string
	duplicate          bool
}

// effects lists everything that truly happened, far side by far side.
func (f farSides) effects() []effect {
	return append(append(
		journal("payments", f.pay.Server, "order_id", "amount"),
		journal("tickets", f.desk.Server, "title")...),
		journal("mail", f.relay.Server, "to", "subject")...)
}

// journal lists the effects of one far side, described by the fields. Of the
// effects with one business identity all but the first are duplicates.
func journal(name string, s *farside.Server, fields ...string) []effect {
	again := map[string]bool{}
	for _, group := range s.Duplicates() {
		for _, e := range group[1:] {
			again[e.Resource] = true
		}
	}
	var all []effect
	for _, e := range s.Effects() {
		var what []string
		for _, f := range fields {
			what = append(what, e.Fields[f])
		}
		all = append(all, effect{name, e.Resource, strings.Join(what, "  "), again[e.Resource]})
	}
	return all
}
