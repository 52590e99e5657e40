package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// million measures executions on a ledger that holds a million settled
// operations beside an empty one.
func (b *bench) million(ctx context.Context) error {
	const most = 32
	pool, err := b.postgres.pool(ctx, most)
	if err != nil {
		return err
	}
	large, err := b.postgres.payer(ctx, pool, "large", most)
	if err != nil {
		return err
	}
	if err := large.pay(ctx, 0); err != nil {
		return err
	}
	if err := multiply(ctx, pool, "large", b.rows); err != nil {
		return fmt.Errorf("fill the large ledger: %w", err)
	}
	size, err := sizeOf(ctx, pool, "large")
	if err != nil {
		return err
	}
	b.figure("postgres/large/stored", float64(size)/float64(b.rows), "B/op")
	for _, workers := range []int{1, most} {
		empty, err := b.postgres.payer(ctx, pool, "empty_"+strconv.Itoa(workers), workers)
		if err != nil {
			return err
		}
		turns, err := b.takeTurns(ctx, one(workers, empty.pay), one(workers, large.pay))
		if err != nil {
			return err
		}
		name := "postgres/" + strconv.Itoa(workers) + "/large"
		b.figure(name+"/rate", turns[1].rate(), "op/s")
		b.atMost(name+"-time-of-empty", turns[0].over(turns[1]), 1.2)
		if err := empty.shutdown(); err != nil {
			return err
		}
	}
	return large.shutdown()
}

// multiply makes so many copies of the schema's one operation, a thousand in an
// intent, each with its journal. They are as settle would have written them a
// day ago: ids in the order of time, the digests of slots and resources random.
// The copies are made column by column from what settle wrote, so that this
// doesn't have to know its tables.
func multiply(ctx context.Context, pool *pgxpool.Pool, schema string, rows int) error {
	const (
		intent = "bench_id('intent', n / 1000)"
		random = "md5('%s' || n)::uuid"
	)
	copies := []struct {
		table, order string
		n            int
		new          map[string]string
	}{
		{"intent", "id", rows / perIntent, map[string]string{
			"id": "bench_id('intent', n)", "digest": "sha256(n::text::bytea)", "task": "'task-' || n"}},
		{"contract", "intent", rows / perIntent, map[string]string{"intent": "bench_id('intent', n)"}},
		{"operation", "id", rows, map[string]string{"id": "bench_id('operation', n)", "intent": intent,
			"slot": fmt.Sprintf(random, "slot"), "node": fmt.Sprintf(random, "node"), "resource_digest": fmt.Sprintf(random, "resource")}},
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, orderedID); err != nil {
			return err
		}
		for _, c := range copies {
			table := pgx.Identifier{schema, c.table}.Sanitize()
			values, err := columns(ctx, tx, table, c.new)
			if err != nil {
				return err
			}
			// Only one operation is there, with its intent and contract. It stands for
			// its own events.
			if _, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO %s SELECT %s FROM generate_series(0, %d) n
				CROSS JOIN LATERAL (SELECT * FROM %s ORDER BY %s OFFSET 0) one`, table, values, c.n-1, table, c.order)); err != nil {
				return fmt.Errorf("copy the rows of %s: %w", c.table, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range copies {
		if _, err := pool.Exec(ctx, "VACUUM ANALYZE "+pgx.Identifier{schema, c.table}.Sanitize()); err != nil {
			return err
		}
	}
	_, err = pool.Exec(ctx, "CHECKPOINT")
	return err
}

// orderedID makes UUIDs of version 7 that grow with n.
const orderedID = `CREATE FUNCTION pg_temp.bench_id(kind text, n bigint) RETURNS uuid LANGUAGE sql VOLATILE AS $$
	SELECT (lpad(to_hex(extract(epoch FROM now() - interval '1 day')::bigint * 1000 + n / 4096), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')
		|| '8' || substr(md5(kind || n), 1, 15))::uuid $$`

// columns lists a table's columns in order, with what is new in a copy.
func columns(ctx context.Context, tx pgx.Tx, table string, other map[string]string) (string, error) {
	rows, err := tx.Query(ctx, `SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, table)
	if err != nil {
		return "", err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = "one." + pgx.Identifier{name}.Sanitize()
		if expression, ok := other[name]; ok {
			values[i] = strings.ReplaceAll(expression, "bench_id", "pg_temp.bench_id")
			delete(other, name)
		}
	}
	for name := range other {
		return "", fmt.Errorf("%s has no column %q: the copies would not be as settle writes them", table, name)
	}
	return strings.Join(values, ", "), nil
}
