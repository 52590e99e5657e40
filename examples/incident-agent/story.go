package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/examples/child"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store/sqlite"
)

// stop is a place at which the agent is killed.
type stop struct{ name, place string }

var stops = []stop{
	{"ticket", "when the ticket was opened and nobody had heard of it"},
	{"between", "between the ticket and the attachment"},
	{"attach", "when the log was attached and nobody had heard of it"},
	{"tell", "when the customer was told and nobody had heard of it"},
}

// world is the far sides and the ledger's file.
type world struct {
	file    string
	tickets *farside.Tickets
	files   *files
	mail    *farside.Mail
}

func startWorld(file string) *world {
	return &world{file, farside.NewTickets(), startFiles(), farside.NewMail(farside.Searchable())}
}

func (w *world) close() {
	w.tickets.Close()
	w.files.close()
	w.mail.Close()
}

// child starts the agent on an incident; it stops at the named place, if there is one.
func (w *world) child(ctx context.Context, incident, stopAt string) (*child.Process, error) {
	return child.Start(ctx, w.file, w.tickets.URL(), w.files.url(), w.mail.URL(), incident, stopAt)
}

// story is what happens to one incident.
type story struct {
	*world
	stop     stop
	incident string
	said     bytes.Buffer
	err      error
}

func (s *story) tell(ctx context.Context) error {
	fmt.Fprintf(&s.said, "%s: killed %s\n", s.incident, s.stop.place)
	first, err := s.child(ctx, s.incident, s.stop.name)
	if err != nil {
		return err
	}
	if _, err := first.KillAtStop(s.line); err != nil {
		return err
	}
	s.line("dead: " + s.effects())
	second, err := s.child(ctx, s.incident, "")
	if err != nil {
		return err
	}
	if err := second.Finish(s.line); err != nil {
		return err
	}
	s.line("then: " + s.effects() + "\n")
	return nil
}

func (s *story) line(text string) { fmt.Fprintln(&s.said, "  "+text) }

// effects counts what the far sides did for the incident.
func (s *story) effects() string {
	return fmt.Sprintf("tickets %d, attachments %d, mails %d", s.ticketsOf(s.incident), s.files.of(s.incident), s.mailsOf(s.incident))
}

func (w *world) ticketsOf(incident string) (n int) {
	for _, e := range w.tickets.Effects() {
		if e.Fields["title"] == title(incident) {
			n++
		}
	}
	return n
}

func (w *world) mailsOf(incident string) (n int) {
	for _, e := range w.mail.Effects() {
		if e.Fields["purpose"] == incident {
			n++
		}
	}
	return n
}

// correct undoes an incident's report at another process.
func (w *world) correct(ctx context.Context, out io.Writer, incident string) (err error) {
	ledger, err := sqlite.Open(ctx, w.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	report := newReport(clients(w.tickets.URL(), w.files.url(), w.mail.URL()), func(string) {})
	ex, err := settle.New(ledger, settle.WithTools(report))
	if err != nil {
		return err
	}
	ctx = inTask(ctx, incident)
	made, err := ex.Execute(ctx, callFor(incident)) // finds its record
	if err != nil {
		return err
	}
	undone, err := ex.Compensate(ctx, made.Operation)
	if err != nil {
		return err
	}
	again, err := ex.Execute(ctx, callFor(incident))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  the correction: %s; the report, asked for again: %s, corrected: %t\n\n", undone.Status, again.Status, again.CorrectedBy != "")
	return ex.Shutdown(ctx)
}

// sum counts all effects; the corrections are effects as well.
func (w *world) sum(out io.Writer, incidents int) error {
	tickets, closed := len(w.tickets.Effects()), w.closedTickets()
	attached, removed := w.files.count()
	mails := len(w.mail.Effects())
	fmt.Fprintf(out, "incident-agent: %d incidents, %d tickets (%d closed), %d attachments (%d removed), %d mails (1 of them a correction)\n",
		incidents, tickets-closed, closed, attached, removed, mails)
	if tickets-closed != incidents || closed != 1 || attached != incidents || removed != 1 || mails != incidents+1 {
		return errors.New("an effect happened twice or not at all")
	}
	return nil
}

func (w *world) closedTickets() (n int) {
	for _, e := range w.tickets.Effects() {
		if e.Kind != "ticket" {
			n++
		}
	}
	return n
}
