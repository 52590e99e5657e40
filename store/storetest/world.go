package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// world is one test's ledger, with the steps that tests are made of. A step
// that fails ends the test.
type world struct {
	*testing.T
	World
	ctx context.Context

	mu      sync.Mutex
	tenants map[uuid.UUID]string // tenant's name by intent
}

func newWorld(t *testing.T, w World) *world {
	return &world{T: t, World: w, ctx: t.Context(), tenants: map[uuid.UUID]string{}}
}

// intent records a new intent.
func (w *world) intent() store.Intent {
	w.Helper()
	return w.propose(NewIntent())
}

// intentOf records the intent of a tenant's task.
func (w *world) intentOf(tenant, task string) store.Intent {
	w.Helper()
	return w.propose(IntentOf(tenant, "agent", task, "refund"))
}

func (w *world) propose(proposed store.Intent) store.Intent {
	w.Helper()
	i, err := w.Ledger.Intent(w.ctx, proposed)
	w.must(err, "Intent")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tenants[i.ID] = i.TenantName
	return i
}

// claim makes one claim.
func (w *world) claim(c store.Claim) store.Claimed {
	w.Helper()
	return w.claimAll(c)[0]
}

// claimBy makes one claim through a handle, for callers that race.
func (w *world) claimBy(l store.Ledger, c store.Claim) (store.Claimed, error) {
	answers, err := l.Claim(w.ctx, c)
	if err == nil && len(answers) != 1 {
		err = fmt.Errorf("got %d answers to one claim", len(answers))
	}
	if err != nil {
		return store.Claimed{}, err
	}
	return answers[0], nil
}

func (w *world) claimAll(claims ...store.Claim) []store.Claimed {
	w.Helper()
	answers, err := w.Ledger.Claim(w.ctx, claims...)
	w.must(err, "Claim")
	if len(answers) != len(claims) {
		w.Fatalf("Claim gave %d answers to %d claims", len(answers), len(claims))
	}
	return answers
}

// won makes a claim that must be won.
func (w *world) won(c store.Claim) store.Operation {
	w.Helper()
	answer := w.claim(c)
	w.wantWon(answer)
	return answer.Operation
}

// record claims a new operation of the intent.
func (w *world) record(i store.Intent, edits ...func(*store.Operation)) store.Operation {
	w.Helper()
	return w.won(Claim(Operation(i, edits...)))
}

// standing brings a new operation of the intent into a state.
func (w *world) standing(i store.Intent, in store.State, edits ...func(*store.Operation)) store.Operation {
	w.Helper()
	switch in {
	case store.Running, store.AwaitingApproval:
		return w.record(i, append(edits, In(in))...)
	case store.Abandoned:
		return w.apply(Change(w.standing(i, store.Manual, edits...), in))
	case store.Completed:
		return w.apply(Completion(w.record(i, edits...), uuid.NewString()))
	}
	return w.apply(Change(w.record(i, edits...), in))
}

// apply makes a change that must be made.
func (w *world) apply(c store.Change) store.Operation {
	w.Helper()
	o, err := w.Ledger.Apply(w.ctx, c)
	w.must(err, "Apply")
	return o
}

// refused makes a change that the ledger must refuse with an error of type E,
// after which the row is as it was.
func refused[E error](w *world, c store.Change) E {
	w.Helper()
	before := w.read(c.Of)
	_, err := w.Ledger.Apply(w.ctx, c)
	target := wantError[E](w, err)
	if !store.Unwritten(err) {
		w.Errorf("Unwritten doesn't hold for %q", err)
	}
	w.unchanged(before)
	return target
}

// wantError requires an error of type E.
func wantError[E error](w *world, err error) E {
	w.Helper()
	var target E
	if !errors.As(err, &target) {
		w.Fatalf("got the error %v, want a %T", err, target)
	}
	return target
}

// read gets the row as it is now.
func (w *world) read(o store.Operation) store.Operation {
	w.Helper()
	e, err := w.Ledger.Get(w.ctx, w.tenantOf(o), o.ID)
	w.must(err, "Get")
	return e.Operation
}

func (w *world) tenantOf(o store.Operation) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tenants[o.Intent]
}

// journal gets all events of the operation.
func (w *world) journal(o store.Operation) []store.Event {
	w.Helper()
	events, err := w.Ledger.Events(w.ctx, o.ID, 0)
	w.must(err, "Events")
	return events
}

// event gets one event of the operation.
func (w *world) event(o store.Operation, seq int) store.Event {
	w.Helper()
	return nth(w, "events", w.journal(o), seq-1)
}

// nth is an element that must be there.
func nth[T any](w *world, name string, of []T, n int) T {
	w.Helper()
	if n < 0 || n >= len(of) {
		w.Fatalf("got %d %s, want number %d", len(of), name, n+1)
	}
	return of[n]
}

// verify requires the operation's chain to be whole.
func (w *world) verify(o store.Operation) {
	w.Helper()
	if err := store.VerifyChain(w.read(o), w.journal(o)); err != nil {
		w.Error(err)
	}
}

