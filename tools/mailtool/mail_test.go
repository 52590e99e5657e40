package mailtool_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/mailtool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// plain is a relay of the test without TLS.
func (r *relay) plain() mailtool.Relay {
	return mailtool.Relay{Address: r.listener.Addr().String(), Security: mailtool.Plaintext}
}

func (r *relay) secured(how mailtool.Security) mailtool.Relay {
	return mailtool.Relay{Address: r.listener.Addr().String(), Security: how, TLS: &tls.Config{RootCAs: r.roots}, Username: "agent", Password: "s3cret"}
}

type host struct {
	*testing.T
	x   *settle.Executor
	ctx context.Context
}

func newHost(t *testing.T, l store.Ledger, relay mailtool.Relay, edits ...func(*mailtool.Config)) *host {
	t.Helper()
	config := mailtool.Config{From: "Support <support@example.org>", Contract: settle.Contract{Timeout: 5 * time.Second}}
	for _, edit := range edits {
		edit(&config)
	}
	if config.Contract.NoLookup = config.Find == nil; config.Find != nil {
		config.Contract.VisibilityDelay = settle.Immediately
	}
	tool, err := mailtool.New(relay, config)
	if err != nil {
		t.Fatal(err)
	}
	x, err := settle.New(l, settle.WithTools(tool), settle.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := x.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "agent"})
	return &host{t, x, settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})}
}

func onSQLite(t *testing.T) store.Ledger {
	t.Helper()
	l, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "settle.db"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (h *host) send(m mailtool.Message) settle.Outcome {
	h.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		h.Fatal(err)
	}
	out, err := h.x.Execute(h.ctx, settle.Call{Tool: "send_mail", Args: raw, CallID: rand.Text()})
	if err != nil {
		h.Fatal(err)
	}
	return out
}

func (h *host) want(out settle.Outcome, status settle.Status) settle.Outcome {
	h.Helper()
	if out.Status != status {
		h.Fatalf("got %s (%s), want %s: %s", out.Status, out.Reason, status, out.ForModel())
	}
	return out
}

var reminder = mailtool.Message{To: "eve@example.com", Purpose: "reminder", Cc: []string{"bob@example.com"}, Subject: "Grüße: reminder", Text: "Please pay.\n.\n..and thank you, Ève\n"}

func TestAMailIsSentOnceAndReadsAsItWasWritten(t *testing.T) {
	t.Parallel()
	for name, ledger := range map[string]func(t *testing.T) store.Ledger{
		"sqlite": onSQLite,
		"postgres": func(t *testing.T) store.Ledger {
			db := pgtest.New(t)
			l, err := postgres.New(t.Context(), db.Pool(t), postgres.WithSchema(db.Schema(t)))
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, nil)
			h := newHost(t, ledger(t), r.secured(mailtool.StartTLS), func(c *mailtool.Config) { c.ReplyTo = "desk@example.org"; c.Domain = "mail.example.org" })
			out := h.want(h.send(reminder), settle.StatusCompleted)
			replay := h.want(h.send(reminder), settle.StatusCompleted)
			if !replay.Replayed || replay.Resource != out.Resource {
				t.Errorf("the second call is no replay of the first: %+v", replay)
			}
			mails := r.taken()
			if len(mails) != 1 {
				t.Fatalf("%d mails", len(mails))
			}
			if m := mails[0]; !m.tls || !m.auth || !strings.HasPrefix(m.from, "FROM:<support@example.org>") || strings.Join(m.to, " ") != "TO:<eve@example.com> TO:<bob@example.com>" {
				t.Errorf("got %+v", m)
			}
			read(t, mails[0].data, out.Resource)
		})
	}
}

func read(t *testing.T, data, id string) {
	t.Helper()
	for line := range strings.SplitSeq(data, "\r\n") {
		if len(line) > 78 || strings.ContainsAny(line, "\r\n") {
			t.Errorf("a line has %d bytes, or a bare line break", len(line))
		}
	}
	m, err := mail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != reminder.Subject || strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n") != strings.TrimRight(reminder.Text, "\n") {
		t.Errorf("subject %q, text %q, %v", subject, text, err)
	}
	if got := m.Header.Get("Message-Id"); got != "<"+id+">" || !strings.HasSuffix(id, "@mail.example.org") {
		t.Errorf("Message-ID %s, resource %s", got, id)
	}
	if _, err := m.Header.Date(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"To": "<eve@example.com>", "Cc": "<bob@example.com>", "From": `"Support" <support@example.org>`, "Reply-To": "<desk@example.org>", "MIME-Version": "1.0"} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// What each end of the dialogue proves.
