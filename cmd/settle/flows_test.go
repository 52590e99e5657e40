package main

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
)

func TestR51PurgeLeavesTombstones(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		ctx := inTask(t.Context(), "case-42")
		w.fails = nil
		reference := w.call(ctx, "refund", "o-1", settle.StatusCompleted)
		type counts struct{ Seen, Removed int }
		if c := read[counts](w, 0, "purge"); c != (counts{1, 0}) {
			t.Errorf("before its retention is over: %+v", c)
		}
		w.age(40 * 24 * time.Hour)
		contains(t, w.run(0, "purge").out, "1 operation looked at, 1 purged.")
		contains(t, w.run(0, "ops", "show", reference).out, "completed; purged, a tombstone stays")
		w.call(ctx, "refund", "o-1", settle.StatusExpired)
		// What was purged still verifies (R57).
		contains(t, w.run(0, "audit", "chain", reference).out, "1 journal verified")
	})
}

func TestR52EraseAndClose(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		ctx := inTask(t.Context(), "case-42")
		w.fails = nil
		done := w.call(ctx, "refund", "o-1", settle.StatusCompleted)
		open := w.call(ctx, "grant", "o-2", settle.StatusAwaitingApproval)
		other := inTask(t.Context(), "case-43")
		w.call(other, "refund", "o-3", settle.StatusCompleted)

		if f := failed(w, 5, "close", done, "--yes"); f.Code != "unsettled" || !strings.Contains(f.Next, "ops list --tenant acme --task case-42") {
			t.Errorf("a task with an open operation is closed: %+v", f)
		}
		version := itoa(read[caseView](w, 0, "queue", "show", open).Version)
		w.run(0, "queue", "decide", open, "deny", "--version", version, "--reason", "too late")
		w.run(0, "close", done, "--yes")
		contains(t, w.run(0, "ops", "show", done).out, "a tombstone stays")
		w.call(ctx, "refund", "o-1", settle.StatusExpired)
		w.run(1, "close", "--tenant", "acme", "--task", "case-42", "--yes")

		w.as("bo").run(0, "erase", "--tenant", "acme", "--subject", "support-agent", "--yes")
		acts := w.run(0, "audit", "acts").out
		var rows []string
		for line := range strings.Lines(acts) {
			rows = append(rows, strings.Join(strings.Split(line, "\t")[1:3], " "))
		}
		if got, want := strings.Join(rows, ", "), "WHAT BY, close operator:ann, close_failed operator:ann, close operator:ann, closed operator:ann, "+
			"erase operator:bo, erased operator:bo"; got != want {
			t.Errorf("the audit has %q, want %q", got, want)
		}
		for _, name := range []string{"acme", "support-agent", "case-4"} {
			if strings.Contains(acts, name) {
				t.Errorf("the audit has a name:\n%s", acts)
			}
		}
		contains(t, w.run(0, "audit", "acts", "--json").out, `"kind": "erased"`, "removed from 1 operation")
		type list struct{ Operations []operationLine }
		l := read[list](w, 0, "ops", "list", "--all")
		if len(l.Operations) != 3 {
			t.Fatalf("%d operations are left, want all three as tombstones", len(l.Operations))
		}
		for _, o := range l.Operations {
			if !o.Purged {
				t.Errorf("after the erasure there is %+v", o)
			}
		}
	})
}

func TestATaskIsNamedWithoutDoubt(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		w.fails = nil
		w.call(inTask(t.Context(), "case-42"), "refund", "o-1", settle.StatusCompleted)
		brief := []string{"ops", "brief", "--tenant", "acme", "--task", "case-42"}
		contains(t, w.run(0, brief...).out, "Done already for this task", "refund")
		w.call(settle.WithTask(inTask(t.Context(), ""), settle.Task{ID: "case-42", Goal: "praise"}), "refund", "o-1", settle.StatusCompleted)
		if f := failed(w, 2, brief...); !strings.Contains(f.Message, "praise") {
			t.Errorf("names that fit two tasks: %+v", f)
		}
		contains(t, w.run(0, append(brief, "--goal", "praise")...).out, "refund")
		if f := failed(w, 1, "ops", "brief", "--tenant", "acme", "--task", "case-44"); f.Code != "not_found" {
			t.Errorf("a task that isn't there: %+v", f)
		}
		type list struct {
			Operations []operationLine
			Next       string
		}
		first := read[list](w, 0, "ops", "list", "--all", "--limit", "1")
		second := read[list](w, 0, "ops", "list", "--all", "--limit", "1", "--cursor", first.Next)
		if len(first.Operations) != 1 || len(second.Operations) != 1 || second.Next != "" || first.Operations[0].Operation == second.Operations[0].Operation {
			t.Errorf("two pages: %+v and %+v", first, second)
		}
	})
}

