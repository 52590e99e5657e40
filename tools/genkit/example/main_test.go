package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const want = `The first process:
  model  refund {"cents":4210,"note":"late parcel","order_id":"A-1001"}
         {"id":"re_0001"}
  model  text_customer {"order_id":"A-1001","text":"We refund you."}
         {"sent_for":"A-1001"}
  model  The order is refunded, and the customer knows.

The second process:
  model  text_customer {"order_id":"A-1001","text":"You get your money back."}
         {"sent_for":"A-1001","settle_note":"[completed, replayed; operation …] text_customer was carried out before; nothing new was done for this call."}
  model  refund {"cents":2410,"note":"as agreed","order_id":"A-1001"}
         {"message":"[conflict; operation …] Not done: the same refund was asked for before with other arguments (different: cents), and it stands as it was. The new arguments were not sent to anybody. Operation … is completed ('re_0001').","operation":"…","status":"conflict"}
  model  It was refunded before.

What the second process's model was told first:
Done already for this task; don't do these again:
- refund (operation …): completed, "re_0001"
- text_customer (operation …): completed

refunds at the payment service: 1
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
