package faulty

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// link is one client's connection and the one to the server that serves it.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	// over is closed when the connection is cut, answered when the server's
	// side has nothing more to forward.
	over, answered chan struct{}
	cutOnce        sync.Once

	// tail holds what the client sent last; only forwardRequests uses it.
	tail []byte

	mu sync.Mutex
	// turn holds while the client's next bytes begin a request.
	turn bool
	// awaiting is the fault that the server's next answer is for, and kept what
	// came of that answer.
	awaiting *Armed
	kept     []byte
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{
		proxy: p, client: client, server: server, turn: true,
		over: make(chan struct{}), answered: make(chan struct{}),
	}
}

// cut closes both connections, and is safe to call again.
func (l *link) cut() {
	l.cutOnce.Do(func() {
		close(l.over)
		l.client.Close()
		l.server.Close()
	})
}

func (l *link) forwardRequests() {
	buf := make([]byte, 32<<10)
	for {
		n, err := l.client.Read(buf)
		if n > 0 && !l.request(buf[:n]) {
			return
		}
		if err != nil {
			closeWrite(l.server)
			return
		}
	}
}

// request forwards the client's bytes, through the faults that they set off. It
// returns false when the connection is over.
func (l *link) request(b []byte) bool {
	turn := l.takeTurn()
	for len(b) > 0 {
		// What follows a request whose answer is awaited belongs to it: a second
		// fault would have no answer of its own.
		if l.awaits() {
			l.remember(b)
			return l.send(b)
		}
		seen := len(l.tail)
		armed, start, end := l.proxy.take(slices.Concat(l.tail, b), seen, turn)
		if armed == nil {
			l.remember(b)
			return l.send(b)
		}
		// A match may have begun in bytes that are with the server already.
		start, end, turn = max(start-seen, 0), end-seen, false
		l.remember(b[:end])
		if !l.do(armed, b[:start], b[start:end]) {
			return false
		}
		b = b[end:]
	}
	return true
}

// do lets the fault happen to the matched bytes, which follow those before.
func (l *link) do(armed *Armed, before, matched []byte) bool {
	if !l.send(before) {
		return false
	}
	switch armed.fault.Do {
	case CutBefore:
		l.cut()
		close(armed.done)
		return false
	case CutAfter:
		l.send(matched)
		l.cut()
		close(armed.done)
		return false
	case HoldRequest:
		close(armed.done)
		return l.hold(armed) && l.send(matched)
	default:
		l.await(armed)
		return l.send(matched)
	}
}

func (l *link) send(b []byte) bool { return forward(l.server, b, &l.proxy.sent) }

// hold waits until the fault is released; false says that the connection is
// over.
func (l *link) hold(armed *Armed) bool {
	select {
	case <-armed.released:
		return true
	case <-l.over:
		return false
	}
}

// remember keeps the last bytes that the client sent.
func (l *link) remember(b []byte) {
	l.tail = append(l.tail, b...)
	if extra := len(l.tail) - maxPattern; extra > 0 {
		l.tail = append(l.tail[:0], l.tail[extra:]...)
	}
}

// takeTurn tells whether a request begins with the client's present bytes.
func (l *link) takeTurn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn := l.turn
	l.turn = false
	return turn
}

func (l *link) awaits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.awaiting != nil
}

// await has the server's next answer go to the fault.
func (l *link) await(armed *Armed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting = armed
	l.kept = nil
}

func (l *link) forwardAnswers() {
	defer close(l.answered)
	buf := make([]byte, 32<<10)
	for {
		n, err := l.server.Read(buf)
		if n > 0 && !l.answer(buf[:n]) {
			return
		}
		if err != nil {
			closeWrite(l.client)
			return
		}
	}
}

// answer forwards the server's bytes, or what the fault that awaits them leaves
// of them. It returns false when the connection is over.
func (l *link) answer(b []byte) bool {
	armed, answer, complete := l.keep(b)
	switch {
	case armed == nil:
		return l.deliver(b)
	case !complete:
		return true
	case armed.fault.Do == LoseAnswer:
		l.cut()
		close(armed.done)
		return false
	}
	close(armed.done)
	return l.hold(armed) && l.deliver(answer)
}

// keep puts the server's bytes aside if a fault awaits them, and returns that
// fault, the answer so far, and whether it is the whole one.
func (l *link) keep(b []byte) (armed *Armed, answer []byte, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn = true
	armed = l.awaiting
	if armed == nil {
		return nil, nil, false
	}
	l.kept = append(l.kept, b...)
	answer = l.kept
	complete = bytes.Contains(answer, []byte(armed.fault.Answer))
	if complete {
		l.awaiting, l.kept = nil, nil
	}
	return armed, answer, complete
}

func (l *link) deliver(b []byte) bool { return forward(l.client, b, &l.proxy.received) }

// forward counts the bytes before it writes them: who sees an answer finds its
// request counted.
func forward(to net.Conn, b []byte, count *atomic.Int64) bool {
	count.Add(int64(len(b)))
	n, err := to.Write(b)
	count.Add(int64(n - len(b)))
	return err == nil
}

// closeWrite passes the end of one side's bytes on to the other.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
