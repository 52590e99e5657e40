package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// program is the built example, run as a user runs it: in a folder that it may
// not write to, with a folder for temporary files of its own.
type program struct {
	binary, temp, where string
}

// build builds the example, under the race detector where the test is.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "quickstart.exe")
	args := []string{"build", "-o", binary}
	info, _ := debug.ReadBuildInfo()
	if info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	if said, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, said)
	}
	return binary
}

func newProgram(t *testing.T, binary string) program {
	t.Helper()
	p := program{binary, t.TempDir(), t.TempDir()}
	if err := os.Chmod(p.where, 0o500); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p program) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), p.binary, args...)
	cmd.Dir = p.where
	cmd.Env = append(os.Environ(), "TMPDIR="+p.temp, "TMP="+p.temp)
	return cmd
}

// leavesNothing fails the test where the program left files behind.
func (p program) leavesNothing(t *testing.T) {
	t.Helper()
	for _, folder := range []string{p.temp, p.where} {
		left, err := os.ReadDir(folder)
		if err != nil || len(left) > 0 {
			t.Errorf("expected nothing to be left behind, got %v, %v", left, err)
		}
	}
}

// Each part of the story, in its order. Lines are joined, references shortened
// to "…" and white space to one space.
var (
	partsWithout = []string{
		"===== without settle =====",
		`open_ticket {"order_id":"A-1001","problem":"late","details":"Please trace it."} error:`,
		`refund {"order_id":"A-1001","amount":"42.10","note":"late parcel"} The worker is killed with SIGKILL.`,
		`refund {"order_id":"A-1001","amount":"24.10","note":"eight days late"} {"id":"re_0002"}`,
		"payments re_0001 A-1001 42.10 payments re_0002 A-1001 24.10 duplicate",
		"tickets tk_0002 order A-1001: parcel late duplicate",
		"mail msg_0002 ana@example.com About your parcel duplicate",
	}
	partsWith = []string{
		"===== with settle =====",
		// The answer was lost, and the search found the ticket.
		`"details":"Please trace it."} [completed; operation …]`,
		// The answer was lost, and nobody can know.
		`"subject":"Your late parcel","body":"We refund you."} [unknown; operation …]`,
		`refund {"order_id":"A-1001","amount":"42.10","note":"late parcel"} The worker is killed with SIGKILL.`,
		`The worker starts again. brief Done already for this task; don't do these again: - open_ticket (operation …): completed, "tk_0001"`,
		// New call ids and other words: a replay, and a hold of what has no identity.
		`"details":"Eight days overdue!"} [completed, replayed; operation …]`,
		`"subject":"About your parcel","body":"A refund comes."} [held] Not done:`,
		// The same key with another amount, then the same amount in other digits.
		`"amount":"24.10","note":"eight days late"} [conflict; operation …] Not done: the same refund was asked for before with other arguments (different: amount)`,
		`"amount":"42.1","note":"as it was paid"} [in_progress; operation …]`,
		`news Done already`,
		`- refund (operation …): completed, "re_0001"`,
		`- send_mail (operation …): manual`,
		"payments re_0001 A-1001 42.10 tickets tk_0001 order A-1001: parcel late mail msg_0001 ana@example.com Your late parcel What the ledger says",
		"open_ticket … completed by evidence: a search found tk_0001",
		"send_mail … manual not settled: it waits for a person",
		"refund … completed by evidence: its key found re_0001",
		`Waits for a person: send_mail, operation … asked for {"to":"ana@example.com"`,
		"why no evidence possible",
		"without settle: 8 effects, 5 duplicates, 0 waiting for a person",
	}
)

const lastLine = "with settle: 3 effects, 0 duplicates, 1 waiting for a person"

