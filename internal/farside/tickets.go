package farside

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// Tickets is a help desk that deduplicates nothing and can be searched by what a
// ticket says:
//
//	POST   /tickets {"title", "description"}   201
//	GET    /tickets?q=…&title=…&description=…  {"tickets": […]}: q is part of the title,
//	                                           whatever its case; title and description are exact
//	DELETE /tickets/{id}                       200, closes it; closed already: no change
type Tickets struct {
	*Server
	tickets []made[Ticket]
}

// Ticket is a ticket as the far side shows it.
type Ticket struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Closed      bool   `json:"closed,omitempty"`
}

type ticketBody struct {
	Title       string `json:"title"`
	Description string `json:"description"`
}

// NewTickets starts a help desk. It panics where loopback has no free port.
func NewTickets(opts ...Option) *Tickets {
	t := &Tickets{Server: newServer([]string{"title"}, opts)}
	t.handle("POST /tickets", &t.Writes, t.open)
	t.handle("GET /tickets", &t.Reads, t.search)
	t.handle("DELETE /tickets/{id}", &t.Writes, t.close)
	t.start()
	return t
}

func (t *Tickets) open(in *Request, _ *http.Request, body []byte) func() reply {
	var b ticketBody
	if json.Unmarshal(body, &b) != nil || b.Title == "" {
		return always(refusal(http.StatusBadRequest, "invalid_body"))
	}
	in.Fields = map[string]string{"title": b.Title, "description": b.Description}
	req := *in
	return func() reply {
		made := made[Ticket]{it: Ticket{ID: t.nextID("tk"), Title: b.Title, Description: b.Description}}
		made.by = t.record("ticket", made.it.ID, req)
		t.tickets = append(t.tickets, made)
		return reply{status: http.StatusCreated, body: made.it}
	}
}

func (t *Tickets) search(in *Request, r *http.Request, _ []byte) func() reply {
	q := r.URL.Query()
	in.Fields = firstValues(q)
	return func() reply {
		return reply{status: http.StatusOK, body: ticketList{find(t.Server, t.tickets, func(k Ticket) bool {
			return strings.Contains(strings.ToLower(k.Title), strings.ToLower(q.Get("q"))) &&
				(!q.Has("title") || q.Get("title") == k.Title) &&
				(!q.Has("description") || q.Get("description") == k.Description)
		})}}
	}
}

func (t *Tickets) close(in *Request, r *http.Request, _ []byte) func() reply {
	id := r.PathValue("id")
	in.Fields = map[string]string{"id": id}
	req := *in
	return func() reply {
		for i := range t.tickets {
			ticket := &t.tickets[i].it
			if ticket.ID != id {
				continue
			}
			if !ticket.Closed {
				ticket.Closed = true
				req.Fields["title"] = ticket.Title
				t.record("ticket_closed", id, req)
			}
			return reply{status: http.StatusOK, body: *ticket}
		}
		return refusal(http.StatusNotFound, "no_such_ticket")
	}
}

type ticketList struct {
	Tickets []Ticket `json:"tickets"`
}

func firstValues(q url.Values) map[string]string {
	fields := map[string]string{}
	for name := range q {
		fields[name] = q.Get(name)
	}
	return fields
}

// TicketsClient calls [Tickets]. Its errors are [Error]s.
type TicketsClient struct{ client }

// NewTicketsClient makes a client of the help desk at the base URL.
func NewTicketsClient(baseURL string) *TicketsClient { return &TicketsClient{newClient(baseURL)} }

// Open opens a ticket; twice opens two.
func (c *TicketsClient) Open(ctx context.Context, title, description string) (Ticket, error) {
	var out Ticket
	err := c.call(ctx, http.MethodPost, "/tickets", nil, ticketBody{title, description}, &out)
	return out, err
}

// CloseTicket closes the ticket, which changes nothing where it is closed.
func (c *TicketsClient) CloseTicket(ctx context.Context, id string) (Ticket, error) {
	var out Ticket
	err := c.call(ctx, http.MethodDelete, "/tickets/"+url.PathEscape(id), nil, nil, &out)
	return out, err
}

// Search lists the tickets with q in their title, oldest first.
func (c *TicketsClient) Search(ctx context.Context, q string) ([]Ticket, error) {
	return c.list(ctx, url.Values{"q": {q}})
}

// FindByTitle lists the tickets with exactly that title, oldest first.
func (c *TicketsClient) FindByTitle(ctx context.Context, title string) ([]Ticket, error) {
	return c.list(ctx, url.Values{"title": {title}})
}

func (c *TicketsClient) list(ctx context.Context, q url.Values) ([]Ticket, error) {
	var out ticketList
	err := c.call(ctx, http.MethodGet, "/tickets?"+q.Encode(), nil, nil, &out)
	return out.Tickets, err
}
