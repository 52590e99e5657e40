package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store/postgres"
)

// server is the PostgreSQL server of the run, started when it is first needed:
// private, with fsync on, and with the settings that PostgreSQL comes with.
type server struct {
	cluster *pgtest.Cluster
	pools   []*pgxpool.Pool
}

// pool opens a pool with so many connections, in pgx's default exec mode.
func (s *server) pool(ctx context.Context, conns int) (*pgxpool.Pool, error) {
	if s.cluster == nil {
		cluster, err := pgtest.Start(ctx, pgtest.Durable(), pgtest.Setting("shared_buffers", "128MB"))
		if err != nil {
			return nil, err
		}
		s.cluster = cluster
	}
	config, err := pgxpool.ParseConfig(s.cluster.DSN())
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = int32(conns), int32(conns)
	// Not the run's context: it may end before the pool does.
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	s.pools = append(s.pools, pool)
	return pool, nil
}

// stop ends the server and removes its data.
func (s *server) stop() error {
	for _, pool := range s.pools {
		pool.Close()
	}
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close()
}

// payer runs payments on a ledger in a schema of its own, through the pool.
func (s *server) payer(ctx context.Context, pool *pgxpool.Pool, schema string, workers int) (*payer, error) {
	ledger, err := postgres.New(ctx, pool, postgres.WithSchema(schema))
	if err != nil {
		return nil, err
	}
	return newPayer(ledger, workers)
}

// sizeOf is what the schema's tables take on the disk, with their indexes.
func sizeOf(ctx context.Context, pool *pgxpool.Pool, schema string) (int64, error) {
	var bytes int64
	err := pool.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace($1)`, pgx.Identifier{schema}.Sanitize()).Scan(&bytes)
	if err != nil {
		return 0, fmt.Errorf("ask for the size of the tables: %w", err)
	}
	if bytes == 0 {
		return 0, errors.New("the schema has no tables")
	}
	return bytes, nil
}
