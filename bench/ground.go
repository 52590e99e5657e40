package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
)

// ground is an empty ledger of its own, in one of the databases, that can be
// filled quickly.
type ground struct {
	store.Ledger
	filler
	// database is "postgres" or "sqlite".
	database string
}

// onEach measures the same on PostgreSQL and on SQLite. open makes a ledger with
// a name of its own.
func (b *bench) onEach(ctx context.Context, conns int, measure func(database string, open func(name string) (*ground, error)) error) (err error) {
	pool, err := b.postgres.pool(ctx, conns)
	if err != nil {
		return err
	}
	if err := measure("postgres", func(name string) (*ground, error) { return onPostgres(ctx, pool, name) }); err != nil {
		return fmt.Errorf("on PostgreSQL: %w", err)
	}
	folder, err := os.MkdirTemp("", "settle-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	var opened []*ground
	err = measure("sqlite", func(name string) (*ground, error) {
		g, err := onSQLite(ctx, filepath.Join(folder, name+".db"))
		if err == nil {
			opened = append(opened, g)
		}
		return g, err
	})
	for _, g := range opened {
		err = errors.Join(err, g.Close())
	}
	if err != nil {
		return fmt.Errorf("on SQLite: %w", err)
	}
	return nil
}

func onPostgres(ctx context.Context, pool *pgxpool.Pool, schema string) (*ground, error) {
	ledger, err := postgres.New(ctx, pool, postgres.WithSchema(schema))
	if err != nil {
		return nil, err
	}
	return &ground{ledger, postgresFiller(pool, schema), "postgres"}, nil
}

func postgresFiller(pool *pgxpool.Pool, schema string) filler {
	table := func(name string) string { return pgx.Identifier{schema, name}.Sanitize() }
	exec := func(ctx context.Context, sql string) error {
		_, err := pool.Exec(ctx, sql)
		return err
	}
	return filler{
		table: table, began: time.Now(),
		columns: func(ctx context.Context, name string) ([]string, error) {
			rows, err := pool.Query(ctx, `SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, table(name))
			if err != nil {
				return nil, err
			}
			return pgx.CollectRows(rows, pgx.RowTo[string])
		},
		copy: func(ctx context.Context, name, condition, values string, first, last int) error {
			return exec(ctx, fmt.Sprintf(`INSERT INTO %s SELECT %s FROM generate_series(%d::bigint, %d) n
				CROSS JOIN LATERAL (SELECT * FROM %s WHERE %s OFFSET 0) one`, table(name), values, first, last, table(name), condition))
		},
		finish: func(ctx context.Context) error {
			for _, name := range []string{"intent", "contract", "operation", "event", "case"} {
				if err := exec(ctx, "VACUUM ANALYZE "+table(name)); err != nil {
					return err
				}
			}
			return exec(ctx, "CHECKPOINT")
		},
		key:  func(id string) string { return "'" + id + "'::uuid" },
		uuid: func(hex string) string { return "(" + hex + ")::uuid" },
		hex: func(n string) [2]string {
			return [2]string{"lpad(to_hex(" + n + "), 12, '0')", "lpad(to_hex(" + n + "), 3, '0')"}
		},
		random16: "gen_random_uuid()", random32: "sha256(gen_random_uuid()::text::bytea)",
		at:    func(t time.Time) string { return "'" + t.UTC().Format(time.RFC3339Nano) + "'::timestamptz" },
		later: func(instant, micros string) string { return instant + " + " + micros + " * interval '1 microsecond'" },
		span:  func(d time.Duration) string { return fmt.Sprint(d.Nanoseconds()) },
	}
}

func onSQLite(ctx context.Context, path string) (*ground, error) {
	ledger, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return &ground{ledger, sqliteFiller(path), "sqlite"}, nil
}

func sqliteFiller(path string) filler {
	table := func(name string) string { return "settle_" + name }
	// Each time on a connection of its own, which is closed before settle goes on.
	with := func(ctx context.Context, do func(*sql.Conn) error) error {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			return err
		}
		conn, err := db.Conn(ctx)
		if err != nil {
			return errors.Join(err, db.Close())
		}
		return errors.Join(do(conn), conn.Close(), db.Close())
	}
	return filler{
		table: table, began: time.Now(), numbered: "seq",
		columns: func(ctx context.Context, name string) (names []string, err error) {
			err = with(ctx, func(conn *sql.Conn) error {
				var all string
				err := conn.QueryRowContext(ctx, `SELECT group_concat(name) FROM pragma_table_info(?)`, table(name)).Scan(&all)
				names = strings.Split(all, ",")
				return err
			})
			return names, err
		},
		copy: func(ctx context.Context, name, condition, values string, first, last int) error {
			return with(ctx, func(conn *sql.Conn) error {
				for _, text := range []string{
					"PRAGMA busy_timeout = 5000",
					fmt.Sprintf("CREATE TEMP TABLE one AS SELECT * FROM %s WHERE %s", table(name), condition),
					fmt.Sprintf(`WITH RECURSIVE copies (n) AS (SELECT %d UNION ALL SELECT n + 1 FROM copies WHERE n < %d)
						INSERT INTO %s SELECT %s FROM copies, one`, first, last, table(name), values),
				} {
					if _, err := conn.ExecContext(ctx, text); err != nil {
						return err
					}
				}
				return nil
			})
		},
		finish: func(ctx context.Context) error {
			return with(ctx, func(conn *sql.Conn) error {
				_, err := conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
				return err
			})
		},
		key:  func(id string) string { return "x'" + strings.ReplaceAll(id, "-", "") + "'" },
		uuid: func(hex string) string { return "unhex(" + hex + ")" },
		hex: func(n string) [2]string {
			return [2]string{"printf('%012x', " + n + ")", "printf('%03x', " + n + ")"}
		},
		random16: "randomblob(16)", random32: "randomblob(32)",
		at:    func(t time.Time) string { return fmt.Sprint(t.UnixMicro()) },
		later: func(instant, micros string) string { return instant + " + " + micros },
		span:  func(d time.Duration) string { return fmt.Sprint(d.Microseconds()) },
	}
}
