package httptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/httptool"
)

type Refund struct {
	OrderID string `json:"order_id" settle:"identity"`
	Cents   int    `json:"cents"`
}

type Refunded struct {
	ID string `json:"id" settle:"resource"`
}

// payments is an API that loses the answer to the first refund.
func payments() *httptest.Server {
	made := map[string]Refunded{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /refunds", func(w http.ResponseWriter, r *http.Request) {
		made[r.Header.Get("Idempotency-Key")] = Refunded{ID: fmt.Sprintf("re_%d", len(made)+1)}
		panic(http.ErrAbortHandler) // it is done, and the connection is cut
	})
	mux.HandleFunc("GET /refunds", func(w http.ResponseWriter, r *http.Request) {
		found := []Refunded{}
		if refund, ok := made[r.URL.Query().Get("key")]; ok {
			found = append(found, refund)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"refunds": found})
	})
	return httptest.NewServer(mux)
}

func Example() {
	ctx := context.Background()
	far := payments()
	defer far.Close()
	folder, err := os.MkdirTemp("", "httptool")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ledger, err := sqlite.Open(ctx, filepath.Join(folder, "settle.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer ledger.Close()

	api, err := httptool.NewClient(far.URL, httptool.AllowAddresses(netip.MustParsePrefix("127.0.0.0/8")))
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	refund, err := httptool.New[Refund, Refunded](api, httptool.Spec{
		Name: "refund", Description: "Refund an order.",
		Contract: settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour},
		Request:  httptool.Request{Method: "POST", Path: "/refunds"},
		Lookup: &httptool.Lookup{
			Request: httptool.Request{Path: "/refunds", Query: map[string]string{"key": "{settle_key}"}},
			List:    "refunds",
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ex, err := settle.New(ledger, settle.WithTools(refund))
	if err != nil {
		log.Fatal(err)
	}
	defer ex.Shutdown(ctx)

	ctx = settle.WithPrincipal(ctx, settle.Principal{Tenant: "acme", Subject: "agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	for range 2 {
		out, err := ex.Execute(ctx, settle.Call{Tool: "refund", Args: []byte(`{"order_id":"A-1001","cents":4210}`)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(out.Status, out.Replayed, out.Resource)
	}
	// Output:
	// completed false re_1
	// completed true re_1
}
