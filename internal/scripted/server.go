package scripted

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	maxBody = 16 << 20   // bytes of a request
	created = 1767225600 // when every answer was made, Unix seconds
)

// Server is a scripted model. It is safe for concurrent use.
type Server struct {
	url     string
	http    *http.Server
	serving sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	handling  sync.WaitGroup // added to under mu, never once closed
	turns     []Turn
	otherwise Turn
	overrun   int
	requests  []Request
	said      map[string][]Message // conversation by response id, for the responses protocol
}

// protocol is how one API reads and writes.
type protocol interface {
	read(s *Server, body []byte) (Request, error)
	write(id string, r Request, reply Reply) (any, error)
	stream(id string, r Request, reply Reply) ([]event, error)
	fail(status int, message string) any
}

// event is one server-sent event; a name is sent where it isn't empty.
type event struct {
	name string
	data any
}

// New starts a model that answers with the turns, one per request, in order.
// Like httptest.NewServer it panics where loopback has no free port.
func New(turns ...Turn) *Server {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := &Server{url: "http://" + l.Addr().String(), turns: slices.Clone(turns), said: map[string][]Message{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve(chat{}))
	mux.HandleFunc("POST /v1/responses", s.serve(responses{}))
	mux.HandleFunc("POST /v1/messages", s.serve(messages{}))
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.serving.Go(func() { _ = s.http.Serve(l) }) // ends with Close
	return s
}

// URL is the model's base address, without a slash at the end and without /v1.
func (s *Server) URL() string { return s.url }

// Then appends turns to the script.
func (s *Server) Then(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, turns...)
}

// Otherwise gives every request the turn once the script is over. Without one
// they get status 400, which clients don't retry.
func (s *Server) Otherwise(t Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.otherwise = t
}

// Remaining is how many turns no request has taken yet.
func (s *Server) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns)
}

// Overrun is how many requests came after the end of the script, those that
// [Server.Otherwise] answered included.
func (s *Server) Overrun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overrun
}

// Requests lists what the model was told, in the order of arrival: every
// request that could be read, those that were answered with an error included.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Close stops the model and returns when no turn runs any more. What was
// recorded stays readable. Again is no change.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.http.Close()
	s.serving.Wait()
	s.handling.Wait()
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.handling.Add(1)
	return true
}

func (s *Server) serve(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.handling.Done()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		req, reply, id, err := s.answer(p, body)
		if err == nil && reply.drop {
			panic(http.ErrAbortHandler)
		}
		if err == nil {
			err = send(w, p, id, req, reply)
		}
		if err != nil {
			sendError(w, p, err)
		}
	}
}

// answer reads the request, takes its turn and lets it speak.
func (s *Server) answer(p protocol, body []byte) (req Request, reply Reply, id string, err error) {
	if req, err = p.read(s, body); err != nil {
		return req, reply, "", err
	}
	req.Raw = body
	n, turn, err := s.take(req)
	if err != nil {
		return req, reply, "", err
	}
	reply = turn(req)
	if reply.status != 0 {
		return req, reply, "", &refusal{reply.status, "the script fails this turn"}
	}
	reply.Calls = freshIDs(reply.Calls)
	id = fmt.Sprintf("%s_%d", req.Protocol, n)
	s.remember(id, req, reply)
	return req, reply, id, nil
}

// take records the request and yields its number and its turn.
func (s *Server) take(req Request) (int, Turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	if err := checkHistory(req.Messages); err != nil {
		return 0, nil, err // the real APIs answer this without asking the model
	}
	if len(s.turns) > 0 {
		turn := s.turns[0]
		s.turns = s.turns[1:]
		return len(s.requests), turn, nil
	}
	s.overrun++
	if s.otherwise == nil {
		return 0, nil, invalid(fmt.Sprintf("the script is over: request %d has no turn", len(s.requests)))
	}
	return len(s.requests), s.otherwise, nil
}

// remember keeps the conversation for a later previous_response_id.
func (s *Server) remember(id string, req Request, reply Reply) {
	if req.Protocol != Responses {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said[id] = append(slices.Clone(req.Messages), Message{Role: Assistant, Text: reply.Text, Calls: reply.Calls})
}

func (s *Server) conversation(id string) ([]Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.said[id]
	return m, ok
}

// freshIDs gives ids to the calls that ask for one, in a copy: the same turn may
// answer many requests.
func freshIDs(calls []Call) []Call {
	calls = slices.Clone(calls)
	for i := range calls {
		if calls[i].ID == FreshID {
			calls[i].ID = "call_" + rand.Text()
		}
	}
	return calls
}

func send(w http.ResponseWriter, p protocol, id string, req Request, reply Reply) error {
	if req.Stream {
		events, err := p.stream(id, req, reply)
		if err != nil {
			return err
		}
		sendEvents(w, events)
		return nil
	}
	answer, err := p.write(id, req, reply)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, answer)
}

func sendJSON(w http.ResponseWriter, status int, answer any) error {
	b, err := encode(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may have left: that is its affair
	return nil
}

func sendEvents(w http.ResponseWriter, events []event) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for _, e := range events {
		b, ok := e.data.(literal)
		if !ok {
			var err error
			if b, err = encode(e.data); err != nil {
				panic(err) // what a script gives is checked before the stream begins
			}
		}
		if e.name != "" {
			_, _ = fmt.Fprintf(w, "event: %s\n", e.name)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
		_ = flush.Flush()
	}
}

// encode is json.Marshal without the escapes for HTML, which no API makes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// literal is event data that is sent as it is.
type literal = json.RawMessage

func sendError(w http.ResponseWriter, p protocol, err error) {
	r := &refusal{http.StatusInternalServerError, err.Error()}
	_ = errors.As(err, &r)
	_ = sendJSON(w, r.status, p.fail(r.status, r.message)) // made of strings: always marshals
}

// object is a JSON object in the making.
type object = map[string]any
