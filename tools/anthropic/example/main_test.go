package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const want = `The first process, a loop over messages:
  model  refund {"order_id":"A-1001","cents":4210,"note":"late parcel"}
         [completed; operation …] refund was carried out. What it made or changed is "re_0001".
         result: {"id":"re_0001"}
  model  The order is refunded.

The second process, the SDK's tool runner:
  brief  Done already for this task; don't do these again:
         - refund (operation …): completed, "re_0001"
  model  refund {"order_id":"A-1001","cents":4210,"note":"eight days late!"}
  model  order_courier {"order_id":"A-1001"}
  API    529 overloaded, after the tools ran
         [completed, replayed; operation …] refund was carried out before; nothing new was done for this call. What it made or changed is "re_0001".
         result: {"id":"re_0001"}
         [completed, replayed; operation …] order_courier was carried out before; nothing new was done for this call.
         Ordered as tk_0001.
  model  It was refunded before, and a courier is ordered.

refunds at the payment service: 1, couriers ordered: 1
`

func TestExample(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	got := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(out.String(), "…")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the example left %v behind, %v", left, err)
	}
}
