package idempotency

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// Status is the handler to ask by key what became of a request, without sending
// it: GET with the same Idempotency-Key, as the same caller, and the query
// parameter route, such as route=POST+%2Fpayments. It executes nothing and takes
// one round trip to the ledger.
//
// The answer is 200 with a document of JSON: status is the outcome's code (R59),
// operation its reference; resource, response_status, not_before and
// corrected_by are there where they are known. 404 says that no such request of
// this caller was begun. The response itself is had by sending the request
// again: a completed one is replayed.
func (g *Guard) Status() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			g.refuse(w, problemOf(methodNotAllowed))
			return
		}
		ctx, refused := g.scope(r)
		if refused != nil {
			g.refuse(w, *refused)
			return
		}
		key, err := keyOf(r.Header)
		if err != nil {
			g.refuse(w, keyProblem(problemOf, err))
			return
		}
		out, err := g.executor.Find(ctx, r.URL.Query().Get("route"), key)
		if err != nil || out.Status == settle.StatusNoSuchTool {
			g.refuse(w, g.notFound(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.Write(statusDocument(out)) //nolint:errcheck // the client may be gone
	})
}

func (g *Guard) notFound(err error) problem {
	var name *settle.NameError
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound):
		return problemOf(notFound)
	case errors.As(err, &name), errors.Is(err, settle.ErrShutdown):
		return g.mistake(err)
	}
	return problemOf(unavailable)
}

// document is what the status endpoint answers, and what stands in for a
// response that isn't kept.
type document struct {
	Status         string `json:"status"`
	Operation      string `json:"operation,omitempty"`
	Resource       string `json:"resource,omitempty"`
	ResponseStatus int    `json:"response_status,omitempty"`
	NotBefore      string `json:"not_before,omitempty"`
	CorrectedBy    string `json:"corrected_by,omitempty"`
}

func statusDocument(out settle.Outcome) []byte {
	d := document{Status: string(out.Status), Operation: out.Operation, Resource: out.Resource, CorrectedBy: out.CorrectedBy}
	if recorded, err := settle.Decode[Response](out); err == nil {
		d.ResponseStatus = recorded.Status
	}
	if !out.NotBefore.IsZero() {
		d.NotBefore = out.NotBefore.UTC().Format(time.RFC3339)
	}
	encoded, _ := json.Marshal(d) // strings and numbers
	return append(encoded, '\n')
}
