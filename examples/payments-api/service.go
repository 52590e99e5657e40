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
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/tools/idempotency"
)

const route = "POST /payments"

// payment is what clients send.
type payment struct {
	Order  string `json:"order"`
	Amount string `json:"amount"`
}

// service takes payments and charges cards.
type service struct {
	executor *settle.Executor
	server   *httptest.Server
	cards    *processor
}

func newService(ledger store.Ledger, cards *processor) (*service, error) {
	s := &service{cards: cards}
	// The processor charges whenever it is asked, so a payment is Unsafe; but it
	// can be asked by the reference that it was sent.
	contract := idempotency.Declare(route, settle.Contract{VisibilityDelay: settle.Immediately})
	contract.Lookup = s.lookup
	var err error
	if s.executor, err = settle.New(ledger, settle.WithGuarded(contract)); err != nil {
		return nil, err
	}
	guard, err := idempotency.New(s.executor, idempotency.Options{Caller: callerOf, Challenge: "Bearer", StatusPath: "/idempotency"})
	if err != nil {
		return nil, err
	}
	pay, err := guard.Protect(route, http.HandlerFunc(s.pay))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(route, pay)
	mux.Handle("GET /idempotency", guard.Status())
	s.server = httptest.NewServer(losing(mux))
	return s, nil
}

func (s *service) close() error {
	s.server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.executor.Shutdown(ctx)
}

// callerOf stands for the service's authentication.
func callerOf(r *http.Request) (settle.Principal, error) {
	if r.Header.Get("Authorization") != "Bearer shop-7" {
		return settle.Principal{}, errors.New("unknown token")
	}
	return settle.Principal{Tenant: "payments-api", Subject: "shop-7"}, nil
}

// pay is the handler. Nothing in it is about repeated requests.
func (s *service) pay(w http.ResponseWriter, r *http.Request) {
	var p payment
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil || p.Order == "" || p.Amount == "" {
		http.Error(w, "an order and an amount are needed", http.StatusBadRequest)
		return
	}
	reference, _ := settle.KeyFrom(r.Context())
	id, err := s.cards.charge(r.Context(), p, reference)
	if err != nil {
		http.Error(w, "the card processor did not answer", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/payments/"+id)
	w.WriteHeader(http.StatusCreated)
	w.Write(receipt(id, p)) //nolint:errcheck // the guard records it
}

func receipt(id string, p payment) []byte {
	return fmt.Appendf(nil, `{"id":%q,"order":%q,"amount":%q}`, id, p.Order, p.Amount)
}

// lookup asks the processor what became of a payment whose outcome isn't known.
func (s *service) lookup(ctx context.Context, q settle.Query[idempotency.Response], in idempotency.Request) (settle.Evidence, error) {
	id, err := s.cards.find(ctx, q.Key())
	if err != nil {
		return settle.Evidence{}, err
	}
	if id == "" {
		return q.NotHappened(), nil
	}
	var p payment
	if err := json.Unmarshal(in.Body, &p); err != nil {
		return settle.Evidence{}, err
	}
	return q.Happened(id, idempotency.JSON(http.StatusCreated, receipt(id, p))), nil
}

// losing carries out the first request under each key and loses its answer.
func losing(h http.Handler) http.Handler {
	var mu sync.Mutex
	seen := map[string]bool{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(idempotency.Header)
		mu.Lock()
		first := r.Method == http.MethodPost && !seen[key]
		seen[key] = true
		mu.Unlock()
		if !first {
			h.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
}

// charge is one charge on a card.
type charge struct {
	ID, Order, Reference string
}

// processor charges cards. It keeps the reference of a charge and doesn't mind
// whether it has seen it before.
type processor struct {
	server *httptest.Server
	mu     sync.Mutex
	made   []charge
}

// silent is the order whose charge the processor makes without answering.
const silent = "A-1005"

func newProcessor() *processor {
	p := &processor{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", func(w http.ResponseWriter, r *http.Request) {
		var c charge
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, "no charge", http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		c.ID = fmt.Sprintf("ch_%d", len(p.made)+1)
		p.made = append(p.made, c)
		p.mu.Unlock()
		if c.Order == silent {
			panic(http.ErrAbortHandler)
		}
		json.NewEncoder(w).Encode(c) //nolint:errcheck // a lost answer is what this is about
	})
	mux.HandleFunc("GET /charges", func(w http.ResponseWriter, r *http.Request) {
		var found charge
		for _, c := range p.charges() {
			if c.Reference == r.URL.Query().Get("reference") {
				found = c
			}
		}
		json.NewEncoder(w).Encode(found) //nolint:errcheck // as above
	})
	p.server = httptest.NewServer(mux)
	return p
}

func (p *processor) charges() []charge {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]charge(nil), p.made...)
}

func (p *processor) charge(ctx context.Context, in payment, reference string) (id string, err error) {
	body, err := json.Marshal(charge{Order: in.Order, Reference: reference})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.server.URL+"/charges", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	return p.do(r)
}

func (p *processor) find(ctx context.Context, reference string) (id string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server.URL+"/charges?reference="+reference, nil)
	if err != nil {
		return "", err
	}
	return p.do(r)
}

func (p *processor) do(r *http.Request) (id string, err error) {
	resp, err := p.server.Client().Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(resp.Status)
	}
	var c charge
	err = json.NewDecoder(resp.Body).Decode(&c)
	return c.ID, err
}
