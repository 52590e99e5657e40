package main

import (
	"os"
	"strings"
	"testing"
)

// Without settle each situation goes wrong or is one that a coarser guard would
// get wrong; with settle none does.
func TestNoSituationGoesWrongWithSettle(t *testing.T) {
	var table strings.Builder
	wrong, err := report(t.Context(), &table, t.TempDir(), situations())
	if err != nil {
		t.Fatal(err)
	}
	if wrong != 0 {
		t.Errorf("%d situations went wrong:\n%s", wrong, table.String())
	}
	if !strings.Contains(table.String(), "repeated") {
		t.Errorf("nothing was repeated without settle, so that the table shows nothing:\n%s", table.String())
	}
}

func TestTheReadmesTableIsTheOneThatIsPrinted(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if _, err := report(t.Context(), &table, t.TempDir(), situations()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), table.String()) {
		t.Errorf("README.md has another table than `make duplicates` prints:\n%s", table.String())
	}
}

func TestRepeatedAndSwallowedEffectsAreCountedApart(t *testing.T) {
	duplicates, swallowed := effects{"a": 3, "b": 1}.beside(effects{"a": 1, "b": 2, "c": 1})
	if duplicates != 2 || swallowed != 2 {
		t.Errorf("got %d and %d, want 2 and 2", duplicates, swallowed)
	}
}