func TestOperationsAreListedByTimeAndName(t *testing.T) {
	t.Parallel()
	w := newSQLite(t).hire()
	w.fails = nil
	w.call(inTask(t.Context(), "case-42"), "refund", "o-1", settle.StatusCompleted)
	for _, tc := range []struct {
		flags string
		want  int
	}{
		{"", 0}, {"--all", 1}, {"--state completed", 1}, {"--state completed,failed --since 1h", 1}, {"--all --since 2100-01-01T00:00:00Z", 0},
		{"--all --since 2020-01-01", 1}, {"--all --task case-42 --goal late-parcel --subject support-agent", 1}, {"--all --task case-43", 0},
		{"--all --tool refund --tenant acme", 1}, {"--all --tenant globex", 0}, {"--all --tool wire", 0},
	} {
		l := read[struct{ Operations []operationLine }](w, 0, append([]string{"ops", "list"}, strings.Fields(tc.flags)...)...)
		if len(l.Operations) != tc.want {
			t.Errorf("ops list %s: %d operations, want %d", tc.flags, len(l.Operations), tc.want)
		}
	}
}

func TestR45WaitEndsWithThePersonsWord(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		reference := w.manual("refund", "o-1")
		if f := failed(w, 1, "ops", "wait", reference, "--timeout", "10ms"); f.Code != "timeout" || !strings.Contains(f.Next, "ops show") {
			t.Errorf("a wait that is too short: %+v", f)
		}
		ended := make(chan result, 1)
		go func() { ended <- w.start(w.env, "", "ops", "wait", reference, "--json", "--timeout", "50s") }()
		version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
		w.run(0, "queue", "decide", reference, "abandon", "--version", version, "--reason", "nobody knows")
		if r := <-ended; r.exit != 0 || !strings.Contains(r.out, `"state": "abandoned"`) {
			t.Errorf("the wait ended with %+v", r)
		}
	})
}

func TestR42LookIsDoneByAWorker(t *testing.T) {
	onEachLedger(t, func(t *testing.T, w *world) {
		var asked atomic.Int32
		w.hire(w.found("transfer", &asked))
		reference := w.manual("transfer", "o-1")
		w.age(time.Hour)
		w.recover()
		if s := read[caseView](w, 0, "queue", "show", reference).State; s != "manual" {
			t.Fatalf("it is %s", s)
		}
		before := asked.Load()
		w.recover()
		if asked.Load() != before {
			t.Error("a worker asks for a case that nobody wants looked at")
		}
		if f := failed(w, 1, "queue", "look", reference, "--wait", "20ms"); f.Code != "timeout" || !strings.Contains(f.Next, "doctor") {
			t.Errorf("no worker looks: %+v", f)
		}
		ended := make(chan result, 1)
		go func() { ended <- w.start(w.env, "", "queue", "look", reference, "--wait", "50s") }()
		for tick := time.NewTicker(20 * time.Millisecond); asked.Load() == before; <-tick.C {
			w.recover()
		}
		// The first look was for the request that nobody waited for any more.
		var r result
		for tick := time.NewTicker(20 * time.Millisecond); r.out == "" && r.err == ""; {
			select {
			case r = <-ended:
			case <-tick.C:
				w.recover()
			}
		}
		if r.exit != 0 || !strings.HasPrefix(r.out, "Looked: inconclusive. The operation is manual") {
			t.Errorf("look said %+v", r)
		}
		done := w.call(inTask(t.Context(), "case-42"), "grant", "o-2", settle.StatusAwaitingApproval)
		if f := failed(w, 5, "queue", "look", done); f.Code != "no_open_case" {
			t.Errorf("a look for an approval: %+v", f)
		}
	})
}

