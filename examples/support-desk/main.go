// Support-desk shows where people come in: an agent leaves a mail of which
// nobody knows whether it went out, and a refund that waits for approval. Both
// are decided with the command line; then the agent is run again and finishes.
//
//	go run ./examples/support-desk --ledger desk.db
//	settle --ledger sqlite:desk.db queue list    # and what else the program says
//	go run ./examples/support-desk --ledger desk.db
//
// It needs no services and no model: the far sides are HTTP servers on loopback,
// new ones in each run, and the agent makes the same three calls each time, with
// call ids of their own and the mail in other words. Only the ledger remembers.
// Without --ledger it is in a temporary folder, and nothing can be decided.
//
// To read the code, begin with tools.go and with work in agent.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "support-desk:", err)
		os.Exit(1)
	}
}

// longest bounds a run; it takes far less than a second.
const longest = time.Minute

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("support-desk", flag.ContinueOnError)
	path := flags.String("ledger", "", "the SQLite `FILE` of the ledger; it is made where there is none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return errors.New("expected no arguments but --ledger FILE")
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if *path != "" {
		return serve(ctx, *path, true, out)
	}
	folder, err := os.MkdirTemp("", "settle-support-desk-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	return serve(ctx, filepath.Join(folder, "desk.db"), false, out)
}

// serve runs the agent once on a ledger, which stays or goes afterwards.
func serve(ctx context.Context, path string, stays bool, out io.Writer) (err error) {
	ledger, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	far := newFarSides()
	defer far.close()
	executor, err := settle.New(ledger, settle.WithTools(far.tools()...))
	if err != nil {
		return err
	}
	a := agent{ledger: ledger, executor: executor, out: out}
	ctx = settle.WithTask(settle.WithPrincipal(ctx, principal), task)
	if err := errors.Join(a.work(ctx), executor.Shutdown(ctx)); err != nil {
		return err
	}
	far.report(out)
	waiting, err := a.waiting(ctx)
	if err != nil {
		return err
	}
	desk{path, stays, out}.report(waiting)
	return nil
}
