package idempotency

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/settle-go/settle"
)

// Response is what the ledger keeps of a handler's answer: the result of its
// operation. A lookup that finds that a request was carried out may give one, so
// that the caller gets an answer in the route's own form:
// q.Happened(id, idempotency.JSON(201, body)).
type Response struct {
	// Status is the HTTP status.
	Status int `json:"status"`
	// Header are the headers that are recorded; see [Options.Headers].
	Header map[string][]string `json:"header,omitempty"`
	// HeaderBytes are those with a value that isn't valid UTF-8.
	HeaderBytes map[string][][]byte `json:"header_bytes,omitempty"`
	// Text is a body that is valid UTF-8, Bytes any other.
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"`
	// Omitted says that the body was longer than [Options.MaxResponse].
	Omitted bool `json:"omitted,omitempty"`
	// Resource is what was made or changed.
	Resource string `json:"resource,omitempty" settle:"resource"`
}

// JSON is a response with a body of JSON.
func JSON(status int, body []byte) Response {
	r := Response{Status: status, Header: map[string][]string{"Content-Type": {"application/json"}}}
	r.setBody(body)
	return r
}

func (r *Response) setBody(body []byte) {
	if utf8.Valid(body) {
		r.Text = string(body)
	} else {
		r.Bytes = slices.Clone(body)
	}
}

// setHeader keeps a header's values as they are: JSON takes no bytes that are no
// text, such as a file's name in ISO 8859-1.
func (r *Response) setHeader(name string, values []string) {
	if !slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
		if r.Header == nil {
			r.Header = map[string][]string{}
		}
		r.Header[name] = slices.Clone(values)
		return
	}
	if r.HeaderBytes == nil {
		r.HeaderBytes = map[string][][]byte{}
	}
	for _, v := range values {
		r.HeaderBytes[name] = append(r.HeaderBytes[name], []byte(v))
	}
}

func (r Response) body() []byte {
	if r.Bytes != nil {
		return r.Bytes
	}
	return []byte(r.Text)
}

// recorder is a handler's ResponseWriter. It keeps the answer back until its
// outcome is recorded; from Flush on, or beyond the limit, it passes on what is
// written and keeps it as well, while that is within the limit.
type recorder struct {
	w http.ResponseWriter
	// header is the handler's; sent is as it was at WriteHeader.
	header, sent http.Header
	status       int
	body         []byte
	limit        int
	over         bool
	// held keeps the whole answer back, whatever its length: nothing is sent before
	// the ledger's transaction is committed (R53).
	held      bool
	passing   bool
	operation string
}

func newRecorder(w http.ResponseWriter, limit int, operation string) *recorder {
	return &recorder{w: w, header: w.Header().Clone(), limit: limit, operation: operation}
}

// Header implements [http.ResponseWriter].
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter]. Informational answers are no
// part of the outcome and aren't sent. It panics as net/http does, so that a status
// that is none isn't first recorded and then not sent.
func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("idempotency: invalid WriteHeader code %d", status))
	}
	if r.status != 0 || status < 200 {
		return
	}
	r.status, r.sent = status, r.header.Clone()
}

// Write implements [http.ResponseWriter].
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.status == http.StatusNoContent || r.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if !r.over && len(r.body)+len(b) > r.limit {
		r.over = true
		if !r.held {
			r.pass()
			r.body = nil
		}
	}
	if !r.over || r.held {
		r.body = append(r.body, b...)
	}
	if r.passing {
		return r.w.Write(b)
	}
	return len(b), nil
}

// Flush implements [http.Flusher].
func (r *recorder) Flush() { r.FlushError() } //nolint:errcheck // Flush has no error

// FlushError is what [http.ResponseController] looks for.
func (r *recorder) FlushError() error {
	r.WriteHeader(http.StatusOK)
	if r.held {
		return nil
	}
	r.pass()
	return http.NewResponseController(r.w).Flush()
}

// pass sends what was kept back. The outcome isn't recorded yet, so the answer
// doesn't say that it is.
func (r *recorder) pass() {
	if r.passing {
		return
	}
	r.passing = true
	r.sniff()
	r.send("")
}

// finish ends the answer as net/http does, when the handler has returned.
func (r *recorder) finish() { r.WriteHeader(http.StatusOK) }

// sniff gives a body that goes out in pieces the type that net/http finds in the
// first: in the whole of a replay it might find another.
func (r *recorder) sniff() {
	if _, given := r.sent["Content-Type"]; !given && len(r.body) > 0 && r.sent.Get("Content-Encoding") == "" {
		r.sent.Set("Content-Type", http.DetectContentType(r.body))
	}
}

// send sends the handler's own answer, with the operation and its status.
func (r *recorder) send(status string) {
	h := r.w.Header()
	clear(h)
	maps.Copy(h, r.sent)
	h.Set(HeaderOperation, r.operation)
	if status != "" {
		h.Set(HeaderStatus, status)
		h.Del("Trailer")
		h.Del("Content-Length")
		if len(r.body) > 0 {
			h.Set("Content-Length", strconv.Itoa(len(r.body)))
		}
	}
	r.w.WriteHeader(r.status)
	if len(r.body) > 0 {
		r.w.Write(r.body) //nolint:errcheck // the client may be gone; its answer is recorded
	}
}

// response is what is recorded of the answer.
func (r *recorder) response(headers []string, resource string) Response {
	out := Response{Status: r.status, Omitted: r.over, Resource: resource}
	for _, name := range headers {
		if values := r.sent[name]; len(values) > 0 {
			out.setHeader(name, values)
		}
	}
	if out.Resource == "" {
		out.Resource = r.sent.Get("Location")
	}
	if !r.over {
		out.setBody(r.body)
	}
	return out
}

// replay sends a recorded response. Where its body wasn't kept, the status
// document takes its place.
func (p *protected) replay(w http.ResponseWriter, out settle.Outcome) {
	recorded, err := settle.Decode[Response](out)
	if err != nil || recorded.Status < 200 || recorded.Status > 599 {
		recorded = Response{Status: http.StatusOK, Omitted: true}
	}
	h := w.Header()
	for name, values := range recorded.Header {
		h[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	for name, values := range recorded.HeaderBytes {
		h.Del(name)
		for _, v := range values {
			h.Add(name, string(v))
		}
	}
	p.stamp(h, out)
	body := recorded.body()
	if recorded.Omitted && recorded.Status != http.StatusNoContent && recorded.Status != http.StatusNotModified {
		h.Set("Content-Type", "application/json")
		h.Del("Content-Encoding")
		body = statusDocument(out)
	}
	if len(body) > 0 {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(recorded.Status)
	if len(body) > 0 {
		bytes.NewReader(body).WriteTo(w) //nolint:errcheck // the client may be gone
	}
}
