package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the tests' own connections, beside the ledger's
	_ "modernc.org/sqlite"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
)

// binary is the built program, which the tests run as their child.
var binary string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "settle-cmd-")
	if err == nil {
		binary = filepath.Join(folder, "settle")
		if runtime.GOOS == "windows" {
			binary += ".exe"
		}
		var said []byte
		if said, err = exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, said)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pgtest.Main(m)
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// child is the program with an environment that holds nothing but what is given
// and what a program needs.
func child(ctx context.Context, env map[string]string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SYSTEMROOT"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// runs runs the program to its end.
func runs(t *testing.T, env map[string]string, in string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, said bytes.Buffer
	cmd := child(ctx, env, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), said.String()}
}

// outside is a world on a durable ledger, which the program opens as a process
// of its own.
func outside(t *testing.T, ledger store.Ledger, name string, env map[string]string, age func(time.Duration) error) *world {
	t.Helper()
	w := &world{T: t, ledger: ledger, env: map[string]string{"SETTLE_OPERATOR": "ann", "SETTLE_LEDGER": name}}
	for k, v := range env {
		w.env[k] = v
	}
	w.age = func(d time.Duration) {
		if err := age(d); err != nil {
			t.Fatal(err)
		}
	}
	w.start = func(env map[string]string, in string, args ...string) result { return runs(t, env, in, args...) }
	return w
}

func newSQLite(t *testing.T) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settle.db")
	l, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	file := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_pragma=busy_timeout(10000)&_txlock=immediate"}
	return outside(t, l, "sqlite:"+path, nil, func(d time.Duration) error {
		return makeOlder("sqlite", file.String(), "settle_%s", "%[1]s = %[1]s - %[2]d", d)
	})
}

func newPostgres(t *testing.T) *world {
	t.Helper()
	db := pgtest.New(t)
	schema := db.Schema(t)
	pool, err := pgxpool.New(context.Background(), db.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	l, err := postgres.New(t.Context(), pool, postgres.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	return outside(t, l, db.DSN(), map[string]string{"SETTLE_SCHEMA": schema}, func(d time.Duration) error {
		return makeOlder("pgx", db.DSN(), schema+`."%s"`, "%[1]s = %[1]s - %[2]d * interval '1 microsecond'", d)
	})
}

// instantsOf are the columns that grow older. The instants of the events, and
// tail_at with them, are sealed by the chain and stay.
var instantsOf = map[string][]string{
	"operation": {"lease_until", "due_at", "moment", "key_until", "created_at", "first_sent", "unknown_since", "settled_at"},
	"intent":    {"created_at", "closed_at"},
	"case":      {"opened_at", "closed_at", "held_at"},
	"outbox":    {"at", "due_at"},
}

// makeOlder lets time pass for a ledger whose clock is the machine's.
func makeOlder(driver, dsn, table, older string, d time.Duration) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for name, columns := range instantsOf {
		sets := make([]string, len(columns))
		for i, c := range columns {
			sets[i] = fmt.Sprintf(older, c, d.Microseconds())
		}
		if _, err := db.Exec("UPDATE " + fmt.Sprintf(table, name) + " SET " + strings.Join(sets, ", ")); err != nil {
			return err
		}
	}
	return nil
}
