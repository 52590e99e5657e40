package main

import (
	"context"
	"slices"

	"github.com/settle-go/settle"
)

// together is how many calls a model makes in one turn.
const together = 8

// turn measures the parallel calls of one model turn: ExecuteAll of 8 beside 8
// times Execute, by one goroutine on PostgreSQL.
func (b *bench) turn(ctx context.Context) error {
	pool, err := b.postgres.pool(ctx, together)
	if err != nil {
		return err
	}
	payer, err := b.postgres.payer(ctx, pool, "turn", 1)
	if err != nil {
		return err
	}
	byOne := contender{1, func(ctx context.Context, worker int) (int, error) {
		for range together {
			if err := payer.pay(ctx, worker); err != nil {
				return 0, err
			}
		}
		return together, nil
	}}
	all := contender{1, func(ctx context.Context, worker int) (int, error) { return together, payer.payTogether(ctx, worker) }}
	turns, err := b.takeTurns(ctx, byOne, all)
	if err != nil {
		return err
	}
	b.costs("postgres/one-by-one", turns[0])
	b.costs("postgres/together", turns[1])
	b.atLeast("postgres/together-of-one-by-one", turns[1].over(turns[0]), 3.0)
	return payer.shutdown()
}

// payTogether makes the calls of one model turn.
func (p *payer) payTogether(ctx context.Context, worker int) error {
	calls := make([]settle.Call, 0, together)
	var at context.Context
	for len(calls) < together {
		ctx, call, err := p.next(ctx, worker)
		if err != nil {
			return err
		}
		at, calls = ctx, append(calls, call)
	}
	outs, err := p.executor.ExecuteAll(at, calls...)
	if err != nil {
		return err
	}
	for out := range slices.Values(outs) {
		if err := completed(out, nil); err != nil {
			return err
		}
	}
	return nil
}
