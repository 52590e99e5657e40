package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// desk tells the people what waits for them.
type desk struct {
	path  string
	stays bool
	out   io.Writer
}

// report says what waits for a person, and the commands that settle it.
func (d desk) report(waiting []store.Entry) {
	if len(waiting) == 0 {
		fmt.Fprintln(d.out, "\nNothing waits for a person: the task is finished.")
		return
	}
	how := "1 operation waits for a person."
	if len(waiting) > 1 {
		how = fmt.Sprintf("%d operations wait for a person.", len(waiting))
	}
	fmt.Fprint(d.out, "\n"+how)
	if !d.stays {
		fmt.Fprintln(d.out, " The ledger was a temporary file: to decide, run this with --ledger FILE.")
		return
	}
	fmt.Fprint(d.out, " To settle what waits, say go install ./cmd/settle, set SETTLE_OPERATOR to your name and type:\n\n")
	d.command("queue", "list")
	for _, e := range waiting {
		fmt.Fprintf(d.out, "\n  # %s\n", question(e))
		d.command("queue", "show", e.ID.String())
		d.command(decision(e)...)
	}
	fmt.Fprintln(d.out, "\nThen run this again with the same --ledger.")
}

// command writes a line to be typed into a shell.
func (d desk) command(words ...string) {
	line := "  settle --ledger " + quoted("sqlite:"+d.path)
	for _, w := range words {
		line += " " + quoted(w)
	}
	fmt.Fprintln(d.out, line)
}

// question is what a person has to find out.
func question(e store.Entry) string {
	if e.State == store.AwaitingApproval {
		return e.Tool + " waits for approval: may it be done?"
	}
	return e.Tool + " may have happened: has it?"
}

// decision is the command for a yes. It is for the version that is there now, so
// that it decides nothing that has changed meanwhile.
func decision(e store.Entry) []string {
	kind, reason := settle.DecideHappened, "Ana says that it has come"
	if e.State == store.AwaitingApproval {
		kind, reason = settle.DecideApprove, "the carrier has lost the parcel"
	}
	words := []string{"queue", "decide", e.ID.String(), string(kind), "--version", fmt.Sprint(e.Version), "--reason", reason}
	if kind == settle.DecideHappened {
		words = append(words, "--resource", "seen-by-ana")
	}
	return words
}

// quoted is a word as a POSIX shell reads it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,@%+", r)
	}
	if word != "" && strings.TrimLeftFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
