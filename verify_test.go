package settle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/memory"
)

type cardArgs struct {
	Order string `json:"order" settle:"identity"`
	Card  string `json:"card" settle:"secret"`
}

func TestVerifyNamesWhatContractsGiveUp(t *testing.T) {
	t.Parallel()
	charge := settle.Tool[cardArgs, deskPaid]{Name: "charge", Contract: settle.Contract{NoLookup: true, AcceptDuplicates: "cheap"},
		Do: func(context.Context, settle.Op, cardArgs) (deskPaid, error) { return deskPaid{"c1"}, nil }}
	codec, err := settle.NewAESCodec("k", map[string][]byte{"k": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		options []settle.Option
		want    []string
	}{
		{"no tools", nil, []string{"ledger"}},
		{"a tool", []settle.Option{settle.WithTools(charge)}, []string{"ledger", "AcceptDuplicates", "Secret"}},
		{"a codec", []settle.Option{settle.WithTools(charge), settle.WithCodec(codec)}, []string{"ledger", "AcceptDuplicates"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			x, err := settle.New(memory.New(), append(tc.options, settle.Volatile())...)
			if err != nil {
				t.Fatal(err)
			}
			found, err := x.Verify(context.Background())
			if err != nil || len(found) != len(tc.want) {
				t.Fatalf("found %v, error %v; want %v", found, err, tc.want)
			}
			for i, f := range found {
				if f.Setting != tc.want[i] || f.Problem == "" || f.Advice == "" || (f.Tool == "") != (i == 0) {
					t.Errorf("finding %d is %+v, want one on %s", i, f, tc.want[i])
				}
			}
		})
	}
}

// forged is a ledger whose journals somebody has worked on.
type forged struct {
	store.Ledger
	forge func([]store.Event) []store.Event
	// moves is called between the reads of row and journal.
	moves func()
}

func (l *forged) Events(ctx context.Context, operation uuid.UUID, after int) ([]store.Event, error) {
	if l.moves != nil {
		l.moves()
	}
	events, err := l.Ledger.Events(ctx, operation, after)
	if err == nil && l.forge != nil {
		events = l.forge(events)
	}
	return events, err
}

func TestR57VerifyChainsFindsWhatWasChanged(t *testing.T) {
	t.Parallel()
	var fail error
	ledger := memory.New()
	tool := payTool(&fail)
	on := func(l store.Ledger) *settle.Executor {
		x, err := settle.New(l, settle.WithTools(tool), settle.Volatile())
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	ctx := scope(context.Background())
	var last string
	for _, order := range []string{"a", "b", "c"} {
		out, err := on(ledger).Execute(ctx, deskpayCall(order))
		if err != nil {
			t.Fatal(err)
		}
		last = out.Operation
	}
	for _, tc := range []struct {
		name  string
		forge func([]store.Event) []store.Event
		wrong int
	}{
		{"nothing", nil, 0},
		{"an actor", func(e []store.Event) []store.Event { e[0].Actor = "nobody"; return e }, 3},
		{"the last event is gone", func(e []store.Event) []store.Event { return e[:len(e)-1] }, 3},
		{"one of them is empty", func(e []store.Event) []store.Event {
			if e[0].Operation.String() == last {
				return nil
			}
			return e
		}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := on(&forged{Ledger: ledger, forge: tc.forge})
			pages := 0
			r, err := x.VerifyChains(ctx, "", func(settle.ChainReport) { pages++ })
			if err != nil || r.Operations != 3 || len(r.Problems) != tc.wrong || pages == 0 || r.After != last {
				t.Errorf("verified %+v in %d pages, error %v; want %d problems", r, pages, err, tc.wrong)
			}
			one, err := x.VerifyChain(ctx, last)
			if err != nil || one.Operations != 1 || len(one.Problems) != min(tc.wrong, 1) {
				t.Errorf("verified %+v of the last one, error %v", one, err)
			}
		})
	}
	if _, err := on(ledger).VerifyChain(ctx, uuid.NewString()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an operation that isn't there: %v", err)
	}
}

func TestR57VerifyChainsWaitsForARowThatMoves(t *testing.T) {
	t.Parallel()
	fail := errors.New("reset")
	tool := payTool(&fail)
	l := &forged{Ledger: memory.New()}
	x, err := settle.New(l, settle.WithTools(tool), settle.Volatile())
	if err != nil {
		t.Fatal(err)
	}
	ctx := scope(context.Background())
	out, err := x.Execute(ctx, deskpayCall("a"))
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	l.moves = func() {
		if reads++; reads > 2 {
			return
		}
		e, err := l.Ledger.Get(ctx, "acme", uuid.MustParse(out.Operation))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Ledger.Apply(ctx, store.Change{Of: e.Operation, To: e.State, Kind: "checked", Actor: "test", Doubts: e.Doubts}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := x.VerifyChains(ctx, "", nil)
	if err != nil || r.Operations != 1 || len(r.Problems) != 0 || reads != 3 {
		t.Errorf("verified %+v in %d reads, error %v; want no problem in the third", r, reads, err)
	}
}
