package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

// pages is a ledger whose purge never ends, page after page.
type pages struct {
	*memory.Ledger
	purge func(page int) store.Purged
	n     int
}

func (l *pages) Purge(context.Context, store.Purge) (store.Purged, error) {
	l.n++
	done := l.purge(l.n)
	done.Next = uuid.New()
	return done, nil
}

func TestR52APurgeRestsForAsLongAsItWrote(t *testing.T) {
	t.Parallel()
	const took = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var began, ended []time.Time
	l := &pages{Ledger: memory.New(), purge: func(page int) store.Purged {
		began = append(began, time.Now())
		if page == 8 {
			cancel()
		}
		pause(took)
		ended = append(ended, time.Now())
		return store.Purged{Seen: 1, Removed: page % 2} // every second one writes
	}}
	x, err := settle.New(l)
	if err != nil {
		t.Fatal(err)
	}
	done, err := x.Purge(ctx, "", nil)
	if !errors.Is(err, context.Canceled) || done.Removed != 4 {
		t.Errorf("the purge did %+v (%v), want 8 pages and context.Canceled", done, err)
	}
	shortest := time.Hour
	for page := 1; page < len(began); page++ {
		rest := began[page].Sub(ended[page-1])
		if page%2 == 1 && rest < took {
			t.Errorf("%v after a page that wrote for %v comes the next", rest, took)
		}
		if page%2 == 0 {
			shortest = min(shortest, rest)
		}
	}
	if shortest >= took {
		t.Errorf("the purge rests for %v after pages that wrote nothing", shortest)
	}
}

func TestR52ShutdownEndsAPurge(t *testing.T) {
	t.Parallel()
	l := &pages{Ledger: memory.New(), purge: func(int) store.Purged { return store.Purged{Seen: 1, Removed: 1} }}
	x, err := settle.New(l)
	if err != nil {
		t.Fatal(err)
	}
	done, err := x.Purge(t.Context(), "", func(p settle.PurgeProgress) {
		if p.Removed == 3 {
			if err := x.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, settle.ErrShutdown) || done.Removed != 3 {
		t.Errorf("the purge did %+v (%v), want three pages and ErrShutdown", done, err)
	}
}

// A raw tool takes any bytes for arguments; those that are erased are none.
func TestR52NothingRunsOrIsAskedWithoutTheErasedArguments(t *testing.T) {
	onEachLedger(t, func(w *world) {
		var without atomic.Int32
		given := func(in json.RawMessage) error {
			if len(in) == 0 {
				without.Add(1)
			}
			return errors.New("the answer was lost")
		}
		tool := func(name string, attempts int, c settle.Contract) settle.RawTool {
			c.Identity, c.Attempts, c.VisibilityDelay = []string{"lamp"}, attempts, settle.Immediately
			return settle.RawTool{Name: name, Schema: json.RawMessage(`{"type":"object","properties":{"lamp":{"type":"string"}},"required":["lamp"]}`),
				Contract: c, Do: func(_ context.Context, op settle.Op, in json.RawMessage) (json.RawMessage, error) {
					_ = op.Key()
					return nil, given(in)
				}}
		}
		tools := func(attempts int) []settle.AnyTool {
			asks := tool("ask", attempts, settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent})
			asks.Lookup = func(_ context.Context, _ settle.Query[json.RawMessage], in json.RawMessage) (settle.Evidence, error) {
				return settle.Evidence{}, given(in)
			}
			return []settle.AnyTool{asks, tool("switch", attempts, settle.Contract{Class: settle.Idempotent}),
				tool("charge", attempts, settle.Contract{Class: settle.Keyed, KeyWindow: settle.Permanent, NoLookup: true})}
		}
		p := w.start(tools(1)...)
		for _, name := range []string{"ask", "switch", "charge"} {
			w.want(p.call(settle.Call{Tool: name, Args: json.RawMessage(`{"lamp":"hall"}`)}), settle.StatusUnknown)
		}
		if _, err := p.x.Erase(p.ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"}, nil); err != nil {
			w.Fatal(err)
		}
		w.age(longEnough)
		w.start(tools(2)...).recover()
		equal(w, "attempts and lookups without arguments", without.Load(), 0)
		for _, row := range w.rows() {
			if row.State != store.Manual || row.Reason != "arguments_undecodable" {
				w.Errorf("%s, whose arguments are erased, is %s (%s)", row.Tool, row.State, row.Reason)
			}
		}
	})
}
