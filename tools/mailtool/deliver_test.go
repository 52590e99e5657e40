package mailtool

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/smtp"
	"strings"
	"testing"
)

// Over a pipe, which keeps nothing, the client meets the cut while it writes. Over
// a network it may only meet it when it waits for the answer to the end, which is
// then an unknown outcome.
func TestR27ATextWithoutItsEndIsNotSent(t *testing.T) {
	t.Parallel()
	letter := []byte(strings.Repeat("0123456789\r\n", 1000))
	for name, tc := range map[string]struct {
		read  int64 // bytes of the text that the relay takes
		phase Phase
	}{
		"in the text":           {1000, PhaseText},
		"before its last bytes": {int64(len(letter)) - 1, PhaseText},
		"before its end":        {int64(len(letter)), PhaseEnd},
	} {
		client, server := net.Pipe()
		go func() {
			in := bufio.NewReaderSize(server, 16)
			io.WriteString(server, "220 relay.test\r\n")
			for _, answer := range []string{"250 relay.test\r\n", "354 go on\r\n"} {
				in.ReadString('\n')
				io.WriteString(server, answer)
			}
			io.CopyN(io.Discard, server, tc.read)
			server.Close()
		}()
		c, err := smtp.NewClient(client, "relay.test")
		if err == nil {
			err = c.Hello("localhost")
		}
		if err != nil {
			t.Fatal(err)
		}
		var got *Error
		if err := deliver(c, letter); !errors.As(err, &got) || got.Phase != tc.phase {
			t.Errorf("%s: error %v, want one of phase %s", name, err, tc.phase)
		}
		client.Close()
	}
}
