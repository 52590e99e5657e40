package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// dbos measures settle beside DBOS Transact: one call with a recorded outcome
// here, a workflow with one step there, which is the least that it offers for
// an external call. It records the step after the call and nothing before it.
func (b *bench) dbos(ctx context.Context) error {
	for _, workers := range []int{1, 32} {
		pool, err := b.postgres.pool(ctx, workers)
		if err != nil {
			return err
		}
		payer, err := b.postgres.payer(ctx, pool, "beside_dbos_"+strconv.Itoa(workers), workers)
		if err != nil {
			return err
		}
		peer, err := b.startPeer(ctx, workers)
		if err != nil {
			return err
		}
		turns, err := b.takeTurns(ctx, one(workers, peer.pay), one(workers, payer.pay))
		peer.stop()
		if err != nil {
			return err
		}
		name := "postgres/" + strconv.Itoa(workers)
		b.costs(name+"/dbos", turns[0])
		ratio := turns[1].over(turns[0])
		if workers == 1 {
			b.plain(name+"/of-dbos", ratio)
		} else {
			b.atLeast(name+"/of-dbos", ratio, 1.8)
		}
		if err := payer.shutdown(); err != nil {
			return err
		}
	}
	return nil
}

// peer runs payments as DBOS workflows.
type peer struct {
	dbos dbos.Context
	done []int
}

// startPeer launches DBOS with a pool that has a connection for each worker, as
// settle's has, and some more for its own listening.
func (b *bench) startPeer(ctx context.Context, workers int) (*peer, error) {
	pool, err := b.postgres.pool(ctx, workers+4)
	if err != nil {
		return nil, err
	}
	d, err := dbos.NewContext(context.WithoutCancel(ctx), dbos.Config{
		AppName: "bench", SystemDBPool: pool, DatabaseSchema: "dbos_" + strconv.Itoa(workers),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, fmt.Errorf("configure DBOS: %w", err)
	}
	dbos.RegisterWorkflow(d, payWorkflow)
	if err := dbos.Launch(d); err != nil {
		return nil, fmt.Errorf("launch DBOS: %w", err)
	}
	return &peer{d, make([]int, workers)}, nil
}

func (p *peer) stop() { dbos.Shutdown(p.dbos, 10*time.Second) }

func payWorkflow(ctx dbos.Context, in payment) (receipt, error) {
	return dbos.RunAsStep(ctx, func(context.Context) (receipt, error) {
		return receipt{ID: "ch_" + in.Order, Status: "succeeded"}, nil
	})
}

func (p *peer) pay(_ context.Context, worker int) error {
	p.done[worker]++
	order := "ord_" + strconv.Itoa(worker) + "_" + strconv.Itoa(p.done[worker])
	handle, err := dbos.RunWorkflow(p.dbos, payWorkflow, paymentOf(order))
	if err != nil {
		return fmt.Errorf("run a workflow: %w", err)
	}
	if _, err := handle.GetResult(); err != nil {
		return fmt.Errorf("the workflow's result: %w", err)
	}
	return nil
}
