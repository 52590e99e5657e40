package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/settle-go/settle/internal/pgtest"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/storetest"
)

// wire counts the times that a client sent something and was answered.
type wire struct{ trips atomic.Int64 }

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &countedConn{Conn: conn, wire: w}, err
}

type countedConn struct {
	net.Conn
	wire *wire
	sent atomic.Bool
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(b)
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.sent.Swap(false) {
		c.wire.trips.Add(1)
	}
	return n, err
}

// meter counts round trips on one connection, and the transactions that write
// in a cluster where nobody else is.
type meter struct {
	t      *testing.T
	wire   wire
	watch  *pgxpool.Pool
	ledger store.Ledger
	counts bool
}

func newMeter(t *testing.T, db *pgtest.DB, mode pgx.QueryExecMode) *meter {
	m := &meter{t: t, watch: db.Pool(t, pgtest.MaxConns(1))}
	pool := db.Pool(t, pgtest.MaxConns(1), pgtest.ExecMode(mode), func(c *pgxpool.Config) { c.ConnConfig.DialFunc = m.wire.dial })
	schema := db.Schema(t)
	install(t, m.watch, schema)
	m.ledger = open(t, pool, schema)
	return m
}

// nextID is the id of the next transaction that writes.
func (m *meter) nextID() int64 {
	m.t.Helper()
	var id int64
	if err := m.watch.QueryRow(m.t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&id); err != nil {
		m.t.Fatal(err)
	}
	return id
}

// costs requires a call to take so many round trips and writing commits.
func (m *meter) costs(name string, trips, commits int64, call func() error) {
	m.t.Helper()
	before, id := m.wire.trips.Load(), m.nextID()
	if err := call(); err != nil {
		m.t.Fatalf("%s: %v", name, err)
	}
	if !m.counts {
		return
	}
	if got := m.wire.trips.Load() - before; got != trips {
		m.t.Errorf("%s took %d round trips, want %d", name, got, trips)
	}
	if got := m.nextID() - id; got != commits {
		m.t.Errorf("%s took %d writing transactions, want %d", name, got, commits)
	}
}

func TestR19RoundTripsAndCommits(t *testing.T) {
	t.Parallel()
	db := pgtest.NewCluster(t, pgtest.Setting("autovacuum", "off")).DB()
	for _, mode := range modes {
		// One after the other: the cluster's transactions are counted.
		t.Run(mode.String(), func(t *testing.T) {
			m := newMeter(t, db, mode)
			m.walk() // a statement is prepared at its first use
			m.counts = true
			m.walk()
		})
	}
}

func (m *meter) claims(name string, trips, commits int64, won bool, claims ...store.Claim) store.Claimed {
	m.t.Helper()
	var answer store.Claimed
	m.costs(name, trips, commits, func() error {
		answers, err := m.ledger.Claim(m.t.Context(), claims...)
		if err == nil {
			answer = answers[0]
		}
		return err
	})
	if answer.Won != won {
		m.t.Errorf("%s: won is %v, want %v", name, answer.Won, won)
	}
	return answer
}

func (m *meter) applies(name string, trips, commits int64, c store.Change) (o store.Operation) {
	m.t.Helper()
	m.costs(name, trips, commits, func() (err error) {
		o, err = m.ledger.Apply(m.t.Context(), c)
		return err
	})
	return o
}

// refused makes a change that isn't made.
func (m *meter) refused(name string, trips int64, c store.Change) {
	m.t.Helper()
	m.costs(name, trips, 0, func() error {
		_, err := m.ledger.Apply(m.t.Context(), c)
		var stale *store.StaleError
		if !errors.As(err, &stale) {
			return fmt.Errorf("got %v, want a StaleError", err)
		}
		return nil
	})
}

// walk goes along the paths of a call.
func (m *meter) walk() {
	known := func(c *store.Claim) { c.Known = true }
	likely := func(c *store.Claim) { c.Likely = true }
	var i store.Intent
	proposed := storetest.NewIntent()
	intend := func() (err error) { i, err = m.ledger.Intent(m.t.Context(), proposed); return err }
	m.costs("a new intent", 1, 1, intend)
	m.costs("a known intent", 1, 0, intend)

	twin := func(o store.Operation, edits ...func(*store.Claim)) store.Claim {
		return storetest.Claim(storetest.Operation(i, storetest.On(o, 1)), edits...)
	}
	first := m.claims("the first claim of a tool", 1, 1, true, storetest.Claim(storetest.Operation(i))).Operation
	second := m.claims("a first execution's claim", 1, 1, true, storetest.Claim(storetest.Operation(i), known)).Operation
	m.claims("a likely claim that is new", 1, 1, true, storetest.Claim(storetest.Operation(i), known, likely))
	m.claims("a likely claim that is recorded", 1, 0, false, twin(first, known, likely))
	m.claims("an unlikely claim that is recorded", 2, 0, false, twin(first, known))
	again := twin(first, known)
	again.Operation.Owner = first.Owner
	m.claims("a claim whose answer was lost", 2, 0, true, again)
	again.Likely = true
	m.claims("a likely claim whose answer was lost", 1, 0, true, again)
	m.claims("a look", 1, 0, false, twin(first, storetest.Look))
	m.claims("eight claims of one turn", 1, 1, true, eight(i)...)

	settled := m.applies("a first execution's outcome", 1, 1, storetest.Completion(first, "r-"+first.ID.String()))
	m.claims("a replay", 1, 0, false, twin(settled, known, likely))
	m.refused("a change that is stale", 2, storetest.Completion(first, "r-1"))

	unknown := m.applies("a move", 1, 1, storetest.Change(second, store.Unknown))
	started := m.applies("a start", 1, 1, storetest.Attempt(unknown))
	m.applies("a move to a person", 1, 1, storetest.Change(started, store.Manual))
	m.guarded(i, settled)
	m.work(i)
}

