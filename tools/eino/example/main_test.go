package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const want = `The first process:
  model  refund {"order_id":"A-1001","cents":4210,"note":"late parcel"}
  model  send_voucher {"customer":"C-7","text":"Sorry!"}
  tool   [completed; operation …] refund was carried out. What it made or changed is "re_0001".
         result: {"id":"re_0001"}
  asked  Send a voucher to C-7?

The second process, with the approval, which is delivered twice:
  tool   Sent to C-7.
  brief  Done already for this task; don't do these again:
         - refund (operation …): completed, "re_0001"
         - send_voucher (operation …): completed
  model  The order is refunded, and the voucher sent.
  tool   [completed, replayed; operation …] send_voucher was carried out before; nothing new was done for this call.
         result: "Sent to C-7."
  model  The order is refunded, and the voucher was sent before.

The third process, which begins anew:
  brief  Done already for this task; don't do these again:
         - refund (operation …): completed, "re_0001"
         - send_voucher (operation …): completed
  model  refund {"order_id":"A-1001","cents":2410,"note":"as agreed"}
  tool   [conflict; operation …] Not done: the same refund was asked for before with other arguments (different: cents), and it stands as it was. The new arguments were not sent to anybody. Operation … is completed ("re_0001").
  model  It was refunded before.

refunds at the payment service: 1, vouchers sent: 1
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
	const refund, voucher = "- refund (operation …): completed, \"re_0001\"\n", "- send_voucher (operation …): completed\n"
	got = strings.ReplaceAll(got, voucher+"         "+refund, refund+"         "+voucher)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("the example left %v behind, %v", left, err)
	}
}
