package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/google/uuid"
	_ "modernc.org/sqlite"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/examples/child"
	"github.com/settle-go/settle/store/sqlite"
)

// stop is a place at which the service is killed.
type stop struct{ name, place string }

var stops = []stop{
	{"1", "when the request has come and nothing is written"},
	{"2", "inside the transaction, before the job's row"},
	{"3", "inside the transaction, after the job's row and before COMMIT"},
	{"4", "after COMMIT, before the answer"},
}

// exportArgs name the export. The user's click is the task; the operation in it is
// told from others by what is exported.
type exportArgs struct {
	Article string `json:"article" settle:"identity"`
	Format  string `json:"format"`
}

type exportJob struct {
	ID string `json:"id" settle:"resource"`
}

// newExport is the tool: its whole effect is rows of the service's own database.
// reached is called at the places where this example kills.
func newExport(reached func(place string)) settle.Tool[exportArgs, exportJob] {
	return settle.Tool[exportArgs, exportJob]{
		Name:     "create_export",
		Contract: settle.Contract{Class: settle.Transactional},
		Do: sqlite.InTx(func(ctx context.Context, tx *sql.Tx, op settle.Op, in exportArgs) (exportJob, error) {
			reached("2")
			job := exportJob{ID: uuid.NewString()}
			_, err := tx.ExecContext(ctx, "INSERT INTO export_job (id, intent, article, format) VALUES (?, ?, ?, ?)",
				job.ID, op.Task().ID, in.Article, in.Format)
			if err != nil {
				return exportJob{}, err
			}
			// The renderer learns of the job from the outbox, in the same commit.
			if err := op.Publish(settle.Event{Type: "export.created", Data: job}); err != nil {
				return exportJob{}, err
			}
			reached("3")
			return job, nil
		}),
	}
}

// serve is one life of the service: it answers one request for the intent, and
// is killed at a place if one is named.
func serve(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) != 3 {
		return errors.New("a child needs the file, the intent and the place to stop at")
	}
	reached := func(place string) {
		if place == args[2] {
			child.Stop(place)
		}
	}
	ledger, err := sqlite.Open(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	db, err := openDatabase(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ex, err := settle.New(ledger, settle.WithTools(newExport(reached)), settle.WithOutbox(renderer(db)))
	if err != nil {
		return err
	}

	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "user-7"})
	ctx = settle.WithTask(ctx, settle.Task{ID: args[1], Goal: "export"})
	reached("1")
	answer, err := ex.Execute(ctx, settle.Call{Tool: "create_export", CallID: uuid.NewString(), // a request id of its own
		Args: json.RawMessage(`{"article":"idempotency","format":"pdf"}`)})
	if err != nil {
		return err
	}
	reached("4")
	fmt.Fprintf(out, "answered %s, replayed: %t\n", answer.Status, answer.Replayed)
	for {
		report, err := ex.Relay(ctx) // a service would run ex.Run beside it
		if err != nil {
			return err
		}
		if report.Fetched == 0 {
			return ex.Shutdown(ctx)
		}
	}
}

// renderer is whoever consumes the events; a real one deduplicates with
// tools/inbox.
func renderer(db *sql.DB) settle.Sink {
	return settle.SinkFunc(func(ctx context.Context, d settle.Delivery) error {
		if d.Type != "export.created" {
			return nil
		}
		_, err := db.ExecContext(ctx, "INSERT INTO seen (event) VALUES (?) ON CONFLICT DO NOTHING", d.ID)
		return err
	})
}

// openDatabase opens the service's tables, which stand in the ledger's own file.
func openDatabase(ctx context.Context, file string) (*sql.DB, error) {
	at := url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: "_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS export_job (id TEXT PRIMARY KEY, intent TEXT NOT NULL, article TEXT NOT NULL, format TEXT NOT NULL);
		CREATE TABLE IF NOT EXISTS seen (event TEXT PRIMARY KEY);`)
	return db, err
}
