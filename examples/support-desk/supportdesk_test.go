package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// world is a shell in an empty folder, with the two programs on its path.
type world struct {
	*testing.T
	programs, folder string
}

// build builds the example and the command line, which is a module of its own.
func build(t *testing.T) (programs string) {
	t.Helper()
	programs = t.TempDir()
	for name, folder := range map[string]string{"desk": ".", "settle": filepath.Join("..", "..", "cmd", "settle")} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(programs, name), ".")
		cmd.Dir = folder
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, said)
		}
	}
	return programs
}

// shell types a line as the operator, and returns what was said, with each
// operation's reference replaced. The line has to end with the exit code.
func (w world) shell(line string, exit int) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "sh", "-c", line)
	cmd.Dir = w.folder
	cmd.Env = append(os.Environ(), "PATH="+w.programs+string(os.PathListSeparator)+os.Getenv("PATH"),
		"SETTLE_OPERATOR=ann", "SETTLE_LEDGER=", "SETTLE_OPERATOR_TENANTS=", "SETTLE_KEYS=", "TMPDIR="+w.folder)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		w.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != exit {
		w.Fatalf("%s: exit code %d, want %d\n%s", line, got, exit, out.String())
	}
	return out.String()
}

// run runs the agent on the ledger; its name needs quotes in a shell.
func (w world) run() string {
	w.Helper()
	return w.shell(`desk --ledger "ann's.db"`, 0)
}

var reference = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// says fails the test where a text isn't the wanted one, references apart.
func (w world) says(text, want string) {
	w.Helper()
	text = reference.ReplaceAllString(text, "REF")
	if strings.TrimSpace(text) != strings.TrimSpace(want) {
		w.Errorf("got:\n%s\nwant:\n%s", text, want)
	}
}

// has fails the test where a text lacks a word.
func (w world) has(text string, words ...string) {
	w.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.Errorf("there is no %q in:\n%s", word, text)
		}
	}
}

// commands are the lines of a text that are to be typed.
func commands(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "settle ") {
			lines = append(lines, line)
		}
	}
	return lines
}

const firstRun = `
What came of its calls:

  open_ticket  completed: tk_0001
  send_mail    manual
  refund       awaiting_approval

Done now: open_ticket. Replayed, with nothing sent: nothing.

At the far sides of this run: tickets opened 1, mails sent 1, refunds made 0.

2 operations wait for a person. To settle what waits, say go install ./cmd/settle, set SETTLE_OPERATOR to your name and type:

  settle --ledger 'sqlite:ann'\''s.db' queue list

  # send_mail may have happened: has it?
  settle --ledger 'sqlite:ann'\''s.db' queue show REF
  settle --ledger 'sqlite:ann'\''s.db' queue decide REF happened --version 3 --reason 'Ana says that it has come' --resource seen-by-ana

  # refund waits for approval: may it be done?
  settle --ledger 'sqlite:ann'\''s.db' queue show REF
  settle --ledger 'sqlite:ann'\''s.db' queue decide REF approve --version 1 --reason 'the carrier has lost the parcel'

Then run this again with the same --ledger.
`

// Before anybody has decided, a run changes nothing.
const undecided = `
What came of its calls:

  open_ticket  completed, replayed: tk_0001
  send_mail    manual
  refund       awaiting_approval

Done now: nothing. Replayed, with nothing sent: open_ticket.

At the far sides of this run: tickets opened 0, mails sent 0, refunds made 0.
`

const secondRun = `
What the agent is told of its task:

  Done already for this task; don't do these again:
  - open_ticket (operation REF): completed, "tk_0001"
  - send_mail (operation REF): completed, "seen-by-ana"
  Not settled; don't call these again for the same purpose, also not in other words, and don't say that they were done or failed:
  - refund (operation REF): in progress

What came of its calls:

  open_ticket  completed, replayed: tk_0001
  send_mail    completed, replayed: seen-by-ana
  refund       completed: re_0001

Done now: refund. Replayed, with nothing sent: open_ticket, send_mail.

At the far sides of this run: tickets opened 0, mails sent 0, refunds made 1.

Nothing waits for a person: the task is finished.
`

const thirdRun = `
What came of its calls:

  open_ticket  completed, replayed: tk_0001
  send_mail    completed, replayed: seen-by-ana
  refund       completed, replayed: re_0001

Done now: nothing. Replayed, with nothing sent: open_ticket, send_mail, refund.

At the far sides of this run: tickets opened 0, mails sent 0, refunds made 0.

Nothing waits for a person: the task is finished.
`

func TestProgram(t *testing.T) {
	t.Parallel()
	programs := build(t)
	for name, test := range map[string]func(world){
		"R40 decisions finish the task":  finishes,
		"R43 what is denied isn't done":  isDenied,
		"without a ledger nothing stays": leavesNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(world{t, programs, t.TempDir()})
		})
	}
}

// finishes types what the program says, word for word.
func finishes(w world) {
	first := w.run()
	w.says(first, firstRun)
	w.has(w.run(), strings.TrimSpace(undecided))

	typed := commands(first)
	if len(typed) != 5 {
		w.Fatalf("expected five commands, got %q", typed)
	}
	w.has(w.shell(typed[0], 0), "send_mail\tmanual", "refund\tawaiting_approval")
	w.has(w.shell(typed[1], 0), "Ask the customer whether the mail has come.", "no attempt can still take effect")
	w.has(w.shell(typed[2], 0), "Decided: happened. The operation is completed")
	w.has(w.shell(typed[3], 0), "Approve where the carrier has lost the parcel.")
	w.has(w.shell(typed[4], 0), "Decided: approve.")

	w.says(w.run(), secondRun)
	third := w.run()
	w.has(third, strings.TrimSpace(thirdRun))
	if left := commands(third); len(left) > 0 {
		w.Errorf("nothing is left to decide, but there is %q", left)
	}
	// The case has moved on since that version was seen (R41).
	w.has(w.shell(typed[4], 3), "look")
}

// isDenied denies the refund instead: nothing is sent, then or later.
func isDenied(w world) {
	typed := commands(w.run())
	w.shell(strings.Replace(typed[4], " approve ", " deny ", 1), 0)
	for range 2 {
		w.has(w.run(), "refund       denied", "refunds made 0")
	}
}

func leavesNothing(w world) {
	out := w.shell("desk", 0)
	w.has(out, "2 operations wait for a person. The ledger was a temporary file")
	if typed := commands(out); len(typed) > 0 {
		w.Errorf("commands for a ledger that is gone: %q", typed)
	}
	left, err := os.ReadDir(w.folder)
	if err != nil || len(left) > 0 {
		w.Errorf("expected nothing to be left behind, got %v, %v", left, err)
	}
	w.has(w.shell("desk ledger.db", 1), "expected no arguments but --ledger FILE")
}
