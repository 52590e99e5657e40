package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

// BenchmarkOperation measures full operations, a claim and its settlement, on
// the ledger and on two bare writers of one connection: one that commits the
// claim and the settlement of each operation, and one that commits both of 32
// operations at a time. They take turns in short rounds, so that what else the
// machine does falls on all of them alike; ns/op is the ledger's.
func BenchmarkOperation(b *testing.B) {
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			ledger, bare := openLedger(b), openBare(b)
			const round = 1280
			var took [3]time.Duration
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += round {
				n := min(round, b.N-done)
				took[0] += timed(func() { ledger.operations(b, n, callers) })
				b.StopTimer()
				took[1] += timed(func() { bare.operations(b, n, 32) })
				took[2] += timed(func() { bare.commitEach(b, n) })
				b.StartTimer()
			}
			b.StopTimer()
			second := func(d time.Duration) float64 { return float64(b.N) / d.Seconds() }
			b.ReportMetric(second(took[0]), "op/s")
			b.ReportMetric(second(took[1]), "bare32-op/s")
			b.ReportMetric(second(took[2]), "bare-op/s")
			b.ReportMetric(second(took[0])/second(took[1]), "of-bare32")
			b.ReportMetric(second(took[0])/second(took[2]), "of-bare")
		})
	}
}

func timed(do func()) time.Duration {
	begun := time.Now()
	do()
	return time.Since(begun)
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

type ledger struct {
	*sqlite.Ledger
	intent store.Intent
}

func openLedger(b *testing.B) *ledger {
	l, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "settle.db"))
	must(b, err)
	b.Cleanup(func() { must(b, l.Close()) })
	i, err := l.Intent(b.Context(), storetest.NewIntent())
	must(b, err)
	return &ledger{l, i}
}

func (l *ledger) operations(b *testing.B, n, callers int) {
	ctx := context.Background()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				claimed, err := l.Claim(ctx, storetest.Claim(storetest.Operation(l.intent)))
				if err != nil || !claimed[0].Won {
					b.Errorf("claim: %v", err)
					return
				}
				o := claimed[0].Operation
				if _, err := l.Apply(ctx, storetest.Completion(o, "re_"+o.ID.String())); err != nil {
					b.Errorf("settle: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// bare writes what nobody can do without: a row for the claim with an audit row,
// and the outcome in that row with another audit row. It looks at nothing.
type bare struct {
	*sql.Conn
	insert, update, audit *sql.Stmt
}

func openBare(b *testing.B) *bare {
	ctx := context.Background()
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "bare.db"))
	must(b, err)
	b.Cleanup(func() { must(b, db.Close()) })
	c, err := db.Conn(ctx)
	must(b, err)
	for _, s := range []string{
		"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
		`CREATE TABLE operation (id BLOB PRIMARY KEY, intent BLOB NOT NULL, slot BLOB NOT NULL, state TEXT NOT NULL, tool TEXT NOT NULL,
			owner BLOB NOT NULL, claimed_at INTEGER NOT NULL, settled_at INTEGER, fingerprint BLOB NOT NULL, arguments BLOB,
			resource TEXT, result BLOB, UNIQUE (intent, slot)) STRICT`,
		`CREATE TABLE event (operation BLOB NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, move TEXT NOT NULL, actor TEXT NOT NULL,
			PRIMARY KEY (operation, seq)) STRICT, WITHOUT ROWID`,
	} {
		_, err := c.ExecContext(ctx, s)
		must(b, err)
	}
	prepare := func(s string) *sql.Stmt {
		stmt, err := c.PrepareContext(ctx, s)
		must(b, err)
		return stmt
	}
	return &bare{c,
		prepare(`INSERT INTO operation (id, intent, slot, state, tool, owner, claimed_at, fingerprint, arguments) VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?)`),
		prepare(`UPDATE operation SET state = 'completed', settled_at = ?, resource = ?, result = ? WHERE id = ? AND state = 'running'`),
		prepare(`INSERT INTO event (operation, seq, at, move, actor) VALUES (?, ?, ?, ?, 'executor')`),
	}
}

func (w *bare) claim(b *testing.B, o store.Operation) {
	at := time.Now().UnixMicro()
	_, err := w.insert.Exec(o.ID[:], o.Intent[:], o.Slot[:], o.Tool, o.Owner[:], at, o.Fingerprint[:], o.Arguments)
	must(b, err)
	_, err = w.audit.Exec(o.ID[:], 1, at, ">running")
	must(b, err)
}

func (w *bare) settle(b *testing.B, o store.Operation) {
	at := time.Now().UnixMicro()
	_, err := w.update.Exec(at, "re_"+o.ID.String(), []byte(`{"id":"r-1"}`), o.ID[:])
	must(b, err)
	_, err = w.audit.Exec(o.ID[:], 2, at, "running>completed")
	must(b, err)
}

func (w *bare) transaction(b *testing.B, do func()) {
	_, err := w.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	must(b, err)
	do()
	_, err = w.ExecContext(context.Background(), "COMMIT")
	must(b, err)
}

func (w *bare) commitEach(b *testing.B, n int) {
	for range n {
		o := storetest.Operation(store.Intent{})
		w.transaction(b, func() { w.claim(b, o) })
		w.transaction(b, func() { w.settle(b, o) })
	}
}

func (w *bare) operations(b *testing.B, n, each int) {
	for done := 0; done < n; done += each {
		w.transaction(b, func() {
			for range min(each, n-done) {
				o := storetest.Operation(store.Intent{})
				w.claim(b, o)
				w.settle(b, o)
			}
		})
	}
}
