package farside

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Effect is one thing that truly happened on a far side.
type Effect struct {
	Kind     string            `json:"kind"`          // refund, ticket, ticket_closed, mail, label
	Resource string            `json:"resource"`      // id of what was made or changed
	Key      string            `json:"key,omitempty"` // the Idempotency-Key that came with the request
	Fields   map[string]string `json:"fields"`        // the business fields as received
	At       time.Time         `json:"at"`            // by the far side's clock
}

// Request is one request that arrived, whatever became of it.
type Request struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Key    string            `json:"key,omitempty"` // of the Idempotency-Key header, or of the lookup
	Fields map[string]string `json:"fields,omitempty"`
	Mode   string            `json:"mode"` // what the request met
	At     time.Time         `json:"at"`
}

// Report is the journal as GET /_effects answers it.
type Report struct {
	Effects  []Effect  `json:"effects"`
	Requests []Request `json:"requests"`
}

// Effects lists what truly happened, oldest first.
func (s *Server) Effects() []Effect { return s.Report().Effects }

// Requests lists the requests that arrived in full, reads included, oldest first.
func (s *Server) Requests() []Request { return s.Report().Requests }

// Keys lists the keys that requests other than lookups came with, each once, in
// the order of their first arrival.
func (s *Server) Keys() []string {
	var keys []string
	for _, r := range s.Requests() {
		if r.Method != http.MethodGet && r.Key != "" && !slices.Contains(keys, r.Key) {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// Report is the journal so far.
func (s *Server) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Effects: slices.Clone(s.journal.Effects), Requests: slices.Clone(s.journal.Requests)}
	for i := range r.Effects {
		r.Effects[i].Fields = maps.Clone(r.Effects[i].Fields)
	}
	for i := range r.Requests {
		r.Requests[i].Fields = maps.Clone(r.Requests[i].Fields)
	}
	return r
}

// Duplicates groups the effects that share kind and business identity and
// lists the groups of more than one. Identity is the named fields, by default
// those of the far side: order_id; title; to and purpose; issue and label.
func (s *Server) Duplicates(fields ...string) [][]Effect {
	if len(fields) == 0 {
		fields = s.identity
	}
	return duplicates(s.Effects(), fields)
}

func duplicates(effects []Effect, fields []string) [][]Effect {
	groups := map[string][]Effect{}
	var order []string
	for _, e := range effects {
		id := identityOf(e, fields)
		if len(groups[id]) == 0 {
			order = append(order, id)
		}
		groups[id] = append(groups[id], e)
	}
	var twice [][]Effect
	for _, id := range order {
		if len(groups[id]) > 1 {
			twice = append(twice, groups[id])
		}
	}
	return twice
}

// identityOf quotes each part, so that no two identities run into one another.
func identityOf(e Effect, fields []string) string {
	var b strings.Builder
	b.WriteString(strconv.Quote(e.Kind))
	for _, f := range fields {
		b.WriteString(strconv.Quote(e.Fields[f]))
	}
	return b.String()
}

// record notes an effect; the caller holds s.mu.
func (s *Server) record(kind, resource string, r Request) Effect {
	e := Effect{Kind: kind, Resource: resource, Key: r.Key, Fields: maps.Clone(r.Fields), At: s.now()}
	s.journal.Effects = append(s.journal.Effects, e)
	return e
}

// arrived notes a request and takes its mode in one step, so that the journal's
// order is the order in which the modes were met.
func (s *Server) arrived(r Request, f *Faults) Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := f.take(r)
	r.Mode = m.String()
	r.At = s.now()
	s.journal.Requests = append(s.journal.Requests, r)
	return m
}

// Fetch reads the journal of a far side over HTTP: of one that lives in another
// process, or whose clients were killed.
func Fetch(ctx context.Context, baseURL string) (Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, baseURL+"/_effects", nil)
	if err != nil {
		return Report{}, fmt.Errorf("farside: the journal's address must be a base URL: %w", err)
	}
	t := &http.Transport{DisableKeepAlives: true}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return Report{}, fmt.Errorf("farside: read the journal: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Report{}, fmt.Errorf("farside: read the journal: expected status 200, got %d; is this a far side?", resp.StatusCode)
	}
	var r Report
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxJournal)).Decode(&r); err != nil {
		return Report{}, fmt.Errorf("farside: read the journal: %w", err)
	}
	return r, nil
}

// maxJournal bounds what Fetch reads, in bytes.
const maxJournal = 64 << 20
