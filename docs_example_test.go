package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store/memory"
)

// The examples that docs/contracts.md quotes. Their far sides are small, and
// live in memory as the ledger does: settle.Volatile says that this is meant.

// docsContext is a context with a principal and a task.
func docsContext(task string) context.Context {
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "support-agent"})
	return settle.WithTask(ctx, settle.Task{ID: task, Goal: "late-parcel"})
}

var errLost = errors.New("connection reset before the answer came")

// A far side that deduplicates on a key, and can be asked by it.
func Example_keyed() {
	refunds := map[string]string{} // the provider's: from key to refund id

	type args struct {
		OrderID string `json:"order_id" settle:"identity"`
		Cents   int64  `json:"cents"`
		Note    string `json:"note,omitempty" settle:"ignore"`
	}
	type refunded struct {
		ID string `json:"id" settle:"resource"`
	}
	refund := settle.Tool[args, refunded]{
		Name:        "refund",
		Description: "Refund an order.",
		Contract:    settle.Contract{Class: settle.Keyed, KeyWindow: 24 * time.Hour},
		Do: func(ctx context.Context, op settle.Op, in args) (refunded, error) {
			refunds[op.Key()] = fmt.Sprintf("re_%d", len(refunds)+1)
			return refunded{}, errLost // it was done, and nobody heard of it
		},
		Lookup: func(ctx context.Context, q settle.Query[refunded], in args) (settle.Evidence, error) {
			id, found := refunds[q.Key()]
			if !found {
				return q.NotHappened(), nil
			}
			return q.Happened(id, refunded{ID: id}), nil
		},
	}

	x, err := settle.New(memory.New(), settle.WithTools(refund), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := settle.WithPrincipal(context.Background(), settle.Principal{Tenant: "acme", Subject: "support-agent"})
	ctx = settle.WithTask(ctx, settle.Task{ID: "case-42", Goal: "late-parcel"})
	for _, call := range []settle.Call{
		{Tool: "refund", Args: json.RawMessage(`{"order_id":"A-7","cents":4200}`), CallID: "call_1"},
		{Tool: "refund", Args: json.RawMessage(`{"cents":4.2e3,"order_id":"A-7","note":"again"}`), CallID: "call_9"},
		{Tool: "refund", Args: json.RawMessage(`{"order_id":"A-7","cents":2400}`), CallID: "call_10"},
	} {
		out, err := x.Execute(ctx, call)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out.Status, out.Resource, "replayed:", out.Replayed, "differs in:", out.Fields)
	}
	fmt.Println("refunds made:", len(refunds))
	// Output:
	// completed re_1 replayed: false differs in: []
	// completed re_1 replayed: true differs in: []
	// conflict  replayed: false differs in: [cents]
	// refunds made: 1
}

// sendOnce makes one request, at most once, and says what is known where it
// fails. What it can't prove stays a plain error: an unknown outcome.
func sendOnce(client *http.Client, req *http.Request) ([]byte, error) {
	var asked, connected atomic.Bool
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}))
	req.GetBody = nil // else net/http may send the body again by itself
	resp, err := client.Do(req)
	if err != nil {
		if asked.Load() && !connected.Load() {
			return nil, settle.NotSent(err) // no connection, no byte: DNS, dial, TLS
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err // the answer is cut off, whatever its status was
	}
	return body, meaning(resp)
}

// meaning says what a status proves, for a far side that documents that it
// throttles before it acts.
func meaning(resp *http.Response) error {
	err := fmt.Errorf("the far side answered %d", resp.StatusCode)
	switch status := resp.StatusCode; {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusTooManyRequests:
		seconds, parse := strconv.Atoi(resp.Header.Get("Retry-After"))
		if parse != nil {
			return err
		}
		return settle.NotSent(err, settle.RetryAfter(time.Duration(seconds)*time.Second))
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		return err
	case status >= 400 && status < 500:
		return settle.Rejected(err)
	}
	return err // 1xx, 3xx and 5xx prove nothing
}

