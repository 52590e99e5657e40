package httptool

import (
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
)

// wire is a connection that counts what is written to it, above TLS: a record of
// which a part is missing can't be read by the far side.
type wire struct {
	net.Conn
	mu sync.Mutex
	// written counts a write that is under way in full.
	written int64
	sealed  bool
}

var errSealed = errors.New("httptool: nothing more is written on this connection")

func (w *wire) Write(p []byte) (int, error) {
	if !w.reserve(len(p)) {
		return 0, errSealed
	}
	n, err := w.Conn.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written -= int64(len(p) - n)
	return n, err
}

func (w *wire) reserve(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.sealed {
		w.written += int64(n)
	}
	return !w.sealed
}

func (w *wire) mark() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written
}

// seal says whether nothing was written since the mark, and then sees to it that
// nothing ever is.
func (w *wire) seal(mark int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.written == mark {
		w.sealed = true
	}
	return w.sealed
}

// dispatch follows one request: whether a byte of it was written.
type dispatch struct {
	mu   sync.Mutex
	on   *wire
	from int64 // what was written on it before
	left bool
}

func (d *dispatch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: d.got}
}

// got is called for each connection that net/http takes for the request. It takes
// more than one where it sends a request again by itself, which it does with those
// that have no body: the far side must see no more than the ledger's attempts, so
// nothing is written to the second once something was to the first (S16).
func (d *dispatch) got(info httptrace.GotConnInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next, ok := info.Conn.(*wire)
	if !ok {
		d.left = true // a connection of somebody else's: nothing is known of it
		return
	}
	if d.on != nil && !d.on.seal(d.from) {
		d.left = true
	}
	d.on, d.from = next, next.mark()
	if d.left {
		next.seal(d.from)
	}
}

// notSent says that no byte of the request was written, and that none will be
// (R27).
func (d *dispatch) notSent() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.left && (d.on == nil || d.on.seal(d.from))
}
