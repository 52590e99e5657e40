package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// epoch is some instant of a ledger.
var epoch = time.Date(2025, 11, 3, 9, 30, 0, 123456000, time.UTC)

// chain is an operation with a journal of four events.
func chain() (store.Operation, []store.Event) {
	o, first := store.First(storetest.Claim(storetest.Operation(storetest.NewIntent())), epoch)
	all := []store.Event{first}
	for n, to := range []store.State{store.Unknown, store.Manual, store.Completed} {
		next, e := store.Next(o, storetest.Change(o, to), epoch.Add(time.Duration(n+1)*time.Second))
		o, all = next, append(all, e)
	}
	return o, all
}

func TestR57AWholeChainIsVerified(t *testing.T) {
	t.Parallel()
	o, all := chain()
	if err := store.VerifyChain(o, all); err != nil {
		t.Error(err)
	}
	for n := range all {
		all[n].At = all[n].At.Local() // the same instant
	}
	if err := store.VerifyChain(o, all); err != nil {
		t.Error(err)
	}
}

func TestR57EveryChangeOfAChainIsSeen(t *testing.T) {
	t.Parallel()
	other := uuid.New()
	for name, change := range map[string]func(o *store.Operation, all *[]store.Event){
		"operation":              func(_ *store.Operation, all *[]store.Event) { (*all)[1].Operation = other },
		"number":                 func(_ *store.Operation, all *[]store.Event) { (*all)[1].Seq = 3 },
		"instant":                func(_ *store.Operation, all *[]store.Event) { (*all)[1].At = (*all)[1].At.Add(time.Microsecond) },
		"last instant":           func(_ *store.Operation, all *[]store.Event) { (*all)[3].At = epoch },
		"move":                   func(_ *store.Operation, all *[]store.Event) { (*all)[1].Move.To = store.Retryable },
		"kind":                   func(_ *store.Operation, all *[]store.Event) { (*all)[1].Kind = "other" },
		"actor":                  func(_ *store.Operation, all *[]store.Event) { (*all)[1].Actor = "other" },
		"attempt":                func(_ *store.Operation, all *[]store.Event) { (*all)[1].Attempt++ },
		"reason":                 func(_ *store.Operation, all *[]store.Event) { (*all)[1].Reason = "other" },
		"decision":               func(_ *store.Operation, all *[]store.Event) { (*all)[1].Decision = other },
		"body":                   func(_ *store.Operation, all *[]store.Event) { (*all)[1].Body = []byte("{}") },
		"hash":                   func(_ *store.Operation, all *[]store.Event) { (*all)[1].Hash[31]++ },
		"first event missing":    func(_ *store.Operation, all *[]store.Event) { *all = (*all)[1:] },
		"event missing":          func(_ *store.Operation, all *[]store.Event) { *all = slices.Delete(*all, 1, 2) },
		"last event missing":     func(_ *store.Operation, all *[]store.Event) { *all = (*all)[:3] },
		"all events missing":     func(_ *store.Operation, all *[]store.Event) { *all = nil },
		"event twice":            func(_ *store.Operation, all *[]store.Event) { *all = append(*all, (*all)[3]) },
		"events exchanged":       func(_ *store.Operation, all *[]store.Event) { (*all)[1], (*all)[2] = (*all)[2], (*all)[1] },
		"row's version":          func(o *store.Operation, _ *[]store.Event) { o.Version++ },
		"row's tail":             func(o *store.Operation, _ *[]store.Event) { o.Tail[0]++ },
		"row's instant":          func(o *store.Operation, _ *[]store.Event) { o.TailAt = o.TailAt.Add(time.Microsecond) },
		"row's state":            func(o *store.Operation, _ *[]store.Event) { o.State = store.Failed },
		"row of other operation": func(o *store.Operation, _ *[]store.Event) { o.ID = other },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, all := chain()
			change(&o, &all)
			if store.VerifyChain(o, all) == nil {
				t.Error("the chain passes as whole")
			}
		})
	}
}

func TestR20AChainOfMovesThatTheTableDoesntHaveIsSeen(t *testing.T) {
	t.Parallel()
	for name, moves := range map[string][]store.Move{
		"no first move": {{From: store.Running, To: store.Unknown}},
		"a gap":         {{To: store.Running}, {From: store.Unknown, To: store.Manual}},
		"no such move":  {{To: store.Running}, {From: store.Running, To: store.Abandoned}},
	} {
		o := store.Operation{ID: uuid.New()}
		var all []store.Event
		for n, m := range moves {
			// Sealed as if by somebody who knows how.
			e := store.Event{Operation: o.ID, Seq: n + 1, At: epoch, Move: m}
			e.Hash = e.Seal(store.Tail{Hash: o.Tail, At: o.TailAt})
			o.Version, o.Tail, o.TailAt, o.State = n+1, e.Hash, e.At, m.To
			all = append(all, e)
		}
		if store.VerifyChain(o, all) == nil {
			t.Errorf("%s: the chain passes as whole", name)
		}
	}
}

func TestR57ASealTellsFieldsApart(t *testing.T) {
	t.Parallel()
	whole := store.Event{Kind: "ab", Actor: "c", Reason: "d"}
	seals := map[[32]byte]bool{}
	for _, e := range []store.Event{whole, {Kind: "a", Actor: "bc", Reason: "d"}, {Kind: "ab", Actor: "cd"}, {Kind: "abcd"}, {Body: []byte("abcd")}} {
		seals[e.Seal(store.Tail{})] = true
	}
	if len(seals) != 5 {
		t.Errorf("five events have %d seals", len(seals))
	}
	at := whole
	at.At, at.Hash = epoch, [32]byte{1}
	if at.Seal(store.Tail{}) != whole.Seal(store.Tail{}) {
		t.Error("a seal depends on what only the ledger knows")
	}
}

func TestR57ErrorsOfTheVerifierShowNoValues(t *testing.T) {
	t.Parallel()
	o, all := chain()
	all[1].Body, all[1].Actor = []byte("secret"), "secret"
	err := store.VerifyChain(o, all)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got the error %v", err)
	}
}
