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

// Audits implements [store.Ledger].
func (l *Ledger) Audits(ctx context.Context, operation uuid.UUID) ([]store.Audit, error) {
	_, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var rows []store.Audit
	for _, a := range l.audit {
		if a.Operation == operation {
			rows = append(rows, a)
		}
	}
	return rows, nil
}

// Cases implements [store.Ledger].
func (l *Ledger) Cases(ctx context.Context, f store.CaseFilter) ([]store.CaseEntry, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var found []store.CaseEntry
	for id, list := range l.cases {
		for _, c := range list {
			if row := l.rows[id]; l.caseMatches(c, row, f, now) {
				found = append(found, store.CaseEntry{Case: ownCase(c), Entry: l.entry(row, now)})
			}
		}
	}
	slices.SortFunc(found, func(a, b store.CaseEntry) int {
		return cmp.Or(a.Case.OpenedAt.Compare(b.Case.OpenedAt), bytes.Compare(a.Case.ID[:], b.Case.ID[:]))
	})
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	return found[:min(limit, len(found))], nil
}

func (l *Ledger) caseMatches(c store.Case, row *store.Operation, f store.CaseFilter, now time.Time) bool {
	behind := cmp.Or(c.OpenedAt.Compare(f.After.OpenedAt), bytes.Compare(c.ID[:], f.After.ID[:])) > 0
	return behind && (f.Closed || c.ClosedAt.IsZero()) &&
		(f.Tenant == "" || l.intent[row.Intent].TenantName == f.Tenant) &&
		(f.Operation == uuid.Nil || c.Operation == f.Operation) &&
		(len(f.States) == 0 || slices.Contains(f.States, row.State)) &&
		(f.Tool == "" || c.Tool == f.Tool) &&
		(f.Reason == "" || c.Reason == f.Reason) &&
		(f.Holder == "" || c.Holder == f.Holder) &&
		(!f.Free || c.Holder == "") &&
		!c.OpenedAt.Add(f.OlderThan).After(now)
}

// Purge implements [store.Ledger].
func (l *Ledger) Purge(ctx context.Context, p store.Purge) (store.Purged, error) {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return store.Purged{}, err
	}
	defer leave()
	limit := p.Limit
	if limit <= 0 {
		limit = 1000
	}
	var ids []uuid.UUID
	for id := range l.rows {
		if bytes.Compare(id[:], p.After[:]) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	page := ids[:min(limit, len(ids))]
	done := store.Purged{Seen: len(page)}
	for _, id := range page {
		switch row := l.rows[id]; {
		case p.Principal == [32]byte{} && l.departs(row, now):
			l.forget(row)
			done.Removed++
		case l.purgeable(row, p, now):
			l.entomb(row)
			done.Removed++
		}
	}
	if len(page) == limit {
		done.Next = page[len(page)-1]
	}
	return done, nil
}

func (l *Ledger) purgeable(row *store.Operation, p store.Purge, now time.Time) bool {
	if row.Flags&store.FlagPurged != 0 {
		return false
	}
	if p.Principal != [32]byte{} {
		return l.intent[row.Intent].Principal == p.Principal
	}
	return row.State.Settled() && row.Retention != 0 && !row.SettledAt.Add(row.Retention).After(now) && !l.hangs(row)
}

// hangs says whether the row hangs on something open (R51): an unsettled
// relative, or an incident.
func (l *Ledger) hangs(row *store.Operation) bool {
	for _, other := range l.rows {
		if !other.State.Settled() && (other.ID == row.Parent || other.Parent == row.ID) {
			return true
		}
	}
	return l.hasOpenCase(row)
}

func (l *Ledger) hasOpenCase(row *store.Operation) bool {
	return slices.ContainsFunc(l.cases[row.ID], func(c store.Case) bool { return c.ClosedAt.IsZero() })
}

// entomb leaves of a row what has to be known for ever (R51). A proposal holds
// the result that a person gave.
func (l *Ledger) entomb(row *store.Operation) {
	for n := range l.cases[row.ID] {
		l.cases[row.ID][n].Proposal = nil
	}
	for n := range l.outbox {
		if l.outbox[n].Operation == row.ID {
			l.outbox[n].Data = nil
		}
	}
	row.Entomb()
}

// CloseIntent implements [store.Ledger].
func (l *Ledger) CloseIntent(ctx context.Context, tenant string, intent uuid.UUID) error {
	now, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	of, ok := l.intent[intent]
	if !ok || of.TenantName != tenant {
		return store.ErrNotFound
	}
	if !of.ClosedAt.IsZero() {
		return nil
	}
	var own []*store.Operation
	for _, row := range l.rows {
		if row.Intent != intent {
			continue
		}
		if !row.State.Settled() || l.hasOpenCase(row) {
			return store.ErrUnsettled
		}
		own = append(own, row)
	}
	for _, row := range own {
		l.entomb(row)
	}
	of.Subject, of.Task, of.Goal, of.ClosedAt = "", "", "", now
	l.intent[intent] = of
	return nil
}

// departs says whether a row goes: its intent is closed for long enough, it hangs
// on nothing open, and it doesn't stand in the way of others for ever. That do
// the one operation that Unique admits (R14), and the writes on a resource,
// without which an older one that they overtook would start again and undo them
// (R31).
func (l *Ledger) departs(row *store.Operation, now time.Time) bool {
	closed := l.intent[row.Intent].ClosedAt
	stands := row.State != store.Failed && (!row.Unique.IsZero() || !row.ResourceKey.IsZero())
	return row.State.Settled() && !stands && !closed.IsZero() && !closed.Add(store.ClosedGrace).After(now) && !l.hangs(row)
}

// forget removes a row with its journal. What it was completed with settles no
// other operation all the same (R34).
func (l *Ledger) forget(row *store.Operation) {
	if row.State == store.Completed && !row.ResourceDigest.IsZero() {
		l.settled[resourceKey{row.Tool, row.ResourceDigest}] = true
	}
	delete(l.rows, row.ID)
	delete(l.events, row.ID)
	delete(l.cases, row.ID)
	without := func(ids []uuid.UUID) []uuid.UUID {
		return slices.DeleteFunc(ids, func(id uuid.UUID) bool { return id == row.ID })
	}
	slot, key := slotKey{row.Intent, row.Slot}, contractKey{row.Intent, row.Tool}
	l.slots[slot], l.tools[key] = without(l.slots[slot]), without(l.tools[key])
	l.uniques[row.Unique], l.resources[row.ResourceKey] = without(l.uniques[row.Unique]), without(l.resources[row.ResourceKey])
}

// Declare implements [store.Ledger].
func (l *Ledger) Declare(ctx context.Context, tools ...store.ToolRecord) error {
	_, leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, t := range tools {
		l.declared[t.Tool] = ownTool(t)
	}
	return nil
}

// Declared implements [store.Ledger].
func (l *Ledger) Declared(ctx context.Context, tool string) (store.ToolRecord, error) {
	_, leave, err := l.enter(ctx)
	if err != nil {
		return store.ToolRecord{}, err
	}
	defer leave()
	return ownTool(l.declared[tool]), nil
}
