package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/settle-go/settle/store"
)

// Check implements [store.Ledger]: it reports commits that don't reach the disk
// before they are answered, a journal other than WAL, constraints that are off,
// and files that others may read.
func (l *Ledger) Check(ctx context.Context) ([]store.Finding, error) {
	found, err := l.checkSettings(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{l.file.path, l.file.path + "-wal", l.file.path + "-shm"} {
		f, err := checkMode(name)
		if err != nil {
			return nil, unwritten(err)
		}
		found = append(found, f...)
	}
	return found, nil
}

func (l *Ledger) checkSettings(ctx context.Context) ([]store.Finding, error) {
	if l.writer == nil {
		var found []store.Finding
		err := l.read(ctx, func(v *view) (err error) {
			found, err = v.checkJournal()
			return err
		})
		return found, err
	}
	return written(ctx, l, func(w *write) ([]store.Finding, error) {
		found, err := w.checkJournal()
		if err != nil {
			return nil, err
		}
		return w.checkWriter(found)
	})
}

func (v *view) checkJournal() ([]store.Finding, error) {
	mode, err := v.pragma("journal_mode")
	if err != nil || mode == "wal" {
		return nil, err
	}
	return []store.Finding{{
		Setting: "journal_mode", Value: mode,
		Problem: "readers block the writer and the writer blocks readers; where WAL was refused, the file probably lies on a network file system, whose locks may not hold (R19)",
		Advice:  "keep the ledger on a local disk and let no other program change its journal mode",
	}}, nil
}

// checkWriter looks at the settings of the connection that writes.
func (w *write) checkWriter(found []store.Finding) ([]store.Finding, error) {
	synchronous, err := w.pragma("synchronous")
	if err != nil {
		return nil, err
	}
	if synchronous != "2" && synchronous != "3" {
		found = append(found, store.Finding{
			Setting: "synchronous", Value: synchronous,
			Problem: "a claim or an outcome that was answered may be gone after a power failure, and its effect repeated (R19)",
			Advice:  "set synchronous to FULL",
		})
	}
	keys, err := w.pragma("foreign_keys")
	if err == nil && keys != "1" {
		found = append(found, store.Finding{
			Setting: "foreign_keys", Value: keys,
			Problem: "the database doesn't refuse moves that the state table doesn't have (R20)",
			Advice:  "set foreign_keys to ON",
		})
	}
	return found, err
}

func (v *view) pragma(name string) (value string, err error) {
	err = v.query(context.Background(), func(values []driver.Value) error {
		value = fmt.Sprint(values[0])
		return nil
	}, "PRAGMA "+name)
	return value, err
}

// checkMode reports a file that others than its owner may read or write: without
// a codec the ledger is as sensitive as its data.
func checkMode(name string) ([]store.Finding, error) {
	if runtime.GOOS == "windows" {
		return nil, nil // access is a matter of lists there, which the mode doesn't show
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil, nil
	}
	return []store.Finding{{
		Setting: "file mode", Value: fmt.Sprintf("%04o", info.Mode().Perm()),
		Problem: "others than the owner may read or change the ledger, which is as sensitive as its data",
		Advice:  "chmod 600 the file and the two beside it (-wal, -shm)",
	}}, nil
}
