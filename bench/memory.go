package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/settle-go/settle/store"
)

// memory watches what the executor keeps while it runs operations on a ledger
// that keeps nothing, and measures what the executor takes by itself.
func (b *bench) memory(ctx context.Context) error {
	const workers, samples = 4, 20
	payer, err := newPayer(forgetful{}, workers)
	if err != nil {
		return err
	}
	var alone measured
	if err := alone.turn(ctx, one(1, payer.pay), b.length); err != nil {
		return err
	}
	b.costs("executor", alone)

	heaps := make([]float64, samples)
	for i := range heaps {
		if err := payer.payMany(ctx, b.executions/samples); err != nil {
			return err
		}
		heaps[i] = heap()
	}
	// What is remembered comes and goes in generations, so that the heap rises
	// and falls; what counts is how high.
	first, last := slices.Max(heaps[samples/4:samples/2]), slices.Max(heaps[samples*3/4:])
	b.figure("executor/heap", last/1024, "KiB")
	b.figure("executor/goroutines", float64(runtime.NumGoroutine()), "goroutines")
	b.atMost("executor/heap-growth", last/first, 1.1)
	return payer.shutdown()
}

// payMany spreads so many payments over the workers.
func (p *payer) payMany(ctx context.Context, n int) error {
	errs := make([]error, len(p.workers))
	var group sync.WaitGroup
	for worker := range p.workers {
		group.Go(func() {
			for range n / len(p.workers) {
				if errs[worker] = p.pay(ctx, worker); errs[worker] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// heap is how many bytes are reachable.
func heap() float64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(memory.HeapAlloc)
}

// forgetful is a ledger that admits every claim, accepts every change and keeps
// nothing, so that the executor's own memory and costs show. What a first
// execution doesn't call it doesn't have.
type forgetful struct{ store.Ledger }

func (forgetful) Info() store.Info { return store.Info{Name: "forgetful", Durable: true} }

func (forgetful) Intent(_ context.Context, proposed store.Intent) (store.Intent, error) {
	return proposed, nil
}

func (forgetful) Claim(_ context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	answers := make([]store.Claimed, len(claims))
	for i, c := range claims {
		row, _ := store.First(c, time.Now())
		answers[i] = store.Claimed{Won: true, Operation: row}
	}
	return answers, nil
}

func (forgetful) Apply(_ context.Context, c store.Change) (store.Operation, error) {
	row, _ := store.Next(c.Of, c, time.Now())
	return row, nil
}
