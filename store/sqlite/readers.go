package sqlite

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/settle-go/settle/store"
)

// readers are connections that only read. There are never more of them than
// slots; they are opened when they are first needed.
type readers struct {
	open  func(context.Context) (*conn, error)
	slots chan struct{}

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

func newReaders(open func(context.Context) (*conn, error)) *readers {
	return &readers{open: open, slots: make(chan struct{}, max(4, runtime.GOMAXPROCS(0)))}
}

func (r *readers) acquire(ctx context.Context) (*conn, error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	closed := r.closed
	var c *conn
	if n := len(r.idle); n > 0 {
		c, r.idle = r.idle[n-1], r.idle[:n-1]
	}
	r.mu.Unlock()

	var err error
	if closed {
		err = store.ErrClosed
	} else if c == nil {
		c, err = r.open(ctx)
	}
	if err != nil {
		<-r.slots
	}
	return c, err
}

// release gives a connection back. One that failed is closed: whatever state it
// is in, the next reader doesn't inherit it.
func (r *readers) release(c *conn, failed bool) {
	if failed {
		_ = c.close() // nothing depends on it any more
	} else {
		r.mu.Lock()
		r.idle = append(r.idle, c)
		r.mu.Unlock()
	}
	<-r.slots
}

// close waits for the readers that are at work.
func (r *readers) close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for range cap(r.slots) {
		r.slots <- struct{}{}
	}
	var errs []error
	for _, c := range r.idle {
		errs = append(errs, c.close())
	}
	r.idle = nil
	for range cap(r.slots) {
		<-r.slots
	}
	return errors.Join(errs...)
}

// read runs do in a read transaction, so that all its statements see the
// ledger at one instant.
func (l *Ledger) read(ctx context.Context, do func(*view) error) error {
	if err := ctx.Err(); err != nil {
		return &store.UnwrittenError{Err: err}
	}
	c, err := l.readers.acquire(ctx)
	if err != nil {
		return unwritten(err)
	}
	err = l.snapshot(c, do)
	l.readers.release(c, err != nil && !refusal(err))
	return unwritten(err)
}

func (l *Ledger) snapshot(c *conn, do func(*view) error) error {
	if _, err := c.exec("BEGIN"); err != nil {
		return err
	}
	var stored int64
	_, err := c.first([]any{&stored}, readClock)
	if err == nil {
		err = do(&view{conn: c, now: l.clock.read(stored)})
	}
	_, end := c.exec("COMMIT")
	return cmp.Or(err, end)
}
