package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const want = `The first process, over chat completions:
  model  refund {"order_id":"A-1001","cents":4210,"note":"late parcel"}
         [completed; operation …] refund was carried out. What it made or changed is "re_0001".
         result: {"id":"re_0001"}
  model  text_customer {"order_id":"A-1001","text":"We refund you."}
         Sent to the customer of A-1001.
  model  The order is refunded, and the customer knows.

The second process, over responses:
  brief  Done already for this task; don't do these again:
         - refund (operation …): completed, "re_0001"
         - text_customer (operation …): completed
  model  refund {"order_id":"A-1001","cents":4210,"note":"eight days late!"}
         [completed, replayed; operation …] refund was carried out before; nothing new was done for this call. What it made or changed is "re_0001".
         result: {"id":"re_0001"}
  model  refund {"order_id":"A-1001","cents":2410,"note":"as agreed"}
         [conflict; operation …] Not done: the same refund was asked for before with other arguments (different: cents), and it stands as it was. The new arguments were not sent to anybody. Operation … is completed ("re_0001").
  model  It was refunded before.

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
	// The calls of a turn are claimed side by side, and the brief lists them as they came.
	const refund, text = "- refund (operation …): completed, \"re_0001\"\n         ", "- text_customer (operation …): completed\n"
	got = strings.Replace(got, strings.TrimRight(text, "\n")+"\n         "+strings.TrimRight(refund, " "), refund+text, 1)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the example left %v behind, %v", left, err)
	}
}
