package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

var _ store.Outbox = (*Ledger)(nil)

// announce puts events of a row's last change into the outbox (R54).
func (l *Ledger) announce(row *store.Operation, events []store.Announcement, now time.Time) {
	for _, a := range events {
		l.outSeq++
		a.Data = bytes.Clone(a.Data)
		l.outbox = append(l.outbox, store.Outgoing{Announcement: a, Seq: l.outSeq, Operation: row.ID,
			Of: store.Intent{ID: row.Intent}, At: now, DueAt: now})
	}
}

// Fetch implements [store.Outbox].
func (l *Ledger) Fetch(ctx context.Context, limit int, lease time.Duration) ([]store.Outgoing, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var due []*store.Outgoing
	first := map[uuid.UUID]bool{}
	for n := range l.outbox {
		o := &l.outbox[n]
		if earlier := first[o.Operation]; !earlier && !o.Dead() && !o.DueAt.After(now) {
			due = append(due, o)
		}
		first[o.Operation] = true
	}
	slices.SortStableFunc(due, func(a, b *store.Outgoing) int { return a.DueAt.Compare(b.DueAt) })
	var fetched []store.Outgoing
	for _, o := range due[:min(limit, len(due))] {
		o.Deliveries++
		o.DueAt = now.Add(lease)
		fetched = append(fetched, l.outgoing(*o))
	}
	slices.SortFunc(fetched, func(a, b store.Outgoing) int { return cmp.Compare(a.Seq, b.Seq) })
	return fetched, nil
}

// outgoing is an announcement as others get it.
func (l *Ledger) outgoing(o store.Outgoing) store.Outgoing {
	o.Data, o.Of = bytes.Clone(o.Data), ownIntent(l.intent[o.Of.ID])
	return o
}

// Delivered implements [store.Outbox].
func (l *Ledger) Delivered(ctx context.Context, received ...store.Outgoing) error {
	return l.dropOutgoing(ctx, func(o store.Outgoing) bool {
		return slices.ContainsFunc(received, func(r store.Outgoing) bool { return r.Seq == o.Seq })
	})
}

func (l *Ledger) dropOutgoing(ctx context.Context, which func(store.Outgoing) bool) error {
	_, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	l.outbox = slices.DeleteFunc(l.outbox, which)
	return nil
}

// Undelivered implements [store.Outbox].
func (l *Ledger) Undelivered(ctx context.Context, undelivered store.Outgoing, wait time.Duration, dead bool) error {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for n := range l.outbox {
		o := &l.outbox[n]
		if o.Seq != undelivered.Seq || o.Deliveries != undelivered.Deliveries {
			continue
		}
		if o.DueAt = now.Add(wait); dead {
			o.DueAt = time.Time{}
		}
	}
	return nil
}

// Waiting implements [store.Outbox].
func (l *Ledger) Waiting(ctx context.Context, f store.OutgoingFilter) ([]store.Outgoing, error) {
	_, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var waiting []store.Outgoing
	for _, o := range l.outbox {
		out := l.outgoing(o)
		if o.Seq > f.After && (f.Tenant == "" || out.Of.TenantName == f.Tenant) && (!f.Dead || o.Dead()) && len(waiting) < cmp.Or(f.Limit, 100) {
			waiting = append(waiting, out)
		}
	}
	return waiting, nil
}

// Redeliver implements [store.Outbox].
func (l *Ledger) Redeliver(ctx context.Context, tenant string, id uuid.UUID) error {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	n := l.find(tenant, id)
	if n < 0 {
		return store.ErrNotFound
	}
	l.outbox[n].DueAt = now
	return nil
}

// Discard implements [store.Outbox].
func (l *Ledger) Discard(ctx context.Context, tenant string, id uuid.UUID) error {
	_, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	n := l.find(tenant, id)
	if n < 0 {
		return store.ErrNotFound
	}
	l.outbox = slices.Delete(l.outbox, n, n+1)
	return nil
}

func (l *Ledger) find(tenant string, id uuid.UUID) int {
	return slices.IndexFunc(l.outbox, func(o store.Outgoing) bool {
		return o.ID == id && l.intent[o.Of.ID].TenantName == tenant
	})
}
