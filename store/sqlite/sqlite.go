package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle/store"
)

// Ledger is a ledger in a SQLite file. It satisfies [store.Ledger].
type Ledger struct {
	file file
	settings
	clock   clock
	readers *readers
	writer  *writer // nil under ReadOnly
	// turn is who may have the file's write lock in this process: the writer or
	// a transaction that is shared with a handler.
	turn     chan struct{}
	business business // under turn
	shutting atomic.Bool

	closing  sync.Once
	closeErr error
}

var _ store.Ledger = (*Ledger)(nil)

type settings struct {
	host     func() time.Time
	busy     time.Duration
	readOnly bool
	pragmas  []string // of the writer, for tests
	vfs      string   // SQLite's layer over the file system, for tests
}

// Option configures [Open].
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// WithClock replaces the host's clock, for tests. The ledger keeps it from
// running backwards.
func WithClock(now func() time.Time) Option { return option(func(s *settings) { s.host = now }) }

// WithBusyTimeout sets how long a call waits for a lock that another process
// has on the file (default 5 s), before it fails with a [*store.UnwrittenError]
// that may be tried again. Keep it below the leases' margin.
func WithBusyTimeout(d time.Duration) Option { return option(func(s *settings) { s.busy = d }) }

// ReadOnly opens a ledger that must exist, changes nothing in it, its schema
// included, and answers every write with a [*store.UnwrittenError]. SQLite
// keeps its two files beside the ledger all the same.
func ReadOnly() Option { return option(func(s *settings) { s.readOnly = true }) }

// Open opens the ledger in the file at path. It creates the file, with mode
// 0600, where there is none, though not its folder, and brings the schema up to
// date. A file whose schema is newer than this program is a
// [*store.SchemaError].
func Open(ctx context.Context, path string, options ...Option) (*Ledger, error) {
	l := &Ledger{settings: settings{host: time.Now, busy: 5 * time.Second}, turn: make(chan struct{}, 1)}
	for _, o := range options {
		o.apply(&l.settings)
	}
	l.clock.host = l.host
	absolute, exists, err := inspect(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	l.file.path = absolute
	if err := l.open(ctx, exists); err != nil {
		return nil, fmt.Errorf("sqlite: opening %s: %w", path, explained(err))
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context, exists bool) (err error) {
	if !exists {
		if l.readOnly {
			return errors.New("there is no ledger; open it once without ReadOnly to create it")
		}
		if err := l.create(ctx); err != nil {
			return err
		}
	}
	if err := l.file.remember(); err != nil {
		return err
	}
	l.readers = newReaders(l.connectReader)
	if l.readOnly {
		return l.current(ctx)
	}
	c, err := l.connectWriter(ctx)
	if err != nil {
		return err
	}
	if err := l.prepare(ctx, c); err != nil {
		return errors.Join(err, c.close())
	}
	l.writer = startWriter(l, c)
	return nil
}

// connectWriter never creates the file: one that vanished is not replaced by an
// empty one.
func (l *Ledger) connectWriter(ctx context.Context) (*conn, error) {
	return connect(ctx, l.dsn(url.Values{"mode": {"rw"}}), l.busy, slices.Concat(writes, []string{"cache_size = -16384"}, l.pragmas)...) // KiB
}

// writes are the pragmas of the connections that write.
var writes = []string{
	"wal_autocheckpoint = 4096", // pages, 16 MiB
	"busy_timeout = 0",          // from here on see patiently
}

func (l *Ledger) connectReader(ctx context.Context) (*conn, error) {
	mode := "rw" // a reader may have to recover what a crashed process left
	if l.readOnly {
		mode = "ro"
	}
	return connect(ctx, l.dsn(url.Values{"mode": {mode}}), l.busy, "query_only = ON")
}

// prepare makes a ledger of the file.
func (l *Ledger) prepare(ctx context.Context, c *conn) error {
	if err := c.writable(); err != nil {
		return err
	}
	// Where several processes turn to WAL at once SQLite answers "busy" without
	// any waiting of its own.
	if err := patiently(ctx, l.busy, func() error { return c.script("PRAGMA journal_mode = WAL") }); err != nil {
		return err
	}
	return patiently(ctx, l.busy, func() error { return migrate(ctx, c, l.clock.read(0)) })
}

// The pauses between two tries for a lock.
const (
	firstPause = 50 * time.Microsecond
	maxPause   = 4 * time.Millisecond
)

// patiently repeats do while another process has the lock that it needs, for as
// long as limit. SQLite's own waiting pauses up to 100 ms: next to a busy
// neighbour, who has the lock again a moment after it let it go, that rarely
// meets the moment.
func patiently(ctx context.Context, limit time.Duration, do func() error) error {
	deadline := time.Now().Add(limit)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := do()
		if !busy(err) || !time.Now().Before(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// current makes sure that the schema is the one that this program knows.
func (l *Ledger) current(ctx context.Context) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	c, err := l.readers.acquire(ctx)
	if err != nil {
		return err
	}
	want := int64(len(all))
	same, err := schemaIs(c, want)
	l.readers.release(c, err != nil)
	if err == nil && !same {
		err = errors.Join(&store.SchemaError{Want: want}, l.readers.close())
	}
	return err
}

// Info implements [store.Ledger].
func (l *Ledger) Info() store.Info { return store.Info{Name: "sqlite", Durable: true} }

// Close finishes the writes that were handed in, refuses others with
// [store.ErrClosed], and closes the file.
func (l *Ledger) Close() error {
	l.closing.Do(func() {
		l.closeErr = l.readers.close()
		if l.writer != nil {
			l.shutting.Store(true)
			l.closeErr = errors.Join(l.closeErr, l.writer.close())
			l.turn <- struct{}{}
			l.closeErr = errors.Join(l.closeErr, l.business.close())
			<-l.turn
		}
	})
	return l.closeErr
}
