package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/storetest"
)

// crossing is a ledger on which one write flies at a time, and the write that
// does: it waits for a row that is locked, until it is let go.
type crossing struct {
	*ledgerWorld
	intent  store.Intent
	cut     atomic.Bool                   // whether the next connection that is written to breaks
	gate    atomic.Pointer[chan struct{}] // what the next write waits for
	release func()
	flights sync.WaitGroup
}

// forever is a patience that no test outlasts.
const forever = time.Hour

func newCrossing(t *testing.T, patience time.Duration) *crossing {
	t.Helper()
	c := &crossing{}
	c.ledgerWorld = newLedgerWorld(t, pgtest.MaxConns(8), func(config *pgxpool.Config) {
		config.ConnConfig.DialFunc = c.dial
		// A ping of a connection that was idle would be what breaks in place of the write.
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	})
	c.intent = c.ledgerWorld.intent()
	// The first claim of a tool in an intent pins its definition, and travels alone.
	first := c.won(storetest.Claim(storetest.Operation(c.intent)))
	postgres.OneFlight(c.Ledger, patience)
	c.release = sync.OnceFunc(c.lockRow(first))
	t.Cleanup(func() { c.release(); c.flights.Wait() })
	c.inBackground(t.Context(), storetest.Completion(first, "r-first"))
	c.waiter()
	return c
}

func (c *crossing) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &badConn{conn, c}, err
}

// badConn breaks behind what was written to it, so that nobody hears what came of
// it, or holds it back for a while.
type badConn struct {
	net.Conn
	of *crossing
}

func (c *badConn) Write(b []byte) (int, error) {
	if gate := c.of.gate.Swap(nil); gate != nil {
		<-*gate
	}
	n, err := c.Conn.Write(b)
	if c.of.cut.CompareAndSwap(true, false) {
		_ = c.Close()
	}
	return n, err
}

// known is a claim that may travel with others.
func (c *crossing) known(edits ...func(*store.Operation)) store.Claim {
	return storetest.Claim(storetest.Operation(c.intent, edits...), func(c *store.Claim) { c.Known = true })
}

// running are operations that were claimed one after the other.
func (c *crossing) running(n int) []store.Operation {
	c.t.Helper()
	all := make([]store.Operation, n)
	for i := range all {
		all[i] = c.won(c.known())
	}
	return all
}

// inBackground makes a change that is to be made.
func (c *crossing) inBackground(ctx context.Context, change store.Change) <-chan error {
	result := make(chan error, 1)
	c.flights.Go(func() {
		_, err := c.Apply(ctx, change)
		result <- err
	})
	return result
}

// pair makes two changes that wait together; the caller of the first can leave.
func (c *crossing) pair(first, second store.Change) (leave func(), left, stayed <-chan error) {
	c.t.Helper()
	ctx, leave := context.WithCancel(c.t.Context())
	left, stayed = c.inBackground(ctx, first), c.inBackground(c.t.Context(), second)
	c.wait(2)
	return leave, left, stayed
}

// hold lets the write go that flies, and holds back the group of those that waited
// for it: while it prepares its statements, behind which its values follow.
func (c *crossing) hold() (letGo func()) {
	c.t.Helper()
	gate := make(chan struct{})
	c.gate.Store(&gate)
	c.release()
	c.wait(0)
	return func() { close(gate) }
}

// wait waits until so many writes wait for the one that flies.
func (c *crossing) wait(n int) {
	c.t.Helper()
	for postgres.Waiting(c.Ledger) != n {
		if c.t.Context().Err() != nil {
			c.t.Fatalf("%d writes wait, want %d", postgres.Waiting(c.Ledger), n)
		}
		runtime.Gosched()
	}
}

// idle waits until no place is taken: who has carried others has answered them
// before the place is free. One that stays taken is lost.
func (w *ledgerWorld) idle() {
	w.t.Helper()
	for began := time.Now(); postgres.Busy(w.Ledger) != 0; runtime.Gosched() {
		if time.Since(began) > 10*time.Second {
			w.t.Fatalf("%d places are taken when nobody is at work", postgres.Busy(w.Ledger))
		}
	}
}

// state is what the ledger has of an operation.
func (c *crossing) state(o store.Operation) store.State {
	c.t.Helper()
	entry, err := c.Get(c.t.Context(), c.intent.TenantName, o.ID)
	if err != nil {
		c.t.Fatal(err)
	}
	return entry.State
}

