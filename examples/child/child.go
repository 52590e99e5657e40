// Package child lets an example run itself as a child process and kill it at a
// place that the child names.
package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// role is the first argument of a program that runs as a child.
const role = "as-child"

// stopped begins the line with which a child says where it stands.
const stopped = "stopped: "

// Args are the arguments of a child; false in the program that was started by hand.
func Args() (args []string, is bool) {
	if len(os.Args) < 2 || os.Args[1] != role {
		return nil, false
	}
	go func() { // no child outlives the program that started it
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	return os.Args[2:], true
}

// Stop says that the child has come to a place, and stays there until it is killed.
func Stop(place string) {
	fmt.Println(stopped + place)
	select {}
}

// Process is a child at work.
type Process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// Start runs this very program as a child. It is killed when the context ends.
func Start(ctx context.Context, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.CommandContext(ctx, self, append([]string{role}, args...)...)}
	p.cmd.Stderr = os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil { // open for as long as this process lives
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a child: %w", err)
	}
	return p, nil
}

// KillAtStop lets the child run until it stops, kills it with SIGKILL, and
// returns the place that it named. What it says before goes to said.
func (p *Process) KillAtStop(said func(line string)) (place string, err error) {
	for p.lines.Scan() {
		if place, ok := strings.CutPrefix(p.lines.Text(), stopped); ok {
			err := p.cmd.Process.Kill()
			_ = p.cmd.Wait() // says that it was killed
			return place, err
		}
		said(p.lines.Text())
	}
	return "", errors.Join(errors.New("the child ended before it could be killed"), p.lines.Err(), p.cmd.Wait())
}

// Finish lets the child run to its end.
func (p *Process) Finish(said func(line string)) error {
	for p.lines.Scan() {
		said(p.lines.Text())
	}
	if err := errors.Join(p.lines.Err(), p.cmd.Wait()); err != nil {
		return fmt.Errorf("the child failed: %w", err)
	}
	return nil
}
