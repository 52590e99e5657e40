package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/examples/child"
	"github.com/settle-go/settle/store/sqlite"
)

// inTask is the context of the agent that works on an incident.
func inTask(ctx context.Context, incident string) context.Context {
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "incident-agent"})
	return settle.WithTask(ctx, settle.Task{ID: incident, Goal: "report"})
}

// callFor is the call that a model would make, with an id of its own each time.
func callFor(incident string) settle.Call {
	return settle.Call{Tool: "report_incident", CallID: uuid.NewString(),
		Args: json.RawMessage(fmt.Sprintf(`{"incident":%q,"customer":"ana@example.com"}`, incident))}
}

// work is one life of the agent: it reports the incident, or finds out how far its
// predecessor came and goes on from there. It stops at a place if one is named.
func work(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) != 6 {
		return errors.New("a child needs the ledger, three far sides, the incident and the place to stop at")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ledger, err := sqlite.Open(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	reached := func(place string) {
		if place == args[5] {
			child.Stop(place)
		}
	}
	ex, err := settle.New(ledger, settle.WithTools(newReport(clients(args[1], args[2], args[3]), reached)))
	if err != nil {
		return err
	}
	recovering, stop := context.WithCancel(ctx)
	recovered := make(chan error, 1)
	go func() { recovered <- ex.Run(recovering) }() // settles what a dead worker left
	defer func() {
		stop()
		err = errors.Join(err, <-recovered, ex.Shutdown(ctx))
	}()

	ctx = inTask(ctx, args[4])
	answer, err := ex.Execute(ctx, callFor(args[4]))
	if err != nil {
		return err
	}
	if !answer.Settled() {
		if answer, err = ex.Wait(ctx, answer.Operation); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "started again: %s\n", answer.Status)
	return nil
}
