package settle

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestACrewRunsAllThatItIsGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(nil)
		var done atomic.Int32
		var group sync.WaitGroup
		const jobs = 4 * maxIdle
		group.Add(jobs)
		for range jobs {
			c.run(func() {
				defer group.Done()
				done.Add(1)
			})
		}
		group.Wait()
		if done.Load() != jobs {
			t.Errorf("%d of %d jobs were done", done.Load(), jobs)
		}
		synctest.Wait()
		if idle := c.idle.Load(); idle < 1 || idle > maxIdle {
			t.Errorf("%d goroutines wait for work, at most %d may", idle, maxIdle)
		}
		<-time.After(2 * idleFor)
		synctest.Wait()
		if idle := c.idle.Load(); idle != 0 {
			t.Errorf("%d goroutines wait for work still", idle)
		}
	})
}

func TestACrewKeepsItsGoroutines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		c := newCrew(closing)
		for range 3 {
			ran := make(chan struct{})
			c.run(func() { close(ran) })
			<-ran
			synctest.Wait()
			if idle := c.idle.Load(); idle != 1 {
				t.Errorf("%d goroutines wait for work, want the one that was there", idle)
			}
		}
		close(closing)
		synctest.Wait()
		if idle := c.idle.Load(); idle != 0 {
			t.Errorf("%d goroutines wait for work after the end", idle)
		}
	})
}

// A handler may end its goroutine: the crew has one less then and goes on.
func TestACrewBearsTheEndOfAGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(nil)
		for range 3 {
			left := make(chan struct{})
			c.run(func() {
				defer close(left)
				runtime.Goexit()
			})
			<-left
			synctest.Wait()
			if idle := c.idle.Load(); idle != 0 {
				t.Errorf("%d goroutines wait for work after they ended", idle)
			}
		}
		<-time.After(2 * idleFor)
	})
}
