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
	now, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, r := range received {
		l.outbox = slices.DeleteFunc(l.outbox, func(o store.Outgoing) bool { return o.Seq == r.Seq })
		l.promote(r.Operation, now)
	}
	return nil
}

// promote makes due what was put off behind another announcement.
func (l *Ledger) promote(operation uuid.UUID, now time.Time) {
	for n := range l.outbox {
		if o := &l.outbox[n]; o.Operation == operation && o.DueAt.After(now) {
			o.DueAt = now
		}
	}
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
		behind := now.Add(wait)
		if o.DueAt = behind; dead {
			o.DueAt, behind = time.Time{}, now.Add(store.BehindDead)
		}
		for m := n + 1; m < len(l.outbox); m++ {
			if later := &l.outbox[m]; later.Operation == o.Operation && !later.Dead() {
				later.DueAt = behind
			}
		}
		break
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
	l.promote(l.outbox[n].Operation, now)
	return nil
}

// Discard implements [store.Outbox].
func (l *Ledger) Discard(ctx context.Context, tenant string, id uuid.UUID) error {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	n := l.find(tenant, id)
	if n < 0 {
		return store.ErrNotFound
	}
	operation := l.outbox[n].Operation
	l.outbox = slices.Delete(l.outbox, n, n+1)
	l.promote(operation, now)
	return nil
}

func (l *Ledger) find(tenant string, id uuid.UUID) int {
	return slices.IndexFunc(l.outbox, func(o store.Outgoing) bool {
		return o.ID == id && l.intent[o.Of.ID].TenantName == tenant
	})
}
