package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/internal/farside"
	"github.com/settle-go/settle/store"
)

// rows are all operations of the ledger, in the order of their claims.
func (w *world) rows() []store.Entry {
	w.Helper()
	rows, err := w.ledger.List(context.Background(), store.Filter{})
	if err != nil {
		w.Fatal(err)
	}
	return rows
}

// rowsOf are the operations of a tool.
func (w *world) rowsOf(tool string) []store.Entry {
	w.Helper()
	return slices.DeleteFunc(w.rows(), func(e store.Entry) bool { return e.Tool != tool })
}

// only is the tool's one operation.
func (w *world) only(tool string) store.Operation {
	w.Helper()
	rows := w.rowsOf(tool)
	if len(rows) != 1 {
		w.Fatalf("%s has %d operations, want one", tool, len(rows))
	}
	return rows[0].Operation
}

// row is the operation that an outcome names.
func (w *world) row(out settle.Outcome) store.Operation {
	w.Helper()
	for _, e := range w.rows() {
		if e.ID.String() == out.Operation {
			return e.Operation
		}
	}
	w.Fatalf("the ledger has no operation %q; the outcome was %s", out.Operation, out.ForModel())
	panic("unreachable")
}

func (w *world) events(id uuid.UUID) []store.Event {
	w.Helper()
	events, err := w.ledger.Events(context.Background(), id, 0)
	if err != nil {
		w.Fatal(err)
	}
	return events
}

// kinds are the kinds of an operation's events, in order.
func (w *world) kinds(o store.Operation) []string {
	w.Helper()
	var kinds []string
	for _, e := range w.events(o.ID) {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// openCases counts what waits for a person (R39).
func (w *world) openCases() int {
	w.Helper()
	n, err := w.at.openCases(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// state requires the state of an operation's row.
func (w *world) state(o store.Operation, want store.State) {
	w.Helper()
	if o.State != want {
		w.Fatalf("the operation of %s is %s (%s), want %s", o.Tool, o.State, o.Reason, want)
	}
}

// unchanged requires a row to be as it was, to the byte.
func (w *world) unchanged(before, now store.Operation) {
	w.Helper()
	before.Read, now.Read = time.Time{}, time.Time{}
	if !reflect.DeepEqual(before, now) {
		w.Errorf("the row has changed:\n%+v\n%+v", before, now)
	}
}

// sql changes the ledger's tables behind its back.
func (w *world) sql(statement string) {
	w.Helper()
	if err := w.at.exec(context.Background(), statement); err != nil {
		w.Fatal(err)
	}
}

// want requires an outcome of a first execution, or of a call that did nothing.
func (w *world) want(out settle.Outcome, status settle.Status) settle.Outcome {
	w.Helper()
	if out.Status != status || out.Replayed {
		w.Fatalf("want %s, got %s (reason %q)", status, out.ForModel(), out.Reason)
	}
	return out
}

// wantReplay requires the replay of a recorded outcome.
func (w *world) wantReplay(out settle.Outcome, status settle.Status) settle.Outcome {
	w.Helper()
	if out.Status != status || !out.Replayed || !out.Recorded {
		w.Fatalf("want a replay of %s, got %s (reason %q)", status, out.ForModel(), out.Reason)
	}
	w.says(out.ForModel(), string(status)+", replayed")
	return out
}

// wantReason requires the code beside the status.
func (w *world) wantReason(out settle.Outcome, reason string) {
	w.Helper()
	if out.Reason != reason {
		w.Fatalf("%s has the reason %q, want %q", out.Status, out.Reason, reason)
	}
}

// wantRelated requires that an outcome points at exactly these operations.
func (w *world) wantRelated(out settle.Outcome, operations ...string) {
	w.Helper()
	var got []string
	for _, r := range out.Related {
		got = append(got, r.Operation)
	}
	slices.Sort(got)
	slices.Sort(operations)
	if !slices.Equal(got, operations) {
		w.Fatalf("%s names the operations %v, want %v", out.Status, got, operations)
	}
}

// says requires phrases in a text; hides forbids them.
func (w *world) says(text string, phrases ...string) {
	w.Helper()
	for _, p := range phrases {
		if !strings.Contains(text, p) {
			w.Errorf("a text doesn't say %q: %s", p, text)
		}
	}
}

func (w *world) hides(text string, phrases ...string) {
	w.Helper()
	for _, p := range phrases {
		if strings.Contains(text, p) {
			w.Errorf("a text says %q: %s", p, text)
		}
	}
}

// effects requires what truly happened on a far side, as a count.
func (w *world) effects(s *farside.Server, want int) {
	w.Helper()
	if got := s.Effects(); len(got) != want {
		w.Fatalf("the far side has %d effects, want %d: %+v", len(got), want, got)
	}
}

// lands waits until a far side has acted on a request that nobody waits for any
// more.
func (w *world) lands(s *farside.Server, effects int) {
	w.Helper()
	w.comes("an effect", func() bool { return len(s.Effects()) == effects })
}

// settles waits until the tool's one operation has come to a state by itself.
func (w *world) settles(tool string, want store.State) {
	w.Helper()
	w.comes("the state "+want.String(), func() bool { return w.only(tool).State == want })
}

// comes waits for what no channel tells of.
func (w *world) comes(what string, there func() bool) {
	w.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !there(); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("%s didn't come", what)
		}
	}
}

// writes counts the requests that came to act.
func (w *world) writes(s *farside.Server) (n int) {
	for _, r := range s.Requests() {
		if r.Method != "GET" {
			n++
		}
	}
	return n
}

// equal compares two values.
func equal[T comparable](w *world, what string, got, want T) {
	w.Helper()
	if got != want {
		w.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// args encodes arguments.
func args(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // the arguments of these tests are strings and numbers
	}
	return raw
}

// notFound requires that a reference leads nowhere.
func (p *process) notFound(operation string) {
	p.Helper()
	if out, err := p.x.Get(p.ctx, operation); !errors.Is(err, store.ErrNotFound) {
		p.Fatalf("want not found, got %q and the error %v", out.Status, err)
	}
}
