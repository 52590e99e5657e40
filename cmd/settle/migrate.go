package main

import (
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
)

func (a *app) migrate() *cobra.Command {
	var check, sql bool
	c := &cobra.Command{Use: "migrate", Short: "Make the ledger, or bring its schema up to date",
		Long: "Make the ledger where there is none, and bring its schema up to date. No other\ncommand changes a schema. A program that knows only an older schema refuses the\nledger afterwards: upgrade the workers with the schema.",
		Args: arguments(0)}
	c.Flags().BoolVar(&check, "check", false, "only say whether the schema is the one of this program")
	c.Flags().BoolVar(&sql, "print", false, "print the SQL instead, for those who run it themselves")
	c.MarkFlagsMutuallyExclusive("check", "print")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if sql {
			return a.printMigrations()
		}
		return a.onLedger(c.Context(), ifElse(check, reads, migrates), func(d *desk) error {
			if a.json {
				a.encode(a.out, map[string]any{"ledger": d.place.kind(), "current": true})
				return nil
			}
			fmt.Fprintf(a.out, "The schema of the %s ledger is up to date.\n", d.place.kind())
			return nil
		})
	}
	return c
}

// printMigrations prints what migrate would run, from the first step on.
func (a *app) printMigrations() error {
	at, err := a.place()
	if err != nil {
		return err
	}
	steps, err := migrations(at)
	if err != nil {
		return err
	}
	if a.json {
		a.encode(a.out, map[string]any{"ledger": at.kind(), "migrations": steps})
		return nil
	}
	for _, s := range steps {
		fmt.Fprintf(a.out, "-- %s\n%s\n", s.Name, s.SQL)
	}
	return nil
}

type step struct {
	Name string `json:"name"`
	SQL  string `json:"sql"`
}

func migrations(at place) ([]step, error) {
	var steps []step
	if at.file == "" {
		all, err := postgres.Migrations(postgres.WithSchema(at.schema))
		for _, m := range all {
			steps = append(steps, step{m.Name, m.SQL})
		}
		return steps, err
	}
	files := sqlite.Migrations()
	paths, err := fs.Glob(files, "*.sql")
	for _, path := range paths {
		content, failed := fs.ReadFile(files, path)
		if failed != nil {
			return nil, failed
		}
		steps = append(steps, step{path, string(content)})
	}
	return steps, err
}

// states is how many operations are in each state, in the order of the states.
func states(count map[string]int) string {
	text := ""
	for _, s := range store.States() {
		if n := count[s.String()]; n > 0 {
			text += ifElse(text == "", "", ", ") + fmt.Sprintf("%d %s", n, s)
		}
	}
	return firstOf(text, "none")
}
