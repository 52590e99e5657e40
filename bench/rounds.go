package main

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// contender is one of those that take turns.
type contender struct {
	// workers is how many goroutines run it at once.
	workers int
	// do runs the next operations of a worker and says how many they were.
	do func(ctx context.Context, worker int) (operations int, err error)
}

// one is a contender whose steps are one operation each.
func one(workers int, do func(ctx context.Context, worker int) error) contender {
	return contender{workers, func(ctx context.Context, worker int) (int, error) { return 1, do(ctx, worker) }}
}

// measured is what a contender did in its turns.
type measured struct {
	// rates are operations per second, turn by turn.
	rates      []float64
	operations int
	// What this process spent in its turns: processor time and allocations. For
	// a database with a server of its own that is the client's part.
	cpu            time.Duration
	mallocs, bytes uint64
}

func (m measured) rate() float64 { return median(m.rates) }
func (m measured) cpuEach() float64 {
	return float64(m.cpu.Nanoseconds()) / 1e3 / float64(m.operations)
}
func (m measured) allocationsEach() float64 { return float64(m.mallocs) / float64(m.operations) }
func (m measured) bytesEach() float64       { return float64(m.bytes) / float64(m.operations) }

// over is the median of the ratios of rates, round by round: the two turns of a
// round lie next to each other in time.
func (m measured) over(other measured) float64 {
	ratios := make([]float64, len(m.rates))
	for i := range ratios {
		ratios[i] = m.rates[i] / other.rates[i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// takeTurns lets the contenders run one after the other, round after round. A
// first turn of each isn't counted: connections open, statements are prepared.
// Every second round goes backwards, so that what grows on the way (tables, the
// machine's load) bears on all alike.
func (b *bench) takeTurns(ctx context.Context, contenders ...contender) ([]measured, error) {
	all := make([]measured, len(contenders))
	for round := range b.rounds + 1 {
		for n := range contenders {
			if round%2 == 1 {
				n = len(contenders) - 1 - n
			}
			m := &all[n]
			if round == 0 {
				m = &measured{}
			}
			if err := m.turn(ctx, contenders[n], b.length); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// turn runs one contender for a while.
func (m *measured) turn(ctx context.Context, c contender, length time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var operations atomic.Int64
	var workers sync.WaitGroup
	// What the turn before left behind isn't collected at this one's expense.
	runtime.GC()
	before := spent()
	began := time.Now()
	for worker := range c.workers {
		workers.Go(func() {
			own := 0
			for time.Since(began) < length && ctx.Err() == nil {
				n, err := c.do(ctx, worker)
				if err != nil {
					cancel(err)
				}
				own += n
			}
			operations.Add(int64(own))
		})
	}
	workers.Wait()
	took := time.Since(began)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	after := spent()
	if operations.Load() == 0 {
		return errors.New("not one operation was done in a whole turn")
	}
	m.rates = append(m.rates, float64(operations.Load())/took.Seconds())
	m.operations += int(operations.Load())
	m.cpu += after.cpu - before.cpu
	m.mallocs += after.mallocs - before.mallocs
	m.bytes += after.bytes - before.bytes
	return nil
}

// expense is what the process has spent so far.
type expense struct {
	cpu            time.Duration
	mallocs, bytes uint64
}

func spent() expense {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return expense{processorTime(), memory.Mallocs, memory.TotalAlloc}
}