func eight(i store.Intent) []store.Claim {
	var all []store.Claim
	for range 8 {
		all = append(all, storetest.Claim(storetest.Operation(i)))
	}
	return all
}

// guarded makes the claims that are decided under locks, and again.
func (m *meter) guarded(i store.Intent, settled store.Operation) {
	resource := storetest.SomeDigest()
	for name, c := range map[string]store.Claim{
		"under a hold":         storetest.Claim(storetest.Operation(i, storetest.Tool("mail"), storetest.Whole), storetest.UnderHold()),
		"after another":        storetest.Claim(storetest.Operation(i, storetest.On(settled, 2)), storetest.After(settled)),
		"of a unique identity": storetest.Claim(storetest.Operation(i, func(o *store.Operation) { o.Unique = storetest.SomeDigest() })),
		"of a resource":        storetest.Claim(storetest.Operation(i, storetest.Tool("door"), storetest.Writes(resource))),
		"for approval":         storetest.Claim(storetest.Operation(i, storetest.In(store.AwaitingApproval))),
	} {
		m.claims("a claim "+name, 1, 1, true, c)
		m.claims("a claim "+name+", again", 1, 0, true, c)
		c.Operation.ID, c.Operation.Owner = storetest.ID(), uuid.New()
		m.claims("a claim "+name+", by a twin", 1, 0, false, c)
	}
	held := storetest.Claim(storetest.Operation(i, storetest.Tool("mail"), storetest.Whole), storetest.UnderHold())
	m.claims("a claim that is held", 1, 1, false, held)
	write := m.claims("a write that waits", 1, 1, true,
		storetest.Claim(storetest.Operation(i, storetest.Tool("door"), storetest.Writes(resource)))).Operation
	m.costs("a start that is blocked", 2, 1, func() error {
		_, err := m.ledger.Apply(m.t.Context(), storetest.Attempt(write))
		var blocked *store.BlockedError
		if !errors.As(err, &blocked) {
			return fmt.Errorf("got %v, want a BlockedError", err)
		}
		return nil
	})
}

// work renews, takes, reads and audits.
func (m *meter) work(i store.Intent) {
	ctx := m.t.Context()
	o := m.claims("a claim to renew", 1, 1, true, storetest.Claim(storetest.Operation(i))).Operation
	m.costs("a renewal", 1, 1, func() error {
		_, err := m.ledger.Renew(ctx, storetest.Lease, store.Held{Operation: o.ID, Owner: o.Owner})
		return err
	})
	due := storetest.Change(o, store.Unknown, func(c *store.Change) { c.Due = store.DueIn(0) })
	m.applies("a move that is due", 1, 1, due)
	m.costs("a take", 1, 1, func() error {
		entries, err := m.ledger.Take(ctx, store.Take{Lease: storetest.Lease, Limit: 10, Each: 10})
		if err == nil && len(entries) != 1 {
			return fmt.Errorf("took %d rows", len(entries))
		}
		return err
	})
	m.costs("a take of nothing", 1, 0, func() error {
		_, err := m.ledger.Take(ctx, store.Take{Lease: storetest.Lease})
		return err
	})
	m.costs("a reading", 1, 0, func() error { _, err := m.ledger.Get(ctx, i.TenantName, o.ID); return err })
	m.costs("a list", 1, 0, func() error { _, err := m.ledger.List(ctx, store.Filter{Intent: i.ID}); return err })
	m.costs("a journal", 1, 0, func() error { _, err := m.ledger.Events(ctx, o.ID, 0); return err })
	m.costs("an audit row", 1, 1, func() error { return m.ledger.Audit(ctx, store.Audit{Kind: "refused"}) })
	m.costs("a check", 1, 0, func() error { _, err := m.ledger.Check(ctx); return err })
}
