package mailtool_test

import (
	"mime"
	"net/mail"
	"strconv"
	"strings"
	"testing"

	"github.com/settle-go/settle"
)

// A model can't write what a mail program decodes to other characters than those
// that were checked.
func TestASubjectReadsAsItWasWritten(t *testing.T) {
	t.Parallel()
	r := newRelay(t, nil)
	h := newHost(t, onSQLite(t), r.plain())
	for n, subject := range []string{"=?utf-8?q?a=0D=0ABcc:_eve=40example.com?=", strings.Repeat("=?utf-8?q?=41?= ", 20) + "end", "1 =? 2", "a ?= =? b", "plain"} {
		m := reminder
		m.Purpose, m.Subject = strconv.Itoa(n), subject
		h.want(h.send(m), settle.StatusCompleted)
		got, err := mail.ReadMessage(strings.NewReader(r.taken()[n].data))
		if err != nil {
			t.Fatal(err)
		}
		if read, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject")); err != nil || read != subject {
			t.Errorf("the subject %q reads %q, error %v", subject, read, err)
		}
	}
}
