package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

func TestTheFileIsForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // access isn't a matter of the mode there
	}
	w := newWorld(t)
	w.won(w.intent())
	for _, rest := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(w.path + rest)
		w.must(err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the file %q has mode %04o", rest, info.Mode().Perm())
		}
	}
	entries, err := os.ReadDir(filepath.Dir(w.path))
	w.must(err)
	if len(entries) != 3 {
		t.Errorf("Open left something behind: %v", entries)
	}
}

func TestWhatIsInTheFileIsThereAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	o := w.apply(storetest.Completion(w.won(i), "r-1"))
	w.must(w.Close())
	w.Ledger = open(t, w.path)
	w.same(o)
	if got := w.intent(); got.Tenant != i.Tenant {
		t.Error("the tenant got another id")
	}
}

func TestAnyNameOfAFileWillDo(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a?mode=memory&x=#1 100%41.db", "a b'\"ü.db", "settle"} {
		path := filepath.Join(t.TempDir(), name)
		open(t, path)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the ledger is in another file than %q: %v", name, err)
		}
	}
}

func TestARelativePathHoldsThoughTheFolderChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settle.db")
	t.Chdir(filepath.Dir(path))
	w := &world{T: t, Ledger: open(t, "settle.db"), ctx: t.Context(), path: path}
	t.Chdir("..")
	w.won(w.intent())
}

func TestAHostsTablesMayStandBesideTheLedgers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.db")
	c := openSQL(t, path)
	w := &world{T: t, ctx: t.Context(), path: path}
	w.exec(c, "CREATE TABLE operation (id INTEGER)")
	w.exec(c, "PRAGMA user_version = 99")
	w.Ledger = open(t, path)
	w.won(w.intent())
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path func(t *testing.T, folder string) string
		says string
	}{
		"nothing":          {func(*testing.T, string) string { return "" }, "path of a file"},
		"memory":           {func(*testing.T, string) string { return ":memory:" }, "package memory"},
		"a URI":            {func(*testing.T, string) string { return "file:settle.db?mode=rwc" }, "plain path"},
		"a folder":         {func(_ *testing.T, folder string) string { return folder }, "folder"},
		"a missing folder": {func(_ *testing.T, folder string) string { return filepath.Join(folder, "no", "settle.db") }, "folder must exist"},
		"a file in a file": {func(t *testing.T, folder string) string {
			return filepath.Join(file(t, folder, "x"), "settle.db")
		}, "can't be"},
		"a short text": {func(t *testing.T, folder string) string { return file(t, folder, "hello") }, "no SQLite database"},
		"a long text":  {func(t *testing.T, folder string) string { return file(t, folder, strings.Repeat("hello ", 10_000)) }, "no SQLite database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sqlite.Open(t.Context(), c.path(t, t.TempDir()))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got the error %v, want a word on %q", err, c.says)
			}
		})
	}
}

func file(t *testing.T, folder, text string) string {
	t.Helper()
	path := filepath.Join(folder, "x.db")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASchemaOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.Close())
	c := w.sql()
	version := func(options ...sqlite.Option) *store.SchemaError {
		t.Helper()
		_, err := sqlite.Open(w.ctx, w.path, options...)
		var schema *store.SchemaError
		if !errors.As(err, &schema) {
			t.Fatalf("got the error %v, want a SchemaError", err)
		}
		return schema
	}
	w.exec(c, "INSERT INTO settle_schema (version, run_at) VALUES (1000, 0)")
	for _, options := range [][]sqlite.Option{nil, {sqlite.ReadOnly()}} {
		if e := version(options...); e.Have != 1000 || e.Want >= 1000 {
			t.Errorf("version %d is refused by a program that knows %d", e.Have, e.Want)
		}
	}
	w.exec(c, "DELETE FROM settle_schema")
	if e := version(sqlite.ReadOnly()); e.Have != 0 || e.Want == 0 {
		t.Errorf("version %d is refused by a program that needs %d", e.Have, e.Want)
	}
	w.exec(c, "DROP TABLE settle_schema")
	version(sqlite.ReadOnly())
}

func TestALostTableIsSaidWithWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	w.exec(w.sql(), "DROP TABLE settle_operation")
	_, written := w.Claim(w.ctx, storetest.Claim(storetest.Operation(i)))
	_, read := w.List(w.ctx, store.Filter{})
	for what, err := range map[string]error{"a claim": written, "reading": read} {
		if w.unwritten(err).Again || !strings.Contains(err.Error(), "restore it") {
			t.Errorf("%s without its table gave the error %v", what, err)
		}
	}
}

func TestReadOnlyReadsAndWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	o := w.won(i)
	reader := &world{T: t, Ledger: open(t, w.path, sqlite.ReadOnly()), ctx: w.ctx, path: w.path}
	reader.same(o)
	_, err := reader.Apply(w.ctx, storetest.Completion(o, "r-1"))
	reader.unwritten(err)
	_, err = reader.Claim(w.ctx, storetest.Claim(storetest.Operation(i)))
	if reader.unwritten(err).Again {
		t.Error("a write to a ledger that is open for reading is to be tried again")
	}
	if findings, err := reader.Check(w.ctx); err != nil || len(findings) != 0 {
		t.Errorf("Check found %v: %v", findings, err)
	}
	later := w.apply(storetest.Completion(o, "r-1"))
	reader.same(later)

	if _, err := sqlite.Open(w.ctx, filepath.Join(t.TempDir(), "none.db"), sqlite.ReadOnly()); err == nil {
		t.Error("a ledger that isn't there was opened for reading")
	}
}

func TestSeveralOpenAtOnceOneMigrates(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settle.db")
	var wg sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, 8)
	for n := range errs {
		wg.Go(func() {
			<-start
			l, err := sqlite.Open(context.Background(), path)
			if err == nil {
				_, err = l.Intent(context.Background(), storetest.NewIntent())
				err = errors.Join(err, l.Close())
			}
			errs[n] = err
		})
	}
	close(start)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Ledger: open(t, path), ctx: t.Context(), path: path}
	if runs := w.strings("SELECT count(*) FROM settle_schema"); runs[0] != "1" {
		t.Errorf("the migration ran %s times", runs[0])
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "settle.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v", err)
	}
}
