package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
)

// files is a far side that deduplicates on a key: what is attached under a key
// that it knows is answered again and not attached again.
//
//	POST   /files {"ticket", "name"}, Idempotency-Key   201
//	DELETE /files/{id}                                  204, gone already: no change
type files struct {
	server *httptest.Server

	mu       sync.Mutex
	byKey    map[string]string // to the attachment's id
	attached []attachment
	removed  map[string]bool
}

type attachment struct {
	ID     string `json:"id"`
	Ticket string `json:"ticket"`
	Name   string `json:"name"`
}

func startFiles() *files {
	f := &files{byKey: map[string]string{}, removed: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /files", f.attach)
	mux.HandleFunc("DELETE /files/{id}", f.remove)
	f.server = httptest.NewServer(mux)
	return f
}

func (f *files) url() string { return f.server.URL }
func (f *files) close()      { f.server.Close() }

func (f *files) attach(w http.ResponseWriter, r *http.Request) {
	var a attachment
	key := r.Header.Get("Idempotency-Key")
	if json.NewDecoder(r.Body).Decode(&a) != nil || key == "" {
		http.Error(w, "a body and an Idempotency-Key, please", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.byKey[key]; ok {
		a.ID = known
	} else {
		a.ID = fmt.Sprintf("att_%d", len(f.attached)+1)
		f.byKey[key], f.attached = a.ID, append(f.attached, a)
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(a) // a caller that has gone asks again
}

func (f *files) remove(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed[r.PathValue("id")] = true
	w.WriteHeader(http.StatusNoContent)
}

// of counts what was attached for an incident.
func (f *files) of(incident string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.attached {
		if a.Name == logOf(incident) {
			n++
		}
	}
	return n
}

func (f *files) count() (attached, removed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.attached), len(f.removed)
}

// filesClient is the agent's client of it.
type filesClient struct{ base string }

func (c filesClient) attach(ctx context.Context, key, ticket, name string) (a attachment, err error) {
	body, err := json.Marshal(attachment{Ticket: ticket, Name: name})
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/files", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	r.GetBody = nil // net/http must not send it again by itself
	r.Header.Set("Idempotency-Key", key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return a, errors.New(response.Status)
	}
	return a, json.NewDecoder(response.Body).Decode(&a)
}

func (c filesClient) remove(ctx context.Context, id string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.base+"/files/"+id, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
