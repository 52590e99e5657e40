package sqltool_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/sqltool"
)

type Reserve struct {
	Item string `json:"item" settle:"identity"`
	N    int    `json:"n"`
}

type Reserved struct {
	ID   string `json:"id" settle:"resource"`
	Free int    `json:"free"`
}

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "sqltool")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "settle.db")
	ledger, err := sqlite.Open(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	defer ledger.Close()
	shop, err := sql.Open("sqlite", path) // the business tables stand beside the ledger's
	if err != nil {
		log.Fatal(err)
	}
	defer shop.Close()
	if _, err := shop.Exec("CREATE TABLE item (id TEXT PRIMARY KEY, free INTEGER); INSERT INTO item VALUES ('chair', 3)"); err != nil {
		log.Fatal(err)
	}

	reserve, err := sqltool.New[Reserve, Reserved](sqltool.Spec{
		Name: "reserve", Description: "Reserve an item.",
		Checks: []sqltool.Check{{
			SQL: "SELECT 1 FROM item WHERE id = :item", Otherwise: "there is no such item",
		}},
		Statements: []sqltool.Statement{{
			SQL:       "UPDATE item SET free = free - :n WHERE id = :item AND free >= :n RETURNING id, free",
			Otherwise: "there are not so many left", Result: true,
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ex, err := settle.New(ledger, settle.WithTools(reserve))
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Shutdown(ctx)

	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "furnish"})
	for _, args := range []string{`{"item":"chair","n":2}`, `{"item":"chair","n":2}`, `{"item":"lamp","n":1}`} {
		out, err := ex.Execute(ctx, settle.Call{Tool: "reserve", Args: []byte(args)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(out.Status, out.Replayed, string(out.Result)+out.Detail)
	}
	// Output:
	// completed false {"id":"chair","free":1}
	// completed true {"id":"chair","free":1}
	// failed false there is no such item
}