func TestR27PhasesTellNotSentFromUnknown(t *testing.T) {
	t.Parallel()
	type ending struct {
		step, says string
		want       settle.Status
		mails      int
	}
	endings := []ending{
		{"end", cut, settle.StatusUnknown, 1},
		{"end", hang, settle.StatusUnknown, 1},
		{"end", "garbage", settle.StatusUnknown, 0},
		{"end", "354 more?", settle.StatusUnknown, 0},
		{"end", "250 2.0.0 queued", settle.StatusCompleted, 1},
		{"end", "252 perhaps", settle.StatusCompleted, 1},
		{"end", "451 4.3.0 not now", settle.StatusNotDone, 0},
		{"end", "421 4.3.2 shutting down", settle.StatusNotDone, 0},
		{"end", "554 5.7.1 spam", settle.StatusFailed, 0},
	}
	for _, step := range []string{"greeting", "EHLO", "MAIL", "RCPT", "DATA"} {
		endings = append(endings, ending{step, cut, settle.StatusNotDone, 0}, ending{step, hang, settle.StatusNotDone, 0},
			ending{step, "451 4.7.1 come back later", settle.StatusNotDone, 0})
	}
	for _, step := range []string{"MAIL", "RCPT", "DATA"} {
		endings = append(endings, ending{step, "550 5.1.1 no", settle.StatusFailed, 0})
	}
	// What refuses the session says nothing of the mail.
	endings = append(endings, ending{"greeting", "554 5.7.1 not you", settle.StatusNotDone, 0}, ending{"EHLO", "550 5.5.0 no", settle.StatusNotDone, 0})
	for _, tc := range endings {
		t.Run(tc.step+" "+tc.says, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, map[string]string{tc.step: tc.says, "HELO": tc.says})
			h := newHost(t, onSQLite(t), r.plain(), func(c *mailtool.Config) {
				if tc.says == hang {
					c.Contract.Timeout = 300 * time.Millisecond
				}
			})
			out := h.want(h.send(reminder), tc.want)
			if n := len(r.taken()); n != tc.mails {
				t.Errorf("the relay took %d mails, want %d", n, tc.mails)
			}
			if tc.want == settle.StatusFailed && !strings.Contains(out.Detail, strings.Join(strings.Fields(tc.says)[:2], " ")) {
				t.Errorf("the detail is %q", out.Detail)
			}
		})
	}
}

func TestR27NoRelayAndNoTLSAreNotSent(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	plain := newRelay(t, nil, func(r *relay) { r.noTLS = true })
	stranger := newRelay(t, nil)
	unknown := stranger.secured(mailtool.StartTLS)
	unknown.TLS = nil
	refused := newRelay(t, map[string]string{"AUTH": "535 5.7.8 no"})
	for name, relay := range map[string]mailtool.Relay{
		"no relay":               {Address: closed.Addr().String()},
		"no STARTTLS":            plain.secured(mailtool.StartTLS),
		"an unknown certificate": unknown,
		"no TLS at all":          plain.secured(mailtool.ImplicitTLS),
		"not authenticated":      refused.secured(mailtool.StartTLS),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, onSQLite(t), relay, func(c *mailtool.Config) { c.Contract.Timeout = time.Second })
			h.want(h.send(reminder), settle.StatusNotDone)
		})
	}
	t.Cleanup(func() {
		for _, r := range []*relay{plain, stranger, refused} {
			if len(r.taken()) > 0 {
				t.Error("a mail was sent")
			}
			for _, command := range r.commands {
				if r == plain && strings.HasPrefix(command, "AUTH") {
					t.Error("the password went over a connection without TLS")
				}
			}
		}
	})
}

