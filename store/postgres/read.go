package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

// defaultListLimit is [store.Filter.Limit] where it isn't set.
const defaultListLimit = 1000

// Get implements [store.Ledger].
func (l *Ledger) Get(ctx context.Context, tenant string, operation uuid.UUID) (store.Entry, error) {
	entries, err := query(ctx, l, scanEntry, l.sql.get, some(operation), tenant)
	if err != nil {
		return store.Entry{}, asRead(err)
	}
	if len(entries) == 0 {
		return store.Entry{}, store.ErrNotFound
	}
	return entries[0], nil
}

// List implements [store.Ledger]. With Intent or Parent it reads along the
// intent. Without, it reads along the ids, which is quick where many rows match.
func (l *Ledger) List(ctx context.Context, f store.Filter) ([]store.Entry, error) {
	sql, args := l.list(f)
	entries, err := query(ctx, l, scanEntry, sql, args...)
	return entries, asRead(err)
}

// list makes the statement for a filter. Only what is asked for is in it, so
// that the server plans for that.
func (l *Ledger) list(f store.Filter) (string, []any) {
	var args []any
	given := func(arg any) string {
		args = append(args, arg)
		return fmt.Sprintf("$%d", len(args))
	}
	sql := l.sql.list
	switch {
	case f.Intent != uuid.Nil:
		sql = l.sql.listIntent
		given(some(f.Intent))
	case f.Parent != uuid.Nil:
		sql = l.sql.listParent
		given(some(f.Parent))
	}
	sql += " WHERE o.id > " + given(some(f.After)) + "::uuid"
	if f.Tenant != "" {
		sql += " AND " + l.sql.ofTenant + " " + given(f.Tenant) + "::text)"
	}
	if f.Parent != uuid.Nil {
		sql += " AND o.parent = " + given(some(f.Parent)) + "::uuid"
	}
	if len(f.States) > 0 {
		names := make([]string, len(f.States))
		for i, s := range f.States {
			names[i] = s.String()
		}
		sql += " AND o.state::text = ANY (" + given(names) + "::text[])"
	}
	if f.Tool != "" {
		sql += " AND o.tool = " + given(f.Tool) + "::text"
	}
	if !f.Node.IsZero() {
		sql += " AND o.node = " + given(some(f.Node)) + "::uuid"
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultListLimit
	}
	return sql + " ORDER BY o.id LIMIT " + given(limit) + "::int", args
}

// Events implements [store.Ledger]. The second event is read with the first, to
// which it is chained.
func (l *Ledger) Events(ctx context.Context, operation uuid.UUID, after int) ([]store.Event, error) {
	from := after
	if after == 1 {
		from = 0
	}
	events, err := query(ctx, l, scanEvent, l.sql.events, some(operation), from)
	store.Chain(events)
	if err == nil && from != after && len(events) > 0 {
		events = events[1:]
	}
	return events, asRead(err)
}
