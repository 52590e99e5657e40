package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/settle-go/settle/store"
)

// table is the state table once more, written down from the protocol. It is the
// second list on purpose: a change of the first must be meant.
const table = `
>awaiting_approval >running >retryable
awaiting_approval>awaiting_approval awaiting_approval>retryable awaiting_approval>failed awaiting_approval>abandoned
running>running running>retryable running>unknown running>manual running>completed running>failed running>superseded
retryable>retryable retryable>running retryable>awaiting_approval retryable>manual
retryable>completed retryable>failed retryable>superseded retryable>abandoned
unknown>unknown unknown>running unknown>retryable unknown>manual unknown>completed unknown>failed unknown>superseded
manual>manual manual>retryable manual>unknown manual>completed manual>failed manual>superseded manual>abandoned
completed>completed failed>failed failed>manual superseded>superseded abandoned>abandoned abandoned>manual`

func TestR20TheTableHasTheseMovesAndNoOther(t *testing.T) {
	t.Parallel()
	wanted := strings.Fields(table)
	var got []string
	for _, m := range store.Moves() {
		got = append(got, m.String())
		if !m.Allowed() {
			t.Errorf("the table has %q and doesn't allow it", m)
		}
	}
	slices.Sort(wanted)
	slices.Sort(got)
	if !slices.Equal(got, wanted) {
		t.Errorf("got the moves %v, want %v", got, wanted)
	}
	for _, from := range append(store.States(), 0) {
		for _, to := range append(store.States(), 0) {
			m := store.Move{From: from, To: to}
			if m.Allowed() != slices.Contains(wanted, m.String()) {
				t.Errorf("allowed is %v for %q", m.Allowed(), m)
			}
		}
	}
}

func TestR20MovesComeInTheSameOrder(t *testing.T) {
	t.Parallel()
	first := store.Moves()
	if !slices.Equal(store.Moves(), first) {
		t.Error("two lists of moves differ")
	}
	first[0] = store.Move{}
	if store.Moves()[0] == first[0] {
		t.Error("a caller can write into the table")
	}
}

func TestR20SettledStatesAreLeftForAPersonOnly(t *testing.T) {
	t.Parallel()
	for _, m := range store.Moves() {
		if m.From.Settled() && m.To != m.From && m.To != store.Manual {
			t.Errorf("%q leaves a settled state", m)
		}
	}
}

func TestR39StatesOfPeopleNeedACase(t *testing.T) {
	t.Parallel()
	for _, s := range store.States() {
		if wanted := s == store.Manual || s == store.AwaitingApproval; s.NeedsCase() != wanted {
			t.Errorf("%s needs a case: %v", s, s.NeedsCase())
		}
	}
}

func TestNamesAreReadBack(t *testing.T) {
	t.Parallel()
	for _, s := range store.States() {
		if got, err := store.ParseState(s.String()); err != nil || got != s {
			t.Errorf("%s is read as %s (%v)", s, got, err)
		}
	}
	for c := store.Unsafe; c <= store.Transactional; c++ {
		if got, err := store.ParseClass(c.String()); err != nil || got != c {
			t.Errorf("%s is read as %s (%v)", c, got, err)
		}
	}
	for _, m := range store.Moves() {
		if got, err := store.ParseMove(m.String()); err != nil || got != m {
			t.Errorf("%s is read as %s (%v)", m, got, err)
		}
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Running", "running ", "done", "state(3)", "class(9)", "completed>running", ">", "running"} {
		if _, err := store.ParseMove(name); err == nil {
			t.Errorf("%q was read as a move", name)
		}
		if _, err := store.ParseClass(name); err == nil {
			t.Errorf("%q was read as a class", name)
		}
		if s, err := store.ParseState(name); err == nil && name != "running" {
			t.Errorf("%q was read as %s", name, s)
		}
	}
}

func TestNumbersWithoutANameSayTheirNumber(t *testing.T) {
	t.Parallel()
	for got, wanted := range map[string]string{
		store.State(42).String(): "state(42)",
		store.Class(42).String(): "class(42)",
		store.State(0).String():  "",
	} {
		if got != wanted {
			t.Errorf("got %q, want %q", got, wanted)
		}
	}
}

func TestR1TheZeroClassIsUnsafe(t *testing.T) {
	t.Parallel()
	var c store.Class
	if c != store.Unsafe || c.String() != "unsafe" {
		t.Errorf("the zero class is %s", c)
	}
}
