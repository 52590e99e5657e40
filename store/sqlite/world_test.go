package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

// TestMain lets the test binary be its own child process: see start.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		child(role)
		return
	}
	os.Exit(m.Run())
}

// world is a ledger in a new file.
type world struct {
	*testing.T
	*sqlite.Ledger
	ctx  context.Context
	path string
}

func newWorld(t *testing.T, options ...sqlite.Option) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settle.db")
	return &world{T: t, Ledger: open(t, path, options...), ctx: t.Context(), path: path}
}

// open opens the ledger at path until the test ends.
func open(t *testing.T, path string, options ...sqlite.Option) *sqlite.Ledger {
	t.Helper()
	l, err := sqlite.Open(t.Context(), path, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) intent() store.Intent {
	w.Helper()
	i, err := w.Intent(w.ctx, storetest.NewIntent())
	w.must(err)
	return i
}

// won claims a new operation of the intent.
func (w *world) won(i store.Intent, edits ...func(*store.Operation)) store.Operation {
	w.Helper()
	answers, err := w.Claim(w.ctx, storetest.Claim(storetest.Operation(i, edits...)))
	w.must(err)
	if !answers[0].Won {
		w.Fatal("the claim wasn't won")
	}
	return answers[0].Operation
}

func (w *world) apply(c store.Change) store.Operation {
	w.Helper()
	o, err := w.Apply(w.ctx, c)
	w.must(err)
	return o
}

// recorded says whether the operation is in the ledger.
func (w *world) recorded(o store.Operation) bool {
	w.Helper()
	_, err := w.Get(w.ctx, "acme", o.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false
	}
	w.must(err)
	return true
}

// rows counts the intent's operations and verifies the chain of each.
func (w *world) rows(i store.Intent) int {
	w.Helper()
	entries, err := w.List(w.ctx, store.Filter{Intent: i.ID, Limit: 1 << 20})
	w.must(err)
	for _, e := range entries {
		events, err := w.Events(w.ctx, e.ID, 0)
		w.must(err)
		w.must(store.VerifyChain(e.Operation, events))
	}
	return len(entries)
}

// sql opens the ledger's file as another program would.
func (w *world) sql() *sql.Conn {
	w.Helper()
	return openSQL(w.T, w.path)
}

func openSQL(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // with its connection
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// locked holds the database's write lock until the function that it returns is
// called.
func (w *world) locked() (unlock func()) {
	w.Helper()
	c := w.sql()
	w.exec(c, "BEGIN IMMEDIATE")
	return func() { w.Helper(); w.exec(c, "ROLLBACK") }
}

func (w *world) exec(c *sql.Conn, statement string, args ...any) {
	w.Helper()
	_, err := c.ExecContext(context.WithoutCancel(w.ctx), statement, args...)
	w.must(err)
}

// queued waits until so many writes wait for the writer.
func (w *world) queued(n int) {
	for w.Queued() < n && w.ctx.Err() == nil {
		runtime.Gosched()
	}
}

// unwritten requires an error after which it is certain that nothing was written.
func (w *world) unwritten(err error) *store.UnwrittenError {
	w.Helper()
	var unwritten *store.UnwrittenError
	if !errors.As(err, &unwritten) {
		w.Fatalf("got the error %v, want one that says that nothing was written", err)
	}
	return unwritten
}

func newOwner(o *store.Operation) { o.Owner = uuid.New() }
