package mailtool

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Message is what a model writes: a mail in plain text. Whom it goes to and what
// it is for identify it; a second one for the same purpose with another text is a
// conflict and not a second mail (R17).
type Message struct {
	To      string   `json:"to" settle:"identity" jsonschema:"description=The recipient's mail address."`
	Purpose string   `json:"purpose" settle:"identity" jsonschema:"description=What the mail is for in a word or two\\, the same each time: order-confirmation\\, reminder-1. It isn't sent."`
	Cc      []string `json:"cc,omitempty" jsonschema:"description=Mail addresses that get a copy."`
	Subject string   `json:"subject"`
	Text    string   `json:"text" jsonschema:"description=The mail's text\\, without markup."`
}

// Sent is what became of it.
type Sent struct {
	// MessageID is the mail's Message-ID, without the angle brackets.
	MessageID string `json:"message_id" settle:"resource"`
}

// The limits of RFC 5321 section 4.5.3.1, and of a subject.
const (
	maxAddress = 254 // bytes
	maxSubject = 400 // bytes
	maxCc      = 50
)

// recipients are the addresses of a message that was checked, To first.
func (m Message) recipients() ([]string, error) {
	if len(m.Cc) > maxCc {
		return nil, fmt.Errorf("cc has %d addresses and at most %d are allowed", len(m.Cc), maxCc)
	}
	all := make([]string, 0, 1+len(m.Cc))
	for i, given := range append([]string{m.To}, m.Cc...) {
		field := "to"
		if i > 0 {
			field = fmt.Sprintf("cc.%d", i-1)
		}
		address, err := parseAddress(given)
		if err != nil {
			return nil, fmt.Errorf("%s %w", field, err)
		}
		all = append(all, address)
	}
	return all, nil
}

// parseAddress takes a bare address: user@example.org. Its error doesn't hold it.
func parseAddress(given string) (string, error) {
	if strings.ContainsFunc(given, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`<>,;:\"()[]`, r) }) {
		return "", errors.New("has a character that a bare mail address in ASCII doesn't: give one such as user@example.org, without a name")
	}
	if len(given) > maxAddress {
		return "", fmt.Errorf("is longer than %d bytes (RFC 5321 section 4.5.3.1)", maxAddress)
	}
	parsed, err := mail.ParseAddress(given)
	if err != nil || parsed.Address != given || parsed.Name != "" {
		return "", errors.New("is no mail address: give one such as user@example.org")
	}
	return given, nil
}

func (m Message) check() error {
	var problems []error
	if strings.ContainsFunc(m.Subject, unicode.IsControl) {
		problems = append(problems, errors.New("subject has a line break or another control character: write it in one line"))
	}
	if len(m.Subject) > maxSubject {
		problems = append(problems, fmt.Errorf("subject is longer than %d bytes", maxSubject))
	}
	if strings.ContainsFunc(m.Text, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\r\n\t", r) }) {
		problems = append(problems, errors.New("text has a control character other than line breaks and tabs"))
	}
	return errors.Join(problems...)
}

// letter writes the message as RFC 5322 says. Its text is quoted-printable, so that
// no line is too long and every line ends in CR and LF, whatever the text has.
func (m Message) letter(from, replyTo *mail.Address, id string, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	header("From", from.String())
	header("To", "<"+m.To+">")
	if len(m.Cc) > 0 {
		header("Cc", "<"+strings.Join(m.Cc, ">,\r\n <")+">")
	}
	if replyTo != nil {
		header("Reply-To", replyTo.String())
	}
	header("Subject", subjectLine(m.Subject))
	header("Date", at.Format(time.RFC1123Z))
	header("Message-ID", "<"+id+">")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, err := w.Write([]byte(m.Text))
	err = errors.Join(err, w.Close()) // which writes the last line
	return b.Bytes(), err
}

// subjectLine writes a subject so that it reads as it was written. What looks like
// an encoded word of RFC 2047 is encoded itself: a reader would decode it, to
// whatever characters it stands for.
func subjectLine(text string) string {
	encoded := mime.QEncoding.Encode("utf-8", text)
	if encoded != text || !strings.Contains(text, "=?") {
		return strings.ReplaceAll(encoded, "?= =?", "?=\r\n =?")
	}
	var words []string
	for part := range slices.Chunk([]byte(text), 42) { // ASCII; a word has at most 75 characters
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString(part)+"?=")
	}
	return strings.Join(words, "\r\n ")
}
