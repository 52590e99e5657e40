package settle_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/sqlite"
)

// The host's clock is ahead for a moment, and only one of two processes looks at
// the ledger then. The other one's attempt, which begins when the clock is right
// again, is at work for the first one as well: it isn't looked for, and not made
// again.
func TestR22AClockThatWasAheadMakesNoSecondEffect(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	file := filepath.Join(t.TempDir(), "settle.db")
	process := func(tool settle.AnyTool) *settle.Executor {
		l, err := sqlite.Open(t.Context(), file, sqlite.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
		if err != nil {
			t.Fatal(err)
		}
		x, err := settle.New(l, settle.WithTools(tool), settle.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := x.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		return x
	}
	entered, gate := make(chan struct{}), make(chan struct{})
	p := &pay{contract: settle.Contract{Timeout: 25 * time.Second, VisibilityDelay: settle.Immediately}}
	p.lookup = func(_ context.Context, q settle.Query[paid], _ payArgs) (settle.Evidence, error) {
		return q.NotHappened(), nil
	}
	p.attempt = func(_ context.Context, _ settle.Op, in payArgs, act func() paid) (paid, error) {
		if in.Order == "A-1" && p.entered.Load() == 2 {
			close(entered)
			<-gate
		}
		return act(), nil
	}
	ctx := scope(context.Background())
	first := process(p.tool())
	if out, err := first.Execute(ctx, payCall("A-0", 5)); err != nil || out.Status != settle.StatusCompleted {
		t.Fatal(out.Status, err)
	}
	ahead.Store(int64(time.Hour))
	if _, err := first.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	ahead.Store(0)
	second, done := process(p.tool()), make(chan settle.Outcome)
	go func() {
		out, err := second.Execute(ctx, payCall("A-1", 5))
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	<-entered
	if report, err := first.Recover(ctx); err != nil || report.Taken != 0 {
		t.Errorf("recovery took %d operations, error %v", report.Taken, err)
	}
	again := payCall("A-1", 5)
	again.Wait = settle.Immediately
	if out, err := first.Execute(ctx, again); err != nil || out.Status != settle.StatusInProgress {
		t.Errorf("the same call got %s, error %v", out.Status, err)
	}
	close(gate)
	if out := <-done; out.Status != settle.StatusCompleted {
		t.Errorf("it came to %s", out.Status)
	}
	if n := p.effects.Load(); n != 2 {
		t.Errorf("%d effects of two operations", n)
	}
}
