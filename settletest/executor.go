package settletest

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
)

// shutdownTimeout bounds the wait for attempts at the end of a test.
const shutdownTimeout = 30 * time.Second

// NewExecutor builds an executor on a SQLite ledger of the test's own, and shuts
// it down when the test ends. It fails the test where a tool is refused.
func NewExecutor(t testing.TB, tools ...settle.AnyTool) *settle.Executor {
	t.Helper()
	return NewExecutorOn(t, NewLedger(t), settle.WithTools(tools...))
}

// NewExecutorOn builds an executor on a ledger, and shuts it down when the test
// ends. A second one on the same ledger is another process, or the same after a
// restart. Its log is thrown away and a ledger in memory is accepted, unless
// the options say otherwise.
func NewExecutorOn(t testing.TB, ledger store.Ledger, options ...settle.Option) *settle.Executor {
	t.Helper()
	defaults := []settle.Option{settle.WithLogger(slog.New(slog.DiscardHandler)), settle.Volatile()}
	x, err := settle.New(ledger, append(defaults, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		if err := x.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return x
}

// NewLedger opens a SQLite ledger in a temporary folder, and closes it when the
// test ends.
func NewLedger(t testing.TB) store.Ledger {
	t.Helper()
	ledger, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "settle.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ledger.Close(); err != nil {
			t.Error(err)
		}
	})
	return ledger
}

// Context returns a context that acts for a principal in a task, and ends with
// the test. Change either with [settle.WithPrincipal] and [settle.WithTask].
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx := settle.WithPrincipal(t.Context(), settle.Principal{Tenant: "test-tenant", Subject: "test-agent"})
	return settle.WithTask(ctx, settle.Task{ID: "test-task", Goal: "test"})
}

// Execute makes a call with arguments that are encoded as JSON. It fails the
// test for what [settle.Executor.Execute] returns an error for: mistakes of the
// host. Everything else is an outcome.
func Execute(t testing.TB, ctx context.Context, x *settle.Executor, tool string, args any) settle.Outcome {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatalf("settletest: encode the arguments: %v", err)
	}
	out, err := x.Execute(ctx, settle.Call{Tool: tool, Args: raw})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Want fails the test unless the outcome has the status, with what the model
// would have been told. It returns the outcome.
func Want(t testing.TB, out settle.Outcome, status settle.Status) settle.Outcome {
	t.Helper()
	if out.Status != status {
		t.Fatalf("want %s, got %s (reason %q): %s", status, out.Status, out.Reason, out.ForModel())
	}
	return out
}

// Completed fails the test unless the outcome is completed with a result, and
// returns the result.
func Completed[Out any](t testing.TB, out settle.Outcome) Out {
	t.Helper()
	result, err := settle.Decode[Out](Want(t, out, settle.StatusCompleted))
	if err != nil {
		t.Fatal(err)
	}
	return result
}
