// Package pgtest gives tests, benchmarks and examples a real PostgreSQL server:
// the one named by SETTLE_TEST_POSTGRES, or a private one that it starts from
// the installed binaries and stops again.
//
// A test takes what it needs from [New]:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestR19OneClaimWins(t *testing.T) {
//		t.Parallel()
//		db := pgtest.New(t)
//		pool, schema := db.Pool(t), db.Schema(t)
//		…
//	}
//
// A test that stops or crashes its server has one of its own from [NewCluster].
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser = "postgres"
	// startTimeout bounds the making of a server on a busy machine; one takes
	// half a second on an idle one.
	startTimeout = time.Minute
	// stopTimeout is more than the 5 seconds that an immediate shutdown gives
	// its backends before it kills them.
	stopTimeout = 15 * time.Second
)

// Option changes how a cluster's server is started.
type Option func(settings map[string]string)

// Durable makes the server write as one in production does: fsync and
// full_page_writes are on. Without it a test server forgets its data when the
// machine fails, but not when the server's processes do.
func Durable() Option {
	return func(settings map[string]string) {
		settings["fsync"] = "on"
		settings["full_page_writes"] = "on"
	}
}

// Setting sets one of the server's parameters, such as "max_connections".
func Setting(name, value string) Option {
	return func(settings map[string]string) { settings[name] = value }
}

// Cluster is a PostgreSQL server with its own data, listening on a loopback
// port. It and its data end with [Cluster.Close], or with the process that
// started it, however that ends. Its methods are not for concurrent use.
type Cluster struct {
	bin      string
	home     string
	port     int
	settings map[string]string
	account  account
	guard    *guard
	server   *server
}

// Start makes a new cluster and returns when its server takes connections. The
// context bounds the start, not the server's life. Where no server is
// installed the error names the command that installs it.
func Start(ctx context.Context, opts ...Option) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	bin, err := findBinaries(folders)
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	home, err := makeHome(account)
	if err != nil {
		return nil, err
	}
	guard, err := startGuard(account, home)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	c := &Cluster{bin: bin, home: home, settings: defaultSettings(), account: account, guard: guard}
	for _, opt := range opts {
		opt(c.settings)
	}
	if err := c.create(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.launchOnFreePort(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// NewCluster starts a cluster for one test and closes it at the test's end.
func NewCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func defaultSettings() map[string]string {
	return map[string]string{
		// Several test processes have a server each, for minutes.
		"shared_buffers":            "32MB",
		"max_connections":           "200",
		"max_locks_per_transaction": "256",
		"fsync":                     "off",
		"full_page_writes":          "off",
		"timezone":                  "UTC",
	}
}

// DSN is the connection string of the server's database, for its superuser.
func (c *Cluster) DSN() string {
	return fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", superuser, c.Addr())
}

// Addr is the server's loopback address, "127.0.0.1:port". It stays the same
// over [Cluster.Restart].
func (c *Cluster) Addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port))
}

// DB is the cluster's database for tests. Its schemas go with the cluster.
func (c *Cluster) DB() *DB { return &DB{dsn: c.DSN(), ephemeral: true} }

// Stop shuts the server down as an operator would: open transactions are rolled
// back, connections closed, all data is flushed.
func (c *Cluster) Stop(ctx context.Context) error {
	if c.server == nil {
		return nil
	}
	if err := c.server.end(ctx, syscall.SIGINT); err != nil {
		return err
	}
	c.server = nil
	return nil
}

