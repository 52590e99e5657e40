package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

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

// write is the open transaction as a request sees it.
type write struct {
	view
	// changed says that something was written since the transaction began.
	changed bool
	shapes  shapes
	recent  *recent
	args    []driver.Value // used again by each statement with many arguments
}

// exec runs a statement that writes.
func (w *write) exec(sql string, args ...driver.Value) (int64, error) {
	n, err := w.view.exec(sql, args...)
	w.changed = w.changed || n > 0
	return n, err
}

// writer owns the one connection that writes.
type writer struct {
	ledger *Ledger
	conn   *conn // nil where it broke and has to be opened anew
	shapes shapes
	recent recent

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

// serve takes one batch through one transaction. The batch is taken only once
// the database's write lock is held: what came meanwhile shares the commit, and
// who left meanwhile was never begun.
func (w *writer) serve() {
	n := w.gather()
	if err := w.begin(); err != nil {
		answer(w.take(n), unwritten(err)) // those who came later have their own time to wait
		return
	}
	batch := w.take(maxBatch)
	results := make([]error, len(batch))
	tx := w.transaction()
	err := w.perform(tx, batch, results, false)
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

// gather lets callers that are ready to run hand in their requests, as long as
// each turn brings some. Without it the first of those whom the last commit
// answered would get a commit of its own while the others wait for the disk. It
// waits for nobody who isn't running already, so it needs no timer.
func (w *writer) gather() int {
	before, now := 0, w.queued()
	for now > before && now < maxBatch {
		runtime.Gosched()
		before, now = now, w.queued()
	}
	return now
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

func (w *writer) transaction() *write {
	return &write{view: view{conn: w.conn}, shapes: w.shapes, recent: &w.recent}
}

// begin takes the database's write lock.
func (w *writer) begin() error {
	if err := w.ledger.file.same(); err != nil {
		return err
	}
	if w.conn == nil {
		c, err := w.ledger.connectWriter(context.Background())
		if err != nil {
			return err
		}
		w.conn = c
	}
	err := patiently(context.Background(), w.ledger.busy, func() error {
		_, err := w.conn.exec("BEGIN IMMEDIATE")
		return err
	})
	if err == nil {
		err = w.recent.refresh(w.conn)
	}
	if err != nil {
		w.rollback(err)
	}
	return err
}

// perform runs the requests of a batch. Without savepoints it stops at the
// first that fails; with them it undoes what that one did and goes on.
func (w *writer) perform(tx *write, batch []*request, results []error, savepoints bool) error {
	var stored int64
	if _, err := tx.first([]any{&stored}, readClock); err != nil {
		return err
	}
	for i, r := range batch {
		tx.now = w.ledger.clock.read(stored)
		run := r.do
		if savepoints {
			run = isolated(r.do)
		}
		results[i] = run(tx)
		var kept *keptError
		if err := results[i]; errors.As(err, &kept) {
			results[i] = unwritten(kept.error)
		} else if err != nil && !refusal(err) {
			return err
		}
	}
	return nil
}

// keptError is the failure of a request that left the transaction intact.
type keptError struct{ error }

// isolated puts a savepoint round a request.
func isolated(do func(*write) error) func(*write) error {
	return func(tx *write) error {
		if _, err := tx.conn.exec("SAVEPOINT request"); err != nil {
			return err
		}
		err := do(tx)
		if err != nil && !refusal(err) {
			// Some errors (a full disk, a failed read) end the whole
			// transaction: then there is no savepoint to go back to.
			tx.recent.clear()
			if _, lost := tx.conn.exec("ROLLBACK TO request"); lost != nil {
				return err
			}
			err = &keptError{err}
		}
		if _, lost := tx.conn.exec("RELEASE request"); lost != nil {
			return errors.Join(err, lost)
		}
		return err
	}
}

// again runs a batch that failed once more, each request in a savepoint. That
// it takes two passes keeps the savepoints' cost off the batches in which
// nothing fails, which are nearly all.
func (w *writer) again(batch []*request, results []error, cause error) (*write, error) {
	w.rollback(cause)
	if err := w.begin(); err != nil {
		return nil, err
	}
	tx := w.transaction()
	return tx, w.perform(tx, batch, results, true)
}

// commit stores the ledger's instant and commits. Its error is for the callers.
func (w *writer) commit(tx *write) error {
	if !tx.changed {
		if _, err := tx.conn.exec("COMMIT"); err != nil {
			w.rollback(err)
		}
		return nil
	}
	if _, err := tx.exec("UPDATE settle_clock SET at = ?", tx.now.UnixMicro()); err != nil {
		w.rollback(err)
		return unwritten(err)
	}
	if _, err := tx.exec("COMMIT"); err != nil {
		certain := neverCommitted(err)
		w.rollback(err)
		if certain {
			return unwritten(err)
		}
		return unknown(err)
	}
	return nil
}

// rollback ends the transaction, if there is one, and gives up a connection
// that failed in a way that may last.
func (w *writer) rollback(cause error) {
	if w.conn == nil {
		return
	}
	w.recent.clear()
	_, err := w.conn.exec("ROLLBACK")
	if (cause == nil && err != nil) || lasting(cause) {
		_ = w.conn.close() // the next batch opens another one
		w.conn = nil
	}
}
