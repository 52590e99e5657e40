package postgres_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// slice is how long floor and ledger run in turn.
const slice = 250 * time.Millisecond

// BenchmarkFirstExecution compares a first execution, which is Claim and Apply,
// with the least that a safe call needs: an INSERT and an UPDATE of a plain row
// with the same payload, each with an event row pipelined in the same
// transaction. Floor and ledger take turns, so that the ratio bears a busy
// machine. One iteration is one turn of each.
func BenchmarkFirstExecution(b *testing.B) {
	cluster := pgtest.NewCluster(b, pgtest.Durable())
	for _, workers := range []int{1, 32} {
		for _, known := range []bool{true, false} {
			b.Run(fmt.Sprintf("workers=%d/known=%v", workers, known), func(b *testing.B) {
				w := newBench(b, cluster.DSN(), int32(workers))
				w.compare(b, workers, w.floor, func(ctx context.Context) error { return w.execute(ctx, known) })
			})
		}
	}
}

// BenchmarkOneTurn compares eight claims in one call with eight calls.
func BenchmarkOneTurn(b *testing.B) {
	cluster := pgtest.NewCluster(b, pgtest.Durable())
	w := newBench(b, cluster.DSN(), 1)
	claims := func() []store.Claim {
		all := make([]store.Claim, 8)
		for i := range all {
			all[i] = w.claim(true)
		}
		return all
	}
	w.compare(b, 1, func(ctx context.Context) error {
		for _, c := range claims() {
			if _, err := w.ledger.Claim(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error {
		_, err := w.ledger.Claim(ctx, claims()...)
		return err
	})
}

type bench struct {
	pool   *pgxpool.Pool
	schema string
	ledger store.Ledger
	intent store.Intent
}

func newBench(b *testing.B, dsn string, conns int32) *bench {
	b.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pool.Exec(b.Context(), floorTables); err != nil {
		b.Fatal(err)
	}
	schema := "bench_" + uuid.NewString()
	install(b, pool, schema)
	if x := os.Getenv("BENCH_DDL"); x != "" {
		if _, err := pool.Exec(b.Context(), strings.ReplaceAll(x, "settle.", "\""+schema+"\".")); err != nil {
			b.Fatal(err)
		}
	}
	w := &bench{pool: pool, schema: schema, ledger: open(b, pool, schema)}
	if w.intent, err = w.ledger.Intent(b.Context(), storetest.NewIntent()); err != nil {
		b.Fatal(err)
	}
	if _, err := w.ledger.Claim(b.Context(), w.claim(false)); err != nil {
		b.Fatal(err)
	}
	return w
}

const floorTables = `
DROP TABLE IF EXISTS floor, floor_event;
CREATE TABLE floor (
    id uuid NOT NULL, intent uuid NOT NULL, slot uuid NOT NULL, number integer NOT NULL, tenant uuid NOT NULL, node uuid NOT NULL,
    contract uuid NOT NULL, owner uuid NOT NULL, run uuid NOT NULL, batch uuid, parent uuid, occurrence integer NOT NULL,
    version integer NOT NULL DEFAULT 1, attempt integer NOT NULL DEFAULT 1, visibility bigint NOT NULL, escalate bigint NOT NULL,
    tool text NOT NULL, class text NOT NULL, source text NOT NULL, state text NOT NULL DEFAULT 'running', reason text NOT NULL,
    call_id text NOT NULL, trace bytea NOT NULL, fingerprint bytea NOT NULL, fields bytea NOT NULL, arguments bytea NOT NULL,
    lease_until timestamptz, moment timestamptz NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), settled_at timestamptz,
    resource text, result bytea, result_version integer, PRIMARY KEY (intent, slot, number));
CREATE UNIQUE INDEX ON floor (id);
CREATE TABLE floor_event (operation uuid NOT NULL, seq integer NOT NULL, at timestamptz NOT NULL DEFAULT now(), kind text NOT NULL,
    actor text NOT NULL, hash bytea NOT NULL, body bytea, PRIMARY KEY (operation, seq));`

// floor is the least that a safe call needs.
func (w *bench) floor(ctx context.Context) error {
	o := storetest.Operation(w.intent)
	hash := sha256.Sum256(o.Slot[:])
	id := func(of [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: of, Valid: true} }
	var b pgx.Batch
	b.Queue(`INSERT INTO floor (id, intent, slot, number, tenant, node, contract, owner, run, batch, occurrence, visibility, escalate,
			tool, class, source, reason, call_id, trace, fingerprint, fields, arguments, lease_until, moment)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, now() + $23::interval, now() + $24::interval)`,
		id(o.ID), id(o.Intent), id(o.Slot), o.Number, id(o.Tenant), id(o.Node), id(o.Contract), id(o.Owner), id(o.Run), id(o.Batch),
		o.Occurrence, int64(o.Visibility), int64(o.Escalate), o.Tool, o.Class.String(), string(o.Source), o.Reason, o.CallID, o.Trace,
		o.Fingerprint[:], o.Fields, o.Arguments, storetest.Lease, storetest.Lease+o.Visibility)
	b.Queue(`INSERT INTO floor_event (operation, seq, kind, actor, hash) VALUES ($1, 1, $2, $3, $4)`, id(o.ID), "claimed", "executor", hash[:])
	if err := w.pool.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	b = pgx.Batch{}
	b.Queue(`UPDATE floor SET state = 'completed', version = version + 1, lease_until = NULL, moment = now() + $2::interval, settled_at = now(),
			reason = $3, resource = $4, result = $5, result_version = $6
		WHERE id = $1 AND version = 1 AND state = 'running'`,
		id(o.ID), o.Visibility, "because", "r-"+o.ID.String(), []byte(`{"id":"r-1"}`), 1)
	b.Queue(`INSERT INTO floor_event (operation, seq, kind, actor, hash, body) VALUES ($1, 2, $2, $3, $4, $5)`,
		id(o.ID), "settled", "executor", hash[:], []byte(`{"note":"moved"}`))
	return w.pool.SendBatch(ctx, &b).Close()
}

func (w *bench) claim(known bool) store.Claim {
	c := storetest.Claim(storetest.Operation(w.intent))
	c.Known = known
	return c
}

// execute is a first execution. Where the tool isn't known in the intent, it is
// the first one of the tool there.
func (w *bench) execute(ctx context.Context, known bool) error {
	c := w.claim(known)
	if !known {
		c.Operation.Intent = uuid.New()
	}
	answers, err := w.ledger.Claim(ctx, c)
	if err != nil {
		return err
	}
	_, err = w.ledger.Apply(ctx, storetest.Completion(answers[0].Operation, "r-"+c.Operation.ID.String()))
	return err
}

// compare lets the two take turns and reports the rates and their ratio.
func (w *bench) compare(b *testing.B, workers int, base, other func(context.Context) error) {
	var baseCount, otherCount int
	var baseTime, otherTime time.Duration
	w.turn(b, workers, base)
	w.turn(b, workers, other)
	for b.Loop() {
		n, took := w.turn(b, workers, base)
		baseCount, baseTime = baseCount+n, baseTime+took
		n, took = w.turn(b, workers, other)
		otherCount, otherTime = otherCount+n, otherTime+took
	}
	baseRate, otherRate := float64(baseCount)/baseTime.Seconds(), float64(otherCount)/otherTime.Seconds()
	b.ReportMetric(baseRate, "base/s")
	b.ReportMetric(otherRate, "ledger/s")
	b.ReportMetric(otherRate/baseRate, "ratio")
	b.ReportMetric(0, "ns/op")
}

func (w *bench) turn(b *testing.B, workers int, call func(context.Context) error) (n int, took time.Duration) {
	b.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for range workers {
		wg.Go(func() {
			own := 0
			for time.Since(start) < slice {
				if err := call(b.Context()); err != nil {
					b.Error(err)
					return
				}
				own++
			}
			mu.Lock()
			defer mu.Unlock()
			n += own
		})
	}
	wg.Wait()
	return n, time.Since(start)
}