func TestImplicitTLS(t *testing.T) {
	t.Parallel()
	r := newRelay(t, nil, func(r *relay) { r.implicit = true })
	h := newHost(t, onSQLite(t), r.secured(mailtool.ImplicitTLS))
	h.want(h.send(reminder), settle.StatusCompleted)
	if mails := r.taken(); len(mails) != 1 || !mails[0].auth {
		t.Errorf("got %+v", mails)
	}
}

func TestS18ALostAnswerIsLookedUpByMessageID(t *testing.T) {
	t.Parallel()
	r := newRelay(t, map[string]string{"end": cut})
	archive := func(_ context.Context, id string) (bool, error) {
		for _, m := range r.taken() {
			if strings.Contains(m.data, "Message-ID: <"+id+">\r\n") {
				return true, nil
			}
		}
		return false, nil
	}
	h := newHost(t, onSQLite(t), r.plain(), func(c *mailtool.Config) { c.Find = archive })
	out := h.want(h.send(reminder), settle.StatusCompleted)
	if len(r.taken()) != 1 || !strings.Contains(r.taken()[0].data, out.Resource) {
		t.Errorf("%d mails, resource %s", len(r.taken()), out.Resource)
	}
	h.want(h.send(reminder), settle.StatusCompleted)
	if len(r.taken()) != 1 {
		t.Errorf("%d mails", len(r.taken()))
	}

	empty := newHost(t, onSQLite(t), newRelay(t, map[string]string{"end": cut}).plain(),
		func(c *mailtool.Config) { c.Find = func(context.Context, string) (bool, error) { return false, nil } })
	empty.want(empty.send(reminder), settle.StatusNotDone)
	silent := newHost(t, onSQLite(t), newRelay(t, map[string]string{"end": cut}).plain(),
		func(c *mailtool.Config) {
			c.Find = func(context.Context, string) (bool, error) { return false, errors.New("the archive is down") }
		})
	silent.want(silent.send(reminder), settle.StatusUnknown)
}

func TestS29AnotherWordingIsAConflict(t *testing.T) {
	t.Parallel()
	r := newRelay(t, nil)
	h := newHost(t, onSQLite(t), r.plain())
	h.want(h.send(reminder), settle.StatusCompleted)
	other := reminder
	other.Text = "Pay now."
	if out := h.want(h.send(other), settle.StatusConflict); strings.Join(out.Fields, " ") != "text" {
		t.Errorf("the fields that differ are %q", out.Fields)
	}
	other.Purpose = "reminder-2"
	h.want(h.send(other), settle.StatusCompleted)
	if n := len(r.taken()); n != 2 {
		t.Errorf("%d mails", n)
	}
}

// A model that begins anew writes the address and the purpose another way.
func TestS29AnAddressInCapitalsIsTheSame(t *testing.T) {
	t.Parallel()
	r := newRelay(t, nil)
	h := newHost(t, onSQLite(t), r.plain())
	first := h.want(h.send(reminder), settle.StatusCompleted)
	again := reminder
	again.To, again.Purpose = strings.ToUpper(again.To), strings.ToUpper(again.Purpose)
	if out := h.want(h.send(again), settle.StatusCompleted); !out.Replayed || out.Operation != first.Operation {
		t.Errorf("got %s", out.ForModel())
	}
	if n := len(r.taken()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

func TestMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*mailtool.Message){
		"a header in the subject":   func(m *mailtool.Message) { m.Subject = "a\r\nBcc: everybody@s3cret.example" },
		"a header in the recipient": func(m *mailtool.Message) { m.To = "eve@example.com\r\nBcc: bob@s3cret.example" },
		"two recipients":            func(m *mailtool.Message) { m.To = "eve@example.com, bob@s3cret.example" },
		"a command":                 func(m *mailtool.Message) { m.To = "eve@example.com>\r\nDATA" },
		"a name":                    func(m *mailtool.Message) { m.To = "Eve <eve@s3cret.example>" },
		"no address":                func(m *mailtool.Message) { m.To = "s3cret" },
		"no recipient":              func(m *mailtool.Message) { m.To = "" },
		"a long address":            func(m *mailtool.Message) { m.To = strings.Repeat("s3cret.", 40) + "@example.com" },
		"another alphabet":          func(m *mailtool.Message) { m.To = "ève@example.com" },
		"a bad copy":                func(m *mailtool.Message) { m.Cc = []string{"bob@example.com", "s3cret"} },
		"many copies":               func(m *mailtool.Message) { m.Cc = strings.Fields(strings.Repeat("bob@example.com ", 51)) },
		"a long subject":            func(m *mailtool.Message) { m.Subject = strings.Repeat("s3cret", 100) },
		"a NUL":                     func(m *mailtool.Message) { m.Text = "s3cret\x00" },
		"one that isn't allowed":    func(m *mailtool.Message) { m.Cc = []string{"bob@elsewhere.example"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, nil)
			h := newHost(t, onSQLite(t), r.plain(), func(c *mailtool.Config) {
				c.Allow = func(_ context.Context, address string) error {
					if !strings.HasSuffix(address, "@example.com") {
						return errors.New("mail goes to example.com only")
					}
					return nil
				}
			})
			m := reminder
			edit(&m)
			out := h.want(h.send(m), settle.StatusFailed)
			if strings.Contains(out.Detail, "s3cret") || out.Detail == "" {
				t.Errorf("the detail is %q", out.Detail)
			}
			if len(r.commands) > 0 {
				t.Errorf("the relay was told %q", r.commands)
			}
		})
	}
}

