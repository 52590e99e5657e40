package faulty_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/faulty"
	"github.com/settle-go/settle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// ledger is a table behind a proxy, with a way round it.
type ledger struct {
	proxy  *faulty.Proxy
	broken *pgxpool.Pool
	direct *pgxpool.Pool
	table  string
}

func newLedger(t *testing.T) ledger {
	t.Helper()
	db := pgtest.New(t)
	schema := db.Schema(t)
	l := ledger{
		proxy:  faulty.NewProxy(t, db.Addr(t)),
		direct: db.Pool(t),
		table:  pgx.Identifier{schema, "entries"}.Sanitize(),
	}
	l.broken = db.Pool(t, pgtest.Via(t, l.proxy.Addr()), pgtest.ExecMode(pgx.QueryExecModeExec))
	if _, err := l.direct.Exec(t.Context(), "CREATE SCHEMA "+schema+"; CREATE TABLE "+l.table+" (n int)"); err != nil {
		t.Fatal(err)
	}
	return l
}

// insert writes one row in a transaction.
func (l ledger) insert(ctx context.Context) error {
	tx, err := l.broken.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO "+l.table+" VALUES ($1)", 1); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func (l ledger) rows(t *testing.T) int {
	t.Helper()
	var n int
	if err := l.direct.QueryRow(t.Context(), "SELECT count(*)::int FROM "+l.table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// wantUnknown fails the test unless the error leaves open what happened.
func wantUnknown(t *testing.T, err error) {
	t.Helper()
	var said *pgconn.PgError
	if err == nil || errors.As(err, &said) || pgconn.SafeToRetry(err) {
		t.Errorf("the client got %v, want an error that leaves open whether it happened", err)
	}
}

func TestLoseAnswerOfACommit(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	fault := l.proxy.Arm(faulty.Fault{Request: "commit", Do: faulty.LoseAnswer})
	wantUnknown(t, l.insert(t.Context()))
	<-fault.Done()
	if n := l.rows(t); n != 1 {
		t.Errorf("%d rows after a commit whose answer was lost, want 1", n)
	}
	if err := l.insert(t.Context()); err != nil {
		t.Errorf("the commit after the fault: %v", err)
	}
}

func TestCutBeforeACommit(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.proxy.Arm(faulty.Fault{Request: "commit", Do: faulty.CutBefore})
	wantUnknown(t, l.insert(t.Context()))
	if n := l.rows(t); n != 0 {
		t.Errorf("%d rows after a commit that never reached the server, want none", n)
	}
}

func TestCutAfterACommitLeavesItOpen(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.proxy.Arm(faulty.Fault{Request: "commit", Do: faulty.CutAfter})
	wantUnknown(t, l.insert(t.Context()))
	if n := l.rows(t); n > 1 {
		t.Errorf("%d rows after one commit", n)
	}
}

func TestHoldAnswerOfACommit(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	fault := l.proxy.Arm(faulty.Fault{Request: "commit", Do: faulty.HoldAnswer})
	ctx, giveUp := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() { got <- l.insert(ctx) }()

	<-fault.Done()
	if n := l.rows(t); n != 1 {
		t.Errorf("%d rows while the answer to the commit is held, want 1", n)
	}
	select {
	case err := <-got:
		t.Errorf("the client got %v while the answer was held", err)
	default:
	}
	giveUp()
	wantUnknown(t, <-got)
	fault.Release()
}

func TestHoldRequestOfACommit(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	fault := l.proxy.Arm(faulty.Fault{Request: "commit", Do: faulty.HoldRequest})
	got := make(chan error, 1)
	go func() { got <- l.insert(t.Context()) }()

	<-fault.Done()
	if n := l.rows(t); n != 0 {
		t.Errorf("%d rows while the commit is held, want none", n)
	}
	fault.Release()
	if err := <-got; err != nil {
		t.Errorf("the commit after its release: %v", err)
	}
	if n := l.rows(t); n != 1 {
		t.Errorf("%d rows after the released commit, want 1", n)
	}
}

func TestSkippedCommitsPass(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.proxy.Arm(faulty.Fault{Request: "commit", Skip: 2, Do: faulty.CutBefore})
	for i := range 2 {
		if err := l.insert(t.Context()); err != nil {
			t.Errorf("commit %d of those to skip: %v", i+1, err)
		}
	}
	wantUnknown(t, l.insert(t.Context()))
	if n := l.rows(t); n != 2 {
		t.Errorf("%d rows, want those of the 2 skipped commits", n)
	}
}

func TestFaultArmedTwiceHappensTwice(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	for range 2 {
		l.proxy.Arm(faulty.Fault{Request: "commit", Do: faulty.LoseAnswer})
	}
	for range 2 {
		wantUnknown(t, l.insert(t.Context()))
	}
	if err := l.insert(t.Context()); err != nil {
		t.Errorf("the commit after both faults: %v", err)
	}
	if n := l.rows(t); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

// A pipelined batch is answered as one; its end is PostgreSQL's "ready for
// query, no transaction".
func TestLoseAnswerOfABatch(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.proxy.Arm(faulty.Fault{Request: "INSERT", Do: faulty.LoseAnswer, Answer: "Z\x00\x00\x00\x05I"})
	batch := &pgx.Batch{}
	batch.Queue("SELECT repeat('long', 100000)")
	batch.Queue("INSERT INTO "+l.table+" VALUES ($1)", 1)
	wantUnknown(t, l.broken.SendBatch(t.Context(), batch).Close())
	if n := l.rows(t); n != 1 {
		t.Errorf("%d rows after a batch whose answer was lost, want 1", n)
	}
}
