package mailtool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"

	"github.com/settle-go/settle"
)

// Security is how the connection to a relay is protected.
type Security uint8

const (
	// StartTLS demands the extension of RFC 3207: a relay without it gets nothing.
	StartTLS Security = iota
	// ImplicitTLS begins with TLS, as submission on port 465 does (RFC 8314).
	ImplicitTLS
	// Plaintext has none: for a relay on the same machine.
	Plaintext
)

// Relay is the server that mail is submitted to.
type Relay struct {
	// Address is host:port.
	Address  string
	Security Security
	// TLS says how the relay is verified. Default: by its host name.
	TLS *tls.Config
	// Username and Password authenticate by PLAIN (RFC 4616), over TLS only.
	Username, Password string
	// Hello is the name that the client gives itself. Default: localhost.
	Hello string
}

func (r Relay) check() (host string, err error) {
	host, _, err = net.SplitHostPort(r.Address)
	switch {
	case err != nil:
		return "", errors.New("the relay's Address isn't host:port")
	case r.Security > Plaintext:
		return "", errors.New("the relay's Security is none of StartTLS, ImplicitTLS and Plaintext")
	case r.Security == Plaintext && r.Username != "":
		return "", errors.New("the relay has a password and no TLS, which would show it to everybody on the way")
	case strings.ContainsFunc(r.Hello, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return "", errors.New("the relay's Hello is no host name")
	}
	return host, nil
}

// Phase is how far the dialogue with the relay was when it ended.
type Phase string

// The phases, in their order. Up to PhaseText nothing can have been sent on: a
// relay drops a message whose end it hasn't seen (RFC 5321 section 4.1.1.10). With
// PhaseEnd the relay has the message, and whether it took it is what it answers.
const (
	PhaseConnect   Phase = "connect"
	PhaseHello     Phase = "hello"
	PhaseAuth      Phase = "auth"
	PhaseSender    Phase = "sender"
	PhaseRecipient Phase = "recipient"
	PhaseData      Phase = "data"
	PhaseText      Phase = "text"
	PhaseEnd       Phase = "end"
)

// Error is how a submission fails. Its text holds no addresses and nothing of
// what the relay said but its codes (R55).
type Error struct {
	Phase Phase
	// Code is the relay's answer, 0 where there was none; Enhanced is its code of
	// RFC 3463, such as 5.1.1, or "".
	Code     int
	Enhanced string
	cause    error
}

func (e *Error) Error() string {
	switch {
	case e.Code == 0 && e.Phase == PhaseEnd:
		return "the relay has the whole message and didn't answer whether it took it"
	case e.Code == 0:
		return fmt.Sprintf("the dialogue with the relay broke off (%s) before the message was complete; nothing was sent", e.Phase)
	case e.Enhanced != "":
		return fmt.Sprintf("the relay refused the mail (%s) with %d %s", e.Phase, e.Code, e.Enhanced)
	}
	return fmt.Sprintf("the relay refused the mail (%s) with %d", e.Phase, e.Code)
}

// Unwrap is the error of the layer below. Its text may hold addresses.
func (e *Error) Unwrap() error { return e.cause }

// failed says what an error in a phase proves (R27).
func failed(phase Phase, err error) error {
	e := &Error{Phase: phase, cause: err}
	var answer *textproto.Error
	if errors.As(err, &answer) {
		e.Code, e.Enhanced = answer.Code, enhanced(answer.Msg)
	}
	refused := phase == PhaseSender || phase == PhaseRecipient || phase == PhaseData || phase == PhaseEnd
	switch {
	case refused && e.Code/100 == 5:
		return settle.Rejected(e)
	case phase == PhaseEnd && e.Code/100 != 4:
		return e
	}
	// Among these a refusal of the message's end for now: after it the relay must
	// not deliver, and the message is the client's again (RFC 5321 section 4.2.5).
	return settle.NotSent(e)
}

// enhanced finds a code of RFC 3463 at the beginning of an answer.
func enhanced(text string) string {
	code, _, _ := strings.Cut(text, " ")
	var class, subject, detail uint
	if n, err := fmt.Sscanf(code, "%1d.%3d.%3d", &class, &subject, &detail); n != 3 || err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", class, subject, detail)
}

// quitTimeout bounds the good-bye, whose answer changes nothing.
const quitTimeout = time.Second

// submit hands a letter to the relay. A nil error says that the relay took it.
func (r Relay) submit(ctx context.Context, host, from string, to []string, letter []byte) error {
	conn, err := r.connect(ctx, host)
	if err != nil {
		return failed(PhaseConnect, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return failed(PhaseHello, err)
	}
	if err := r.hello(c, host); err != nil {
		return failed(PhaseHello, err)
	}
	if r.Username != "" {
		if err := c.Auth(smtp.PlainAuth("", r.Username, r.Password, host)); err != nil {
			return failed(PhaseAuth, err)
		}
	}
	if err := c.Mail(from); err != nil {
		return failed(PhaseSender, err)
	}
	for _, address := range to {
		// One refused recipient refuses the mail: half of it would be neither done
		// nor undone.
		if err := c.Rcpt(address); err != nil {
			return failed(PhaseRecipient, err)
		}
	}
	if err := deliver(c, letter); err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(quitTimeout))
	_ = c.Quit()
	return nil
}

// deliver writes the letter and its end, and reads the answer to that.
func deliver(c *smtp.Client, letter []byte) error {
	w, err := c.Data()
	if err != nil {
		return failed(PhaseData, err)
	}
	if _, err := w.Write(letter); err != nil {
		return failed(PhaseText, err)
	}
	// What is still buffered goes out here, so that it is flushed apart from the
	// end of the message: without the end there is no message.
	if err := c.Text.W.Flush(); err != nil {
		return failed(PhaseText, err)
	}
	err = w.Close()
	var answer *textproto.Error
	if err == nil || errors.As(err, &answer) && answer.Code/100 == 2 {
		return nil
	}
	return failed(PhaseEnd, err)
}

func (r Relay) connect(ctx context.Context, host string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", r.Address)
	if err != nil || r.Security != ImplicitTLS {
		return conn, err
	}
	secured := tls.Client(conn, r.config(host))
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

var errNoStartTLS = errors.New("mailtool: the relay offers no STARTTLS, and nothing is sent to it without")

func (r Relay) hello(c *smtp.Client, host string) error {
	name := r.Hello
	if name == "" {
		name = "localhost"
	}
	if err := c.Hello(name); err != nil {
		return err
	}
	if r.Security != StartTLS {
		return nil
	}
	if offered, _ := c.Extension("STARTTLS"); !offered {
		return errNoStartTLS
	}
	return c.StartTLS(r.config(host))
}

func (r Relay) config(host string) *tls.Config {
	config := &tls.Config{}
	if r.TLS != nil {
		config = r.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	return config
}
