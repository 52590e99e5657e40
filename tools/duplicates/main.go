// Duplicates plays, with the real agent frameworks and a scripted model, the
// situations in which they run a tool twice or swallow a call that was meant,
// each without and with settle, and prints how often the effects happened.
//
//	make duplicates
//
// It exits with 1 where the effects with settle are not the wanted ones.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
)

func main() {
	folder, err := os.MkdirTemp("", "settle-duplicates-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "duplicates:", err)
		os.Exit(1)
	}
	wrong, err := report(context.Background(), os.Stdout, folder, situations())
	if removed := os.RemoveAll(folder); err == nil {
		err = removed
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "duplicates:", err)
		os.Exit(1)
	case wrong > 0:
		fmt.Fprintf(os.Stderr, "duplicates: in %d situations the effects with settle are not the wanted ones\n", wrong)
		os.Exit(1)
	}
}

// situations lists all of them, by framework. Each framework has a file.
func situations() []situation {
	return slices.Concat(rawLoop(), anthropicRunner(), eino(), adkRunner(), genkits(), mcpSDK(), mcpGo(), langchaingo(), fantasyLoop())
}

// report plays the situations and writes the table; it returns in how many of
// them the effects with settle differ from the wanted ones.
func report(ctx context.Context, out io.Writer, folder string, all []situation) (wrong int, err error) {
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| framework\t| situation\t| wanted\t| without\t| with\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|")
	for i, s := range all {
		without, err := s.in(ctx, folder, false)
		if err != nil {
			return 0, err
		}
		own := filepath.Join(folder, strconv.Itoa(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return 0, err
		}
		with, err := s.in(ctx, own, true)
		if err != nil {
			return 0, err
		}
		if duplicates, swallowed := with.beside(s.wanted); duplicates+swallowed > 0 {
			wrong++
		}
		fmt.Fprintf(table, "| %s\t| %s\t| %d\t| %s\t| %s\t|\n", s.framework, s.name, s.wanted.total(), cell(without, s.wanted), cell(with, s.wanted))
	}
	return wrong, table.Flush()
}

// cell tells how many effects there were, and what is wrong with them.
func cell(happened, wanted effects) string {
	said := strconv.Itoa(happened.total())
	duplicates, swallowed := happened.beside(wanted)
	if duplicates > 0 {
		said += fmt.Sprintf(", %d repeated", duplicates)
	}
	if swallowed > 0 {
		said += fmt.Sprintf(", %d swallowed", swallowed)
	}
	return said
}
