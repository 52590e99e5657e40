package postgres

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
)

// batchLog notes the statements that are sent together.
type batchLog struct{ sent []string }

func (l *batchLog) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	l.sent = append(l.sent, d.SQL)
	return ctx
}
func (l *batchLog) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (l *batchLog) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (l *batchLog) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	l.sent = append(l.sent, d.SQL)
}
func (l *batchLog) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// A page that the server compiles takes a hundred times as long as one that it doesn't.
func TestR52APurgesPageIsNotCompiled(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	log := &batchLog{}
	pool := db.Pool(t, pgtest.MaxConns(1), func(c *pgxpool.Config) { c.ConnConfig.Tracer = log })
	l, err := New(t.Context(), pool, WithSchema(db.Schema(t)))
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]store.Purge{"purge": {}, "erasure": {Principal: [32]byte{1}}} {
		log.sent = nil
		if _, err := l.Purge(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if len(log.sent) != 2 || log.sent[0] != l.sql.uncompiled || !slices.Contains([]string{l.sql.purgePage, l.sql.erasePage}, log.sent[1]) {
			t.Errorf("the %s sent\n%s\nwant its page behind what keeps it from being compiled", name, strings.Join(log.sent, "\n"))
		}
	}
	// What it is good for, at a server that compiles everything.
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL jit_above_cost = 0"); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), l.sql.uncompiled); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), "EXPLAIN "+l.sql.purgePage, pgx.QueryExecModeExec, "00000000-0000-0000-0000-000000000000", 500)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if slices.Contains(lines, "JIT:") {
			t.Errorf("a page is compiled all the same:\n%s", strings.Join(lines, "\n"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var after string
	if err := pool.QueryRow(t.Context(), "SELECT current_setting('jit')").Scan(&after); err != nil || after != "on" {
		t.Errorf("the host's connection has jit %q afterwards (%v), want it as it was", after, err)
	}
}
