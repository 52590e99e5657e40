// Package memory keeps a ledger in the process. It survives nothing, so the
// executor refuses side effects on it unless the host says Volatile (R26); it
// is there for tests, for read-only agents, and as the shortest reading of what
// a ledger has to do.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/internal/steady"
	"github.com/settle-go/settle/store"
)

// Ledger is a ledger in memory.
type Ledger struct {
	mu     sync.Mutex
	clock  func() time.Time
	steady steady.Clock
	now    time.Time // as it was read last
	closed bool

	tenants   map[[32]byte]store.Intent // by tenant digest; only the tenant's fields count
	intents   map[[32]byte]uuid.UUID
	intent    map[uuid.UUID]store.Intent
	contracts map[contractKey]store.Digest
	rows      map[uuid.UUID]*store.Operation
	slots     map[slotKey][]uuid.UUID
	tools     map[contractKey][]uuid.UUID
	uniques   map[store.Digest][]uuid.UUID
	resources map[store.Digest][]uuid.UUID
	events    map[uuid.UUID][]store.Event
	cases     map[uuid.UUID][]store.Case
	audit     []store.Audit
	declared  map[string]store.ToolRecord
	sequence  map[store.Digest]int64
	outbox    []store.Outgoing
	outSeq    int64
	settled   map[resourceKey]bool // what operations that are forgotten were completed with
}

type contractKey struct {
	intent uuid.UUID
	tool   string
}

type slotKey struct {
	intent uuid.UUID
	slot   store.Digest
}

type resourceKey struct {
	tool     string
	resource store.Digest
}

// Option configures [New].
type Option func(*Ledger)

// WithClock replaces the clock, for tests. The ledger keeps it from running backwards.
func WithClock(now func() time.Time) Option { return func(l *Ledger) { l.clock = now } }

// New returns an empty ledger.
func New(options ...Option) *Ledger {
	l := &Ledger{
		clock:     time.Now,
		tenants:   map[[32]byte]store.Intent{},
		intents:   map[[32]byte]uuid.UUID{},
		intent:    map[uuid.UUID]store.Intent{},
		contracts: map[contractKey]store.Digest{},
		rows:      map[uuid.UUID]*store.Operation{},
		slots:     map[slotKey][]uuid.UUID{},
		tools:     map[contractKey][]uuid.UUID{},
		uniques:   map[store.Digest][]uuid.UUID{},
		resources: map[store.Digest][]uuid.UUID{},
		events:    map[uuid.UUID][]store.Event{},
		cases:     map[uuid.UUID][]store.Case{},
		declared:  map[string]store.ToolRecord{},
		sequence:  map[store.Digest]int64{},
		settled:   map[resourceKey]bool{},
	}
	for _, o := range options {
		o(l)
	}
	return l
}

// Info implements [store.Ledger].
func (l *Ledger) Info() store.Info { return store.Info{Name: "memory"} }

// Close implements [store.Ledger]. What was recorded is gone with the Ledger.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// enter locks the ledger and reads its clock.
func (l *Ledger) enter(ctx context.Context) (now time.Time, leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return now, nil, &store.UnwrittenError{Err: err}
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return now, nil, store.ErrClosed
	}
	// There is no other process: every instant counts as stored.
	l.now = l.steady.Read(l.clock(), l.now.UnixMicro())
	return l.now, l.mu.Unlock, nil
}

// Intent implements [store.Ledger].
func (l *Ledger) Intent(ctx context.Context, p store.Intent) (store.Intent, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return store.Intent{}, err
	}
	defer leave()
	if id, ok := l.intents[p.Digest]; ok {
		return ownIntent(l.intent[id]), nil
	}
	tenant, ok := l.tenants[p.TenantDigest]
	if !ok {
		tenant = ownIntent(p)
		l.tenants[p.TenantDigest] = tenant
	}
	p.Tenant, p.TenantKey, p.TenantName, p.CreatedAt = tenant.Tenant, tenant.TenantKey, tenant.TenantName, now
	l.intents[p.Digest], l.intent[p.ID] = p.ID, ownIntent(p)
	return ownIntent(p), nil
}

// Apply implements [store.Ledger].
func (l *Ledger) Apply(ctx context.Context, c store.Change) (store.Operation, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return store.Operation{}, err
	}
	defer leave()
	row, ok := l.rows[c.Of.ID]
	if !ok {
		return store.Operation{}, store.ErrNotFound
	}
	if move := (store.Move{From: c.Of.State, To: c.To}); !move.Allowed() {
		return store.Operation{}, &store.MoveError{Move: move}
	}
	if decided := l.decided(c); decided || !c.Fresh(row) {
		return store.Operation{}, &store.StaleError{Current: l.read(row, now), Repeated: decided}
	}
	if c.Start != nil && !row.ResourceKey.IsZero() {
		if blocked := l.blocked(row, now); blocked != nil {
			return store.Operation{}, blocked
		}
	}
	if c.To == store.Completed && c.ByAttribute && l.resourceTaken(row, c.ResourceDigest) {
		return store.Operation{}, &store.ResourceTakenError{}
	}
	if row.State == store.Failed && c.To != store.Failed && l.uniqueTaken(row) {
		return store.Operation{}, &store.ResourceTakenError{}
	}
	next, event := store.Next(*row, c, now)
	l.fileCases(*row, next, c, now)
	*row = ownRow(next)
	l.events[row.ID] = append(l.events[row.ID], ownEvent(event))
	l.announce(row, c.Announce, now)
	return l.read(row, now), nil
}

