//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxSocketFolder leaves room for the socket's name in the 104 bytes that the
// narrowest system gives a socket's path.
const maxSocketFolder = 80

// account is who the server runs as.
type account struct {
	// credential is nil where the server runs as this process does.
	credential *syscall.Credential
}

// serverAccount is this process's user, but for root: PostgreSQL refuses to run
// as root, so it then gets the account that its package made for it, or nobody.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return account{}, fmt.Errorf("read the account %s: %w", name, err)
		}
		return account{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is no account postgres or nobody to run it as")
}

// prepare makes the command run as the account, in a process group of its own
// (an interrupt typed at the terminal is for the tests, which then end the
// server), and without the settings that PostgreSQL takes from the environment.
func (a account) prepare(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: a.credential}
}

// makeHome makes the cluster's folder in the first temporary folder that the
// account can reach and whose path isn't too long for a socket.
func makeHome(a account) (string, error) {
	candidates := []string{os.TempDir(), "/tmp", "/var/tmp"}
	for _, parent := range candidates {
		if len(parent) > maxSocketFolder || !a.reaches(parent) {
			continue
		}
		home, err := os.MkdirTemp(parent, "settle-pg-")
		if err != nil {
			return "", fmt.Errorf("make the PostgreSQL server's folder: %w", err)
		}
		if a.credential == nil {
			return home, nil
		}
		if err := os.Chown(home, int(a.credential.Uid), int(a.credential.Gid)); err != nil {
			return "", errors.Join(fmt.Errorf("give the PostgreSQL server its folder: %w", err), os.Remove(home))
		}
		return home, nil
	}
	return "", fmt.Errorf("no temporary folder for a PostgreSQL server: none of %v exists, has a short path, and lets other accounts through", candidates)
}

// reaches tells whether the account may pass through the folder.
func (a account) reaches(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return false
		}
		if a.credential != nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// halt stops a process from running, without its being able to object.
func halt(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

// kill ends a process at once. One that has ended already is no error.
func kill(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
