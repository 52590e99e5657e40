package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"
)

func main() { os.Exit(start()) }

// start runs the command line in this process. The first interrupt ends the
// work at the next place where it can be taken up again; a second one ends the
// process.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, process{
		env: os.Getenv, in: os.Stdin, out: newStream(os.Stdout), err: newStream(os.Stderr),
		asks: term.IsTerminal(int(os.Stdin.Fd())), now: time.Now, newID: uuid.NewString, open: open,
	}, os.Args[1:])
}

// process is what the command line gets from outside.
type process struct {
	env      func(string) string
	in       io.Reader
	out, err stream
	// asks says that in is a terminal with a person before it.
	asks  bool
	now   func() time.Time
	newID func() string
	open  opener
}

// stream is an output. Its width is that of the terminal that it is, or 0 for a
// pipe or a file, which get plain text.
type stream struct {
	io.Writer
	width int
}

// narrowest is the width that output is still laid out for.
const narrowest = 40

func newStream(f *os.File) stream {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) {
		return stream{Writer: f}
	}
	width, _, err := term.GetSize(fd)
	if err != nil || width == 0 {
		width = 80
	}
	return stream{Writer: f, width: max(width, narrowest)}
}

func (s stream) terminal() bool { return s.width > 0 }
