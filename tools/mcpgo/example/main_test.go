package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const want = `  client refund {"order_id":"A-1001","cents":4210}
         (gives up: true)
  client refund {"order_id":"A-1001","cents":4210}
         [completed, replayed; operation …] refund was carried out before; nothing new was done for this call. What it made or changed is "re_0001".
         {"id":"re_0001"}
  client book {"seat":12}
         Booked.
  client book {"seat":12}
         [completed, replayed; operation …] book was carried out before; nothing new was done for this call.
         Booked.
  client ticket {"order_id":"A-1001"}
         [completed; operation …] ticket was carried out. What it made or changed is "T-1".
         result: {"id":"T-1"}
refunds at the payment service: 1, seats booked: 1
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
