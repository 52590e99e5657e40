package idempotency_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/tools/idempotency"
)

// trips counts what a pool sends and waits for: a statement, or a batch of them.
type trips struct{ n atomic.Int64 }

func (t *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	t.n.Add(1)
	return ctx
}
func (t *trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (t *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	t.n.Add(1)
	return ctx
}
func (t *trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (t *trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// A first request costs two round trips, and a replay one, also in a process that
// hasn't seen the key; a caller's first request in a process one more.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	schema := db.Schema(t)
	count := &trips{}
	ledger, err := postgres.New(t.Context(), db.Pool(t, pgtest.Tracer(count)), postgres.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	declared := []settle.AnyTool{idempotency.Declare(route, unsafe)}
	one, two := serveOn(t, ledger, declared, created()), serveOn(t, ledger, declared, created())
	costs := func(what string, want int64, do func()) {
		t.Helper()
		before := count.n.Load()
		do()
		if got := count.n.Load() - before; got != want {
			t.Errorf("%s took %d round trips, want %d", what, got, want)
		}
	}
	var first reply
	costs("a caller's very first request", 3, func() { first = one.pay(201, "k-1", `{"amount":1}`) })
	costs("a first request", 2, func() { one.pay(201, "k-2", `{"amount":1}`) })
	costs("a replay", 1, func() { one.replayed(first, "k-1", `{"amount":1}`) })
	costs("a reused key, with its entry in the audit", 2, func() { one.refused(422, "key-reused", "k-1", `{"amount":2}`) })
	costs("a status", 1, func() { one.ask(200, "k-1") })
	costs("a caller's first request to another process", 3, func() { two.pay(201, "k-3", `{"amount":1}`) })
	costs("a replay of what another process did", 1, func() { two.replayed(first, "k-1", `{"amount":1}`) })
	costs("a refused key", 0, func() { one.refused(400, "key-malformed", `"`, `{}`) })
	one.runs(2)
	two.runs(1)
}
