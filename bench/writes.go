package main

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
)

// writes is a first execution's share of the ledger: the claim and the change
// that the executor made for a payment, made again and again without it, under
// new ids. What a whole call takes beside them is the executor's.
type writes struct {
	ledger store.Ledger
	claim  store.Claim
	end    store.Change
}

// tap remembers what last went through to the ledger.
type tap struct {
	store.Ledger
	writes
}

func (t *tap) Claim(ctx context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	t.claim = claims[0]
	return t.Ledger.Claim(ctx, claims...)
}

func (t *tap) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	t.end = c
	return t.Ledger.Apply(ctx, c)
}

// newWrites lets an executor pay twice, since the first claim of a tool in an
// intent is another one.
func newWrites(ctx context.Context, pool *pgxpool.Pool, schema string) (*writes, error) {
	ledger, err := postgres.New(ctx, pool, postgres.WithSchema(schema))
	if err != nil {
		return nil, err
	}
	t := &tap{Ledger: ledger, writes: writes{ledger: ledger}}
	payer, err := newPayer(t, 1)
	if err != nil {
		return nil, err
	}
	for range 2 {
		if err := payer.pay(ctx, 0); err != nil {
			return nil, err
		}
	}
	return &t.writes, payer.shutdown()
}

func (w *writes) call(ctx context.Context, _ int) error {
	claim, end := w.claim, w.end
	o := &claim.Operation
	o.ID, o.Slot, o.Owner = uuid.Must(uuid.NewV7()), store.Digest(uuid.New()), uuid.New()
	claimed, err := w.ledger.Claim(ctx, claim)
	if err != nil {
		return err
	}
	if !claimed[0].Won {
		return errors.New("a claim of a new place wasn't won")
	}
	end.Of = claimed[0].Operation
	_, err = w.ledger.Apply(ctx, end)
	return err
}
