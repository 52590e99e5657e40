package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// million measures executions on a ledger that holds a million settled
// operations beside an empty one.
func (b *bench) million(ctx context.Context) error {
	const most = 32
	pool, err := b.postgres.pool(ctx, most)
	if err != nil {
		return err
	}
	g, err := onPostgres(ctx, pool, "large")
	if err != nil {
		return err
	}
	large, err := newPayer(g.Ledger, most)
	if err != nil {
		return err
	}
	paid, err := large.first(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(g.fill(ctx, copies{operation: paid, n: b.rows}), g.finish(ctx)); err != nil {
		return fmt.Errorf("fill the large ledger: %w", err)
	}
	size, err := sizeOf(ctx, pool, "large")
	if err != nil {
		return err
	}
	b.figure("postgres/large/stored", float64(size)/float64(b.rows), "B/op")
	for _, workers := range []int{1, most} {
		empty, err := b.postgres.payer(ctx, pool, "empty_"+strconv.Itoa(workers), workers)
		if err != nil {
			return err
		}
		turns, err := b.takeTurns(ctx, one(workers, empty.pay), one(workers, large.pay))
		if err != nil {
			return err
		}
		name := "postgres/" + strconv.Itoa(workers) + "/large"
		b.figure(name+"/rate", turns[1].rate(), "op/s")
		b.atMost(name+"-time-of-empty", turns[0].over(turns[1]), 1.2)
		if err := empty.shutdown(); err != nil {
			return err
		}
	}
	return large.shutdown()
}
