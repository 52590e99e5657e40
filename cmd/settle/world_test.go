package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

// world is an empty ledger, a host that works on it with tools, and the command
// line of its operators.
type world struct {
	*testing.T
	ledger store.Ledger
	host   *settle.Executor
	// fails is what the tools' far sides do; a nil error is success.
	fails error
	// age lets time pass.
	age func(time.Duration)
	// start runs a command line; it gets the environment of the operator.
	start func(env map[string]string, in string, args ...string) result
	env   map[string]string
	// context, where it is set, is that of commands in this process.
	context context.Context
}

type result struct {
	exit     int
	out, err string
}

// errLost is an answer that got lost.
var errLost = errors.New("connection reset")

type orderArgs struct {
	Order  string `json:"order" settle:"identity"`
	Amount int    `json:"amount"`
}

type receipt struct {
	ID string `json:"id" settle:"resource"`
}

// tool is one whose far side does what the world says.
func (w *world) tool(name string, c settle.Contract) settle.AnyTool {
	return settle.Tool[orderArgs, receipt]{Name: name, Contract: c,
		Do: func(context.Context, settle.Op, orderArgs) (receipt, error) { return receipt{"r-1"}, w.fails }}
}

// found is a tool whose far side can be asked.
func (w *world) found(name string, asked *atomic.Int32) settle.AnyTool {
	return settle.Tool[orderArgs, receipt]{Name: name, Contract: settle.Contract{EscalateAfter: time.Minute},
		Do: func(context.Context, settle.Op, orderArgs) (receipt, error) { return receipt{"r-1"}, w.fails },
		Lookup: func(_ context.Context, q settle.Query[receipt], _ orderArgs) (settle.Evidence, error) {
			asked.Add(1)
			return q.Inconclusive("the far side is closed"), nil
		}}
}

// hire starts the host with the standard tools and tells the ledger of them.
func (w *world) hire(more ...settle.AnyTool) *world {
	w.Helper()
	tools := append(more,
		w.tool("refund", settle.Contract{NoLookup: true, Guidance: "Ask the bank's desk.\nThey answer until 18:00."}),
		w.tool("wire", settle.Contract{NoLookup: true, Deciders: 2}),
		w.tool("grant", settle.Contract{NoLookup: true, Approval: true}))
	x, err := settle.New(w.ledger, settle.WithTools(tools...), settle.Volatile())
	if err != nil {
		w.Fatal(err)
	}
	w.host = x
	if err := x.Declare(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := x.Shutdown(ctx); err != nil {
			w.Error(err)
		}
	})
	return w
}

func inTask(ctx context.Context, task string) context.Context {
	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "support-agent"})
	return settle.WithTask(ctx, settle.Task{ID: task, Goal: "late-parcel"})
}

func order(tool, id string) settle.Call {
	return settle.Call{Tool: tool, CallID: uuid.NewString(), Args: json.RawMessage(fmt.Sprintf(`{"order":%q,"amount":12}`, id))}
}

// call makes one call in a task and returns the operation's reference.
func (w *world) call(ctx context.Context, tool, id string, want settle.Status) string {
	w.Helper()
	out, err := w.host.Execute(ctx, order(tool, id))
	if err != nil || out.Status != want {
		w.Fatalf("%s ended as %s (%v), want %s", tool, out.ForModel(), err, want)
	}
	return out.Operation
}

// manual makes a case of a call whose answer gets lost.
func (w *world) manual(tool, id string) string {
	w.Helper()
	w.fails = errLost
	reference := w.call(inTask(w.Context(), "case-42"), tool, id, settle.StatusUnknown)
	w.age(time.Hour)
	w.recover()
	return reference
}

func (w *world) recover() {
	w.Helper()
	if report, err := w.host.Recover(w.Context()); err != nil || report.Failed > 0 {
		w.Fatalf("recovery: %+v, %v", report, err)
	}
}

// as is the world for another operator.
func (w *world) as(operator string) *world {
	other := *w
	other.env = map[string]string{"SETTLE_OPERATOR": operator}
	for k, v := range w.env {
		if k != "SETTLE_OPERATOR" {
			other.env[k] = v
		}
	}
	return &other
}

// run runs a command line that has to end with the exit code.
func (w *world) run(exit int, args ...string) result {
	w.Helper()
	return w.runWith("", exit, args...)
}

func (w *world) runWith(in string, exit int, args ...string) result {
	w.Helper()
	r := w.start(w.env, in, args...)
	if r.exit != exit {
		w.Fatalf("settle %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), r.exit, exit, r.out, r.err)
	}
	return r
}

// read runs a command line with --json that has to succeed, and reads its answer.
func read[T any](w *world, exit int, args ...string) T {
	w.Helper()
	var v T
	r := w.run(exit, append(args, "--json")...)
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		w.Fatalf("settle %s --json wrote %q: %v", strings.Join(args, " "), r.out, err)
	}
	return v
}

// failed is the JSON form of an error.
func failed(w *world, exit int, args ...string) failure {
	w.Helper()
	var v struct{ Error failure }
	r := w.run(exit, append(args, "--json")...)
	if err := json.Unmarshal([]byte(r.err), &v); err != nil || v.Error.Exit != exit || v.Error.Message == "" {
		w.Fatalf("settle %s --json said %q: %v", strings.Join(args, " "), r.err, err)
	}
	return v.Error
}

// contains says which of the words a text lacks.
func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("there is no %q in:\n%s", word, text)
		}
	}
}

// newMemory is a world in this process, on a ledger in memory.
func newMemory(t *testing.T) *world {
	t.Helper()
	return inProcess(t, 0, false)
}

// inProcess is a world on a ledger in memory whose outputs are as wide; 0 is a pipe.
func inProcess(t *testing.T, width int, asks bool) *world {
	t.Helper()
	passed := new(atomic.Int64)
	began := time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)
	// Two readings are never the same, as on a machine.
	now := func() time.Time { return began.Add(time.Duration(passed.Add(int64(time.Microsecond)))) }
	w := &world{T: t, ledger: memory.New(memory.WithClock(now)), age: func(d time.Duration) { passed.Add(int64(d)) },
		env: map[string]string{"SETTLE_OPERATOR": "ann", "SETTLE_LEDGER": "sqlite:memory"}}
	w.start = func(env map[string]string, in string, args ...string) result {
		var out, err bytes.Buffer
		ctx := w.Context()
		if w.context != nil {
			ctx = w.context
		}
		exit := run(ctx, process{env: func(k string) string { return env[k] }, in: strings.NewReader(in), asks: asks,
			out: stream{&out, width}, err: stream{&err, width}, now: now, newID: uuid.NewString,
			open: func(context.Context, place, access) (store.Ledger, error) { return keep(w.ledger), nil }}, args)
		return result{exit, out.String(), err.String()}
	}
	return w
}

// kept is a ledger that outlives the command that closes it.
type kept struct{ store.Ledger }

// keep keeps a ledger, with its outbox where it has one.
func keep(l store.Ledger) store.Ledger {
	outbox, ok := l.(store.Outbox)
	if !ok {
		return kept{l}
	}
	return struct {
		kept
		store.Outbox
	}{kept{l}, outbox}
}

func (kept) Close() error { return nil }
