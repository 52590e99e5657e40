package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

// The variables that make a child process of the test binary.
const (
	roleVariable   = "SETTLE_SQLITE_CHILD"
	pathVariable   = "SETTLE_SQLITE_PATH"
	intentVariable = "SETTLE_SQLITE_INTENT"
	seedVariable   = "SETTLE_SQLITE_SEED"
)

// program is the test binary, also for a user who may not enter its folder.
func program() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	return os.Args[0]
}

// childProcess is a running child: what it prints, and what makes it go on.
type childProcess struct {
	*testing.T
	*exec.Cmd
	lines *bufio.Scanner
	input io.WriteCloser
}

// start runs the test binary as a child in a role; the child has to have ended
// by itself, or been killed, when the test ends.
func start(t *testing.T, role string, variables ...string) *childProcess {
	t.Helper()
	c := &childProcess{T: t, Cmd: exec.CommandContext(t.Context(), program())}
	c.Env = append(append(os.Environ(), roleVariable+"="+role), variables...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.input, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	return c
}

func (c *childProcess) run() *childProcess {
	c.Helper()
	if err := c.Start(); err != nil {
		c.Fatal(err)
	}
	return c
}

// line is the child's next line; ok is false at its end.
func (c *childProcess) line() (line string, ok bool) {
	ok = c.lines.Scan()
	return c.lines.Text(), ok
}

// end reads the rest and requires that the child ended well.
func (c *childProcess) end() (rest []string) {
	c.Helper()
	for line, ok := c.line(); ok; line, ok = c.line() {
		rest = append(rest, line)
	}
	if err := c.Wait(); err != nil {
		c.Fatalf("a child process: %v", err)
	}
	return rest
}

// child is the main function of a child process.
func child(role string) {
	roles := map[string]func(context.Context) error{
		"race":  raceForKeys,
		"write": writeUntilKilled,
		"open":  openInTurn,
		"limit": writeAtTheLimit,
	}
	if err := roles[role](context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

const keys = 60

// keyed is the operation in place n of an intent that several processes share.
func keyed(i store.Intent, n int) store.Operation {
	return storetest.Operation(i, func(o *store.Operation) { o.Slot = storetest.DigestOf("key " + strconv.Itoa(n)) })
}

// sharedIntent proposes the intent that all processes of a test name.
func sharedIntent(ctx context.Context, l store.Ledger) (store.Intent, error) {
	return l.Intent(ctx, storetest.IntentOf("acme", "agent", os.Getenv(intentVariable), "refund"))
}

// raceForKeys claims every key, in its own order, and prints those that it won.
func raceForKeys(ctx context.Context) error {
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin) // until the parent lets all of them go
	l, err := sqlite.Open(ctx, os.Getenv(pathVariable), sqlite.WithBusyTimeout(time.Minute))
	if err != nil {
		return err
	}
	i, err := sharedIntent(ctx, l)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		return err
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(keys)
	errs := make(chan error, 4)
	for part := range cap(errs) {
		go func() { errs <- claimKeys(ctx, l, i, order[part*keys/cap(errs):(part+1)*keys/cap(errs)]) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			return err
		}
	}
	return l.Close()
}

func claimKeys(ctx context.Context, l store.Ledger, i store.Intent, keys []int) error {
	for _, n := range keys {
		answers, err := l.Claim(ctx, storetest.Claim(keyed(i, n)))
		if err != nil {
			return err
		}
		switch a := answers[0]; {
		case a.Won:
			fmt.Println("won", n, a.Operation.Owner)
		case len(a.Slot) != 1:
			return fmt.Errorf("a loser was shown %d rows", len(a.Slot))
		}
	}
	return nil
}

func TestR19SeveralProcessesOneWinnerEach(t *testing.T) {
	t.Parallel()
	w := &world{T: t, ctx: t.Context(), path: t.TempDir() + "/settle.db"}
	task := uuid.NewString()
	var children []*childProcess
	for n := range 4 {
		c := start(t, "race", pathVariable+"="+w.path, intentVariable+"="+task, seedVariable+"="+strconv.Itoa(n)).run()
		if line, _ := c.line(); line != "ready" {
			t.Fatalf("a child said %q", line)
		}
		children = append(children, c)
	}
	for _, c := range children {
		w.must(c.input.Close())
	}
	winners := map[string]string{}
	for _, c := range children {
		for _, line := range c.end() {
			won := strings.Fields(line)
			if before, ok := winners[won[1]]; ok {
				t.Errorf("key %s was won by %s and by %s", won[1], before, won[2])
			}
			winners[won[1]] = won[2]
		}
	}
	w.Ledger = open(t, w.path)
	i, err := w.Intent(w.ctx, storetest.IntentOf("acme", "agent", task, "refund"))
	w.must(err)
	if n := w.rows(i); n != keys || len(winners) != keys {
		t.Errorf("%d keys have %d winners and %d rows", keys, len(winners), n)
	}
	for n := range keys {
		answers, err := w.Claim(w.ctx, storetest.Claim(keyed(i, n), storetest.Look))
		w.must(err)
		if owner := answers[0].Slot[0].Owner.String(); owner != winners[strconv.Itoa(n)] {
			t.Errorf("key %d is recorded for %s and was won by %s", n, owner, winners[strconv.Itoa(n)])
		}
	}
}

// writeUntilKilled claims and settles for ever and prints every answer that it got.
func writeUntilKilled(ctx context.Context) error {
	l, err := sqlite.Open(ctx, os.Getenv(pathVariable))
	if err != nil {
		return err
	}
	i, err := sharedIntent(ctx, l)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		wg.Go(func() { errs <- claimAndSettle(ctx, l, i) })
	}
	return <-errs
}

func claimAndSettle(ctx context.Context, l store.Ledger, i store.Intent) error {
	for {
		answers, err := l.Claim(ctx, storetest.Claim(storetest.Operation(i)))
		if err != nil {
			return err
		}
		o := answers[0].Operation
		fmt.Println(o.ID, o.Version, o.State)
		if o, err = l.Apply(ctx, storetest.Completion(o, "r-"+o.ID.String())); err != nil {
			return err
		}
		fmt.Println(o.ID, o.Version, o.State)
	}
}

func TestR19WhatWasAnsweredSurvivesAKill(t *testing.T) {
	t.Parallel()
	w := &world{T: t, ctx: t.Context(), path: t.TempDir() + "/settle.db"}
	task := uuid.NewString()
	answered := map[string]int{}
	for round := range 3 {
		c := start(t, "write", pathVariable+"="+w.path, intentVariable+"="+task).run()
		read := 0
		for line, ok := c.line(); ok; line, ok = c.line() {
			answer := strings.Fields(line)
			if len(answer) != 3 {
				continue // the kill met it in the middle of the line
			}
			version, err := strconv.Atoi(answer[1])
			w.must(err)
			answered[answer[0]] = max(answered[answer[0]], version)
			if read++; read == 150*(round+1) {
				w.must(c.Process.Kill())
			}
		}
		if err := c.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
		w.Ledger = open(t, w.path)
		i, err := w.Intent(w.ctx, storetest.IntentOf("acme", "agent", task, "refund"))
		w.must(err)
		rows := w.rows(i) // verifies every chain
		if rows < len(answered) {
			t.Errorf("%d operations were answered and %d are there", len(answered), rows)
		}
		for id, version := range answered {
			e, err := w.Get(w.ctx, "acme", uuid.MustParse(id))
			if err != nil || e.Version < version {
				t.Fatalf("version %d of an operation was answered, and the ledger has %d: %v", version, e.Version, err)
			}
		}
		if ok := w.strings("PRAGMA integrity_check"); ok[0] != "ok" {
			t.Errorf("the file is damaged: %v", ok)
		}
		w.must(w.Close())
	}
}
