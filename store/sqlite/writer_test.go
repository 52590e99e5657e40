package sqlite_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

// commits counts the commits in the -wal file: the frames that carry the size
// of the database after them.
func (w *world) commits() int {
	w.Helper()
	wal, err := os.ReadFile(w.path + "-wal")
	w.must(err)
	const header, frame = 32, 24 + 4096
	n := 0
	for at := header; at+frame <= len(wal); at += frame {
		if binary.BigEndian.Uint32(wal[at+4:]) != 0 && string(wal[at+8:at+16]) == string(wal[16:24]) {
			n++
		}
	}
	return n
}

// atOnce makes the calls while the ledger is locked, so that all of them wait
// for the writer in their order when the lock goes, and returns their errors.
func (w *world) atOnce(calls ...func() error) []error {
	w.Helper()
	unlock := w.locked()
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for n, call := range calls {
		wg.Go(func() { errs[n] = call() })
		w.queued(n + 1)
	}
	unlock()
	wg.Wait()
	return errs
}

func (w *world) claiming(o store.Operation) func() error {
	return func() error {
		answers, err := w.Claim(w.ctx, storetest.Claim(o))
		if err == nil && !answers[0].Won {
			err = errors.New("the claim wasn't won")
		}
		return err
	}
}

func TestWhatHasGatheredSharesOneCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	var calls []func() error
	for range 40 {
		calls = append(calls, w.claiming(storetest.Operation(i)))
	}
	before := w.commits()
	for _, err := range w.atOnce(calls...) {
		w.must(err)
	}
	if n := w.commits() - before; n != 1 {
		t.Errorf("%d claims took %d commits", len(calls), n)
	}
	if n := w.rows(i); n != len(calls) {
		t.Errorf("%d of %d claims are recorded", n, len(calls))
	}
}

func TestALongQueueTakesSeveralCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	var calls []func() error
	for range 2*sqlite.MaxBatch + 1 {
		calls = append(calls, w.claiming(storetest.Operation(i)))
	}
	before := w.commits()
	for _, err := range w.atOnce(calls...) {
		w.must(err)
	}
	if n := w.commits() - before; n != 3 {
		t.Errorf("%d claims took %d commits", len(calls), n)
	}
}

func TestABadRequestDoesNotSpoilTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	first := w.won(i)
	good := func() func() error { return w.claiming(storetest.Operation(i)) }
	bad := map[int]func() error{
		1: w.claiming(storetest.Operation(i, func(o *store.Operation) { o.ID = first.ID })),
		4: w.claiming(storetest.Operation(store.Intent{ID: storetest.ID(), Tenant: i.Tenant})),
		5: func() error { // the second half of the call fails: the first is undone with it
			_, err := w.Claim(w.ctx, storetest.Claim(storetest.Operation(i)),
				storetest.Claim(storetest.Operation(i, func(o *store.Operation) { o.ID = first.ID })))
			return err
		},
	}
	refused := func() error {
		_, err := w.Apply(w.ctx, storetest.Change(store.Operation{ID: storetest.ID(), State: store.Running}, store.Failed))
		return err
	}
	calls := []func() error{good(), bad[1], good(), refused, bad[4], bad[5], good()}
	for n, err := range w.atOnce(calls...) {
		switch {
		case bad[n] != nil:
			if w.unwritten(err).Again {
				t.Errorf("request %d can't be made well by making it again", n)
			}
		case n == 3:
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("request %d was answered with %v", n, err)
			}
		default:
			w.must(err)
		}
	}
	if n := w.rows(i); n != 4 {
		t.Errorf("%d operations are recorded, want 4", n)
	}
}

// An idempotent write is numbered, and may be made to wait, as part of its
// claim; a second pass over the batch must begin from the claim as it was.
func TestR31AClaimIsNumberedAnewInTheSecondPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i, door := w.intent(), storetest.SomeDigest()
	taken := w.won(i)
	bad := w.claiming(storetest.Operation(i, func(o *store.Operation) { o.ID = taken.ID }))
	calls := []func() error{bad, bad}
	for range 6 {
		calls = append(calls, w.claiming(storetest.Operation(i, storetest.Writes(door))))
	}
	for _, err := range w.atOnce(calls...)[2:] {
		w.must(err)
	}
	entries, err := w.List(w.ctx, store.Filter{Intent: i.ID})
	w.must(err)
	seen := map[int64]store.State{}
	for _, e := range entries {
		if !e.ResourceKey.IsZero() {
			seen[e.ResourceSeq] = e.State
		}
	}
	for seq := int64(1); seq <= 6; seq++ {
		want := store.Retryable
		if seq == 1 {
			want = store.Running
		}
		if seen[seq] != want {
			t.Errorf("write %d is %v, want %v", seq, seen[seq], want)
		}
	}
}

func TestR26WhoLeavesBeforeTheWriteBeganKnowsThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := storetest.Operation(w.intent())
	unlock := w.locked()
	ctx, cancel := context.WithCancel(w.ctx)
	answer := make(chan error)
	go func() {
		_, err := w.Claim(ctx, storetest.Claim(o))
		answer <- err
	}()
	w.queued(1)
	cancel()
	err := <-answer
	w.unwritten(err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error %v doesn't say that the context ended", err)
	}
	unlock()
	w.won(w.intent()) // behind it in the queue
	if w.recorded(o) {
		t.Error("a claim was made whose caller was told that nothing was written")
	}
}

