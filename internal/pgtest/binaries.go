package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// folders are the usual places of a server's binaries, which are rarely on the
// PATH: Debian's, Red Hat's, the source's default, and Homebrew's two.
var folders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
}

// findBinaries returns the folder that holds initdb and postgres: that of the
// PATH, else the one of the newest version in the first place that has any.
func findBinaries(folders []string) (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil && isServer(filepath.Dir(initdb)) {
			return filepath.Dir(initdb), nil
		}
	}
	for _, pattern := range folders {
		// The patterns are well formed, which is all that Glob complains of.
		found, _ := filepath.Glob(pattern)
		found = slices.DeleteFunc(found, func(dir string) bool { return !isServer(dir) })
		if len(found) > 0 {
			return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }), nil
		}
	}
	return "", missing(folders, runtime.GOOS)
}

func isServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// version reads the first number in a path, 0 where there is none.
func version(path string) int {
	start := slices.IndexFunc([]byte(path), isDigit)
	if start < 0 {
		return 0
	}
	end := start
	for end < len(path) && isDigit(path[end]) {
		end++
	}
	n, err := strconv.Atoi(path[start:end])
	if err != nil {
		return 0
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// missing says what to do on a machine without a server.
func missing(folders []string, goos string) error {
	command := "apt-get install postgresql"
	if goos == "darwin" {
		command = "brew install postgresql"
	}
	return fmt.Errorf("no PostgreSQL server is installed (no initdb and postgres on the PATH or in %v): run %q, or set %s to the connection string of a running one",
		folders, command, EnvDSN)
}
