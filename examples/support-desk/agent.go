package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Who acts, and for what: names of the host, never of a model.
var (
	principal = settle.Principal{Tenant: "acme", Subject: "support-agent"}
	task      = settle.Task{ID: "case-42", Goal: "late-parcel"}
)

// calls are what a model would ask for: the same in each run, but with call ids
// of their own, and with other words where a model would find others.
func calls() []settle.Call {
	say := func(tool, args string) settle.Call {
		return settle.Call{Tool: tool, CallID: "call_" + uuid.NewString(), Args: json.RawMessage(args)}
	}
	return []settle.Call{
		say("open_ticket", `{"title":"order A-1001: parcel late","details":"Please trace it."}`),
		say("send_mail", fmt.Sprintf(`{"to":"ana@example.com","purpose":"late-parcel","body":"We look into it. Our reference is %s."}`, uuid.NewString())),
		say("refund", `{"order_id":"A-1001","amount":"42.10"}`),
	}
}

// agent is one run of the agent's loop.
type agent struct {
	ledger   store.Ledger
	executor *settle.Executor
	out      io.Writer
}

// work hears what the task has done so far, makes the calls, and has recovery
// hand over what only a person can settle. A host would run [settle.Executor.Run]
// beside its agents for that; Declare is the part of it that tells the command
// line what the tools' authors advise.
func (a agent) work(ctx context.Context) error {
	if err := a.executor.Declare(ctx); err != nil {
		return err
	}
	brief, err := a.executor.Brief(ctx)
	if err != nil {
		return err
	}
	if brief != "" {
		fmt.Fprintf(a.out, "What the agent is told of its task:\n\n%s\n\n", indented(brief))
	}
	if err := a.call(ctx); err != nil {
		return err
	}
	_, err = a.executor.Recover(ctx)
	return err
}

// call makes the calls one after another, and says what came of each.
func (a agent) call(ctx context.Context) error {
	var done, replayed []string
	fmt.Fprintln(a.out, "What came of its calls:")
	fmt.Fprintln(a.out)
	for _, c := range calls() {
		out, err := a.executor.Execute(ctx, c)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "  %-12s %s\n", c.Tool, told(out))
		switch {
		case out.Status != settle.StatusCompleted:
		case out.Replayed:
			replayed = append(replayed, c.Tool)
		default:
			done = append(done, c.Tool)
		}
	}
	fmt.Fprintf(a.out, "\nDone now: %s. Replayed, with nothing sent: %s.\n", listed(done), listed(replayed))
	return nil
}

// told is an outcome on one line.
func told(out settle.Outcome) string {
	text := string(out.Status)
	if out.Replayed {
		text += ", replayed"
	}
	if out.Resource != "" {
		text += ": " + out.Resource
	}
	return text
}

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// waiting are the task's operations that wait for a person.
func (a agent) waiting(ctx context.Context) ([]store.Entry, error) {
	return a.ledger.List(ctx, store.Filter{Tenant: principal.Tenant, States: []store.State{store.Manual, store.AwaitingApproval}})
}
