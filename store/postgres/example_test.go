package postgres_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store/postgres"
)

// Opening a ledger on a server, which makes its schema.
func Example() {
	ctx := context.Background()
	server, err := pgtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	pool, err := pgxpool.New(ctx, server.DSN())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	ledger, err := postgres.New(ctx, pool)
	if err != nil {
		log.Fatal(err)
	}
	defer ledger.Close()

	fmt.Println(ledger.Info().Name, "durable:", ledger.Info().Durable)
	// Output: postgres durable: true
}

// A deployment that changes the schema as a step of its own, before the
// programs start without the right to do so.
func ExampleMigrate() {
	ctx := context.Background()
	server, err := pgtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	pool, err := pgxpool.New(ctx, server.DSN())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	_, err = postgres.New(ctx, pool, postgres.WithoutMigration())
	fmt.Println(err)
	if err := postgres.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	_, err = postgres.New(ctx, pool, postgres.WithoutMigration())
	fmt.Println(err)
	// Output:
	// store: the ledger has schema version 0 and this program needs 1: run the migrations
	// <nil>
}

// The SQL for those who migrate with a tool of their own.
func ExampleMigrations() {
	steps, err := postgres.Migrations(postgres.WithSchema("ledger"))
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range steps {
		fmt.Println(step.Version, step.Name)
	}
	// Output: 1 00001_ledger
}
