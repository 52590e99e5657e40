package settle

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/settle-go/settle/store/memory"
)

// An executor remembers to save work, and no more than its bounds.

func (b *bounded[K, V]) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.young) + len(b.old)
}

func TestBoundedForgetsWhatIsNotUsed(t *testing.T) {
	t.Parallel()
	b := newBounded[int, int](4)
	for i := range 1000 {
		b.set(i, i)
		if _, ok := b.get(0); !ok {
			t.Fatalf("what is used was forgotten after %d entries", i)
		}
		if b.len() > 8 {
			t.Fatalf("it holds %d entries", b.len())
		}
	}
	if b.has(500) || !b.has(999) {
		t.Error("it keeps the wrong ones")
	}
	for range 100 {
		b.set(999, 1000)
	}
	if v, ok := b.get(999); !ok || v != 1000 {
		t.Errorf("got %d, %v", v, ok)
	}
}

func TestBoundedUnderConcurrency(t *testing.T) {
	t.Parallel()
	b := newBounded[int, int](16)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 2000 {
				k := rand.N(100)
				b.set(k, k)
				if v, ok := b.get(rand.N(100)); ok && v > 100 {
					t.Error("it made a value up")
				}
			}
		})
	}
	group.Wait()
	if b.len() > 32 {
		t.Errorf("it holds %d entries", b.len())
	}
}

func TestAnExecutorsMemoryDoesNotGrow(t *testing.T) {
	t.Parallel()
	type args struct {
		Order int    `json:"order" settle:"identity"`
		How   string `json:"how"`
	}
	contract := Contract{NoLookup: true}
	do := func(_ context.Context, _ Op, in args) (struct{}, error) {
		switch in.How {
		case "rejected":
			return struct{}{}, Rejected(fmt.Errorf("no"))
		case "not sent":
			return struct{}{}, NotSent(fmt.Errorf("no"))
		case "unknown":
			return struct{}{}, fmt.Errorf("reset")
		}
		return struct{}{}, nil
	}
	tool := Tool[args, struct{}]{Name: "pay", Contract: contract, Do: do}
	x, err := New(memory.New(), WithTools(tool), Volatile(), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	// The bounds are those of the maps; smaller ones show the same in less time.
	x.intents.size, x.seen.size, x.known.size, x.told.size, x.schemas.size = 64, 256, 64, 128, 16
	const operations, workers = 20_000, 8
	ctx := WithPrincipal(t.Context(), Principal{"acme", "bot"})
	how := func(n int) string {
		if n%500 == 1 {
			return "unknown" // few, since a ledger in memory looks for them in all its rows
		}
		return []string{"done", "rejected", "not sent"}[n%3]
	}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range operations / workers {
				n := i*workers + w
				ctx := WithTask(ctx, Task{fmt.Sprint("case-", n/20), "memory"})
				call := Call{Tool: "pay", Args: fmt.Appendf(nil, `{"order":%d,"how":%q}`, n, how(n))}
				for range 1 + n%10/9 {
					if _, err := x.Execute(ctx, call); err != nil {
						t.Error(err)
					}
				}
				if n%50 == 0 {
					framework := Call{Tool: "book", Args: fmt.Appendf(nil, `{"n":%d}`, n), Schema: fmt.Appendf(nil, `{"type":"object","title":"%d"}`, n)}
					if _, _, err := Around(ctx, x, framework, func(context.Context) (string, error) { return "", nil }); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	for name, sizes := range map[string][2]int{
		"intents": {x.intents.len(), x.intents.size}, "seen": {x.seen.len(), x.seen.size}, "known": {x.known.len(), x.known.size},
		"told": {x.told.len(), x.told.size}, "schemas": {x.schemas.len(), x.schemas.size},
	} {
		if sizes[0] == 0 || sizes[0] > 2*sizes[1] {
			t.Errorf("%s holds %d entries, its bound is twice %d", name, sizes[0], sizes[1])
		}
	}
	if err := x.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.live) != 0 {
		t.Errorf("%d operations are thought to be alive", len(x.live))
	}
	if len(x.renewer.held) != 0 || x.renewer.idle != nil {
		t.Error("leases are still held")
	}
	if len(x.tools) != 1 || len(x.byKey) != 1 {
		t.Errorf("%d tools of one, %d by key: names that came with calls are kept", len(x.tools), len(x.byKey))
	}
}