// absent requires that the operation was never recorded.
func (w *world) absent(o store.Operation) {
	w.Helper()
	if _, err := w.Ledger.Get(w.ctx, w.tenantOf(o), o.ID); !errors.Is(err, store.ErrNotFound) {
		w.Errorf("an operation that wasn't claimed is there: Get gave the error %v", err)
	}
	if events := w.journal(o); len(events) > 0 {
		w.Errorf("an operation that wasn't claimed has %d events", len(events))
	}
}

// unchanged requires the row to be as it was and its journal to end with it.
func (w *world) unchanged(before store.Operation) {
	w.Helper()
	w.wantRow(w.read(before), before)
	if n := len(w.journal(before)); n != before.Version {
		w.Errorf("the row is at version %d and the journal has %d events", before.Version, n)
	}
}

// take takes due work, without bounds but for those of edits.
func (w *world) take(edits ...func(*store.Take)) []store.Entry {
	w.Helper()
	t := store.Take{Lease: Lease, Limit: 100, Each: 100}
	for _, edit := range edits {
		edit(&t)
	}
	entries, err := w.Ledger.Take(w.ctx, t)
	w.must(err, "Take")
	return entries
}

func (w *world) renew(lease time.Duration, held ...store.Held) []store.Held {
	w.Helper()
	lost, err := w.Ledger.Renew(w.ctx, lease, held...)
	w.must(err, "Renew")
	return lost
}

func (w *world) age(d time.Duration) {
	w.Helper()
	w.Age(w.T, d)
}

func (w *world) must(err error, call string) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", call, err)
	}
}

func (w *world) wantWon(a store.Claimed) {
	w.Helper()
	if !a.Won || a.Refused != store.NotRefused {
		w.Fatalf("the claim wasn't won: refused %d, %d rows in its slot, %d others", a.Refused, len(a.Slot), len(a.Others))
	}
	if a.Operation.Read.IsZero() {
		w.Error("the row that was won says nothing on when it was read")
	}
}

// wantRecorded requires an answer that wasn't won, with the rows in its slot.
func (w *world) wantRecorded(a store.Claimed, rows ...store.Operation) {
	w.Helper()
	w.wantRefused(a, store.NotRefused)
	w.wantSlot(a, rows...)
}

func (w *world) wantSlot(a store.Claimed, rows ...store.Operation) {
	w.Helper()
	if len(a.Slot) != len(rows) {
		w.Fatalf("the slot has %d rows, want %d", len(a.Slot), len(rows))
	}
	for i := range rows {
		w.wantRow(a.Slot[i], rows[i])
	}
}

// wantRefused requires an answer that wasn't won, and why.
func (w *world) wantRefused(a store.Claimed, want store.Refusal, others ...store.Operation) {
	w.Helper()
	if a.Won {
		w.Fatal("the claim was won")
	}
	if a.Refused != want {
		w.Fatalf("the claim was refused with %d, want %d", a.Refused, want)
	}
	if want != store.NotRefused {
		w.wantOthers(a.Others, others...)
	}
}

// wantOthers compares entries with rows, in any order.
func (w *world) wantOthers(got []store.Entry, want ...store.Operation) {
	w.Helper()
	if len(got) != len(want) {
		w.Fatalf("got %d other operations, want %d", len(got), len(want))
	}
	for _, row := range want {
		found := false
		for _, e := range got {
			if e.ID != row.ID {
				continue
			}
			found = true
			w.wantRow(e.Operation, row)
			if e.Of.ID != row.Intent {
				w.Error("an entry comes with another intent than its own")
			}
		}
		if !found {
			w.Errorf("operation %s isn't among the others", row.ID)
		}
	}
}

// wantIDs compares the operations of entries, in order.
func (w *world) wantIDs(got []store.Entry, want ...store.Operation) {
	w.Helper()
	var ids, wanted []uuid.UUID
	for _, e := range got {
		ids = append(ids, e.ID)
	}
	for _, o := range want {
		wanted = append(wanted, o.ID)
	}
	if !reflect.DeepEqual(ids, wanted) {
		w.Fatalf("got the operations %v, want %v", ids, wanted)
	}
}

// wantRow compares all stored fields of two operations.
func (w *world) wantRow(got, want store.Operation) {
	w.Helper()
	if got.Read.IsZero() {
		w.Errorf("operation %s says nothing on when it was read", got.ID)
	}
	for _, d := range differences(got, want) {
		w.Errorf("operation %s: %s", got.ID, d)
	}
}

// wantInstant compares two instants of the ledger.
func (w *world) wantInstant(name string, got, want time.Time) {
	w.Helper()
	if !got.Equal(want) {
		w.Errorf("%s is %v, want %v (%v off)", name, got, want, got.Sub(want))
	}
}

// want compares two values.
func want[T comparable](w *world, name string, got, want T) {
	w.Helper()
	if got != want {
		w.Errorf("%s is %s, want %s", name, short(got), short(want))
	}
}