func (l *Ledger) decided(c store.Change) bool {
	return c.Decision != uuid.Nil && slices.ContainsFunc(l.events[c.Of.ID],
		func(e store.Event) bool { return e.Decision == c.Decision })
}

// resourceTaken says whether another operation of the tool is completed with the
// resource, or was (R34).
func (l *Ledger) resourceTaken(row *store.Operation, resource store.Digest) bool {
	for _, o := range l.rows {
		if o.ID != row.ID && o.Tool == row.Tool && o.State == store.Completed && o.ResourceDigest == resource {
			return true
		}
	}
	return l.settled[resourceKey{row.Tool, resource}]
}

func (l *Ledger) uniqueTaken(row *store.Operation) bool {
	return !row.Unique.IsZero() && slices.ContainsFunc(l.uniques[row.Unique],
		func(id uuid.UUID) bool { return id != row.ID && l.rows[id].State != store.Failed })
}

// fileCases opens and closes the case that a state needs, and incidents (R39).
// Takes and proposals go to the cases that were open before the move. A case of
// a tombstone keeps its proposal for as long as somebody can confirm it.
func (l *Ledger) fileCases(before, after store.Operation, c store.Change, now time.Time) {
	list := l.cases[after.ID]
	moved := before.State != after.State
	if c.Start != nil {
		c.Take, c.Proposal, c.Resolve, c.Incident = nil, nil, false, ""
	}
	for i := range list {
		if !list[i].ClosedAt.IsZero() {
			continue
		}
		if c.Take != nil {
			list[i].Holder, list[i].HeldAt = *c.Take, now
		}
		if c.Proposal != nil {
			list[i].Proposal = bytes.Clone(*c.Proposal)
		}
		left := before.State.NeedsCase() && moved && !list[i].Incident
		if left || c.Resolve && list[i].Incident {
			list[i].ClosedAt = now
			if after.Flags&store.FlagPurged != 0 {
				list[i].Proposal = nil
			}
		}
	}
	open := func(reason string, incident bool) {
		list = append(list, store.Case{ID: uuid.New(), Operation: after.ID, Tenant: after.Tenant, Tool: after.Tool,
			Reason: reason, Incident: incident, OpenedAt: now})
	}
	if after.State.NeedsCase() && moved {
		open(after.Reason, false)
	}
	if c.Incident != "" {
		open(c.Incident, true)
	}
	l.cases[after.ID] = list
}

// Renew implements [store.Ledger].
func (l *Ledger) Renew(ctx context.Context, lease time.Duration, held ...store.Held) ([]store.Held, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var lost []store.Held
	for _, h := range held {
		row := l.rows[h.Operation]
		if row == nil || row.State != store.Running || row.Owner != h.Owner || !row.LeaseUntil.After(now) {
			lost = append(lost, h)
			continue
		}
		row.LeaseUntil = now.Add(lease)
		row.DueAt = row.LeaseUntil
		if end := row.LeaseUntil.Add(row.Visibility); end.After(row.Moment) {
			row.Moment = end
		}
	}
	return lost, nil
}

// Take implements [store.Ledger].
func (l *Ledger) Take(ctx context.Context, t store.Take) ([]store.Entry, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var due []*store.Operation
	for _, row := range l.rows {
		if row.DueAt.IsZero() || row.DueAt.After(now) || slices.Contains(t.Except, row.Tool) {
			continue
		}
		if t.Operation == uuid.Nil || t.Operation == row.ID {
			due = append(due, row)
		}
	}
	slices.SortFunc(due, func(a, b *store.Operation) int {
		return cmp.Or(comparePairs(pairOf(a), pairOf(b), t.After), a.DueAt.Compare(b.DueAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	taken := map[store.Pair]int{}
	var entries []store.Entry
	for _, row := range due {
		pair := pairOf(row)
		if (t.Each > 0 && taken[pair] == t.Each) || (t.Limit > 0 && len(entries) == t.Limit) {
			continue
		}
		taken[pair]++
		row.DueAt = now.Add(t.Lease)
		entries = append(entries, l.entry(row, now))
	}
	return entries, nil
}

func pairOf(o *store.Operation) store.Pair { return store.Pair{Tool: o.Tool, Tenant: o.Tenant} }

// comparePairs orders pairs so that those behind the cursor come first.
func comparePairs(a, b, cursor store.Pair) int {
	plain := func(a, b store.Pair) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), bytes.Compare(a.Tenant[:], b.Tenant[:]))
	}
	behind := func(p store.Pair) int {
		if plain(p, cursor) > 0 {
			return 0
		}
		return 1
	}
	return cmp.Or(behind(a)-behind(b), plain(a, b))
}
