//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// session is the program on a terminal of its own.
type session struct {
	t      *testing.T
	screen *os.File
	seen   bytes.Buffer
	exited chan int
}

// onTerminal starts the program on a terminal.
func onTerminal(t *testing.T, width uint16, env map[string]string, args ...string) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := child(ctx, env, args...)
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: width})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	s := &session{t: t, screen: screen, exited: make(chan int, 1)}
	go func() {
		_ = cmd.Wait() // the exit code says it all
		s.exited <- cmd.ProcessState.ExitCode()
	}()
	return s
}

// await reads what the program writes until a text is there.
func (s *session) await(text string) {
	s.t.Helper()
	if err := s.screen.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		s.t.Fatal(err)
	}
	var one [1]byte
	for !strings.Contains(s.seen.String(), text) {
		if _, err := s.screen.Read(one[:]); err != nil {
			s.t.Fatalf("the terminal shows no %q: %v\n%s", text, err, s.seen.String())
		}
		s.seen.WriteByte(one[0])
	}
}

func (s *session) typed(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.screen, text); err != nil {
		s.t.Fatal(err)
	}
}

// end reads on to the end and returns all that was shown.
func (s *session) end(exit int) string {
	s.t.Helper()
	// Linux says EIO where the last process has left the terminal.
	if _, err := io.Copy(&s.seen, s.screen); err != nil && !errors.Is(err, syscall.EIO) {
		s.t.Fatal(err)
	}
	if got := <-s.exited; got != exit {
		s.t.Errorf("exit code %d, want %d\n%s", got, exit, s.seen.String())
	}
	return strings.ReplaceAll(s.seen.String(), "\r\n", "\n")
}

func TestAPersonDecidesAtATerminal(t *testing.T) {
	t.Parallel()
	w := newSQLite(t).hire()
	reference := w.manual("refund", "o-1")
	s := onTerminal(t, 100, w.env, "queue", "decide", reference, "fail", "--reason", "no transfer")
	s.await("type the version: ")
	s.typed("3\n")
	contains(t, s.end(0), "refund of acme, task case-42: manual", "The case is at version 3.", "Decided: fail.")
}

func TestOutputFitsARealTerminal(t *testing.T) {
	t.Parallel()
	w := newSQLite(t).hire()
	w.manual("refund", "o-1")
	for _, width := range []uint16{70, 200} {
		out := onTerminal(t, width, w.env, "queue", "list").end(0)
		if !strings.HasPrefix(out, "\x1b[1mOPERATION ") || strings.Contains(out, "\t") {
			t.Errorf("on a terminal of %d cells: %q", width, out)
		}
		for l := range strings.Lines(unstyled(t, out)) {
			if n := cells.StringWidth(strings.TrimRight(l, "\n")); n > int(width) {
				t.Errorf("a line of %d cells on a terminal of %d: %q", n, width, l)
			}
		}
		if strings.Contains(out, "TENANT") != (width == 200) {
			t.Errorf("on a terminal of %d cells the columns are %q", width, strings.SplitN(out, "\n", 2)[0])
		}
	}
}

func TestAnInterruptEndsAWait(t *testing.T) {
	t.Parallel()
	w := newSQLite(t).hire()
	reference := w.manual("refund", "o-1")
	s := onTerminal(t, 80, w.env, "ops", "wait", reference)
	s.await("waiting until it is settled")
	s.typed("\x03")
	contains(t, s.end(1), "the operation is not settled yet")
}
