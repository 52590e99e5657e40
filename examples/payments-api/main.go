// Payments-api is a payments service of one's own behind settle: it takes
// payments under an Idempotency-Key, and its clients lose their answers.
//
//	go run ./examples/payments-api
//
// A client in Go, curl, and a client in JavaScript under node send payments
// through a front that loses the first answer to each key, so that each of them
// sends again. The card processor behind the service charges whatever it is
// asked to charge, as often as it is asked. The exit code is not zero if any
// order was charged twice, or not at all.
//
// It needs no services and leaves nothing behind: the ledger is a SQLite file in
// a temporary folder. Where curl or node isn't on the machine, it says so.
//
// To read the code, begin with service.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/settle-go/settle/store/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "payments-api:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-payments-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	ledger, err := sqlite.Open(ctx, filepath.Join(folder, "settle.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	cards := newProcessor()
	defer cards.server.Close()
	service, err := newService(ledger, cards)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.close()) }()

	c := clients{ctx: ctx, out: out, url: service.server.URL + "/payments", folder: folder}
	fmt.Fprintln(out, "The first answer to each key is lost on the way, so each client sends again.")
	var paid []string
	for _, send := range []func() (order string, err error){c.inGo, c.atOnce, c.withCurl, c.inJavaScript, c.inDoubt} {
		order, err := send()
		if err != nil {
			return err
		}
		if order != "" {
			paid = append(paid, order)
		}
	}
	if err := c.otherContent(); err != nil {
		return err
	}
	return verdict(out, paid, cards.charges())
}

// verdict counts at the card processor, which knows nothing of the ledger.
func verdict(out io.Writer, paid []string, charges []charge) error {
	times := map[string]int{}
	for _, c := range charges {
		times[c.Order]++
	}
	twice, never := 0, 0
	for _, order := range paid {
		if times[order] == 0 {
			never++
		}
	}
	for _, n := range times {
		if n > 1 {
			twice++
		}
	}
	fmt.Fprintf(out, "\n%d orders paid, %d charges on cards, %d orders charged twice, %d not at all\n", len(paid), len(charges), twice, never)
	if twice > 0 || never > 0 {
		return fmt.Errorf("%d orders were charged twice and %d not at all", twice, never)
	}
	return nil
}
