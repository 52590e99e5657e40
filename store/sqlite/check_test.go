package sqlite_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

func (w *world) findings() map[string]string {
	w.Helper()
	all, err := w.Check(w.ctx)
	w.must(err)
	found := map[string]string{}
	for _, f := range all {
		if f.Problem == "" || f.Advice == "" {
			w.Errorf("the finding on %s doesn't say what is wrong or what to do", f.Setting)
		}
		found[f.Setting] = f.Value
	}
	return found
}

func TestCheckFindsNothingInAnOrdinaryLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.won(w.intent())
	if found := w.findings(); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}

func TestCheckReportsWhatBreaksPromises(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pragma, setting, value string }{
		{"synchronous = NORMAL", "synchronous", "1"},
		{"synchronous = OFF", "synchronous", "0"},
		{"foreign_keys = OFF", "foreign_keys", "0"},
	} {
		w := newWorld(t, sqlite.WithPragma(c.pragma))
		if found := w.findings(); len(found) != 1 || found[c.setting] != c.value {
			t.Errorf("with %s: found %v", c.pragma, found)
		}
	}
}

// Locks by files beside the ledger stand for a file system without the shared
// memory that WAL needs, as a network's is: the ledger works, but says so.
func TestCheckReportsAJournalThatIsNotWAL(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // SQLite has no such locks there
	}
	w := newWorld(t, sqlite.WithVFS("unix-dotfile"))
	i := w.intent()
	w.apply(storetest.Completion(w.won(i), "r-1"))
	if found := w.findings(); found["journal_mode"] != "delete" || w.rows(i) != 1 {
		t.Errorf("found %v", found)
	}
}

func TestCheckReportsAFileThatOthersMayRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // access isn't a matter of the mode there
	}
	w := newWorld(t)
	w.won(w.intent())
	w.must(os.Chmod(w.path+"-wal", 0o640))
	if found := w.findings(); found["file mode"] != "0640" {
		t.Errorf("found %v", found)
	}
}
