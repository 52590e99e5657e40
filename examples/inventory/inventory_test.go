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

func TestR53TheLastChairIsGivenAwayOnce(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = `10 customers want one of 3 chairs, all at once, and each asks twice.
  told that they have one: 3, told that it is sold out: 7
  in the tables: 3 reserved, 0 free

One of them changes their mind, and the first who went away empty-handed asks once more.
  the correction: completed
  in the tables: 2 reserved, 1 free
  the old call again: failed: sold out; a new basket: completed
  in the tables: 3 reserved, 0 free
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