func TestProgram(t *testing.T) {
	t.Parallel()
	binary := build(t)

	t.Run("tells the story twice and leaves nothing", func(t *testing.T) {
		t.Parallel()
		p := newProgram(t, binary)
		var out, complaints bytes.Buffer
		cmd := p.command(t)
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if err := cmd.Run(); err != nil {
			t.Fatalf("expected exit code 0, got %v\n%s%s", err, &out, &complaints)
		}
		if complaints.Len() > 0 {
			t.Errorf("expected nothing on standard error, got\n%s", &complaints)
		}
		checkStory(t, out.String())
		p.leavesNothing(t)
	})

	t.Run("keeps the ledger on request", func(t *testing.T) {
		t.Parallel()
		p := newProgram(t, binary)
		out, err := p.command(t, "-keep").Output()
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^the ledger is in (.+)$`).FindSubmatch(out)
		if found == nil || !strings.HasPrefix(string(found[1]), p.temp) {
			t.Fatalf("expected the ledger's place in the temporary folder, got\n%s", out)
		}
		kept, err := readLedger(t.Context(), string(found[1]))
		if err != nil || len(kept) != 3 {
			t.Fatalf("expected a ledger with 3 operations, got %d, %v", len(kept), err)
		}
	})

	t.Run("ends its worker when interrupted", func(t *testing.T) {
		t.Parallel()
		p := newProgram(t, binary)
		err := p.signalled(t, os.Interrupt)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("expected exit code 1, got %v", err)
		}
		p.leavesNothing(t)
	})

	t.Run("doesn't leave a worker even when killed", func(t *testing.T) {
		t.Parallel()
		if err := newProgram(t, binary).signalled(t, os.Kill); err == nil {
			t.Error("expected the program to be killed")
		}
	})

	t.Run("refuses arguments that it doesn't know", func(t *testing.T) {
		t.Parallel()
		p := newProgram(t, binary)
		if said, err := p.command(t, "once").CombinedOutput(); err == nil {
			t.Errorf("expected a failure, got\n%s", said)
		}
		p.leavesNothing(t)
	})
}

func checkStory(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if got := lines[len(lines)-1]; got != lastLine {
		t.Errorf("expected the last line to be %q, got %q", lastLine, got)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > width || strings.TrimRight(line, " ") != line {
			t.Errorf("expected at most %d columns and no space at the end, got %q", width, line)
		}
	}
	text := regexp.MustCompile(`…[0-9a-f]{6}`).ReplaceAllString(out, "…")
	text = strings.Join(strings.Fields(text), " ")
	rest := text
	for _, part := range slices.Concat(partsWithout, partsWith) {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("expected this part in its place: %s\ngot\n%s", part, out)
		}
		rest = after
	}
}

// signalled runs the program until its last worker waits for recovery, signals
// it then, and returns how it ended. The worker holds the program's standard
// output, so that its end is the worker's.
func (p program) signalled(t *testing.T, s os.Signal) error {
	t.Helper()
	cmd := p.command(t)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for lines := bufio.NewScanner(out); !strings.Contains(told.String(), "  waits  "); {
		if !lines.Scan() {
			t.Fatalf("expected a worker that waits for recovery, got\n%s", &told)
		}
		fmt.Fprintln(&told, lines.Text())
	}
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, out)
		gone <- err
	}()
	// Without its parent the worker would go on for most of a minute.
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("expected the worker to end with the program")
	}
	return cmd.Wait()
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	refund, ticket, mail := effect{at: "payments"}, effect{at: "tickets"}, effect{at: "mail"}
	again := effect{at: "mail", duplicate: true}
	for name, tc := range map[string]struct {
		effects []effect
		fails   bool
	}{
		"each once":         {[]effect{refund, ticket, mail}, false},
		"one twice":         {[]effect{refund, ticket, mail, again}, true},
		"one lost":          {[]effect{refund, ticket}, true},
		"a twin hides none": {[]effect{refund, mail, again}, true},
		"nothing":           {nil, true},
	} {
		err := report{guarded: true, effects: tc.effects}.verdict()
		if got := status(err, io.Discard); (got != 0) != tc.fails {
			t.Errorf("%s: expected a failure to be %t, got exit code %d for %v", name, tc.fails, got, err)
		}
	}
}

// The far sides say what a duplicate is, not the ledger.
func TestEffectsAreCountedAtTheFarSides(t *testing.T) {
	t.Parallel()
	far := newFarSides()
	defer far.close()
	run := newFunctions(far.addresses())
	for _, call := range []struct{ tool, args string }{
		{"refund", wordings["refund"][0]},
		{"refund", wordings["refund"][1]},
		{"refund", `{"order_id":"A-1002","amount":"1"}`},
		{"open_ticket", wordings["open_ticket"][0]},
		{"send_mail", wordings["send_mail"][0]},
		{"send_mail", wordings["send_mail"][1]},
	} {
		if said := run.call(t.Context(), call.tool, []byte(call.args)); strings.HasPrefix(said, "error") {
			t.Fatal(said)
		}
	}
	r := report{effects: far.effects()}
	if len(r.effects) != 6 || r.duplicates() != 2 || r.lost() != 0 {
		t.Errorf("expected 6 effects with 2 duplicates and no loss, got %+v", r.effects)
	}
}

func TestLinesFitThePage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"":                 {""},
		"short":            {"short"},
		"eleven char":      {"eleven", "  char"},
		"one two three":    {"one two", "  three"},
		"exactly te":       {"exactly te"},
		"withoutanyspaces": {"withoutanyspaces"},
		"ä ö ü ä ö ü":      {"ä ö ü ä ö", "  ü"},
	} {
		if got := wrap(line, 10); !slices.Equal(got, want) {
			t.Errorf("%q: expected %q, got %q", line, want, got)
		}
	}
	if got := cut("äöüäöü", 4); got != "äöü…" {
		t.Errorf("expected the line to be cut, got %q", got)
	}
}