// Kill crashes the server: all of its processes get SIGKILL, so that clients
// see their connections break without a word. Committed data is recovered by
// [Cluster.Restart].
func (c *Cluster) Kill(ctx context.Context) error {
	if c.server == nil {
		return nil
	}
	backends, err := c.freeze(ctx)
	if err != nil {
		return fmt.Errorf("freeze the PostgreSQL server before the kill: %w", err)
	}
	for _, pid := range backends {
		if err := kill(pid); err != nil {
			return fmt.Errorf("kill a process of the PostgreSQL server: %w", err)
		}
	}
	if err := c.server.end(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	c.server = nil
	// It names a process number that the system may give to another process.
	return os.Remove(c.pidFile())
}

// Restart starts the server again at the same address, after [Cluster.Stop],
// [Cluster.Kill] or, by stopping it first, while it runs.
func (c *Cluster) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		return err
	}
	for {
		err := c.launch(ctx)
		// The last backend of a killed server may still be ending.
		if err == nil || !strings.Contains(err.Error(), "is still in use") {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// Close ends the server and removes its data. A second call does nothing.
func (c *Cluster) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var err error
	if c.server != nil {
		// An immediate shutdown: nobody needs the data.
		err = c.server.end(ctx, syscall.SIGQUIT)
		c.server = nil
	}
	return errors.Join(err, c.guard.release())
}

// create makes the data folder. Caching one to copy from would save a third of
// a second per test process; it isn't worth a lock and a stale copy.
func (c *Cluster) create(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), "--pgdata", c.dataDir(), "--username", superuser,
		"--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--wal-segsize", "4", "--no-sync")
	c.account.prepare(cmd, c.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// launchOnFreePort tries again where another process takes the port between
// the look for a free one and the server's start.
func (c *Cluster) launchOnFreePort(ctx context.Context) error {
	const tries = 5
	var err error
	for range tries {
		if c.port, err = freePort(ctx); err != nil {
			return err
		}
		if err = c.launch(ctx); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return err
}

func freePort(ctx context.Context) (int, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("look for a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// launch starts the server and returns when it takes connections.
func (c *Cluster) launch(ctx context.Context) error {
	args := []string{"-D", c.dataDir(), "-p", strconv.Itoa(c.port), "-k", c.home, "-h", "127.0.0.1"}
	for name, value := range c.settings {
		args = append(args, "-c", name+"="+value)
	}
	cmd := exec.Command(filepath.Join(c.bin, "postgres"), args...)
	c.account.prepare(cmd, c.home)
	log, err := os.Create(filepath.Join(c.home, "server.log"))
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	server, err := startServer(cmd)
	if err != nil {
		return err
	}
	if err := c.awaitReady(ctx, server); err != nil {
		said, _ := os.ReadFile(log.Name())
		return errors.Join(fmt.Errorf("%w; it said:\n%s", err, bytes.TrimSpace(said)), server.abort())
	}
	c.server = server
	return nil
}

// awaitReady asks through the socket in the cluster's own folder: whoever
// answers there is this server and no other one that took its port.
func (c *Cluster) awaitReady(ctx context.Context, server *server) error {
	for {
		conn, err := pgx.Connect(ctx, c.socketDSN())
		if err == nil {
			return conn.Close(ctx)
		}
		if server.hasExited() {
			return errors.New("the PostgreSQL server ended while it was starting")
		}
		if pause(ctx) != nil {
			return fmt.Errorf("the PostgreSQL server isn't ready: %w", err)
		}
	}
}

// freeze halts the server's first process and lists its children. With the
// first process halted no new ones come, and the others aren't told of the
// death of one of them, which they would pass on to their clients.
func (c *Cluster) freeze(ctx context.Context) ([]int, error) {
	conn, err := pgx.Connect(ctx, c.socketDSN())
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if err := halt(c.server.cmd.Process.Pid); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, "SELECT pid FROM pg_stat_activity")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

func (c *Cluster) dataDir() string { return filepath.Join(c.home, "data") }

func (c *Cluster) pidFile() string { return filepath.Join(c.dataDir(), "postmaster.pid") }

func (c *Cluster) socketDSN() string {
	return fmt.Sprintf("host=%s port=%d user=%s dbname=postgres", c.home, c.port, superuser)
}

// pause waits a moment between two tries.
func pause(ctx context.Context) error {
	timer := time.NewTimer(10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
