// Incident-agent reports an incident in three steps, each an effect of its own: it
// opens a ticket, attaches the log to it, and tells the customer. Its process is
// killed in the middle of each step and between two of them, and started again.
// The last incident turns out to be none, and is corrected.
//
//	go run ./examples/incident-agent
//
// It needs no services and leaves nothing behind: the far sides are HTTP servers on
// loopback, the agent is a child process on a SQLite ledger, the kills are SIGKILLs.
// It takes some seconds, since a dead worker's attempt is looked into when its lease
// has ended. The exit code is not zero if an effect happened twice or not at all.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/settle-go/settle/examples/child"
)

const introduction = `
An incident is reported in three steps: open a ticket, attach the log, tell the customer.
Each time the agent is killed somewhere else, and started again.

`

func main() {
	err := errors.New("usage: go run ./examples/incident-agent")
	if args, is := child.Args(); is {
		err = work(context.Background(), args, os.Stdout)
	} else if len(os.Args) == 1 {
		err = run(context.Background(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "incident-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-incident-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	world := startWorld(filepath.Join(folder, "ledger.db"))
	defer world.close()

	fmt.Fprint(out, introduction)
	stories := make([]story, len(stops))
	var group sync.WaitGroup
	for i, s := range stops {
		stories[i] = story{world: world, stop: s, incident: fmt.Sprintf("INC-%d", i+1)}
		group.Go(func() { stories[i].err = stories[i].tell(ctx) })
	}
	group.Wait()
	for _, s := range stories {
		fmt.Fprint(out, s.said.String())
		if s.err != nil {
			return s.err
		}
	}
	last := stories[len(stories)-1].incident
	fmt.Fprintf(out, "%s was no incident: what was done is corrected, the last step first\n", last)
	if err := world.correct(ctx, out, last); err != nil {
		return err
	}
	return world.sum(out, len(stories))
}