func TestR19WritesThatWaitTravelTogether(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	all := c.running(7)
	var results []<-chan error
	for _, o := range all {
		results = append(results, c.inBackground(t.Context(), storetest.Completion(o, "r-"+o.ID.String())))
	}
	c.wait(len(all))
	c.release()
	for i, result := range results {
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if state := c.state(all[i]); state != store.Completed {
			t.Errorf("an end that travelled with others left its operation %s", state)
		}
	}
	if n := ask[int](t, c.pool, "SELECT count(DISTINCT xmin::text) FROM "+c.table("operation")+" WHERE id = ANY ($1)", ids(all)); n != 1 {
		t.Errorf("%d writes that waited took %d transactions, want 1", len(all), n)
	}
}

func ids(of []store.Operation) []string {
	all := make([]string, len(of))
	for i, o := range of {
		all[i] = o.ID.String()
	}
	return all
}

// Each of those that travel together has its own answer.
func TestR19OfThoseThatTravelTogetherEachIsToldItsOwn(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	moved := c.running(3)
	stale := storetest.Completion(moved[1], "r-stale")
	c.apply(storetest.Change(moved[1], store.Unknown))
	results := []<-chan error{
		c.inBackground(t.Context(), storetest.Completion(moved[0], "r-0")),
		c.inBackground(t.Context(), stale),
		c.inBackground(t.Context(), storetest.Completion(moved[2], "r-2")),
	}
	c.wait(3)
	c.release()
	for i, result := range results {
		var isStale *store.StaleError
		if err := <-result; errors.As(err, &isStale) != (i == 1) || i != 1 && err != nil {
			t.Errorf("the write %d of a group gave the error %v", i, err)
		}
	}
}

func TestAWriteThatTheServerRefusesTakesNoOtherWithIt(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	good, bad := c.running(2), c.running(1)[0]
	refused := storetest.Completion(bad, "r-bad")
	refused.Kind = "no text of the database: \x00"
	results := []<-chan error{
		c.inBackground(t.Context(), storetest.Completion(good[0], "r-0")),
		c.inBackground(t.Context(), refused),
		c.inBackground(t.Context(), storetest.Completion(good[1], "r-1")),
	}
	c.wait(3)
	c.release()
	for i, result := range results {
		err := <-result
		if i == 1 && !store.Unwritten(err) || i != 1 && err != nil {
			t.Errorf("the write %d of a group gave the error %v", i, err)
		}
	}
	if state := c.state(bad); state != store.Running {
		t.Errorf("a refused write left its operation %s", state)
	}
}

// What a group was answered before the server took it back is nobody's answer:
// whose write comes too late when it goes on alone is told so.
func TestR19AnAnswerThatWasTakenBackIsForgotten(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	all := c.running(17)
	refused := storetest.Completion(all[16], "r-bad") // the last in the order of keys
	refused.Kind = "no text of the database: \x00"
	var results []<-chan error
	for _, o := range all[:16] {
		for _, resource := range []string{"r-1 of ", "r-2 of "} {
			results = append(results, c.inBackground(t.Context(), storetest.Completion(o, resource+o.ID.String())))
		}
	}
	bad := c.inBackground(t.Context(), refused)
	c.wait(len(results) + 1)
	c.release()
	if err := <-bad; !store.Unwritten(err) {
		t.Errorf("the refused write gave the error %v", err)
	}
	for i := 0; i < len(results); i += 2 {
		made := 0
		for _, result := range results[i : i+2] {
			var stale *store.StaleError
			if err := <-result; err == nil {
				made++
			} else if !errors.As(err, &stale) {
				t.Error(err)
			}
		}
		if made != 1 {
			t.Errorf("of two ends of one operation %d are said to be made", made)
		}
	}
}

func TestALockedRowHoldsUpNoOtherWrite(t *testing.T) {
	t.Parallel()
	t.Run("of those that travel with it", func(t *testing.T) {
		t.Parallel()
		c := newCrossing(t, forever)
		pair := c.running(2)
		release := c.lockRow(pair[0])
		locked := c.inBackground(t.Context(), storetest.Completion(pair[0], "r-0"))
		free := c.inBackground(t.Context(), storetest.Completion(pair[1], "r-1"))
		c.wait(2)
		c.release()
		if err := <-free; err != nil {
			t.Error(err)
		}
		if state := c.state(pair[0]); state != store.Running {
			t.Errorf("the locked row is %s", state)
		}
		release()
		if err := <-locked; err != nil {
			t.Error(err)
		}
	})
	t.Run("of those that wait for it", func(t *testing.T) {
		t.Parallel()
		c := newCrossing(t, time.Millisecond)
		for _, o := range c.running(3) {
			c.apply(storetest.Completion(o, "r-"+o.ID.String()))
		}
		c.wait(0)
	})
}

