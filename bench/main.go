// Command bench measures settle beside what it is compared with, and says
// whether it keeps up: it ends with 1 where a figure falls short of its bar and
// with 2 where it couldn't measure. docs/benchmarks.md says what each figure
// means.
//
// Speeds are ratios of two contenders that take turns within one run, on one
// server or disk, so that a slow or busy machine bears on both alike.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// part is something that can be measured on its own.
type part struct {
	name, what string
	measure    func(*bench, context.Context) error
}

var parts = []part{
	{"floor", "settle on PostgreSQL beside the least that a safe call needs", (*bench).floor},
	{"dbos", "settle on PostgreSQL beside DBOS Transact for Go", (*bench).dbos},
	{"outbox", "the outbox's relay beside a bare loop", (*bench).outbox},
	{"turn", "the calls of one model turn together and one by one", (*bench).turn},
	{"million", "a ledger with a million operations beside an empty one", (*bench).million},
	{"sqlite", "settle on SQLite beside bare writers", (*bench).sqlite},
	{"queue", "the first page of a long queue beside that of a short one", (*bench).queue},
	{"recovery", "what very many hanging operations ask of recovery", (*bench).recovery},
	{"purge", "executions beside a purge", (*bench).purge},
	{"memory", "the executor's memory, and what it costs without a database", (*bench).memory},
}

// bench is one run of the program.
type bench struct {
	report
	postgres server
	// turn and rounds say how long each contender runs at a time, and how often.
	length time.Duration
	rounds int
	// rows is the size of the large ledger, executions how often the executor
	// runs where its memory is watched.
	rows, executions int
	// cases is the length of the long queue.
	cases int
	// hanging is how many operations a crash leaves running.
	hanging int
	// purged is how many operations a purge removes.
	purged int
}

func main() {
	b := &bench{report: report{out: os.Stdout}}
	flag.DurationVar(&b.length, "turn", 700*time.Millisecond, "how long each contender runs at a time")
	flag.IntVar(&b.rounds, "rounds", 11, "how many turns each contender gets")
	flag.IntVar(&b.rows, "rows", 1_000_000, "operations in the large ledger")
	flag.IntVar(&b.executions, "executions", 400_000, "operations run to watch the executor's memory")
	flag.IntVar(&b.cases, "cases", 100_000, "open cases in the long queue")
	flag.IntVar(&b.hanging, "hanging", 100_000, "operations that a crash leaves running")
	flag.IntVar(&b.purged, "purged", 1_000_000, "operations that a purge removes")
	cpu := flag.String("cpuprofile", "", "where to write a profile of the processor time")
	allocs := flag.String("allocprofile", "", "where to write a profile of the allocations")
	chosen := flag.String("parts", "", "what to measure, separated by commas (default: everything)\n"+describe())
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := profiled(*cpu, *allocs, func() error { return b.run(ctx, *chosen) })
	err = errors.Join(err, b.postgres.stop())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case len(b.short) > 0:
		fmt.Fprintln(os.Stderr, "bench: short of the bar:", strings.Join(b.short, ", "))
		os.Exit(1)
	}
}

func describe() string {
	var lines []string
	for _, p := range parts {
		lines = append(lines, fmt.Sprintf("  %-8s %s", p.name, p.what))
	}
	return strings.Join(lines, "\n")
}

// run measures the chosen parts, all of them for "".
func (b *bench) run(ctx context.Context, chosen string) error {
	names := strings.FieldsFunc(chosen, func(r rune) bool { return r == ',' })
	for _, name := range names {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q; the parts are:\n%s", name, describe())
		}
	}
	for _, p := range parts {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		b.heading(p)
		if err := p.measure(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// profiled writes the profiles that are asked for.
func profiled(cpu, allocs string, do func() error) error {
	if cpu != "" {
		file, err := os.Create(cpu)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if err := do(); err != nil || allocs == "" {
		return err
	}
	file, err := os.Create(allocs)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
