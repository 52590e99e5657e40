package idempotency

import (
	"context"
	"sync"
)

// mark is what a handler says of its own request.
type mark struct {
	mu       sync.Mutex
	nothing  bool
	resource string
}

type markKey struct{}

// NothingHappened says of the request that runs in ctx that it had no effect and
// will have none: the answer goes out as it is, isn't recorded, and the key
// stays free, for the same content or other. A Retry-After of the answer holds
// for the key too. It reports whether ctx is that of a guarded request.
//
// Say it only where it is certain. An answer to which nobody says it counts by
// its status: see [Options.Free].
func NothingHappened(ctx context.Context) bool {
	return marked(ctx, func(m *mark) { m.nothing = true })
}

// SetResource names what the request that runs in ctx made or changed: it is
// shown to operators and by the status endpoint. Default: the answer's Location.
// It reports whether ctx is that of a guarded request.
func SetResource(ctx context.Context, id string) bool {
	return marked(ctx, func(m *mark) { m.resource = id })
}

func marked(ctx context.Context, set func(*mark)) bool {
	m, ok := ctx.Value(markKey{}).(*mark)
	if ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		set(m)
	}
	return ok
}

func (m *mark) said() (nothing bool, resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nothing, m.resource
}
