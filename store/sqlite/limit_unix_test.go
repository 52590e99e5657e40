//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

// unprivileged makes the child another user's where the test runs as root,
// whom no permission stops.
func (c *childProcess) unprivileged() *childProcess {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return c
}

const nobody = 65534

// reachable lets the child of unprivileged enter a test's folder.
func reachable(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, f := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(f, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		if err := os.Chown(folder, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// openInTurn opens the ledgers whose paths it reads and prints what came of it.
func openInTurn(ctx context.Context) error {
	for _, path := range filepath.SplitList(os.Getenv(pathVariable)) {
		l, err := sqlite.Open(ctx, path)
		if err == nil {
			err = l.Close()
		}
		fmt.Println(strings.ReplaceAll(fmt.Sprint(err), "\n", "; "))
	}
	return nil
}

func TestWhereTheUserMayNotWriteOpenSaysSo(t *testing.T) {
	t.Parallel()
	folder := reachable(t)
	made := filepath.Join(folder, "made")
	readOnlyFile := filepath.Join(folder, "file.db")
	inReadOnlyFolder := filepath.Join(made, "settle.db")
	paths := []string{readOnlyFile, inReadOnlyFolder, filepath.Join(made, "new.db")}
	if err := os.Mkdir(made, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths[:2] {
		l, err := sqlite.Open(t.Context(), path)
		if err == nil {
			err = l.Close()
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, nobody, nobody)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(readOnlyFile, 0o400), os.Chmod(made, 0o500)); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(made, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(made, 0o700) }) // so that it can be removed

	c := start(t, "open", pathVariable+"="+strings.Join(paths, string(filepath.ListSeparator))).unprivileged().run()
	lines := c.end()
	if len(lines) != len(paths) {
		t.Fatalf("the child said %q", lines)
	}
	for n, line := range lines {
		if !strings.Contains(line, "write") || strings.Contains(line, "nil") {
			t.Errorf("%s: Open says %q, which doesn't say what to do", paths[n], line)
		}
	}
}

// writeAtTheLimit meets a COMMIT that fails on its way to the disk: the size of
// files is limited so that the commit's frames don't fit into the -wal file.
func writeAtTheLimit(ctx context.Context) error {
	signal.Ignore(syscall.SIGXFSZ)
	path := os.Getenv(pathVariable)
	l, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	i, err := sharedIntent(ctx, l)
	if err != nil {
		return err
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil {
		return err
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	claim := storetest.Claim(storetest.Operation(i))
	for _, room := range []uint64{100, 5000, math.MaxUint64} {
		limit := old
		if room != math.MaxUint64 {
			limit.Cur = uint64(wal.Size()) + room
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		answers, err := l.Claim(ctx, claim)
		switch {
		case err != nil:
			fmt.Printf("error %v %s\n", store.Unwritten(err), strings.ReplaceAll(err.Error(), "\n", "; "))
		default:
			fmt.Println("won", answers[0].Won, answers[0].Operation.ID)
		}
	}
	return l.Close()
}

func TestACommitThatFailedOnTheDiskIsUnknownAndMayBeMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	task := uuid.NewString()
	c := start(t, "limit", pathVariable+"="+w.path, intentVariable+"="+task).run()
	lines := c.end()
	if len(lines) != 3 {
		t.Fatalf("the child said %q", lines)
	}
	for _, line := range lines[:2] {
		if !strings.HasPrefix(line, "error false ") || !strings.Contains(line, "nobody knows") {
			t.Errorf("a commit that failed on the disk gave %q", line)
		}
		if !strings.Contains(line, "there is no room for the ledger") || !strings.Contains(line, "ulimit -f") {
			t.Errorf("a limit on the size of files is told as %q", line)
		}
	}
	if !strings.HasPrefix(lines[2], "won true ") {
		t.Errorf("the same claim, once there was room, gave %q", lines[2])
	}
	i, err := w.Intent(w.ctx, storetest.IntentOf("acme", "agent", task, "refund"))
	w.must(err)
	if n := w.rows(i); n != 1 {
		t.Errorf("one operation, claimed three times, has %d rows", n)
	}
}
