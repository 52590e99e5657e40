package main

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The program runs to its end and prints what docs/benchmarks.md says. Its turns
// are too short here for the figures to mean anything.
func TestEveryFigureIsPrinted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &bench{report: report{out: &out}, length: 50 * time.Millisecond, rounds: 1, rows: 3000, executions: 2000,
		cases: 400, hanging: 400, purged: 1500}
	t.Cleanup(func() {
		if err := b.postgres.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := b.run(t.Context(), ""); err != nil {
		t.Fatalf("%v; it had printed:\n%s", err, out.String())
	}
	line := regexp.MustCompile(`(?m)^ratio (\S+) (-?\d+\.\d{3})( at least \d+\.\d\d| at most \d+\.\d\d)?$`)
	var ratios []string
	for _, m := range line.FindAllStringSubmatch(out.String(), -1) {
		ratios = append(ratios, m[1]+m[3])
	}
	want := []string{
		"postgres/1/writes-of-floor",
		"postgres/1/of-floor at least 0.90",
		"postgres/32/writes-of-floor",
		"postgres/32/of-floor at least 0.80",
		"postgres/1/of-dbos",
		"postgres/32/of-dbos at least 1.80",
		"postgres/relay-of-bare at least 0.50",
		"postgres/together-of-one-by-one at least 3.00",
		"postgres/1/large-time-of-empty at most 1.20",
		"postgres/32/large-time-of-empty at most 1.20",
		"sqlite/32/of-bare-grouped at least 0.35",
		"sqlite/32/of-bare-two-commits at least 3.00",
		"postgres/queue/all-ms-longer at most 20.00",
		"postgres/queue/tenant-ms-longer at most 20.00",
		"postgres/queue/tool-ms-longer at most 20.00",
		"postgres/queue/owner-ms-longer at most 20.00",
		"postgres/queue/operator-of-tenant-ms-longer at most 20.00",
		"sqlite/queue/all-ms-longer at most 20.00",
		"sqlite/queue/tenant-ms-longer at most 20.00",
		"sqlite/queue/tool-ms-longer at most 20.00",
		"sqlite/queue/owner-ms-longer at most 20.00",
		"sqlite/queue/operator-of-tenant-ms-longer at most 20.00",
		"postgres/recovery-at-once-of-limit at most 1.00",
		"postgres/recovery-heap-growth at most 1.30",
		"postgres/recovery-crowd-before-others at most 0.05",
		"sqlite/recovery-at-once-of-limit at most 1.00",
		"sqlite/recovery-heap-growth at most 1.30",
		"sqlite/recovery-crowd-before-others at most 0.05",
		"postgres/purge-call-beside-of-alone at most 1.20",
		"postgres/purge-removed-of-all at least 1.00",
		"sqlite/purge-call-beside-of-alone at most 1.20",
		"sqlite/purge-removed-of-all at least 1.00",
		"executor/heap-growth at most 1.10",
	}
	if !slices.Equal(ratios, want) {
		t.Errorf("got the ratios\n%s\nwant\n%s", strings.Join(ratios, "\n"), strings.Join(want, "\n"))
	}
	for _, figure := range []string{"postgres/32/settle/allocations", "postgres/32/settle/cpu", "postgres/32/settle/stored", "sqlite/32/settle/stored", "executor/heap",
		"postgres/queue/tenant/long", "sqlite/recovery/rate", "sqlite/recovery/at-once", "postgres/purge/rate", "sqlite/purge/call-beside-p99"} {
		if !regexp.MustCompile(`(?m)^figure ` + figure + ` \d+\.\d \S+$`).MatchString(out.String()) {
			t.Errorf("the figure %s isn't printed", figure)
		}
	}
}

func TestAFigureThatFallsShortIsNamed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := report{out: &out}
	r.atLeast("met", 0.9, 0.9)
	r.atLeast("missed", 0.8999, 0.9)
	r.atLeast("unknown", math.NaN(), 0.9)
	r.atMost("below", 1.2, 1.2)
	r.atMost("above", 1.2001, 1.2)
	r.plain("free", 0)
	if want := []string{"missed", "unknown", "above"}; !slices.Equal(r.short, want) {
		t.Errorf("short are %v, want %v", r.short, want)
	}
}

func TestRatiosAreOfTheTurnsOfOneRound(t *testing.T) {
	t.Parallel()
	// The machine is ten times slower in the second round and all the same fair.
	settle, peer := measured{rates: []float64{90, 9, 88}}, measured{rates: []float64{100, 10, 100}}
	if got := settle.over(peer); got != 0.9 {
		t.Errorf("got %v, want 0.9", got)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the median is %v, want 2.5", got)
	}
}

func TestAnUnknownPartIsRefused(t *testing.T) {
	t.Parallel()
	b := &bench{report: report{out: &bytes.Buffer{}}}
	if err := b.run(t.Context(), "floor,flor"); err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("got %v, want an error that lists the parts", err)
	}
}
