// Quickstart tells one story twice, without settle and with it.
//
// A support agent handles a late parcel: it opens a ticket, writes a mail and
// refunds the order. The far sides lose answers, the agent's process is killed
// while the refund is in flight and started again, and the model then begins
// anew, with new call ids and in other words.
//
//	go run ./examples/quickstart
//
// It needs no services and leaves nothing behind. The far sides and the model
// are real HTTP servers on loopback; the agent is a child process on a SQLite
// ledger in a temporary folder (-keep leaves it there). The exit code is
// not zero if the run with settle did anything twice or not at all.
//
// To read the code, begin with tools.go and with run in worker.go.
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
)

const introduction = `
One story, told twice. A parcel is late: an agent opens a ticket with the carrier, writes to the
customer and refunds the order. The ticket system and the mail relay do what they are asked, but
lose their first answer. The agent is killed while the refund is in flight. It is started again,
and the model, which remembers nothing, begins anew in other words.
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == asWorker {
		go endWithParent()
		os.Exit(status(work(context.Background(), os.Args[2:], os.Stdout), os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := status(run(ctx, os.Args[1:], os.Stdout), os.Stderr)
	stop()
	os.Exit(code)
}

// status is the exit code for an error, which it reports.
func status(err error, complaints io.Writer) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(complaints, "quickstart:", err)
	return 1
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	keep := flags.Bool("keep", false, "keep the temporary folder with the ledger, and say where it is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return errors.New("expected no arguments but -keep")
	}
	folder, err := os.MkdirTemp("", "settle-quickstart-")
	if err != nil {
		return err
	}
	if !*keep {
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	fmt.Fprint(out, introduction)
	err = tellTwice(ctx, out, folder, *keep)
	if ctx.Err() != nil {
		return errors.New("interrupted; its workers are killed")
	}
	return err
}

func tellTwice(ctx context.Context, out io.Writer, folder string, keep bool) error {
	without, err := story{out, filepath.Join(folder, "without.db"), false}.tell(ctx)
	if err != nil {
		return err
	}
	with, err := story{out, filepath.Join(folder, "with.db"), true}.tell(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	if keep {
		fmt.Fprintf(out, "the ledger is in %s\n", filepath.Join(folder, "with.db"))
	}
	fmt.Fprintln(out, without.summary())
	fmt.Fprintln(out, with.summary())
	return with.verdict()
}

// story is one run of what happens.
type story struct {
	out     io.Writer
	ledger  string
	guarded bool
}

func (s story) tell(ctx context.Context) (report, error) {
	far := newFarSides()
	defer far.close()
	model := newModel()
	defer model.Close()
	refunded := far.loseAnswers()
	options := workerOptions{guarded: s.guarded, ledger: s.ledger, model: model.URL(), far: far.addresses()}

	r := report{guarded: s.guarded}
	s.say("\n===== %s =====\n\nThe worker starts.", r.name())
	first, err := startWorker(ctx, options, s.out)
	if err != nil {
		return r, err
	}
	if err := first.killAt(refunded.Entered()); err != nil {
		return r, err
	}
	refunded.Release() // to nobody

	s.say("The worker is killed with SIGKILL. The refund is made; its answer finds nobody.\n\nThe worker starts again.")
	second, err := startWorker(ctx, options, s.out)
	if err != nil {
		return r, err
	}
	if err := second.wait(); err != nil {
		return r, err
	}
	s.say("The worker has ended.")
	r.effects = far.effects()
	if r.operations, err = readLedger(ctx, s.ledger); err != nil {
		return r, err
	}
	r.write(s.out)
	return r, nil
}

func (s story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }
