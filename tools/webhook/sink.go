package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/retryafter"
)

const (
	// longestWait bounds what a Retry-After may ask for.
	longestWait = 24 * time.Hour
	// answerTimeout is the own client's patience, as long as the relay's.
	answerTimeout = 10 * time.Second
	// maxAnswer is how much of an answer is read, so that its connection can be
	// used again; nobody looks at it.
	maxAnswer = 4 << 10
	// maxAnswerHeader bounds the headers of an answer to the own client.
	maxAnswerHeader = 32 << 10
	// idleConns is how many connections the own client keeps: a relay has 16 workers.
	idleConns = 16
)

// Config says where events go. URL, Source and Secrets are needed.
type Config struct {
	// URL takes the events by POST. It is https, or http where the network between
	// keeps secrets: the data travels as it is. Redirects aren't followed.
	URL string
	// Source is the CloudEvents source: a URI reference that tells this system's
	// events from those of others. To change it makes old events new ones to a
	// receiver's inbox.
	Source string
	// Secrets sign each event, all of them: whsec_ and base64, 24 to 64 random bytes
	// each. To change one, let it sign beside the new one until every receiver
	// knows that.
	Secrets []string
	// Client sends the requests: one with a proxy, a certificate or an egress rule of
	// the host's. Its redirects are turned off. Nil is one that gives up after 10 s.
	Client *http.Client
	// Now is the clock that signatures are dated by, time.Now where it is nil.
	Now func() time.Time
}

// Sink posts events to one receiver. It is safe for concurrent use. A host with
// several receivers gives several to [settle.WithOutbox], where each event goes to
// all of them, or chooses among them in a [settle.SinkFunc].
type Sink struct {
	url    string
	source string
	keys   keys
	client *http.Client
	clock  func() time.Time
}

var _ settle.Sink = (*Sink)(nil)

// New returns a sink, or says what is wrong with the configuration, without
// repeating any of it.
func New(c Config) (*Sink, error) {
	to, err := url.Parse(c.URL)
	if err != nil || to.Host == "" || to.Scheme != "https" && to.Scheme != "http" {
		return nil, errors.New("webhook: Config.URL isn't an absolute https or http URL")
	}
	if _, err := url.Parse(c.Source); err != nil || c.Source == "" {
		return nil, errors.New("webhook: Config.Source isn't a URI reference, which CloudEvents requires of a source")
	}
	keys, err := parseKeys(c.Secrets)
	if err != nil {
		return nil, err
	}
	return &Sink{url: c.URL, source: c.Source, keys: keys, client: client(c.Client), clock: c.Now}, nil
}

// client is the host's with redirects turned off, or one of its own.
func client(of *http.Client) *http.Client {
	c := http.Client{Timeout: answerTimeout}
	if of != nil {
		c = *of
	} else {
		c.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: answerTimeout}).DialContext,
			TLSHandshakeTimeout: answerTimeout, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: idleConns,
			IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswerHeader,
		}
	}
	// What was signed for one receiver isn't given to another.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// DeliveryError says that an event wasn't taken. Its text names neither the
// receiver nor what either side said (R55).
type DeliveryError struct {
	// Status is the receiver's answer, 0 where none came.
	Status int
	// cause is why none came.
	cause error
}

func (e *DeliveryError) Error() string {
	var timeout interface{ Timeout() bool }
	switch {
	case e.Status != 0 && gone(e.Status):
		return fmt.Sprintf("webhook: the receiver answered %d %s, which means never, where 2xx takes an event: it was given up", e.Status, strings.ToLower(http.StatusText(e.Status)))
	case e.Status != 0:
		return fmt.Sprintf("webhook: the receiver answered %d where 2xx takes an event: it comes again", e.Status)
	case errors.As(e.cause, &timeout) && timeout.Timeout():
		return "webhook: the receiver didn't answer in time: the event comes again"
	}
	return "webhook: the receiver can't be reached or broke off: the event comes again"
}

// Unwrap returns what the network said where no answer came, which may name hosts.
func (e *DeliveryError) Unwrap() error { return e.cause }

// Deliver implements [settle.Sink]. The package's comment says what each answer
// means; an error holds a [*DeliveryError].
func (s *Sink) Deliver(ctx context.Context, d settle.Delivery) error {
	body, err := encode(s.source, d)
	if err != nil {
		return settle.Rejected(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("webhook: no request can be made for Config.URL")
	}
	request.Header.Set("Content-Type", contentType)
	s.keys.sign(request.Header, d.ID, now(s.clock), body)
	response, err := s.client.Do(request)
	if err != nil {
		// The outer error has the URL, and that may have a secret.
		if outer := (*url.Error)(nil); errors.As(err, &outer) {
			err = outer.Err
		}
		return &DeliveryError{cause: err}
	}
	defer response.Body.Close()
	// The status decides: a body that breaks off changes nothing.
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	return s.meaning(response)
}

// meaning is what an answer means to the relay.
func (s *Sink) meaning(response *http.Response) error {
	err := &DeliveryError{Status: response.StatusCode}
	switch {
	case response.StatusCode >= 200 && response.StatusCode <= 299:
		return nil
	case gone(response.StatusCode):
		return settle.Rejected(err)
	case response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable:
		return settle.NotSent(err, settle.RetryAfter(s.wait(response.Header.Get("Retry-After"))))
	}
	return err
}

// gone holds for the answers that say never.
func gone(status int) bool {
	switch status {
	case http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// wait reads a Retry-After; 0 where it asks for nothing.
func (s *Sink) wait(retryAfter string) time.Duration {
	wait, _ := retryafter.Wait(retryAfter, now(s.clock), longestWait)
	return wait
}
