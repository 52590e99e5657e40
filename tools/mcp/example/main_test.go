package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const want = `A server of our own, with the guard before its tools:
  client refund {"order_id":"A-1001","cents":4210}
         (gives up: true)
  client refund {"order_id":"A-1001","cents":4210}
         [completed, replayed; operation …] refund was carried out before; nothing new was done for this call. What it made or changed is "re_0001".
         {"id":"re_0001"}
  client refund {"order_id":"A-1001","cents":2410}
         [conflict; operation …] Not done: the same refund was asked for before with other arguments (different: cents), and it stands as it was. The new arguments were not sent to anybody. Operation … is completed ("re_0001").
  client ticket {"order_id":"A-1001"}
         [completed; operation …] ticket was carried out. What it made or changed is "T-1".
         result: {"id":"T-1"}
refunds at the payment service: 1

A server of somebody else's, with its tools imported:
  agent  tracker_set_label {"issue":7,"label":"late"}
         [unknown; operation …] It is not known whether tracker_set_label happened: it may have been done, or not. The system looks for evidence, and asks a person if there is none. Don't call it again for this purpose, also not in other words, and don't tell anybody that it was done or that it failed. Go on with what doesn't depend on it.
calls at the server: 1
  agent  known-tracker_set_label {"issue":7,"label":"late"}
         [completed; operation …] known-tracker_set_label was carried out.
         result: {"content":[{"type":"text","text":"labelled"}]}
calls at the server: 2
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
