package memory

import (
	"bytes"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// Get implements [store.Ledger].
func (l *Ledger) Get(ctx context.Context, tenant string, operation uuid.UUID) (store.Entry, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	defer leave()
	row, ok := l.rows[operation]
	if !ok || l.intent[row.Intent].TenantName != tenant {
		return store.Entry{}, store.ErrNotFound
	}
	return l.entry(row, now), nil
}

// List implements [store.Ledger].
func (l *Ledger) List(ctx context.Context, f store.Filter) ([]store.Entry, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var entries []store.Entry
	for _, row := range l.rows {
		if l.matches(row, f) {
			entries = append(entries, l.entry(row, now))
		}
	}
	slices.SortFunc(entries, func(a, b store.Entry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	limit := f.Limit
	if limit <= 0 {
		limit = 1000
	}
	return entries[:min(limit, len(entries))], nil
}

func (l *Ledger) matches(row *store.Operation, f store.Filter) bool {
	return (f.Tenant == "" || l.intent[row.Intent].TenantName == f.Tenant) &&
		(f.Intent == uuid.Nil || row.Intent == f.Intent) &&
		(f.Parent == uuid.Nil || row.Parent == f.Parent) &&
		(len(f.States) == 0 || slices.Contains(f.States, row.State)) &&
		(f.Tool == "" || row.Tool == f.Tool) &&
		(f.Node.IsZero() || row.Node == f.Node) &&
		bytes.Compare(row.ID[:], f.After[:]) > 0
}

// Events implements [store.Ledger].
func (l *Ledger) Events(ctx context.Context, operation uuid.UUID, after int) ([]store.Event, error) {
	_, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	all := l.events[operation]
	if after >= len(all) {
		return nil, nil
	}
	var events []store.Event
	for _, e := range all[max(after, 0):] {
		events = append(events, ownEvent(e))
	}
	return events, nil
}

// Audit implements [store.Ledger].
func (l *Ledger) Audit(ctx context.Context, entries ...store.Audit) error {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, e := range entries {
		e.At = now
		l.audit = append(l.audit, e)
	}
	return nil
}

// Check implements [store.Ledger].
func (l *Ledger) Check(ctx context.Context) ([]store.Finding, error) {
	_, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return []store.Finding{{
		Setting: "ledger", Value: "memory",
		Problem: "nothing that was claimed survives the process, so a restart repeats effects (R26)",
		Advice:  "open a ledger with store/sqlite or store/postgres",
	}}, nil
}
