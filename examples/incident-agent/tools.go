package main

import (
	"context"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
)

// far is the far sides as the tools' clients see them.
type far struct {
	tickets *farside.TicketsClient
	files   filesClient
	mail    *farside.MailClient
}

func clients(tickets, files, mail string) far {
	return far{farside.NewTicketsClient(tickets), filesClient{files}, farside.NewMailClient(mail)}
}

func title(incident string) string { return incident + ": checkout is down" }
func logOf(incident string) string { return incident + ".log" }

// attemptTime is short, and so are the leases: who takes a dead worker's place
// looks into its attempt when that is over.
const attemptTime = 500 * time.Millisecond

type reportArgs struct {
	Incident string `json:"incident" settle:"identity"`
	Customer string `json:"customer"`
}

type report struct {
	Ticket     string `json:"ticket" settle:"resource"`
	Attachment string `json:"attachment"`
	Mail       string `json:"mail"`
}

// newReport is the composite. Its body may run again at any time, and does: each
// step is an operation with a key and a contract of its own. reached is called at
// the places where this example kills.
func newReport(far far, reached func(place string)) settle.Tool[reportArgs, report] {
	open, attach, tell := openTicket(far, reached), attachLog(far, reached), tellCustomer(far, reached)
	return settle.Tool[reportArgs, report]{
		Name:     "report_incident",
		Contract: settle.Contract{Class: settle.Composite, Timeout: 4 * attemptTime, Attempts: 2},
		Steps:    []settle.AnyTool{open, attach, tell},
		Do: func(ctx context.Context, op settle.Op, in reportArgs) (r report, err error) {
			ticket, err := settle.Step(ctx, op, "ticket", open, ticketArgs{title(in.Incident)})
			if err != nil {
				return report{}, err
			}
			reached("between")
			file, err := settle.Step(ctx, op, "log", attach, fileArgs{ticket.ID, logOf(in.Incident)}, settle.After("ticket"))
			if err != nil {
				return report{}, err
			}
			mail, err := settle.Step(ctx, op, "notice", tell, mailArgs{in.Customer, in.Incident}, settle.After("ticket"))
			return report{ticket.ID, file.ID, mail.ID}, err
		},
	}
}

type made struct {
	ID string `json:"id" settle:"resource"`
}

type ticketArgs struct {
	Title string `json:"title" settle:"identity"`
}

// openTicket's far side deduplicates nothing and can be searched. It is corrected by
// closing the ticket.
func openTicket(far far, reached func(string)) settle.Tool[ticketArgs, made] {
	return settle.Tool[ticketArgs, made]{
		Name:     "open_ticket",
		Contract: settle.Contract{Timeout: attemptTime, VisibilityDelay: settle.Immediately},
		Do: func(ctx context.Context, _ settle.Op, in ticketArgs) (made, error) {
			t, err := far.tickets.Open(ctx, in.Title, "")
			if err == nil {
				reached("ticket")
			}
			return made{t.ID}, err
		},
		Lookup: func(ctx context.Context, q settle.Query[made], in ticketArgs) (settle.Evidence, error) {
			found, err := far.tickets.FindByTitle(ctx, in.Title)
			switch {
			case err != nil:
				return settle.Evidence{}, err
			case len(found) == 0:
				return q.NotHappened(), nil
			case len(found) > 1:
				return q.Several("more than one ticket has this title"), nil
			}
			return q.Happened(found[0].ID, made{found[0].ID}).ByAttribute(time.Time{}), nil
		},
		Compensation: &settle.Compensation[ticketArgs, made]{
			Contract: settle.Contract{Class: settle.Idempotent},
			Do: func(ctx context.Context, _ settle.Op, o settle.Original[ticketArgs, made]) error {
				_, err := far.tickets.CloseTicket(ctx, o.Resource)
				return err
			},
		},
	}
}

type fileArgs struct {
	Ticket string `json:"ticket" settle:"identity"`
	Name   string `json:"name" settle:"identity"`
}

// attachLog's far side deduplicates on the key. It is corrected by removing the file.
func attachLog(far far, reached func(string)) settle.Tool[fileArgs, made] {
	return settle.Tool[fileArgs, made]{
		Name: "attach_log",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true, Timeout: attemptTime,
			VisibilityDelay: settle.Immediately, Attempts: 2},
		Do: func(ctx context.Context, op settle.Op, in fileArgs) (made, error) {
			a, err := far.files.attach(ctx, op.Key(), in.Ticket, in.Name)
			if err == nil {
				reached("attach")
			}
			return made{a.ID}, err
		},
		Compensation: &settle.Compensation[fileArgs, made]{
			Contract: settle.Contract{Class: settle.Idempotent},
			Do: func(ctx context.Context, _ settle.Op, o settle.Original[fileArgs, made]) error {
				return far.files.remove(ctx, o.Resource)
			},
		},
	}
}

type mailArgs struct {
	To       string `json:"to" settle:"identity"`
	Incident string `json:"incident" settle:"identity"`
}

// keyHeader carries the operation's key, by which the mail can be found again.
const keyHeader = "X-Operation"

// tellCustomer's far side sends whatever it is given, and can be searched by a
// header. A mail can't be taken back: it is corrected by another one.
func tellCustomer(far far, reached func(string)) settle.Tool[mailArgs, made] {
	send := func(ctx context.Context, key, to, incident, body string) (made, error) {
		m, err := far.mail.Send(ctx, farside.Message{To: to, Purpose: incident, Subject: incident, Body: body, Headers: map[string]string{keyHeader: key}})
		return made{m.ID}, err
	}
	find := func(ctx context.Context, key string) (id string, err error) {
		found, err := far.mail.FindByHeader(ctx, keyHeader, key)
		if err != nil || len(found) == 0 {
			return "", err
		}
		return found[0].ID, nil
	}
	return settle.Tool[mailArgs, made]{
		Name:     "tell_customer",
		Contract: settle.Contract{Timeout: attemptTime, VisibilityDelay: settle.Immediately},
		Do: func(ctx context.Context, op settle.Op, in mailArgs) (made, error) {
			m, err := send(ctx, op.Key(), in.To, in.Incident, "The checkout is down; we are at it.")
			if err == nil {
				reached("tell")
			}
			return m, err
		},
		Lookup: func(ctx context.Context, q settle.Query[made], _ mailArgs) (settle.Evidence, error) {
			id, err := find(ctx, q.Key())
			if err != nil || id == "" {
				return q.NotHappened(), err
			}
			return q.Happened(id, made{id}), nil
		},
		Compensation: &settle.Compensation[mailArgs, made]{
			Contract: settle.Contract{Timeout: attemptTime, VisibilityDelay: settle.Immediately, NoLookup: true},
			Do: func(ctx context.Context, op settle.Op, o settle.Original[mailArgs, made]) error {
				_, err := send(ctx, op.Key(), o.In.To, "correction of "+o.In.Incident, "There was no incident.")
				return err
			},
		},
	}
}
