package farside

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Mail is a relay that sends whatever it is given, as often as it is given it:
//
//	POST /messages {"to", "purpose", "subject", "body", "headers"}   202
//	GET  /messages?header=…&value=…   {"messages": […]} where the relay is [Searchable], else 404
type Mail struct {
	*Server
	sent []made[Message]
}

// Message is a message as the relay keeps it.
type Message struct {
	ID      string            `json:"id"`
	To      string            `json:"to"`
	Purpose string            `json:"purpose"`
	Subject string            `json:"subject"`
	Body    string            `json:"body"`
	Headers map[string]string `json:"headers,omitempty"` // names in their canonical form
}

// Searchable lets a mail relay find messages by a header; without it the relay
// neither deduplicates nor remembers.
func Searchable() Option { return func(s *settings) { s.searchHeaders = true } }

// NewMail starts a mail relay. It panics where loopback has no free port.
func NewMail(opts ...Option) *Mail {
	m := &Mail{Server: newServer([]string{"to", "purpose"}, opts)}
	m.handle("POST /messages", &m.Writes, m.send)
	m.handle("GET /messages", &m.Reads, m.find)
	m.start()
	return m
}

func (m *Mail) send(in *Request, _ *http.Request, body []byte) func() reply {
	var b Message
	if json.Unmarshal(body, &b) != nil || b.To == "" {
		return always(refusal(http.StatusBadRequest, "invalid_body"))
	}
	b.Headers = canonicalHeaders(b.Headers)
	in.Fields = map[string]string{"to": b.To, "purpose": b.Purpose, "subject": b.Subject, "body": b.Body}
	for name, value := range b.Headers {
		in.Fields["header."+name] = value
	}
	req := *in
	return func() reply {
		b.ID = m.nextID("msg")
		m.sent = append(m.sent, made[Message]{b, m.record("mail", b.ID, req)})
		return reply{status: http.StatusAccepted, body: b}
	}
}

func (m *Mail) find(in *Request, r *http.Request, _ []byte) func() reply {
	in.Fields = firstValues(r.URL.Query())
	name, value := http.CanonicalHeaderKey(in.Fields["header"]), in.Fields["value"]
	return func() reply {
		if !m.searchHeaders {
			return refusal(http.StatusNotFound, "no_search")
		}
		return reply{status: http.StatusOK, body: messageList{find(m.Server, m.sent, func(msg Message) bool {
			got, ok := msg.Headers[name]
			return ok && got == value
		})}}
	}
}

func canonicalHeaders(headers map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range headers {
		out[http.CanonicalHeaderKey(name)] = value
	}
	return out
}

type messageList struct {
	Messages []Message `json:"messages"`
}

// MailClient calls [Mail]. Its errors are [Error]s.
type MailClient struct{ client }

// NewMailClient makes a client of the mail relay at the base URL.
func NewMailClient(baseURL string) *MailClient { return &MailClient{newClient(baseURL)} }

// Send sends the message; its ID is the relay's to give. Twice sends two.
func (c *MailClient) Send(ctx context.Context, m Message) (Message, error) {
	var out Message
	err := c.call(ctx, http.MethodPost, "/messages", nil, m, &out)
	return out, err
}

// FindByHeader lists the messages that carry the header with that value, oldest
// first. A relay that isn't [Searchable] rejects it.
func (c *MailClient) FindByHeader(ctx context.Context, name, value string) ([]Message, error) {
	var out messageList
	q := url.Values{"header": {name}, "value": {value}}
	err := c.call(ctx, http.MethodGet, "/messages?"+q.Encode(), nil, nil, &out)
	return out.Messages, err
}
