package farside

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is what all far sides share: a loopback HTTP server with faults and a
// journal. It is made by [NewPayments] and its siblings and is safe for
// concurrent use.
type Server struct {
	Writes Faults // faults of the requests that act
	Reads  Faults // faults of the requests that only look

	settings          // guarded by mu
	identity []string // the business identity, see Duplicates
	mux      *http.ServeMux
	http     *http.Server
	port     *port
	closing  chan struct{}
	serving  sync.WaitGroup // the accept loop
	handling sync.WaitGroup // requests being treated

	mu      sync.Mutex // guards the business state of the far side and its journal
	journal Report
	ids     int

	door     sync.Mutex // guards what follows
	listener net.Listener
	closed   bool
}

type settings struct {
	now           func() time.Time
	keepAlive     bool
	visibleAfter  time.Duration
	forgetsAfter  time.Duration
	searchHeaders bool
}

// Option sets up a far side.
type Option func(*settings)

// Clock replaces the wall clock for visibility, forgotten keys and the times in
// the journal. It must be safe for concurrent use and must not call the far side.
func Clock(now func() time.Time) Option { return func(s *settings) { s.now = now } }

// KeepAlive lets clients use a connection more than once. Without it every
// request comes on a connection of its own, so that a closed port refuses the
// very next request (not sent) instead of breaking it on an idle connection
// (unknown).
func KeepAlive() Option { return func(s *settings) { s.keepAlive = true } }

// VisibleAfter hides an effect from the far side's own lookups until it is that old.
func VisibleAfter(d time.Duration) Option { return func(s *settings) { s.visibleAfter = d } }

// newServer reserves a port; start opens it. Like httptest.NewServer it panics
// where loopback has no port to give: no test or example can go on without one.
func newServer(identity []string, opts []Option) *Server {
	p, err := reservePort()
	if err != nil {
		panic(err)
	}
	s := &Server{
		settings: settings{now: time.Now},
		identity: identity,
		mux:      http.NewServeMux(),
		port:     p,
		closing:  make(chan struct{}),
	}
	for _, o := range opts {
		o(&s.settings)
	}
	return s
}

func (s *Server) start() {
	s.mux.HandleFunc("GET /_effects", func(w http.ResponseWriter, _ *http.Request) {
		reply{status: http.StatusOK, body: s.Report()}.write(w, Mode{})
	})
	s.http = &http.Server{
		Handler:           s.owned(s.mux),
		ErrorLog:          log.New(io.Discard, "", 0), // dropped connections are the purpose here
		ReadHeaderTimeout: 10 * time.Second,
	}
	s.http.SetKeepAlivesEnabled(s.keepAlive)
	if err := s.Accept(); err != nil {
		panic(err)
	}
}

// Configure applies the options to a far side that runs.
func (s *Server) Configure(opts ...Option) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range opts {
		o(&s.settings)
	}
	s.http.SetKeepAlivesEnabled(s.keepAlive)
}

// URL is the far side's base address, without a slash at the end. It stays the
// same while the far side refuses.
func (s *Server) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port.number) }

// Refuse closes the port: every new connection is refused until [Server.Accept].
// What has been accepted is still treated. Under [KeepAlive] a client that holds
// an idle connection meets a closed one instead. Again is no change.
func (s *Server) Refuse() {
	s.door.Lock()
	defer s.door.Unlock()
	s.shut()
}

func (s *Server) shut() {
	if s.listener == nil {
		return
	}
	_ = s.listener.Close()
	s.listener = nil
	s.serving.Wait()
}

// Accept opens the port again. It fails where the far side is closed, and where
// the system doesn't give the port back (never on Linux).
func (s *Server) Accept() error {
	s.door.Lock()
	defer s.door.Unlock()
	if s.closed {
		return errors.New("farside: the far side is closed: make a new one")
	}
	if s.listener != nil {
		return nil
	}
	l, err := s.port.listen()
	if err != nil {
		return fmt.Errorf("farside: listen on the reserved port: %w", err)
	}
	s.listener = l
	s.serving.Go(func() { _ = s.http.Serve(l) }) // ends when the listener is closed
	return nil
}

// Close stops the far side and returns when none of its requests is being
// treated any more. Those that wait at a pause are dropped: unacted on where the
// mode acts after its pause. The journal stays readable. Again is no change.
func (s *Server) Close() {
	s.door.Lock()
	first := !s.closed
	s.closed = true
	s.shut()
	if first {
		close(s.closing)
	}
	s.door.Unlock()
	_ = s.http.Close()
	s.handling.Wait()
	if first {
		s.port.free()
	}
}

// enter admits a request, unless the far side refuses or is closed.
func (s *Server) enter() bool {
	s.door.Lock()
	defer s.door.Unlock()
	if s.listener == nil {
		return false
	}
	s.handling.Add(1)
	return true
}

// owned makes Close the owner of every request.
func (s *Server) owned(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			drop(w)
			return
		}
		defer s.handling.Done()
		next.ServeHTTP(w, r)
	})
}
