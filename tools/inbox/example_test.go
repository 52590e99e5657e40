package inbox_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/tools/inbox"
)

// A shop restocks on an event, in the transaction that records it. The event comes
// twice, because the first answer was lost.
func ExampleOnce() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // this one is in memory
	if _, err := db.ExecContext(ctx, inbox.SQLite+"CREATE TABLE stock (item TEXT PRIMARY KEY, n INTEGER); INSERT INTO stock VALUES ('chair', 0)"); err != nil {
		panic(err)
	}
	receive := func(source, id string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		isNew, err := inbox.Once(ctx, tx, source, id)
		if err != nil || !isNew {
			fmt.Println("received before")
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE stock SET n = n + 1 WHERE item = 'chair'"); err != nil {
			return err
		}
		return tx.Commit()
	}
	for range 2 {
		if err := receive("https://desk.example/agents", "0199-1"); err != nil {
			panic(err) // and the sender is told that it wasn't received
		}
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT n FROM stock").Scan(&n); err != nil {
		panic(err)
	}
	fmt.Println(n, "chair")
	// Output:
	// received before
	// 1 chair
}

func ExampleOncePgx() {
	receive := func(ctx context.Context, db interface {
		Begin(ctx context.Context) (pgx.Tx, error) // *pgxpool.Pool or *pgx.Conn
	}, source, id string) error {
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			isNew, err := inbox.OncePgx(ctx, tx, source, id)
			if err != nil || !isNew {
				return err
			}
			_, err = tx.Exec(ctx, "UPDATE stock SET n = n + 1 WHERE item = 'chair'")
			return err
		})
	}
	_ = receive
}
