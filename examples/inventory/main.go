// Inventory is a shop with three chairs and ten customers, each served by an agent
// of its own in one of two processes, each asking twice because an answer may have
// been lost. Then somebody changes their mind.
//
//	go run ./examples/inventory
//
// It needs no services and leaves nothing behind. The stock, the reservations and
// the ledger are in one SQLite file; the two processes are real. The exit code is
// not zero if a chair was given away twice or got lost.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/settle-go/settle/examples/child"
)

var customers = []string{"ann", "ben", "cleo", "dan", "eva", "finn", "gus", "hana", "ida", "jon"}

const chairs = 3

func main() {
	err := errors.New("usage: go run ./examples/inventory")
	if args, is := child.Args(); is {
		err = serve(context.Background(), args, os.Stdout)
	} else if len(os.Args) == 1 {
		err = run(context.Background(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "inventory:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "settle-inventory-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "shop.db")
	s, err := openShop(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err := s.stock(ctx, chairs); err != nil {
		return err
	}

	fmt.Fprintf(out, "%d customers want one of %d chairs, all at once, and each asks twice.\n", len(customers), chairs)
	answers, err := contest(ctx, file)
	if err != nil {
		return err
	}
	if err := s.tell(ctx, out, answers); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nOne of them changes their mind, and the first who went away empty-handed asks once more.")
	return s.changeMind(ctx, out, answers)
}

// contest lets two processes serve the customers and returns what each was told.
func contest(ctx context.Context, file string) (map[string][]string, error) {
	half := len(customers) / 2
	var shops []*child.Process
	for _, own := range [][]string{customers[:half], customers[half:]} {
		p, err := child.Start(ctx, append([]string{file}, own...)...)
		if err != nil {
			return nil, err
		}
		shops = append(shops, p)
	}
	answers := map[string][]string{}
	for _, p := range shops {
		err := p.Finish(func(line string) {
			customer, answer, _ := strings.Cut(line, " ")
			answers[customer] = append(answers[customer], answer)
		})
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// tell counts in the tables and in the answers, and compares.
func (s *shop) tell(ctx context.Context, out io.Writer, answers map[string][]string) error {
	got, refused := 0, 0
	for _, c := range customers {
		told := answers[c]
		switch {
		case len(told) != 2 || told[0] != told[1]:
			return fmt.Errorf("%s was told %q", c, told)
		case told[0] == "completed":
			got++
		case told[0] == "failed: sold out":
			refused++
		}
	}
	fmt.Fprintf(out, "  told that they have one: %d, told that it is sold out: %d\n", got, refused)
	return s.show(ctx, out, got)
}

// show prints stock and reservations, which have to add up.
func (s *shop) show(ctx context.Context, out io.Writer, want int) error {
	var free, held int
	err := errors.Join(s.db.QueryRowContext(ctx, "SELECT free FROM item").Scan(&free),
		s.db.QueryRowContext(ctx, "SELECT count(*) FROM reservation").Scan(&held))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  in the tables: %d reserved, %d free\n", held, free)
	if held+free != chairs || held != want {
		return errors.New("a chair was given away twice or got lost")
	}
	return nil
}

// changeMind undoes one reservation, after which another customer gets the chair.
func (s *shop) changeMind(ctx context.Context, out io.Writer, answers map[string][]string) error {
	var happy, empty string
	for _, c := range customers {
		if answers[c][0] == "completed" && happy == "" {
			happy = c
		} else if answers[c][0] != "completed" && empty == "" {
			empty = c
		}
	}
	undone, err := s.giveBack(ctx, happy)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  the correction: %s\n", undone)
	if err := s.show(ctx, out, chairs-1); err != nil {
		return err
	}
	// The refused call stays refused, however often it is delivered; a new wish is a new task.
	again, err := s.reserve(ctx, empty, "basket")
	if err != nil {
		return err
	}
	anew, err := s.reserve(ctx, empty, "basket-2")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  the old call again: %s; a new basket: %s\n", again, anew)
	if again != "failed: sold out" || anew != "completed" {
		return errors.New("the chair that was given back went the wrong way")
	}
	return s.show(ctx, out, chairs)
}
