package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/idempotency"
)

// callerOf stands for a service's authentication.
func callerOf(r *http.Request) (settle.Principal, error) {
	if r.Header.Get("Authorization") == "" {
		return settle.Principal{}, errors.New("no token")
	}
	return settle.Principal{Tenant: "acme", Subject: "shop-7"}, nil
}

// exampleService guards a handler on a ledger in a temporary folder.
func exampleService(handler http.HandlerFunc) (url string, end func(), err error) {
	folder, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		return "", nil, err
	}
	ledger, err := sqlite.Open(context.Background(), filepath.Join(folder, "settle.db"))
	if err != nil {
		return "", nil, err
	}
	x, err := settle.New(ledger, settle.WithGuarded(idempotency.Declare("POST /payments", settle.Contract{NoLookup: true})))
	if err != nil {
		return "", nil, err
	}
	guard, err := idempotency.New(x, idempotency.Options{Caller: callerOf})
	if err != nil {
		return "", nil, err
	}
	pay, err := guard.Protect("POST /payments", handler)
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", pay)
	mux.Handle("GET /idempotency", guard.Status())
	server := httptest.NewServer(mux)
	return server.URL, func() {
		server.Close()
		x.Shutdown(context.Background()) //nolint:errcheck // nothing runs
		ledger.Close()                   //nolint:errcheck // as above
		os.RemoveAll(folder)             //nolint:errcheck // as above
	}, nil
}

// say sends a payment and prints the answer.
func say(client *http.Client, url, key, body string) {
	r, err := http.NewRequest(http.MethodPost, url+"/payments", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("Authorization", "Bearer shop-7")
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := client.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem") {
		text = nil
	}
	fmt.Println(resp.StatusCode, string(text), "replayed:", idempotency.Replayed(resp))
}

// A handler behind a guard runs once for a key.
func ExampleGuard_Protect() {
	n := 0
	url, end, err := exampleService(func(w http.ResponseWriter, r *http.Request) {
		n++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", n)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()
	say(http.DefaultClient, url, `"8e03978e"`, `{"amount":"42.10"}`)
	say(http.DefaultClient, url, `"8e03978e"`, `{"amount":"42.10"}`)
	say(http.DefaultClient, url, `"8e03978e"`, `{"amount":"99.00"}`)
	say(http.DefaultClient, url, ``, `{"amount":"42.10"}`)
	// Output:
	// 201 payment 1 replayed: false
	// 201 payment 1 replayed: true
	// 422  replayed: false
	// 400  replayed: false
}

// A handler that can say that nothing happened leaves the key free.
func ExampleNothingHappened() {
	open := false
	url, end, err := exampleService(func(w http.ResponseWriter, r *http.Request) {
		if !open {
			idempotency.NothingHappened(r.Context())
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "paid")
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()
	say(http.DefaultClient, url, "k-1", `{}`)
	open = true
	say(http.DefaultClient, url, "k-1", `{}`)
	// Output:
	// 503  replayed: false
	// 200 paid replayed: false
}

// A client whose first answer is lost gets the recorded one.
func ExampleTransport() {
	url, end, err := exampleService(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "paid") })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()
	client := &http.Client{Transport: &idempotency.Transport{Base: &losing{RoundTripper: http.DefaultTransport}}}
	say(client, url, "", `{"amount":"42.10"}`)
	// Output: 200 paid replayed: true
}