func TestR56SealedValuesNeedTheKeys(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	codec, err := settle.NewAESCodec("k2", map[string][]byte{"k2": key})
	if err != nil {
		t.Fatal(err)
	}
	w := newSQLite(t)
	x, err := settle.New(w.ledger, settle.WithCodec(codec), settle.WithTools(w.tool("refund", settle.Contract{NoLookup: true})))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Declare(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.host = x
	reference := w.manual("refund", "o-1")

	out := w.run(0, "queue", "show", reference).out
	contains(t, out, "subject       (sealed)", "tenant        acme")
	decide := []string{"queue", "decide", reference, "happened", "--version", "3", "--reason", "seen", "--resource", "r-1", "--result", `{"id":"r-1"}`}
	for _, args := range [][]string{{"queue", "reveal", reference}, decide, {"close", reference, "--yes"}} {
		if f := failed(w, 5, args...); f.Code != "no_keys" {
			t.Errorf("settle %v without keys: %+v", args, f)
		}
	}
	contains(t, w.run(0, "doctor").out, "warn  codec")
	// What needs no value is decided all the same.
	other := w.manual("refund", "o-2")
	w.run(0, "queue", "decide", other, "abandon", "--version", "3", "--reason", "nobody knows")

	wrong := w.as("ann")
	wrong.env["SETTLE_KEYS"] = "k1:" + base64.StdEncoding.EncodeToString(key)
	if f := failed(wrong, 5, "queue", "list"); f.Code != "no_keys" || !strings.Contains(f.Message, "k2") {
		t.Errorf("with another key: %+v", f)
	}
	contains(t, wrong.run(1, "doctor").out, "bad   codec")

	right := w.as("ann")
	right.env["SETTLE_KEYS"] = "k3:" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 32))) + ", k2:" + base64.StdEncoding.EncodeToString(key)
	contains(t, right.run(0, "queue", "show", reference).out, "subject       support-agent", "order: string")
	contains(t, right.run(0, "queue", "reveal", reference).out, `"order": "o-1"`)
	decide[5] = itoa(read[caseView](w, 0, "queue", "show", reference).Version)
	right.run(0, decide...)
	contains(t, right.run(0, "queue", "reveal", reference).out, `"id": "r-1"`)
	contains(t, right.run(0, "doctor").out, "ok    codec")
}

func TestR44AResourceCantActOnATerminal(t *testing.T) {
	t.Parallel()
	w := inProcess(t, 80, false).hire()
	reference := w.manual("refund", "o-1")
	version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
	w.run(0, "queue", "decide", reference, "happened", "--version", version, "--reason", "\x1b]0;owned\x07 \u202eseen", "--resource", "\x1b[2Jr-1")
	for _, args := range [][]string{{"queue", "show", reference}, {"ops", "show", reference}, {"ops", "wait", reference}, {"queue", "show", reference, "--json"}, {"ops", "list", "--all"}} {
		out := unstyled(t, w.run(0, args...).out)
		if strings.ContainsRune(out, '\u202e') {
			t.Errorf("settle %v reorders text:\n%s", args, out)
		}
	}
	contains(t, w.run(0, "ops", "show", reference).out, `\x1b[2Jr-1`)
}

// lossy is a ledger that takes a decision and then can't be reached any more.
type lossy struct {
	store.Ledger
	gone *atomic.Bool
}

var errGone = errors.New("connection reset by peer")

func (l lossy) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	if l.gone.Load() {
		return store.Operation{}, errGone
	}
	row, err := l.Ledger.Apply(ctx, c)
	if err == nil && c.Kind == "decided" {
		l.gone.Store(true)
		return store.Operation{}, errGone
	}
	return row, err
}

func (l lossy) List(ctx context.Context, f store.Filter) ([]store.Entry, error) {
	if l.gone.Load() {
		return nil, errGone
	}
	return l.Ledger.List(ctx, f)
}

func (l lossy) Get(ctx context.Context, tenant string, operation uuid.UUID) (store.Entry, error) {
	if l.gone.Load() {
		return store.Entry{}, errGone
	}
	return l.Ledger.Get(ctx, tenant, operation)
}

func TestR41ALostAnswerIsRepeatedWithItsID(t *testing.T) {
	t.Parallel()
	w := newMemory(t)
	gone := new(atomic.Bool)
	w.ledger = lossy{w.ledger, gone}
	w.hire()
	reference := w.manual("refund", "o-1")
	version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
	decide := []string{"queue", "decide", reference, "fail", "--version", version, "--reason", "no transfer"}
	f := failed(w, 1, decide...)
	if !strings.Contains(f.Message, "nobody knows whether the decision was recorded") || !strings.HasPrefix(f.Next, "the same command with --id ") {
		t.Fatalf("an answer that got lost: %+v", f)
	}
	gone.Store(false)
	id := strings.TrimPrefix(f.Next, "the same command with --id ")
	if d := read[decidedView](w, 0, append(decide, "--id", id)...); d.State != "failed" || d.ID != id {
		t.Errorf("again: %+v", d)
	}
	events := read[caseView](w, 0, "queue", "show", reference).Events
	decided := 0
	for _, e := range events {
		if e.Kind == "decided" {
			decided++
		}
	}
	if decided != 1 {
		t.Errorf("it was decided %d times", decided)
	}
}

