// Package faulty breaks real connections on purpose: a proxy on a loopback port
// forwards to a real server until the request comes that a test has chosen, and
// then loses it, loses its answer, or holds one of them.
//
//	proxy := faulty.NewProxy(t, db.Addr(t))
//	pool := db.Pool(t, pgtest.Via(t, proxy.Addr()))
//	proxy.Arm(faulty.Fault{Request: "commit", Do: faulty.LoseAnswer})
//
// The proxy sees bytes and knows no protocol; connections must be unencrypted.
package faulty

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy forwards connections to a server. Its methods are safe for concurrent
// use, but for Arm and Admit, which belong to the test's own goroutine.
type Proxy struct {
	t       testing.TB
	network string
	target  string
	addr    string

	pumps          sync.WaitGroup
	sent, received atomic.Int64
	connections    atomic.Int64

	mu       sync.Mutex
	listener net.Listener
	faults   []*Armed
	links    map[*link]struct{}
	closed   bool
}

// NewProxy starts a proxy before the server at target, a "host:port" or the
// path of a Unix socket, and closes it at the test's end. A fault that was
// armed and never happened fails the test: it has proved nothing.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(target, "/") {
		network = "unix"
	}
	p := &Proxy{t: t, network: network, target: target, links: make(map[*link]struct{})}
	p.listen("127.0.0.1:0")
	p.addr = p.listener.Addr().String()
	t.Cleanup(p.finish)
	return p
}

// Addr is the proxy's loopback address, "127.0.0.1:port".
func (p *Proxy) Addr() string { return p.addr }

// Sent is how many bytes of clients were forwarded to the server.
func (p *Proxy) Sent() int64 { return p.sent.Load() }

// Received is how many bytes of the server were forwarded to clients.
func (p *Proxy) Received() int64 { return p.received.Load() }

// Connections is how many connections of clients were accepted.
func (p *Proxy) Connections() int64 { return p.connections.Load() }

// Arm makes the fault happen to the next request that fits. Several faults may
// be armed at once; a request that fits more than one gets the earliest, so
// that the same fault armed three times happens to three requests.
func (p *Proxy) Arm(fault Fault) *Armed {
	p.t.Helper()
	if len(fault.Request) > maxPattern || len(fault.Answer) > maxPattern {
		p.t.Fatalf("a fault's pattern may have up to %d bytes", maxPattern)
	}
	if fault.Do < CutBefore || fault.Do > HoldAnswer {
		p.t.Fatalf("a fault needs one of the actions CutBefore to HoldAnswer, not %v", fault.Do)
	}
	a := &Armed{fault: fault, skip: fault.Skip, done: make(chan struct{}), released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, a)
	return a
}

// Cut cuts all present connections. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// Refuse has new connections refused by the system, as by a host without the
// server, until [Proxy.Admit]. Present ones go on.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
}

// Admit accepts connections again after [Proxy.Refuse], at the same address.
func (p *Proxy) Admit() {
	p.t.Helper()
	p.mu.Lock()
	refusing := p.listener == nil && !p.closed
	p.mu.Unlock()
	if refusing {
		p.listen(p.addr)
	}
}

func (p *Proxy) listen(addr string) {
	p.t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		p.t.Fatalf("start the faulty proxy: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = l
	p.pumps.Go(func() { p.accept(l) })
}

// accept takes connections until the listener is closed.
func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.connections.Add(1)
		p.pumps.Go(func() { p.connect(client) })
	}
}

// connect forwards between the client and a connection of its own to the server.
func (p *Proxy) connect(client net.Conn) {
	server, err := net.Dial(p.network, p.target)
	if err != nil {
		client.Close()
		return
	}
	l := newLink(p, client, server)
	if !p.add(l) {
		l.cut()
		return
	}
	defer p.remove(l)
	p.pumps.Go(l.forwardAnswers)
	l.forwardRequests()
	<-l.answered
	l.cut()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// take returns the armed fault that the client's bytes set off, if any.
func (p *Proxy) take(window []byte, seen int, turn bool) (*Armed, int, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return take(p.faults, window, seen, turn)
}

// finish ends everything the proxy runs and reports faults that never happened.
func (p *Proxy) finish() {
	p.t.Helper()
	p.Refuse()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Cut()
	p.pumps.Wait()
	for _, a := range p.faults {
		switch {
		case a.happened():
		case a.taken:
			p.t.Errorf("the server never answered the request that the fault %v was for", a.fault.Do)
		default:
			p.t.Errorf("the fault %v never happened: no request held %q (%d matches to skip were left)", a.fault.Do, a.fault.Request, a.skip)
		}
	}
}
