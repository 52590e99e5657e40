package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// childEnv makes the test binary a process that only starts a cluster.
const childEnv = "PGTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	Main(m)
}

// runChild starts a cluster, says where it is, and waits to be killed.
func runChild() {
	c, err := Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.home)
	fmt.Println(c.DSN())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// ask returns the first column of the query's one row.
func ask[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) T {
	t.Helper()
	var answer T
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

func exec1(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestSettingsOfAServer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []Option
		want map[string]string
	}{
		{"default", nil, map[string]string{"fsync": "off", "full_page_writes": "off", "synchronous_commit": "on", "max_connections": "200"}},
		{"durable", []Option{Durable()}, map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}},
		{"named", []Option{Setting("synchronous_commit", "off"), Setting("max_connections", "20")}, map[string]string{"synchronous_commit": "off", "max_connections": "20"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, NewCluster(t, tc.opts...).DSN())
			for name, want := range tc.want {
				if got := ask[string](t, conn, "SELECT current_setting($1)", name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context(), Setting("no_such_setting", "1"))
	if err == nil {
		t.Fatal(errors.Join(errors.New("a server with an unknown setting started"), c.Close()))
	}
	if !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("the error doesn't hold what the server said: %v", err)
	}
}

func TestStoppedServerComesBackWithItsData(t *testing.T) {
	t.Parallel()
	c := NewCluster(t)
	exec1(t, connect(t, c.DSN()), "CREATE TABLE kept AS SELECT 7 AS n")
	dsn := c.DSN()

	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if conn, err := pgx.Connect(t.Context(), dsn); err == nil {
		t.Fatal(errors.Join(errors.New("a stopped server takes connections"), conn.Close(t.Context())))
	}
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask[int](t, connect(t, dsn), "SELECT n FROM kept"); got != 7 {
		t.Errorf("read %d after the restart, want 7", got)
	}
}

func TestKilledServerSaysNothingAndKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	c := NewCluster(t)
	conn, open := connect(t, c.DSN()), connect(t, c.DSN())
	exec1(t, conn, "CREATE TABLE kept AS SELECT 7 AS n")
	exec1(t, open, "BEGIN")
	exec1(t, open, "INSERT INTO kept VALUES (8)")

	if err := c.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Exec(t.Context(), "SELECT 1")
	var said *pgconn.PgError
	if err == nil || errors.As(err, &said) {
		t.Errorf("after the crash a client got %v, want a broken connection", err)
	}
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask[int](t, connect(t, c.DSN()), "SELECT sum(n)::int FROM kept"); got != 7 {
		t.Errorf("the rows add up to %d after the crash, want 7: committed ones only", got)
	}
}

func TestCloseRemovesTheFolder(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(c.home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there after Close: %v", err)
	}
}

func TestServerEndsWithAKilledTestProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childEnv+"=1")
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	read := func() string {
		if !lines.Scan() {
			t.Fatalf("the child ended before it said where its server is: %v", errors.Join(lines.Err(), child.Wait()))
		}
		return lines.Text()
	}
	home, dsn := read(), read()
	conn := connect(t, dsn)

	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	// Returns when the server ends and the connection with it.
	if _, err := conn.WaitForNotification(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("the server outlived the killed process: %v", err)
	}
	for {
		if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
			return
		}
		if err := pause(ctx); err != nil {
			t.Fatalf("the folder of the killed process's server is still there: %v", err)
		}
	}
}
