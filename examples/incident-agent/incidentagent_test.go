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
		if err := work(context.Background(), args, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestR13EachStepHappensOnceWhereverTheAgentDies(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	want := introduction + `INC-1: killed when the ticket was opened and nobody had heard of it
  dead: tickets 1, attachments 0, mails 0
  started again: completed
  then: tickets 1, attachments 1, mails 1

INC-2: killed between the ticket and the attachment
  dead: tickets 1, attachments 0, mails 0
  started again: completed
  then: tickets 1, attachments 1, mails 1

INC-3: killed when the log was attached and nobody had heard of it
  dead: tickets 1, attachments 1, mails 0
  started again: completed
  then: tickets 1, attachments 1, mails 1

INC-4: killed when the customer was told and nobody had heard of it
  dead: tickets 1, attachments 1, mails 1
  started again: completed
  then: tickets 1, attachments 1, mails 1

INC-4 was no incident: what was done is corrected, the last step first
  the correction: completed; the report, asked for again: completed, corrected: true

incident-agent: 4 incidents, 4 tickets (1 closed), 4 attachments (1 removed), 5 mails (1 of them a correction)
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
