package farside

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// reply is what a far side answers.
type reply struct {
	status int
	body   any
	header http.Header
}

func refusal(status int, code string) reply {
	var b errorBody
	b.Error.Code = code
	return reply{status: status, body: b}
}

// errorBody is how a far side states a refusal.
type errorBody struct {
	Error struct {
		Code string `json:"code"`
	} `json:"error"`
}

// endpoint reads a request into the journal's form and says what acting on it
// does. The action runs once at most, with s.mu held.
type endpoint func(in *Request, r *http.Request, body []byte) (act func() reply)

// handle serves the pattern with the faults: the one place where modes happen.
func (s *Server) handle(pattern string, f *Faults, read endpoint) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			drop(w) // a request that didn't arrive in full is none
			return
		}
		in := Request{Method: r.Method, Path: r.URL.Path, Key: r.Header.Get("Idempotency-Key")}
		act := read(&in, r, body)
		s.treat(w, s.arrived(in, f), act)
	})
}

func (s *Server) treat(w http.ResponseWriter, m Mode, act func() reply) {
	if m.before != nil && !m.before.wait(s.closing) {
		drop(w)
		return
	}
	var rep reply
	if !m.skip {
		rep = s.act(act)
	}
	if m.after != nil && !m.after.wait(s.closing) {
		drop(w)
		return
	}
	if m.thenRefuse {
		s.Refuse()
	}
	if m.drop {
		drop(w)
		return
	}
	rep.write(w, m)
}

func (s *Server) act(action func() reply) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return action()
}

func (r reply) write(w http.ResponseWriter, m Mode) {
	if m.status != 0 {
		r = refusal(m.status, m.code)
	}
	body, err := json.Marshal(r.body)
	if err != nil {
		panic(err) // replies are made of strings, times and integers
	}
	if m.garble {
		body = body[:len(body)/2]
	}
	maps.Copy(w.Header(), r.header)
	maps.Copy(w.Header(), m.header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_, _ = w.Write(body) // the client may have left: that is its affair
}

// drop closes the connection without a byte of an answer.
func drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // closes it as well
	}
	_ = conn.Close()
}

// nextID makes a resource id; the caller holds s.mu.
func (s *Server) nextID(prefix string) string {
	s.ids++
	return fmt.Sprintf("%s_%04d", prefix, s.ids)
}

// visible tells whether a lookup sees what happened then.
func (s *Server) visible(e Effect) bool { return !s.now().Before(e.At.Add(s.visibleAfter)) }

// find lists the resources that a lookup sees and that match; never nil, so that
// absence is an empty list. The caller holds s.mu.
func find[T any](s *Server, all []made[T], match func(T) bool) []T {
	found := []T{}
	for _, m := range all {
		if s.visible(m.by) && match(m.it) {
			found = append(found, m.it)
		}
	}
	return slices.Clip(found)
}

// made is a resource and the effect that made it.
type made[T any] struct {
	it T
	by Effect
}
