package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const want = `The first process:
  user   My parcel A-1001 is late.
  model  refund {"order_id":"A-1001","cents":4210,"note":"late parcel"}
         [completed; operation …] refund was carried out. What it made or changed is "re_0001".
         result: {"id":"re_0001"}
  model  text_customer {"order_id":"A-1001","text":"We refund you."}
         Sent to the customer of A-1001.
  The model's API fails, and the steps are lost.

The second process:
  user   Done already for this task; don't do these again:
         - refund (operation …): completed, "re_0001"
         - text_customer (operation …): completed

         My parcel A-1001 is late.
  model  refund {"order_id":"A-1001","cents":4210,"note":"eight days late!"}
         [completed, replayed; operation …] refund was carried out before; nothing new was done for this call. What it made or changed is "re_0001".
         result: {"id":"re_0001"}
  model  text_customer {"order_id":"A-1001","text":"Your refund is on its way."}
         [completed, replayed; operation …] text_customer was carried out before; nothing new was done for this call.
         result: "Sent to the customer of A-1001."
  model  It was refunded before, and the customer knows.

refunds at the payment service: 1, texts sent: 1
`

func TestExample(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(out.String(), "…"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the example left %v behind, %v", left, err)
	}
}
