package mailtool_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// What a scripted relay does at a step instead of its usual answer.
const (
	cut  = "cut"  // it closes the connection
	hang = "hang" // it says nothing until the client goes
)

// relay is an SMTP server that speaks the protocol over TCP, follows a script
// where it has one, and keeps what it took.
type relay struct {
	t        *testing.T
	listener net.Listener
	cert     tls.Certificate
	roots    *x509.CertPool
	implicit bool
	noTLS    bool
	// script is what happens at a step: greeting, EHLO, STARTTLS, AUTH, MAIL,
	// RCPT, DATA, end.
	script map[string]string

	mu       sync.Mutex
	mails    []received
	commands []string
	conns    sync.WaitGroup
}

type received struct {
	from string
	to   []string
	data string
	tls  bool
	auth bool
}

func newRelay(t *testing.T, script map[string]string, edits ...func(*relay)) *relay {
	t.Helper()
	// Its certificate is the one that httptest has for loopback.
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	defer certified.Close()
	r := &relay{t: t, script: script, cert: certified.TLS.Certificates[0], roots: certified.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	for _, edit := range edits {
		edit(r)
	}
	var err error
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	r.conns.Go(r.accept)
	t.Cleanup(func() {
		r.listener.Close()
		r.conns.Wait()
	})
	return r
}

func (r *relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.conns.Go(func() {
			defer conn.Close()
			if r.implicit {
				conn = tls.Server(conn, r.config())
			}
			s := &session{relay: r, conn: conn, in: bufio.NewReader(conn)}
			s.converse()
		})
	}
}

func (r *relay) config() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{r.cert}} }

func (r *relay) taken() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.mails...)
}

// session is one connection.
type session struct {
	*relay
	conn net.Conn
	in   *bufio.Reader
	mail received
}

// say answers a step; it is false where the script ends the dialogue there.
func (s *session) say(step, usual string) bool {
	switch text := s.script[step]; text {
	case "":
		_, err := io.WriteString(s.conn, usual+"\r\n")
		return err == nil
	case cut:
		return false
	case hang:
		_, _ = io.Copy(io.Discard, s.in)
		return false
	default:
		_, err := io.WriteString(s.conn, text+"\r\n")
		return err == nil
	}
}

func (s *session) converse() {
	if !s.say("greeting", "220 relay.test ESMTP") {
		return
	}
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return
		}
		s.mu.Lock()
		s.commands = append(s.commands, strings.TrimSpace(line))
		s.mu.Unlock()
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !s.obey(strings.ToUpper(word), rest) {
			return
		}
	}
}

func (s *session) obey(word, rest string) bool {
	switch word {
	case "EHLO":
		offers := "250-relay.test\r\n250-AUTH PLAIN\r\n"
		if !s.noTLS && !s.mail.tls {
			offers += "250-STARTTLS\r\n"
		}
		return s.say("EHLO", offers+"250 8BITMIME")
	case "STARTTLS":
		if !s.say("STARTTLS", "220 go on") {
			return false
		}
		s.conn = tls.Server(s.conn, s.config())
		s.in = bufio.NewReader(s.conn)
		s.mail.tls = true
		return true
	case "AUTH":
		s.mail.auth = strings.HasPrefix(rest, "PLAIN ")
		return s.say("AUTH", "235 welcome")
	case "MAIL":
		s.mail.from = rest
		return s.say("MAIL", "250 sender ok")
	case "RCPT":
		s.mail.to = append(s.mail.to, rest)
		return s.say("RCPT", "250 recipient ok")
	case "DATA":
		return s.say("DATA", "354 go on") && (s.script["DATA"] != "" || s.text())
	case "QUIT":
		s.say("QUIT", "221 bye")
		return false
	}
	return s.say(word, "502 what?")
}

// text reads a message to its end, and takes it unless the script says otherwise.
func (s *session) text() bool {
	var data strings.Builder
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return false // without its end there is no message
		}
		if line == ".\r\n" {
			break
		}
		data.WriteString(strings.TrimPrefix(line, "."))
	}
	if refusal := s.script["end"]; refusal == "" || refusal == cut || refusal == hang || refusal[0] == '2' {
		s.mail.data = data.String()
		s.mu.Lock()
		s.mails = append(s.mails, s.mail)
		s.mu.Unlock()
	}
	return s.say("end", "250 2.0.0 queued")
}
