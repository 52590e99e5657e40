package settle_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"sync"

	"github.com/settle-go/settle"
)

// workerOrder is the environment variable that makes a worker of a process of
// this test binary. It holds an [order].
const workerOrder = "SETTLE_TEST_WORKER"

// order is what a worker does: it makes the calls, side by side, and reports on
// standard output. Where it is to stop it reports that and waits to be killed.
type order struct {
	Ledger address
	Sides  sides
	Calls  []settle.Call
	// Together makes the calls as one model turn.
	Together bool
	// Stop says, by tool, at which stage a call stays.
	Stop map[string]stage
	// Attempts is that of the tools' contracts, where it isn't 0.
	Attempts int
	// Approval demands a person's word before refunds and tickets.
	Approval bool
	// Shelf is the business table of a Transactional tool, where it has one.
	Shelf string
	// Via is a proxy before PostgreSQL.
	Via string
	// Recover makes a pass of recovery instead of calls.
	Recover bool
}

// report is a line that a worker writes.
type report struct {
	Stage   stage          `json:",omitempty"`
	Tool    string         `json:",omitempty"`
	Outcome settle.Outcome `json:",omitzero"`
	Done    bool           `json:",omitempty"`
	Error   string         `json:",omitempty"`
}

// work is the main of a worker.
func work(encoded string) int {
	// A worker whose test has died ends with it.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(r) // a test that doesn't read has died
	}
	var o order
	err := json.Unmarshal([]byte(encoded), &o)
	if err == nil {
		err = o.carryOut(say)
	}
	if err != nil {
		say(report{Error: err.Error()})
		return 1
	}
	say(report{Done: true})
	return 0
}

func (o order) carryOut(say func(report)) error {
	ctx := scope(context.Background())
	o.Ledger.via = o.Via
	ledger, err := o.Ledger.open(ctx)
	if err != nil {
		return err
	}
	d := newDesk(o.Sides)
	d.reached = func(tool string, s stage) {
		if o.Stop[tool] == s {
			say(report{Stage: s, Tool: tool})
			select {}
		}
	}
	tools := append(d.tools(attempts(o.Attempts)), d.handleReturn("handle_return"))
	if o.Shelf != "" {
		s := shelf{table: o.Shelf, after: func(context.Context, reserveArgs) error { d.reached("reserve", answered); return nil }}
		tools = append(tools, s.reserve())
	}
	if o.Approval {
		tools = d.gated()
	}
	x, err := settle.New(ledger, settle.WithTools(tools...), settle.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	for i := range o.Calls {
		o.Calls[i].Schema = nil // JSON made "null" of it
	}
	tell := func(out settle.Outcome) {
		d.reached(out.Tool, recorded)
		say(report{Tool: out.Tool, Outcome: out})
	}
	switch {
	case o.Recover:
		_, err = x.Recover(ctx)
		return err
	case o.Together:
		outs, err := x.ExecuteAll(ctx, o.Calls...)
		for _, out := range outs {
			tell(out)
		}
		return err
	}
	var group sync.WaitGroup
	errs := make(chan error, len(o.Calls))
	for _, c := range o.Calls {
		group.Go(func() {
			out, err := x.Execute(ctx, c)
			if err != nil {
				errs <- err
				return
			}
			tell(out)
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

// worker is a process that carries out an order.
type worker struct {
	*world
	cmd     *exec.Cmd
	reports chan report
	ended   chan struct{}
}

// dispatch starts a worker on the world's ledger and far sides.
func (w *world) dispatch(o order) *worker {
	w.Helper()
	o.Ledger, o.Sides = w.at, w.sides
	for i := range o.Calls {
		o.Calls[i] = fresh(o.Calls[i])
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		w.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	k := &worker{world: w, cmd: exec.Command(self), reports: make(chan report, 1024), ended: make(chan struct{})}
	k.cmd.Env = append(os.Environ(), workerOrder+"="+string(encoded))
	k.cmd.Stderr = os.Stderr
	stdin, err := k.cmd.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	stdout, err := k.cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go k.read(stdout, stdin)
	w.Cleanup(k.kill)
	return k
}

// read passes the reports on until the worker has ended. It keeps the worker's
// standard input open until then.
func (k *worker) read(stdout io.Reader, stdin io.Closer) {
	defer close(k.ended)
	defer stdin.Close()
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			r = report{Error: fmt.Sprintf("a worker wrote %q", lines.Text())}
		}
		k.reports <- r
	}
	close(k.reports)
	_ = k.cmd.Wait() // killed, mostly
}

// next waits for the worker's next report.
func (k *worker) next() report {
	k.Helper()
	r := received(k.world, k.reports)
	if r.Error != "" {
		k.Fatalf("the worker failed: %s", r.Error)
	}
	return r
}

// reaches waits until the tools' calls stay at their stages.
func (k *worker) reaches(all map[string]stage) {
	k.Helper()
	all = maps.Clone(all)
	for len(all) > 0 {
		r := k.next()
		switch {
		case r.Stage != "" && all[r.Tool] == r.Stage:
			delete(all, r.Tool)
		case r.Stage == "" && r.Outcome.Status == "":
			k.Fatalf("the worker ended before its calls stayed: %v", all)
		}
	}
}

// outcomes waits for the end of the worker's order.
func (k *worker) outcomes() []settle.Outcome {
	k.Helper()
	var outs []settle.Outcome
	for {
		switch r := k.next(); {
		case r.Done:
			return outs
		case r.Outcome.Status == "":
			k.Fatalf("the worker ended early, or stopped: %+v", r)
		default:
			outs = append(outs, r.Outcome)
		}
	}
}

// kill ends the worker with SIGKILL and waits until it is gone.
func (k *worker) kill() {
	_ = k.cmd.Process.Kill() // it may have ended by itself
	<-k.ended
}
