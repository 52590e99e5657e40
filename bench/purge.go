package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

// purgeWorkers is how many goroutines execute beside a purge.
const purgeWorkers = 4

// purge measures how long first executions take while a purge of many operations
// runs on the same ledger, beside how long they take while it stands still.
func (b *bench) purge(ctx context.Context) error {
	return b.onEach(ctx, 2*purgeWorkers, func(database string, open func(string) (*ground, error)) error {
		g, err := open("purged")
		if err != nil {
			return err
		}
		payer, err := newPayer(g.Ledger, purgeWorkers)
		if err != nil {
			return err
		}
		paid, err := payer.first(ctx)
		if err != nil {
			return err
		}
		// They were settled a day ago, and their retention was an hour.
		err = g.fill(ctx, copies{operation: paid, n: b.purged, change: map[string]map[string]string{"operation": {
			"settled_at": g.at(g.began.Add(-24 * time.Hour)), "retention": g.span(time.Hour)}}})
		if err := errors.Join(err, g.finish(ctx)); err != nil {
			return err
		}
		r, err := b.besidePurge(ctx, payer)
		if err != nil {
			return err
		}
		name := database + "/purge"
		for i, way := range []string{"alone", "beside"} {
			b.figure(name+"/call-"+way, r.median(i), "ms")
			b.figure(name+"/call-"+way+"-p99", r.high(i), "ms")
		}
		b.figure(name+"/rate", float64(r.meanwhile)/r.took.Seconds(), "op/s")
		b.atMost(name+"-call-beside-of-alone", r.ratio(), 1.2)
		b.atLeast(name+"-removed-of-all", float64(r.removed)/float64(b.purged), 1)
		if err := withoutPayload(ctx, g, b.purged); err != nil {
			return err
		}
		return payer.shutdown()
	})
}

// purgeRun is what came of a purge.
type purgeRun struct {
	// calls are how many milliseconds calls took, turn by turn: alone, and beside the purge.
	calls [2][][]float64
	// removed is how many operations lost their payload, meanwhile how many of them
	// in the turns beside calls, which took so long.
	removed, meanwhile int
	took               time.Duration
}

func (r *purgeRun) median(way int) float64 { return median(slices.Concat(r.calls[way]...)) }

func (r *purgeRun) high(way int) float64 {
	all := slices.Sorted(slices.Values(slices.Concat(r.calls[way]...)))
	return all[len(all)*99/100]
}

// ratio is the median of the ratios of medians, round by round.
func (r *purgeRun) ratio() float64 {
	var ratios []float64
	for i := range r.calls[0] {
		ratios = append(ratios, median(r.calls[1][i])/median(r.calls[0][i]))
	}
	return median(ratios)
}

// besidePurge takes turns: calls alone, and calls while the purge goes on. Then it
// lets the purge come to its end.
func (b *bench) besidePurge(ctx context.Context, payer *payer) (*purgeRun, error) {
	if _, err := payer.timed(ctx, b.length); err != nil { // connections open, statements are prepared
		return nil, err
	}
	// The purge has working while it works, and lets go of it between two pages.
	var working sync.Mutex
	var removed atomic.Int64
	var ended atomic.Bool
	done := make(chan error, 1)
	working.Lock()
	go func() {
		working.Lock()
		defer working.Unlock()
		_, err := payer.executor.Purge(ctx, "", func(p settle.PurgeProgress) {
			removed.Store(int64(p.Removed))
			working.Unlock()
			working.Lock()
		})
		ended.Store(true)
		done <- err
	}()

	r := &purgeRun{}
	var failed error
	for range b.rounds {
		runtime.GC()
		alone, err := payer.timed(ctx, b.length)
		before, began := removed.Load(), time.Now()
		working.Unlock()
		beside, failedBeside := payer.timed(ctx, b.length)
		took, after := time.Since(began), removed.Load()
		working.Lock()
		if failed = errors.Join(err, failedBeside); failed != nil {
			break
		}
		if ended.Load() && len(r.calls[0]) > 0 {
			break // it was there for a part of this turn only
		}
		r.calls[0], r.calls[1] = append(r.calls[0], alone), append(r.calls[1], beside)
		r.meanwhile, r.took = r.meanwhile+int(after-before), r.took+took
	}
	working.Unlock()
	err := <-done
	r.removed = int(removed.Load())
	return r, errors.Join(failed, err)
}

// timed runs all workers for a while and says how many milliseconds each call took.
func (p *payer) timed(ctx context.Context, length time.Duration) ([]float64, error) {
	took, errs := make([][]float64, len(p.workers)), make([]error, len(p.workers))
	var workers sync.WaitGroup
	began := time.Now()
	for worker := range p.workers {
		workers.Go(func() {
			for time.Since(began) < length {
				start := time.Now()
				if errs[worker] = p.pay(ctx, worker); errs[worker] != nil {
					return
				}
				took[worker] = append(took[worker], float64(time.Since(start).Nanoseconds())/1e6)
			}
		})
	}
	workers.Wait()
	return slices.Concat(took...), errors.Join(errs...)
}

// withoutPayload requires that the copies, the oldest of all, are tombstones.
func withoutPayload(ctx context.Context, g *ground, copies int) error {
	after := store.Filter{Limit: 1000}
	for seen := 0; ; {
		page, err := g.List(ctx, after)
		if err != nil {
			return err
		}
		for _, e := range page {
			if seen++; seen > copies {
				return nil
			}
			if e.Flags&store.FlagPurged == 0 || e.Arguments != nil || e.Result != nil {
				return fmt.Errorf("operation %d still has its payload", seen)
			}
			after.After = e.ID
		}
		if len(page) < after.Limit {
			return nil
		}
	}
}
