package settle_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/sqlite"
)

var errSoldOut = errors.New("sold out")

// A tool whose whole effect is rows in the ledger's own database: they commit
// with the claim and the outcome, or not at all.
func ExampleTool_transactional() {
	type args struct {
		SKU   string `json:"sku"`
		Order string `json:"order" settle:"identity"`
	}
	type reserved struct {
		ID string `json:"id" settle:"resource"`
	}
	reserve := settle.Tool[args, reserved]{
		Name:     "reserve",
		Contract: settle.Contract{Class: settle.Transactional},
		Do: sqlite.InTx(func(ctx context.Context, tx *sql.Tx, op settle.Op, in args) (reserved, error) {
			free, err := tx.ExecContext(ctx, "UPDATE item SET free = free - 1 WHERE sku = ? AND free > 0", in.SKU)
			if err != nil {
				return reserved{}, err // rolled back; the key is free
			}
			if n, err := free.RowsAffected(); err != nil || n == 0 {
				return reserved{}, errors.Join(settle.Rejected(errSoldOut), err)
			}
			return reserved{ID: "hold for " + in.Order}, nil
		}),
	}

	x, free, end, err := openShop(reserve)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "shop-agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "basket-7", Goal: "checkout"})
	for _, order := range []string{"A-1", "A-1", "A-2"} {
		out, err := x.Execute(ctx, settle.Call{Tool: "reserve", Args: json.RawMessage(`{"sku":"chair","order":"` + order + `"}`)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(order, out.Status, out.Resource+out.Detail, "replayed:", out.Replayed, "free:", free())
	}

	// Output:
	// A-1 completed hold for A-1 replayed: false free: 0
	// A-1 completed hold for A-1 replayed: true free: 0
	// A-2 failed sold out replayed: false free: 0
}

// openShop opens a ledger with a table of items beside it.
func openShop(tools ...settle.AnyTool) (x *settle.Executor, free func() int, end func(), err error) {
	folder, err := os.MkdirTemp("", "settle-shop-")
	if err != nil {
		return nil, nil, nil, err
	}
	file := filepath.Join(folder, "shop.db")
	ledger, err := sqlite.Open(context.Background(), file)
	if err != nil {
		return nil, nil, nil, err
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, nil, nil, err
	}
	if _, err = db.Exec("CREATE TABLE item (sku TEXT PRIMARY KEY, free INTEGER); INSERT INTO item VALUES ('chair', 1)"); err != nil {
		return nil, nil, nil, err
	}
	if x, err = settle.New(ledger, settle.WithTools(tools...)); err != nil {
		return nil, nil, nil, err
	}
	free = func() (n int) {
		if err := db.QueryRow("SELECT free FROM item").Scan(&n); err != nil {
			return -1
		}
		return n
	}
	return x, free, func() {
		_ = errors.Join(x.Shutdown(context.Background()), db.Close(), ledger.Close(), os.RemoveAll(folder))
	}, nil
}

// A handler publishes an event with its recorded return, and the library one for
// every outcome; Run would relay them in a loop.
func ExampleWithOutbox() {
	type args struct {
		Order string `json:"order" settle:"identity"`
	}
	ship := settle.Tool[args, string]{
		Name:     "ship",
		Contract: settle.Contract{Class: settle.Transactional},
		Do: func(_ context.Context, op settle.Op, in args) (string, error) {
			return "shipped", op.Publish(settle.Event{Type: "order.shipped", Data: map[string]string{"order": in.Order}})
		},
	}
	print := settle.SinkFunc(func(_ context.Context, d settle.Delivery) error {
		if d.Type == "order.shipped" {
			fmt.Println(d.Type, string(d.Data), d.Task, "delivery", d.Number)
			return nil
		}
		var data settle.EventData
		if err := json.Unmarshal(d.Data, &data); err != nil {
			return err
		}
		fmt.Println(d.Type, data.Tool, data.Status)
		return nil
	})

	folder, err := os.MkdirTemp("", "settle-outbox-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	ledger, err := sqlite.Open(context.Background(), filepath.Join(folder, "ledger.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ledger.Close()
	x, err := settle.New(ledger, settle.WithTools(ship), settle.WithOutbox(print))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "shop-agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "basket-7", Goal: "checkout"})
	if _, err := x.Execute(ctx, settle.Call{Tool: "ship", Args: json.RawMessage(`{"order":"A-1"}`)}); err != nil {
		fmt.Println(err)
		return
	}
	for {
		report, err := x.Relay(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if report.Fetched == 0 {
			break
		}
	}

	// Output:
	// order.shipped {"order":"A-1"} basket-7 delivery 1
	// settle.settled ship completed
}
