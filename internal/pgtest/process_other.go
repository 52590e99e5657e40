//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

// account is who the server runs as.
type account struct{}

func serverAccount() (account, error) {
	return account{}, errors.New("a private PostgreSQL server needs a Unix system: set " + EnvDSN + " to the connection string of a running one")
}

func (account) prepare(*exec.Cmd, string) {}

func makeHome(account) (string, error) { return "", errors.ErrUnsupported }

func halt(int) error { return errors.ErrUnsupported }

func kill(int) error { return errors.ErrUnsupported }
