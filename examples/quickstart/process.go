package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// asWorker is the hidden first argument that makes this program a worker.
const asWorker = "worker"

// process is a worker that runs as a child process.
type process struct {
	cmd   *exec.Cmd
	ended chan error
}

// startWorker runs this very program as a worker. It is killed when the context ends.
func startWorker(ctx context.Context, o workerOptions, out io.Writer) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{ended: make(chan error, 1)}
	p.cmd = exec.CommandContext(ctx, self, asWorker, fmt.Sprintf("-guarded=%t", o.guarded),
		"-ledger", o.ledger, "-model", o.model, "-pay", o.far.pay, "-desk", o.far.desk, "-relay", o.far.relay)
	p.cmd.Stdout, p.cmd.Stderr = out, os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil { // open for as long as this process lives
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go func() { p.ended <- p.cmd.Wait() }() // ends with the child
	return p, nil
}

// wait returns when the worker has ended by itself.
func (p *process) wait() error {
	if err := <-p.ended; err != nil {
		return fmt.Errorf("the worker failed: %w", err)
	}
	return nil
}

// killAt kills the worker with SIGKILL when the signal comes, and returns when
// it is gone.
func (p *process) killAt(signal <-chan struct{}) error {
	select {
	case <-signal:
	case err := <-p.ended:
		return errors.Join(errors.New("the worker ended before it could be killed"), err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill the worker: %w", err)
	}
	<-p.ended
	return nil
}

// endWithParent ends a worker when the parent's end of the pipe on its standard
// input is closed: no worker outlives the program that started it.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
