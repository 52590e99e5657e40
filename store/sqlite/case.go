package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"strings"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

const (
	closeCase     = `UPDATE settle_case SET closed_at = ? WHERE operation = ? AND closed_at IS NULL AND incident = ?`
	openCase      = `INSERT INTO settle_case (id, operation, tenant, tool, reason, incident, opened_at) VALUES (?, ?, ?, ?, ?, ?, ?)`
	takeCase      = `UPDATE settle_case SET holder = ?, held_at = ? WHERE operation = ? AND closed_at IS NULL`
	proposeOnCase = `UPDATE settle_case SET proposal = ? WHERE operation = ? AND closed_at IS NULL`
	// dropClosed keeps a tombstone's proposals only for as long as somebody can confirm them (R51).
	dropClosed = `UPDATE settle_case SET proposal = NULL WHERE operation = ? AND closed_at IS NOT NULL AND proposal IS NOT NULL`
)

// fileCases keeps an operation's cases: it opens and closes the one that a state
// needs, opens and closes incidents, and notes who has taken what (R39, R41).
func (w *write) fileCases(before, after *store.Operation, c *store.Change) error {
	left := before.State.NeedsCase() && before.State != after.State
	came := after.State.NeedsCase() && before.State != after.State
	if c.Start != nil {
		c = &store.Change{} // an attempt begins, and nothing of a person's goes with it
	}
	if c.Take != nil {
		if _, err := w.exec(takeCase, text(*c.Take), w.now.UnixMicro(), after.ID[:]); err != nil {
			return err
		}
	}
	if c.Proposal != nil {
		if _, err := w.exec(proposeOnCase, encode(c.Proposal), after.ID[:]); err != nil {
			return err
		}
	}
	if left {
		if _, err := w.exec(closeCase, w.now.UnixMicro(), after.ID[:], int64(0)); err != nil {
			return err
		}
	}
	if c.Resolve {
		if _, err := w.exec(closeCase, w.now.UnixMicro(), after.ID[:], int64(1)); err != nil {
			return err
		}
	}
	if (left || c.Resolve) && after.Flags&store.FlagPurged != 0 {
		if _, err := w.exec(dropClosed, after.ID[:]); err != nil {
			return err
		}
	}
	if came {
		if err := w.openCase(after, after.Reason, 0); err != nil {
			return err
		}
	}
	if c.Incident != "" {
		return w.openCase(after, c.Incident, 1)
	}
	return nil
}

func (w *write) openCase(o *store.Operation, reason string, incident int64) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = w.exec(openCase, id[:], o.ID[:], o.Tenant[:], o.Tool, text(reason), incident, w.now.UnixMicro())
	return err
}

// caseColumns are those of a case, apart from its operation's.
var caseColumns = []column[store.Case]{
	{"id", func(c *store.Case) any { return &c.ID }},
	{"operation", func(c *store.Case) any { return &c.Operation }},
	{"tenant", func(c *store.Case) any { return &c.Tenant }},
	{"tool", func(c *store.Case) any { return &c.Tool }},
	{"reason", func(c *store.Case) any { return &c.Reason }},
	{"incident", func(c *store.Case) any { return &c.Incident }},
	{"opened_at", func(c *store.Case) any { return &c.OpenedAt }},
	{"closed_at", func(c *store.Case) any { return &c.ClosedAt }},
	{"holder", func(c *store.Case) any { return &c.Holder }},
	{"held_at", func(c *store.Case) any { return &c.HeldAt }},
	{"proposal", func(c *store.Case) any { return &c.Proposal }},
}

var selectCase = "SELECT " + names("c.", caseColumns) + ", " + names("o.", operationColumns) + ", " + names("", intentColumns) +
	" FROM settle_case c JOIN settle_operation o ON o.id = c.operation" +
	" JOIN settle_intent i ON i.id = o.intent JOIN settle_tenant t ON t.id = i.tenant "

// Cases implements [store.Ledger].
func (l *Ledger) Cases(ctx context.Context, f store.CaseFilter) ([]store.CaseEntry, error) {
	var all []store.CaseEntry
	err := l.read(ctx, func(v *view) error {
		where, args := filteredCases(f, v.now.UnixMicro())
		return v.query(ctx, func(values []driver.Value) (err error) {
			var e store.CaseEntry
			if values, err = decoded(values, caseColumns, &e.Case); err != nil {
				return err
			}
			if e.Entry.Operation, values, err = v.operation(values); err != nil {
				return err
			}
			_, err = decoded(values, intentColumns, &e.Entry.Of)
			all = append(all, e)
			return err
		}, selectCase+where, args...)
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func filteredCases(f store.CaseFilter, now int64) (where string, args []driver.Value) {
	var terms []string
	and := func(term string, values ...driver.Value) {
		terms, args = append(terms, term), append(args, values...)
	}
	and("(c.opened_at, c.id) > (?, ?)", micros(f), f.After.ID[:])
	if !f.Closed {
		and("c.closed_at IS NULL")
	}
	if f.Tenant != "" {
		and("c.tenant = (SELECT id FROM settle_tenant WHERE name = ?)", f.Tenant)
	}
	if f.Operation != uuid.Nil {
		and("c.operation = ?", f.Operation[:])
	}
	if f.Tool != "" {
		and("c.tool = ?", f.Tool)
	}
	if f.Reason != "" {
		and("c.reason = ?", f.Reason)
	}
	if f.Holder != "" {
		and("c.holder = ?", f.Holder)
	}
	if f.Free {
		and("c.holder IS NULL")
	}
	if f.OlderThan > 0 {
		and("c.opened_at <= ?", now-f.OlderThan.Microseconds())
	}
	if len(f.States) > 0 {
		var states []driver.Value
		for _, s := range f.States {
			states = append(states, s.String())
		}
		and("o.state IN ("+marks(len(states))+")", states...)
	}
	args = append(args, int64(cmp.Or(max(f.Limit, 0), 100)))
	return "WHERE " + strings.Join(terms, " AND ") + " ORDER BY c.opened_at, c.id LIMIT ?", args
}

// micros is where a page of cases begins; before all of them at the zero cursor.
func micros(f store.CaseFilter) int64 {
	if f.After.OpenedAt.IsZero() {
		return 0
	}
	return f.After.OpenedAt.UnixMicro()
}