// Company makes no lock wait longer than the ledger or the role allows.
func TestWritesThatTravelTogetherKeepAShorterLockWait(t *testing.T) {
	t.Parallel()
	w := newLedgerWorld(t)
	role := w.db.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["lock_timeout"] = "30ms" })
	for want, l := range map[string]*postgres.Ledger{
		"100ms": w.Ledger,
		"40ms":  open(t, w.pool, w.schema, postgres.WithLockWait(40*time.Millisecond)),
		"30ms":  open(t, role, w.schema),
	} {
		var got string
		if err := w.pool.QueryRow(t.Context(), postgres.LockBriefly(l)).Scan(&got); err != nil || got != want {
			t.Errorf("writes that travel together wait %s for a lock (%v), want %s", got, err, want)
		}
	}
}

func TestR24ACallerWhoLeavesTheQueueWroteNothing(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	pair := c.running(2)
	leave, left, stayed := c.pair(storetest.Completion(pair[0], "r-0"), storetest.Completion(pair[1], "r-1"))
	leave()
	if err := <-left; !store.Unwritten(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left the queue got the error %v", err)
	}
	c.release()
	if err := <-stayed; err != nil {
		t.Error(err)
	}
	if state := c.state(pair[0]); state != store.Running {
		t.Errorf("the operation of who left is %s", state)
	}
}

// What a caller left behind is on its way, with the others.
func TestR24ACallerWhoLeavesAGroupLeavesItsWriteOpen(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	pair := c.running(2)
	leave, left, stayed := c.pair(storetest.Completion(pair[0], "r-0"), storetest.Completion(pair[1], "r-1"))
	letGo := c.hold()
	leave()
	unanswered(t, <-left)
	letGo()
	if err := <-stayed; err != nil {
		t.Error(err)
	}
	if state := c.state(pair[0]); state != store.Completed {
		t.Errorf("the operation of who left is %s", state)
	}
}

// What a caller left behind is written as it was, whatever the caller does with
// its memory then.
func TestR24ACallerWhoLeavesAGroupMayUseItsBytesAgain(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	pair := c.running(2)
	change := storetest.Completion(pair[0], "r-0")
	result := bytes.Clone(change.Result)
	leave, left, stayed := c.pair(change, storetest.Completion(pair[1], "r-1"))
	letGo := c.hold()
	leave()
	unanswered(t, <-left)
	clear(change.Result)
	letGo()
	if err := <-stayed; err != nil {
		t.Error(err)
	}
	entry, err := c.Get(t.Context(), c.intent.TenantName, pair[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if entry.State != store.Completed || !bytes.Equal(entry.Result, result) {
		t.Errorf("the write of who left recorded %s with the result %q, want completed with %q", entry.State, entry.Result, result)
	}
}

// A connection that breaks under a group leaves open what became of each.
func TestR26AGroupWhoseAnswerIsLostIsOpen(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	pair := c.running(2)
	var results []<-chan error
	for _, o := range pair {
		results = append(results, c.inBackground(t.Context(), storetest.Completion(o, "r-"+o.ID.String())))
	}
	c.wait(2)
	c.cut.Store(true)
	c.release()
	for _, result := range results {
		unanswered(t, <-result)
	}
	for _, o := range pair {
		// The same change again finds itself, or is made.
		_, err := c.Apply(t.Context(), storetest.Completion(o, "r-"+o.ID.String()))
		var stale *store.StaleError
		if errors.As(err, &stale) && stale.Current.State == store.Completed {
			err = nil
		}
		if err != nil || c.state(o) != store.Completed {
			t.Errorf("the change made again: %v", err)
		}
	}
}

// Claims of two processes that travel together in groups meet in every order.
func TestR19GroupsOfTwoLedgersHaveOneWinnerForEachSlot(t *testing.T) {
	t.Parallel()
	c := newCrossing(t, forever)
	c.release()
	other := open(t, c.pool, c.schema)
	postgres.OneFlight(other, forever)
	ledgers := []store.Ledger{c.Ledger, other}
	slots := make([]store.Operation, 16)
	for i := range slots {
		slots[i] = storetest.Operation(c.intent)
	}
	for range 20 {
		for i := range slots {
			slots[i].Slot = storetest.SomeDigest()
		}
		var won [16]atomic.Int32
		crowd(t, func(n int) error {
			slot := n / 2
			if n%2 == 1 {
				slot = len(slots) - 1 - slot
			}
			answers, err := ledgers[n%2].Claim(t.Context(), c.known(storetest.On(slots[slot], 1)))
			if err == nil && answers[0].Won {
				won[slot].Add(1)
				_, err = ledgers[n%2].Apply(t.Context(), storetest.Completion(answers[0].Operation, ""))
			}
			return err
		})
		for i := range won {
			if n := won[i].Load(); n != 1 {
				t.Errorf("a slot was won %d times", n)
			}
		}
	}
}