// What an answer, or none, means: not sent, rejected, or unknown.
func Example_errors() {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		w.Header().Set("Retry-After", "30")
		w.Header().Set("Location", "/201")
		w.WriteHeader(status)
	}))
	defer far.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirected POST becomes a GET, whose 200 says nothing
	}}
	type args struct {
		URL string `json:"url" settle:"identity"`
	}
	post := settle.Tool[args, struct{}]{
		Name:     "post",
		Contract: settle.Contract{NoLookup: true}, // Unsafe
		Do: func(ctx context.Context, _ settle.Op, in args) (struct{}, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, strings.NewReader("{}"))
			if err != nil {
				return struct{}{}, settle.NotSent(err)
			}
			_, err = sendOnce(client, req)
			return struct{}{}, err
		},
	}
	x, err := settle.New(memory.New(), settle.WithTools(post), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, url := range []string{
		gone.URL + "/", far.URL + "/201", far.URL + "/422", far.URL + "/429", far.URL + "/409",
		far.URL + "/503", far.URL + "/303", far.URL + "/lost",
	} {
		raw, err := json.Marshal(args{URL: url})
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := x.Execute(docsContext("errors"), settle.Call{Tool: "post", Args: raw})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(url[strings.LastIndex(url, "/"):], out.Status, "wait:", !out.NotBefore.IsZero())
	}
	// Output:
	// / not_done wait: false
	// /201 completed wait: false
	// /422 failed wait: false
	// /429 not_done wait: true
	// /409 unknown wait: false
	// /503 unknown wait: false
	// /303 unknown wait: false
	// /lost unknown wait: false
}

// A far side without keys that can be asked by what is written in its records.
func Example_attribute() {
	type charge struct {
		ID, Order string
		Cents     int64
		Created   time.Time
	}
	var charges []charge // the far side's

	type args struct {
		OrderID string `json:"order_id" settle:"identity"`
		Cents   int64  `json:"cents"`
	}
	type charged struct {
		ID string `json:"id" settle:"resource"`
	}
	tool := settle.Tool[args, charged]{
		Name:     "charge_card",
		Contract: settle.Contract{Unique: true, Guidance: "Compare with the acquirer's daily report."}, // Unsafe
		Do: func(ctx context.Context, op settle.Op, in args) (charged, error) {
			cents := in.Cents
			if in.OrderID == "B-2" {
				cents *= 100 // somebody's mistake at the far side
			}
			charges = append(charges, charge{fmt.Sprintf("ch_%d", len(charges)+1), in.OrderID, cents, time.Now()})
			return charged{}, errLost
		},
		Lookup: func(ctx context.Context, q settle.Query[charged], in args) (settle.Evidence, error) {
			var found []charge
			for _, c := range charges {
				if c.Order == in.OrderID {
					found = append(found, c)
				}
			}
			switch len(found) {
			case 0:
				return q.NotHappened(), nil
			case 1:
				c := found[0]
				return q.Happened(c.ID, charged{ID: c.ID}).
					Comparing(args{OrderID: c.Order, Cents: c.Cents}).
					ByAttribute(c.Created), nil
			}
			return q.Several("more than one charge for the order"), nil
		},
	}

	x, err := settle.New(memory.New(), settle.WithTools(tool), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, order := range []string{"B-1", "B-2"} {
		out, err := x.Execute(docsContext("case-43"), settle.Call{Tool: "charge_card", Args: json.RawMessage(`{"order_id":"` + order + `","cents":900}`)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(order, out.Status, out.Reason, out.Resource)
	}
	// Output:
	// B-1 completed  ch_1
	// B-2 manual evidence_differs
}

// Writes of a desired state, the older of which comes again.
func Example_idempotent() {
	labels := map[int64]string{} // the far side's

	type args struct {
		Issue int64  `json:"issue" settle:"identity"`
		Label string `json:"label"`
	}
	tool := settle.Tool[args, struct{}]{
		Name:     "set_label",
		Contract: settle.Contract{Class: settle.Idempotent},
		Do: func(ctx context.Context, op settle.Op, in args) (struct{}, error) {
			if labels[in.Issue] == in.Label {
				return struct{}{}, settle.AlreadySo(fmt.Sprint("issue ", in.Issue))
			}
			labels[in.Issue] = in.Label
			return struct{}{}, nil
		},
	}

	x, err := settle.New(memory.New(), settle.WithTools(tool), settle.Volatile())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, label := range []string{"bug", "urgent", "bug"} {
		out, err := x.Execute(docsContext("case-44"), settle.Call{Tool: "set_label", Args: json.RawMessage(`{"issue":7,"label":"` + label + `"}`)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(label, out.Status, "stands:", labels[7])
	}
	// The third was meant after all: the host says so with the next occurrence.
	out, err := x.Execute(docsContext("case-44"), settle.Call{Tool: "set_label", Args: json.RawMessage(`{"issue":7,"label":"bug"}`), Occurrence: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("bug", out.Status, "stands:", labels[7])
	// Output:
	// bug completed stands: bug
	// urgent completed stands: urgent
	// bug superseded stands: urgent
	// bug completed stands: bug
}