func TestSMTPSmugglingIsHarmless(t *testing.T) {
	t.Parallel()
	r := newRelay(t, nil)
	h := newHost(t, onSQLite(t), r.plain())
	m := reminder
	m.Text = "a\n.\nMAIL FROM:<x@example.org>\r.\rb\r\n.\r\nQUIT"
	h.want(h.send(m), settle.StatusCompleted)
	mails := r.taken()
	if len(mails) != 1 || !strings.Contains(mails[0].data, "\r\nQUIT") {
		t.Errorf("%d mails: %+v", len(mails), mails)
	}
}

func TestR55ErrorsHoldNoAddresses(t *testing.T) {
	t.Parallel()
	r := newRelay(t, map[string]string{"RCPT": "550 5.1.1 <eve@example.com> unknown here"})
	h := newHost(t, onSQLite(t), r.plain())
	if out := h.want(h.send(reminder), settle.StatusFailed); strings.Contains(out.Detail, "@") || !strings.Contains(out.Detail, "550 5.1.1") {
		t.Errorf("the detail is %q", out.Detail)
	}
}

func TestWrongConfigurationsAreRefused(t *testing.T) {
	t.Parallel()
	for says, edit := range map[string]func(*mailtool.Relay, *mailtool.Config){
		"isn't host:port":         func(r *mailtool.Relay, _ *mailtool.Config) { r.Address = "relay.example.org" },
		"none of StartTLS":        func(r *mailtool.Relay, _ *mailtool.Config) { r.Security = 9 },
		"a password and no TLS":   func(r *mailtool.Relay, _ *mailtool.Config) { r.Security, r.Username = mailtool.Plaintext, "agent" },
		"Hello is no host name":   func(r *mailtool.Relay, _ *mailtool.Config) { r.Hello = "a\r\nb" },
		"From is no mail address": func(_ *mailtool.Relay, c *mailtool.Config) { c.From = "support" },
		"ReplyTo is no":           func(_ *mailtool.Relay, c *mailtool.Config) { c.ReplyTo = "desk" },
		"Domain is no host name":  func(_ *mailtool.Relay, c *mailtool.Config) { c.Domain = "a b" },
		"so the class is Unsafe":  func(_ *mailtool.Relay, c *mailtool.Config) { c.Contract.Class = settle.Idempotent },
		"From has a character":    func(_ *mailtool.Relay, c *mailtool.Config) { c.From = "ève@example.org" },
	} {
		relay, config := mailtool.Relay{Address: "relay.example.org:587"}, mailtool.Config{From: "support@example.org"}
		edit(&relay, &config)
		if _, err := mailtool.New(relay, config); err == nil || !strings.Contains(err.Error(), "give it Find, or say NoLookup") {
			t.Errorf("without Find: got %v", err)
		}
		config.Contract.NoLookup = true
		if _, err := mailtool.New(relay, config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error that says %q, got %v", says, err)
		}
	}
}
