package settle_test

import (
	"context"
	"errors"
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
