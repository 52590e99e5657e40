package pgtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// install makes a folder look as if a server's binaries were in it.
func install(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBinariesComeFromTheNewestVersion(t *testing.T) {
	t.Setenv("PATH", "")
	root := t.TempDir()
	t.Chdir(root)
	install(t, filepath.Join("pg", "9.6", "bin"), "initdb", "postgres")
	install(t, filepath.Join("pg", "15", "bin"), "initdb", "postgres")
	// Clients only: no server.
	install(t, filepath.Join("pg", "18", "bin"), "initdb")

	got, err := findBinaries([]string{"none/*/bin", "pg/*/bin"})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join("pg", "15", "bin"); got != want {
		t.Errorf("took the binaries in %s, want those in %s", got, want)
	}
}

func TestBinariesOnThePathComeFirst(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	install(t, filepath.Join(root, "15", "bin"), "initdb", "postgres")
	install(t, filepath.Join(root, "18", "bin"), "initdb", "postgres")
	// As some images do it: only a link to initdb is on the PATH.
	links := filepath.Join(root, "links")
	install(t, links)
	if err := os.Symlink(filepath.Join(root, "15", "bin", "initdb"), filepath.Join(links, "initdb")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links)

	got, err := findBinaries([]string{filepath.Join(root, "*", "bin")})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(root, "15", "bin"); got != want {
		t.Errorf("took the binaries in %s, want those in %s", got, want)
	}
}

func TestMissingBinariesNameTheCommand(t *testing.T) {
	t.Setenv("PATH", "")
	dir, err := findBinaries([]string{filepath.Join(t.TempDir(), "*", "bin")})
	if err == nil {
		t.Fatalf("found binaries in %s, want none", dir)
	}
	if !strings.Contains(err.Error(), "install postgresql") || !strings.Contains(err.Error(), EnvDSN) {
		t.Errorf("the error doesn't say what to do: %v", err)
	}
	if mac := missing(nil, "darwin").Error(); !strings.Contains(mac, "brew install") {
		t.Errorf("the error on macOS names no command of it: %v", mac)
	}
}
