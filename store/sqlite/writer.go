package sqlite

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// maxBatch bounds what one transaction takes, and with it how long an answer
// may wait and how far the -wal file grows.
const maxBatch = 256

// request is one write on its way. do may run twice, each time on a ledger
// that shows nothing of the time before; it must leave nothing but its result.
type request struct {
	do    func(*write) error
	stage atomic.Int32
	done  chan error
}

// A request is queued until the writer has begun it, or its caller has left.
const (
	queued int32 = iota
	begun
	abandoned
)

// writer owns the one connection that writes.
type writer struct {
	ledger *Ledger
	conn   *conn // nil where it broke and has to be opened anew
	shapes shapes
	recent recent

	answered int           // how many requests the last batch had
	idle     time.Duration // how long the present one has waited for more

	mu     sync.Mutex
	queue  []*request
	closed bool
	wake   chan struct{} // has one element while there may be something to do
	ended  chan struct{} // closed when the goroutine has ended
	err    error         // of closing, valid once ended is closed
}

func startWriter(l *Ledger, c *conn) *writer {
	w := &writer{ledger: l, conn: c, shapes: newShapes(),
		recent: recent{rows: map[uuid.UUID]store.Operation{}}, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run()
	return w
}

// submit runs do in a transaction of the writer and returns once it is
// committed, or it is certain that it never will be, or ctx ends.
func (w *writer) submit(ctx context.Context, do func(*write) error) error {
	if err := ctx.Err(); err != nil {
		return &store.UnwrittenError{Err: err}
	}
	r := &request{do: do, done: make(chan error, 1)}
	if !w.enqueue(r) {
		return store.ErrClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	}
	if r.stage.CompareAndSwap(queued, abandoned) {
		return &store.UnwrittenError{Err: ctx.Err()}
	}
	select {
	case err := <-r.done:
		return err
	default:
		return left(ctx)
	}
}

// written is submit for a call that returns something. What do returns is read
// only where the writer is done with it.
func written[T any](ctx context.Context, l *Ledger, do func(*write) (T, error)) (T, error) {
	var got, none T
	if l.writer == nil {
		return none, &store.UnwrittenError{Err: errReadOnly}
	}
	err := l.writer.submit(ctx, func(w *write) (err error) {
		got, err = do(w)
		return err
	})
	if err != nil {
		return none, err
	}
	return got, nil
}

// write is written for what returns nothing.
func (l *Ledger) write(ctx context.Context, do func(*write) error) error {
	_, err := written(ctx, l, func(w *write) (struct{}, error) { return struct{}{}, do(w) })
	return err
}

func (w *writer) enqueue(r *request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.queue = append(w.queue, r)
	w.signal()
	return true
}

// signal is called under mu.
func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close lets the writer finish what is queued and waits for it.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.signal()
	w.mu.Unlock()
	<-w.ended
	return w.err
}

// run is the writer's goroutine; it ends when close was called and the queue is
// empty.
func (w *writer) run() {
	defer close(w.ended)
	for {
		w.mu.Lock()
		idle, closed := len(w.queue) == 0, w.closed
		w.mu.Unlock()
		switch {
		case !idle:
			w.serve()
		case closed:
			if w.conn != nil {
				w.err = w.conn.close()
			}
			return
		default:
			<-w.wake
		}
	}
}

// serve takes one batch through one transaction. Requests are taken only once
// the database's write lock is held: what came meanwhile shares the commit, and
// who left meanwhile was never begun. So does what comes while they are performed.
func (w *writer) serve() {
	n := w.queued()
	w.ledger.turn <- struct{}{}
	defer func() { <-w.ledger.turn }()
	if err := w.begin(); err != nil {
		answer(w.take(n), unwritten(err)) // those who came later have their own time to wait
		return
	}
	var batch []*request
	var results []error
	var err error
	tx := w.transaction()
	expected := min(n+w.answered, maxBatch)
	w.idle = 0
	for more := w.take(maxBatch); len(more) > 0; more = w.gather(len(batch), expected) {
		batch, results = append(batch, more...), append(results, make([]error, len(more))...)
		if err = w.perform(tx, more, results[len(batch)-len(more):], false); err != nil {
			break
		}
	}
	w.answered = len(batch)
	if err != nil && len(batch) > 1 {
		tx, err = w.again(batch, results, err)
	}
	if err != nil {
		w.rollback(err)
		answer(batch, unwritten(err))
		return
	}
	if err := w.commit(tx); err != nil {
		answer(batch, err)
		return
	}
	for i, r := range batch {
		r.done <- results[i]
	}
}

// How long gather waits for the next of the callers, and in all: little beside
// what the commit takes that they would otherwise wait for.
const (
	gatherNext = 20 * time.Microsecond
	gatherAll  = 200 * time.Microsecond
)

// gather takes what the callers whom the last commit answered want next, while
// the transaction that they will share is under way. Without it the first of them
// would get a commit of its own, and the others would wait for the disk twice. It
// only makes way for who is running already, and where one caller writes alone
// it doesn't wait at all.
func (w *writer) gather(taken, expected int) []*request {
	var waited time.Duration
	wait, start := w.answered > 1 && taken < expected, time.Now()
	for ; w.queued() == 0; waited = time.Since(start) {
		if !wait || waited > gatherNext || w.idle+waited > gatherAll {
			return nil
		}
		runtime.Gosched()
	}
	w.idle += waited
	return w.take(maxBatch - taken)
}

func (w *writer) queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// take removes up to n requests from the queue and returns those whose caller
// is still there.
func (w *writer) take(n int) []*request {
	w.mu.Lock()
	n = min(n, len(w.queue))
	taken := w.queue[:n:n]
	if w.queue = w.queue[n:]; len(w.queue) == 0 {
		w.queue = nil // so that it doesn't keep what it held
	}
	w.mu.Unlock()

	batch := taken[:0]
	for _, r := range taken {
		if r.stage.CompareAndSwap(queued, begun) {
			batch = append(batch, r)
		}
	}
	return batch
}

func answer(batch []*request, err error) {
	for _, r := range batch {
		r.done <- err
	}
}
