package farside

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

// Payments refunds orders and deduplicates on the Idempotency-Key header:
//
//	POST /refunds {"order_id", "amount"}   201, or what the key's first request was answered;
//	                                       422 key_reused where the key came with another body
//	GET  /refunds?key=…                    {"refunds": […]}, empty where there is none
//
// Two requests without a key, or with two keys, are two refunds.
type Payments struct {
	*Server
	refunds []made[Refund]
	keys    map[string]made[Refund] // what is still deduplicated
}

// Refund is a refund as the far side shows it.
type Refund struct {
	ID      string `json:"id"`
	OrderID string `json:"order_id"`
	Amount  string `json:"amount"` // a decimal number as it was sent, "42.10"
	Key     string `json:"key,omitempty"`
}

type refundBody struct {
	OrderID string      `json:"order_id"`
	Amount  json.Number `json:"amount"` // a string or a number on the wire
}

// ForgetsKeysAfter ends the deduplication of a key that long after its first
// request. Lookups still find what it made.
func ForgetsKeysAfter(d time.Duration) Option { return func(s *settings) { s.forgetsAfter = d } }

// NewPayments starts a payment service. It panics where loopback has no free port.
func NewPayments(opts ...Option) *Payments {
	p := &Payments{Server: newServer([]string{"order_id"}, opts), keys: map[string]made[Refund]{}}
	p.handle("POST /refunds", &p.Writes, p.refund)
	p.handle("GET /refunds", &p.Reads, p.find)
	p.start()
	return p
}

func (p *Payments) refund(in *Request, _ *http.Request, body []byte) func() reply {
	var b refundBody
	if json.Unmarshal(body, &b) != nil || b.OrderID == "" {
		return always(refusal(http.StatusBadRequest, "invalid_body"))
	}
	in.Fields = map[string]string{"order_id": b.OrderID, "amount": b.Amount.String()}
	if !positive(b.Amount.String()) {
		return always(refusal(http.StatusUnprocessableEntity, "invalid_amount"))
	}
	req := *in
	return func() reply { return p.refundOnce(req) }
}

// refundOnce runs with p.mu held, which makes looking the key up and acting one step.
func (p *Payments) refundOnce(req Request) reply {
	if first, ok := p.keys[req.Key]; ok && !p.forgotten(first.by) {
		if !sameRefund(first.it, req) {
			return refusal(http.StatusUnprocessableEntity, "key_reused")
		}
		return reply{http.StatusCreated, first.it, http.Header{"Idempotent-Replayed": {"true"}}}
	}
	r := Refund{p.nextID("re"), req.Fields["order_id"], req.Fields["amount"], req.Key}
	m := made[Refund]{r, p.record("refund", r.ID, req)}
	p.refunds = append(p.refunds, m)
	if r.Key != "" {
		p.keys[r.Key] = m
	}
	return reply{status: http.StatusCreated, body: r}
}

func (p *Payments) forgotten(e Effect) bool {
	return p.forgetsAfter > 0 && !p.now().Before(e.At.Add(p.forgetsAfter))
}

func (p *Payments) find(in *Request, r *http.Request, _ []byte) func() reply {
	in.Key = r.URL.Query().Get("key")
	key := in.Key
	return func() reply {
		return reply{status: http.StatusOK, body: refundList{find(p.Server, p.refunds, func(r Refund) bool {
			return r.Key == key && key != ""
		})}}
	}
}

type refundList struct {
	Refunds []Refund `json:"refunds"`
}

// decimalText bounds an amount: an exponent could make a short text a huge number.
var decimalText = regexp.MustCompile(`^[0-9]{1,18}(\.[0-9]{1,18})?$`)

func positive(amount string) bool { return decimalText.MatchString(amount) && value(amount).Sign() > 0 }

func value(amount string) *big.Rat {
	v, _ := new(big.Rat).SetString(amount)
	return v
}

func sameRefund(r Refund, req Request) bool {
	return r.OrderID == req.Fields["order_id"] && value(r.Amount).Cmp(value(req.Fields["amount"])) == 0
}

func always(r reply) func() reply { return func() reply { return r } }

// PaymentsClient calls [Payments]. Its errors are [Error]s.
type PaymentsClient struct{ client }

// NewPaymentsClient makes a client of the payment service at the base URL.
func NewPaymentsClient(baseURL string) *PaymentsClient { return &PaymentsClient{newClient(baseURL)} }

// Refund refunds the amount, a decimal number such as "42.10", under the key.
func (c *PaymentsClient) Refund(ctx context.Context, key, orderID, amount string) (Refund, error) {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	var out Refund
	err := c.call(ctx, http.MethodPost, "/refunds", header, refundBody{orderID, json.Number(amount)}, &out)
	return out, err
}

// FindByKey lists what was refunded under the key, oldest first: nothing, one, or
// more where the key was forgotten in between.
func (c *PaymentsClient) FindByKey(ctx context.Context, key string) ([]Refund, error) {
	var out refundList
	err := c.call(ctx, http.MethodGet, "/refunds?key="+url.QueryEscape(key), nil, nil, &out)
	return out.Refunds, err
}
