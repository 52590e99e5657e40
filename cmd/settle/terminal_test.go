package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/settle-go/settle"
)

// escapes are what a terminal acts on; only bold is ours.
func unstyled(t *testing.T, text string) string {
	t.Helper()
	text = strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(text)
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }); i >= 0 {
		t.Errorf("a control character is left at %q", text[i:min(i+20, len(text))])
	}
	return text
}

func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 64, 80, 100, 120, 160, 300} {
		w := inProcess(t, width, false).hire()
		reference := w.manual("refund", "o-1")
		w.call(inTask(t.Context(), strings.Repeat("a long id ", 12)+"end"), "grant", "o-2", settle.StatusAwaitingApproval)
		for _, args := range [][]string{{"queue", "list"}, {"queue", "list", "--closed"}, {"ops", "list"}} {
			out := unstyled(t, w.run(0, args...).out)
			if !strings.Contains(out, reference) {
				t.Errorf("%d cells: settle %v lacks the reference:\n%s", width, args, out)
			}
			for l := range strings.Lines(out) {
				if n := cells.StringWidth(strings.TrimRight(l, "\n")); n > max(width, len(reference)+gap+thinnest) {
					t.Errorf("settle %v has a line of %d cells on a terminal of %d: %q", args, n, width, l)
				}
			}
		}
		if width == 80 || width == 160 {
			golden(t, fmt.Sprintf("terminal_queue_list_%d", width), aligned(w.run(0, "queue", "list").out))
			golden(t, fmt.Sprintf("terminal_ops_list_%d", width), aligned(w.run(0, "ops", "list").out))
		}
		if width == 80 {
			golden(t, "terminal_queue_show", w.run(0, "queue", "show", reference).out)
		}
	}
}

// aligned makes references of equal ones that are as wide, so that what stands
// behind them stays where it was.
func aligned(text string) string {
	n := 0
	return references.ReplaceAllStringFunc(text, func(string) string {
		n++
		return fmt.Sprintf("%-36s", fmt.Sprintf("reference-%d", n))
	})
}

func TestNoColorTakesTheBoldAway(t *testing.T) {
	t.Parallel()
	w := inProcess(t, 80, false).hire()
	reference := w.manual("refund", "o-1")
	contains(t, w.run(0, "queue", "list").out, "\x1b[1m")
	for _, v := range []string{"NO_COLOR=1", "TERM=dumb"} {
		other := w.as("ann")
		name, value, _ := strings.Cut(v, "=")
		other.env[name] = value
		if out := other.run(0, "queue", "show", reference).out; strings.Contains(out, "\x1b") {
			t.Errorf("with %s there are escapes:\n%s", v, out)
		}
	}
}