// moving is a ledger on which somebody else is faster, a number of times.
type moving struct {
	store.Ledger
	times *atomic.Int32
}

func (l moving) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	if strings.HasPrefix(c.Actor, "operator:ann") && l.times.Add(-1) >= 0 {
		if _, err := l.Ledger.Apply(ctx, store.Change{Of: c.Of, To: c.Of.State, Kind: "checked", Actor: "recovery", Reason: c.Of.Reason, Doubts: c.Of.Doubts}); err != nil {
			return store.Operation{}, err
		}
	}
	return l.Ledger.Apply(ctx, c)
}

func TestWhatNamesNoVersionIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newMemory(t)
	times := new(atomic.Int32)
	w.ledger = moving{w.ledger, times}
	w.hire()
	reference := w.manual("refund", "o-1")
	for _, args := range [][]string{{"take"}, {"note", "a note"}, {"look"}, {"reveal"}, {"release"}} {
		times.Store(2)
		w.run(0, append([]string{"queue", args[0], reference}, args[1:]...)...)
		if times.Load() >= 0 {
			t.Errorf("%v met nobody else", args)
		}
	}
	// A decision is for what its person saw.
	times.Store(1)
	version := itoa(read[caseView](w, 0, "queue", "show", reference).Version)
	w.run(3, "queue", "decide", reference, "fail", "--version", version, "--reason", "no transfer")
}

// slowPurge is a ledger with many operations, one a page, that takes its time.
type slowPurge struct {
	store.Ledger
	pages int
	after func(page int)
}

func (l *slowPurge) Purge(_ context.Context, p store.Purge) (store.Purged, error) {
	l.pages++
	l.after(l.pages)
	done := store.Purged{Seen: 1, Removed: 1}
	if l.pages < 5 {
		done.Next = uuid.UUID{15: byte(l.pages)}
	}
	return done, nil
}

func TestLongWorkShowsItsProgress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		width int
		each  time.Duration
		want  string
	}{
		{"terminal", 60, time.Second, "\r\x1b[K1 operation looked at, 1 purged …\r\x1b[K2 operations looked at"},
		{"quick", 60, time.Millisecond, ""},
		{"pipe", 0, time.Second, ""},
		{"slow pipe", 0, 11 * time.Second, "1 operation looked at, 1 purged …\n2 operations"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := inProcess(t, tc.width, false)
			w.ledger = &slowPurge{Ledger: w.ledger, after: func(int) { w.age(tc.each) }}
			r := w.run(0, "purge")
			if !strings.HasPrefix(r.err, tc.want) || tc.want == "" && r.err != "" || r.out != "5 operations looked at, 5 purged.\n" {
				t.Errorf("it writes %q and %q", r.out, r.err)
			}
			if tc.width > 0 && tc.want != "" && !strings.HasSuffix(r.err, "\r\x1b[K") {
				t.Errorf("the line stays: %q", r.err)
			}
		})
	}
}

func TestAnInterruptedPurgeSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	w := newMemory(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.ledger = &slowPurge{Ledger: w.ledger, after: func(page int) {
		if page == 2 {
			cancel()
		}
	}}
	w.context = ctx
	f := failed(w, 1, "purge")
	if f.Code != "interrupted" || f.Next != "settle purge --after "+(uuid.UUID{15: 2}).String() || !strings.HasPrefix(f.Message, "2 operations looked at") {
		t.Errorf("an interrupted purge: %+v", f)
	}
}

func TestVersionIsAskedForOnATerminal(t *testing.T) {
	t.Parallel()
	w := inProcess(t, 80, true).hire()
	reference := w.manual("refund", "o-1")
	decide := []string{"queue", "decide", reference, "fail", "--reason", "no transfer"}
	for _, answer := range []string{"", "\n", "y\n", "0\n"} {
		r := w.runWith(answer, 2, decide...)
		contains(t, r.err, "refund of acme, task case-42: manual", "The case is at version 3.", "nothing was decided")
	}
	w.runWith("2\n", 3, decide...)
	contains(t, w.runWith("3\n", 0, decide...).out, "Decided: fail.")
}