func TestWhoLeavesWhileTheWriteIsOnItsWayKnowsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(w.ctx)
	answer := make(chan error)
	go func() {
		answer <- w.Write(ctx, func() error {
			close(begun)
			<-goOn
			return nil
		})
	}()
	<-begun
	cancel()
	err := <-answer
	if err == nil || store.Unwritten(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v, want one after which nobody knows", err)
	}
	close(goOn)
}

func TestALockThatStaysIsToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite.WithBusyTimeout(5*time.Millisecond))
	i := w.intent()
	o := w.won(i)
	unlock := w.locked()
	late := storetest.Operation(i)
	_, err := w.Claim(w.ctx, storetest.Claim(late))
	if !w.unwritten(err).Again {
		t.Errorf("the error %v doesn't say that the call may be made again", err)
	}
	if !strings.Contains(err.Error(), "WithBusyTimeout") {
		t.Errorf("the error %q doesn't say what to do", err)
	}
	if !w.recorded(o) || w.recorded(late) {
		t.Error("a reader waits for the writer, or sees what was never written")
	}
	unlock()
	w.must(w.claiming(late)())
}

func TestReadsDoNotWaitForTheWriter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	c := storetest.Claim(storetest.Operation(i))
	o := w.won(i, func(o *store.Operation) { *o = c.Operation })
	defer w.locked()()

	c.Likely = true
	mine, err := w.Claim(w.ctx, c)
	w.must(err)
	newOwner(&c.Operation)
	theirs, err := w.Claim(w.ctx, c)
	w.must(err)
	look, err := w.Claim(w.ctx, storetest.Claim(storetest.Operation(i), storetest.Look))
	w.must(err)
	if !mine[0].Won || theirs[0].Won || len(theirs[0].Slot) != 1 || theirs[0].Slot[0].ID != o.ID || len(look[0].Slot) != 0 {
		t.Error("a claim that was read is answered otherwise than one that was written")
	}
	again, err := w.Intent(w.ctx, i)
	w.must(err)
	events, err := w.Events(w.ctx, o.ID, 0)
	w.must(err)
	taken, err := w.Take(w.ctx, store.Take{Lease: time.Minute})
	w.must(err)
	if again.ID != i.ID || len(events) != 1 || taken != nil || w.rows(i) != 1 {
		t.Error("a read under a lock of another program doesn't see what is there")
	}
}

func TestCloseFinishesWhatWasHandedIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	begun, goOn := make(chan struct{}), make(chan struct{})
	const n = 16
	answers := make(chan error, n+1)
	go func() {
		answers <- w.Write(w.ctx, func() error {
			close(begun)
			<-goOn
			return nil
		})
	}()
	<-begun
	for range n {
		call := w.claiming(storetest.Operation(i))
		go func() { answers <- call() }()
	}
	w.queued(n)
	closed := make(chan error)
	go func() { closed <- w.Close() }()
	for !w.Closing() {
		runtime.Gosched()
	}
	close(goOn)
	for range n + 1 {
		w.must(<-answers)
	}
	w.must(<-closed)
	w.must(w.Close())
	if err := w.claiming(storetest.Operation(i))(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed ledger answered with %v", err)
	}
	if _, err := w.List(w.ctx, store.Filter{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed ledger answered with %v", err)
	}
	w.Ledger = open(t, w.path)
	if got := w.rows(i); got != n {
		t.Errorf("%d of %d claims are there after Close", got, n)
	}
}

// A statement that isn't finalized would keep the connection, with its files
// and locks, behind the ledger's back.
func TestTheLastToCloseLeavesOneFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	w.apply(storetest.Completion(w.won(i), "r-1"))
	w.rows(i)
	w.must(w.Close())
	for _, rest := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(w.path + rest); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there after the last connection was closed (%v)", rest, err)
		}
	}
}

func TestR26AFullDiskWritesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite.WithPragma("max_page_count = 120"))
	i := w.intent()
	large := storetest.Operation(i, func(o *store.Operation) { o.Arguments = make([]byte, 1<<20) })
	err := w.claiming(large)()
	w.unwritten(err)
	if !strings.Contains(err.Error(), "free space") {
		t.Errorf("the error %q doesn't say what to do", err)
	}
	small := w.claiming(storetest.Operation(i))
	errs := w.atOnce(w.claiming(storetest.Operation(i)), w.claiming(large), small)
	recorded := 0
	for n, err := range errs {
		if n == 1 || err != nil {
			w.unwritten(err)
		} else {
			recorded++
		}
	}
	if got := w.rows(i); got != recorded || w.recorded(large) {
		t.Errorf("%d operations are recorded and %d were answered", got, recorded)
	}
	w.won(i) // there is still room for a small one
}

func TestR26AFileThatIsGoneTakesNoWrites(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			i := w.intent()
			w.won(i)
			w.must(remove(w.path))
			err := w.claiming(storetest.Operation(i))()
			w.unwritten(err)
			if !strings.Contains(err.Error(), "removed or replaced") {
				t.Errorf("the error %q doesn't say what happened", err)
			}
		})
	}
}

func TestManyShapesOfStatements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	for n := range 300 { // more than a connection keeps prepared
		f := store.Filter{Intent: i.ID}
		for s := range n {
			f.States = append(f.States, store.States()[s%len(store.States())])
		}
		if _, err := w.List(w.ctx, f); err != nil {
			t.Fatal(fmt.Errorf("a filter with %d states: %w", n, err))
		}
	}
}
