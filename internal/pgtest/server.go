package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// server is the running postgres process.
type server struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

func startServer(cmd *exec.Cmd) (*server, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the PostgreSQL server: %w", err)
	}
	s := &server{cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(s.exited)
		// How it ended doesn't matter to those who wait for its end.
		_ = cmd.Wait()
	}()
	return s, nil
}

func (s *server) hasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// end sends the signal and waits for the process to end.
func (s *server) end(ctx context.Context, signal os.Signal) error {
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the PostgreSQL server: %w", err)
	}
	select {
	case <-s.exited:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("the PostgreSQL server didn't end on %v: %w", signal, ctx.Err()), s.abort())
	}
}

// abort ends the process at once.
func (s *server) abort() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the PostgreSQL server: %w", err)
	}
	<-s.exited
	return nil
}

// guard is a process that outlives this one by a moment: when its standard
// input ends, because this process released it or was killed, it ends the
// server if it still runs and removes the cluster's folder.
type guard struct {
	cmd   *exec.Cmd
	input io.Closer
}

const guardScript = `
cat >/dev/null
if [ -f "$1/data/postmaster.pid" ]; then
	pid=$(head -n 1 "$1/data/postmaster.pid")
	kill -QUIT "$pid"
	tries=0
	while kill -0 "$pid" && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
fi
rm -rf "$1"
`

func startGuard(account account, home string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "sh", home)
	account.prepare(cmd, "/")
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the server's guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server's guard: %w", err)
	}
	return &guard{cmd: cmd, input: input}, nil
}

// release returns when the cluster's folder is removed.
func (g *guard) release() error {
	if g.cmd.ProcessState != nil {
		return nil
	}
	closed := g.input.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("remove the PostgreSQL server's folder: %w", err)
	}
	return closed
}
