// Export-job is one intent that leads to one export job, whatever happens on the
// way: a service writes the job's row, the operation and its event in one
// transaction of its own database, and is killed at each of the places where that
// could have gone wrong.
//
//	go run ./examples/export-job
//
// It needs no services and leaves nothing behind. The service is a child process
// on a SQLite file; the kills are SIGKILLs. The exit code is not zero if an intent
// has another number of jobs than one.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/settle-go/settle/examples/child"
)

const introduction = `
A user presses "create export" once. The service writes a job for it, and dies on the way.
The button's request is sent again, with the same intent, to a service that remembers nothing.
`

func main() {
	err := errors.New("usage: go run ./examples/export-job")
	if args, is := child.Args(); is {
		err = serve(context.Background(), args, os.Stdout)
	} else if len(os.Args) == 1 {
		err = run(context.Background(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "export-job:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-export-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "service.db")
	db, err := openDatabase(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	fmt.Fprint(out, introduction+"\n")
	wrong := 0
	for _, s := range stops {
		jobs, err := tell(ctx, out, db, file, s)
		if err != nil {
			return err
		}
		if jobs != 1 {
			wrong++
		}
	}
	events, err := count(ctx, db, "SELECT count(DISTINCT event) FROM seen")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "export-job: %d intents, %d with another number of jobs than one, %d events\n", len(stops), wrong, events)
	if wrong > 0 || events != len(stops) {
		return errors.New("a job was lost or written twice")
	}
	return nil
}

// tell tells of one intent whose service is killed at a place, and returns how
// many jobs it has in the end.
func tell(ctx context.Context, out io.Writer, db *sql.DB, file string, s stop) (jobs int, err error) {
	intent := "export-intent-" + s.name
	fmt.Fprintf(out, "killed %s\n", s.place)
	said := func(line string) { fmt.Fprintln(out, "  "+line) }

	first, err := child.Start(ctx, file, intent, s.name)
	if err != nil {
		return 0, err
	}
	if _, err := first.KillAtStop(said); err != nil {
		return 0, err
	}
	if jobs, err = count(ctx, db, "SELECT count(*) FROM export_job WHERE intent = ?", intent); err != nil {
		return 0, err
	}
	said(fmt.Sprintf("the service is dead; jobs: %d", jobs))
	second, err := child.Start(ctx, file, intent, "")
	if err != nil {
		return 0, err
	}
	if err := second.Finish(said); err != nil {
		return 0, err
	}
	jobs, err = count(ctx, db, "SELECT count(*) FROM export_job WHERE intent = ?", intent)
	said(fmt.Sprintf("jobs: %d\n", jobs))
	return jobs, err
}

func count(ctx context.Context, db *sql.DB, query string, args ...any) (n int, err error) {
	err = db.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}
