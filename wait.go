package settle

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Wait returns an operation's outcome once it is settled (R45). It waits for as
// long as the context lasts; its error then wraps the context's, beside the
// outcome as it stands. Another tenant's reference is [store.ErrNotFound].
//
// Where the ledger can tell, Wait learns of a person's decision at once;
// otherwise it reads the row in growing pauses of up to 2 s.
func (x *Executor) Wait(ctx context.Context, operation string) (Outcome, error) {
	id, err := uuid.Parse(operation)
	if err != nil {
		return Outcome{}, store.ErrNotFound
	}
	woken := make(chan struct{}, 1)
	if w, ok := x.watched.(store.Watcher); ok {
		stop := w.Watch(id, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
		defer stop()
	}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		out, err := x.Get(ctx, operation)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("settle: the operation is not settled yet: %w", ctx.Err())
		}
		if err != nil || out.state.Settled() {
			return out, err
		}
		var ended <-chan struct{}
		if j := x.liveJob(id); j != nil {
			ended = j.done
		}
		timer := time.NewTimer(pause)
		select {
		case <-ended:
		case <-woken:
		case <-timer.C:
		case <-x.closing:
			timer.Stop()
			return out, ErrShutdown
		case <-ctx.Done():
			timer.Stop()
			return out, fmt.Errorf("settle: the operation is not settled yet: %w", ctx.Err())
		}
		timer.Stop()
	}
}
