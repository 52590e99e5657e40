package farside

import (
	"context"
	"net/http"
	"net/url"
)

// Balance is read and never written from outside:
//
//	GET /accounts/{id}/balance   200; "0" where no balance was set
//
// It has no effects; [Balance.Acted] counts the reads.
type Balance struct {
	*Server
	amounts map[string]string
	acted   int
}

// Account is an account as the far side shows it.
type Account struct {
	ID     string `json:"id"`
	Amount string `json:"amount"` // a decimal number
}

// NewBalance starts a balance service. It panics where loopback has no free port.
func NewBalance(opts ...Option) *Balance {
	b := &Balance{Server: newServer([]string{"account"}, opts), amounts: map[string]string{}}
	b.handle("GET /accounts/{id}/balance", &b.Reads, b.get)
	b.start()
	return b
}

// SetBalance makes the amount, a decimal number, the balance of the account.
func (b *Balance) SetBalance(account, amount string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.amounts[account] = amount
}

// Acted counts the balances that were read, lost answers included.
func (b *Balance) Acted() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.acted
}

func (b *Balance) get(in *Request, r *http.Request, _ []byte) func() reply {
	id := r.PathValue("id")
	in.Fields = map[string]string{"account": id}
	return func() reply {
		b.acted++
		amount, ok := b.amounts[id]
		if !ok {
			amount = "0"
		}
		return reply{status: http.StatusOK, body: Account{id, amount}}
	}
}

// BalanceClient calls [Balance]. Its errors are [Error]s.
type BalanceClient struct{ client }

// NewBalanceClient makes a client of the balance service at the base URL.
func NewBalanceClient(baseURL string) *BalanceClient { return &BalanceClient{newClient(baseURL)} }

// Get reads the balance of the account.
func (c *BalanceClient) Get(ctx context.Context, account string) (Account, error) {
	var out Account
	err := c.call(ctx, http.MethodGet, "/accounts/"+url.PathEscape(account)+"/balance", nil, nil, &out)
	return out, err
}
