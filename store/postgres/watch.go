package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/store"
)

// watch tells those who wait for an operation that a person has decided it. It
// listens on a connection of its own, beside the pool, for as long as anybody
// waits. Through a pooler in transaction mode nothing is heard, and whoever
// waits finds out by reading the row.
type watch struct {
	mu      sync.Mutex
	waiting map[*watcher]struct{}
	end     context.CancelFunc
	ended   sync.WaitGroup
}

type watcher struct {
	operation uuid.UUID
	woken     func()
}

// listenAgain is the pause after a connection that didn't hold.
const listenAgain = time.Second

// channel names what a decision is told on: one for each schema, whatever the
// length of its name.
func channel(schema string) string {
	sum := sha256.Sum256([]byte(schema))
	return "settle_" + hex.EncodeToString(sum[:8])
}

var _ store.Watcher = (*Ledger)(nil)

// Watch implements [store.Watcher].
func (l *Ledger) Watch(operation uuid.UUID, woken func()) (stop func()) {
	w := &watcher{operation, woken}
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	if l.closed.Load() {
		return func() {}
	}
	if len(l.watch.waiting) == 0 {
		ctx, cancel := context.WithCancel(context.Background())
		l.watch.waiting, l.watch.end = map[*watcher]struct{}{}, cancel
		l.watch.ended.Go(func() { l.listen(ctx) })
	}
	l.watch.waiting[w] = struct{}{}
	return func() { l.watch.leave(w) }
}

// leave ends the listening with the last one who waits.
func (w *watch) leave(gone *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.waiting[gone]; !waits {
		return
	}
	if delete(w.waiting, gone); len(w.waiting) == 0 {
		w.end()
	}
}

// close ends the listening and waits for its end.
func (w *watch) close() {
	w.mu.Lock()
	if w.end != nil {
		w.end()
	}
	w.waiting = nil
	w.mu.Unlock()
	w.ended.Wait()
}

// wake tells those who wait for an operation, or everybody.
func (w *watch) wake(operation uuid.UUID) {
	w.mu.Lock()
	var all []func()
	for waiting := range w.waiting {
		if operation == uuid.Nil || operation == waiting.operation {
			all = append(all, waiting.woken)
		}
	}
	w.mu.Unlock()
	for _, woken := range all {
		woken()
	}
}

// listen keeps a connection that listens.
func (l *Ledger) listen(ctx context.Context) {
	for ctx.Err() == nil {
		_ = l.hear(ctx) // nothing was promised: who waits reads the row all the same
		timer := time.NewTimer(listenAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (l *Ledger) hear(ctx context.Context) error {
	conn, err := connectBeside(ctx, l.pool)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it is left either way
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel(l.schema)}.Sanitize()); err != nil {
		return err
	}
	// What was decided before this was not heard.
	l.watch.wake(uuid.Nil)
	for {
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if operation, err := uuid.Parse(told.Payload); err == nil {
			l.watch.wake(operation)
		}
	}
}

// tell lets those hear of a decision who wait for it. A decision is rare: told
// with every outcome, it would cost most of the rate of commits.
func (l *Ledger) tell(ctx context.Context, c *store.Change) {
	if c.Decision == uuid.Nil || c.To == c.Of.State {
		return
	}
	_, _ = query(ctx, l, pgx.RowTo[string], "SELECT coalesce(pg_notify($1::text, $2::text)::text, '')", channel(l.schema), c.Of.ID.String())
}
