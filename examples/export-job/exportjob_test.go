package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/settle-go/settle/examples/child"
)

func TestMain(m *testing.M) {
	if args, is := child.Args(); is {
		if err := serve(context.Background(), args, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestR53EachStopLeavesOneJob(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	want := introduction + `
killed when the request has come and nothing is written
  the service is dead; jobs: 0
  answered completed, replayed: false
  jobs: 1

killed inside the transaction, before the job's row
  the service is dead; jobs: 0
  answered completed, replayed: false
  jobs: 1

killed inside the transaction, after the job's row and before COMMIT
  the service is dead; jobs: 0
  answered completed, replayed: false
  jobs: 1

killed after COMMIT, before the answer
  the service is dead; jobs: 1
  answered completed, replayed: true
  jobs: 1

export-job: 4 intents, 0 with another number of jobs than one, 4 events
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
