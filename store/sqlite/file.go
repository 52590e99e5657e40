package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// file is the ledger's database file.
type file struct {
	path  string
	first os.FileInfo // as it was when the ledger was opened
}

func (f *file) remember() (err error) {
	if f.first, err = os.Stat(f.path); err != nil {
		return err
	}
	os.SameFile(f.first, f.first) // on Windows it is the first comparison that reads the file's identity
	return nil
}

// inspect looks at a path before SQLite does, whose words for what may be wrong
// with it are few. It says whether there is a file.
func inspect(path string) (absolute string, exists bool, err error) {
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return "", false, errors.New("Open takes the plain path of a file; for a ledger in memory see package memory")
	}
	if absolute, err = filepath.Abs(path); err != nil {
		return "", false, fmt.Errorf("%w", err)
	}
	info, err := os.Stat(absolute)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absolute, false, nil
	case err != nil:
		return "", false, fmt.Errorf("the ledger's file can't be reached: %w", err)
	case info.IsDir():
		return "", false, fmt.Errorf("%s is a folder; give the path of a file in it", path)
	case !info.Mode().IsRegular():
		return "", false, fmt.Errorf("%s is no regular file; give the path of one", path)
	}
	return absolute, true, nil
}

// create lets SQLite make the file, with mode 0600. The file itself is not
// opened here: on Unix, closing it would drop the locks that another ledger of
// this process may have on it. SQLite takes the mode from a file that it is
// pointed to.
func (l *Ledger) create(ctx context.Context) (err error) {
	pattern, err := os.CreateTemp(filepath.Dir(l.file.path), ".settle-*")
	if err != nil {
		return fmt.Errorf("the ledger can't be created; its folder must exist, and this user must be allowed to write in it: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(pattern.Name())) }()
	if err := pattern.Close(); err != nil {
		return err
	}
	c, err := connect(ctx, l.dsn(url.Values{"modeof": {pattern.Name()}}), l.busy)
	if err != nil {
		return err
	}
	return c.close()
}

// dsn is the URI of the file with SQLite's own parameters.
func (l *Ledger) dsn(parameters url.Values) string {
	path := filepath.ToSlash(l.file.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	parameters.Set("_dqs", "0")
	parameters.Set("_error_rc", "1")
	if l.vfs != "" {
		parameters.Set("vfs", l.vfs)
	}
	// SQLite reads %20 as a space, and a + as itself.
	return (&url.URL{Scheme: "file", Path: path, RawQuery: strings.ReplaceAll(parameters.Encode(), "+", "%20")}).String()
}

// same makes sure that the path still leads to the file that is open.
func (f *file) same() error {
	now, err := os.Stat(f.path)
	if err != nil || !os.SameFile(f.first, now) {
		return errGone
	}
	return nil
}
