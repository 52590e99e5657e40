package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/store"
)

// Cases implements [store.Ledger], in one round trip.
func (l *Ledger) Cases(ctx context.Context, f store.CaseFilter) ([]store.CaseEntry, error) {
	sql, args := l.cases(f)
	cases, err := query(ctx, l, scanCase, sql, args...)
	return cases, asRead(err)
}

// cases makes the statement for a filter. Only what is asked for is in it, so
// that the server plans for that.
func (l *Ledger) cases(f store.CaseFilter) (string, []any) {
	var args []any
	var conditions []string
	given := func(arg any) string {
		args = append(args, arg)
		return fmt.Sprintf("$%d", len(args))
	}
	where := func(condition string) { conditions = append(conditions, condition) }
	if f.After != (store.CaseCursor{}) {
		where("(c.opened_at, c.id) > (" + given(f.After.OpenedAt) + "::timestamptz, " + given(some(f.After.ID)) + "::uuid)")
	}
	if !f.Closed {
		where("c.closed_at IS NULL")
	}
	if f.Tenant != "" {
		where(l.sql.caseOfTenant + " " + given(f.Tenant) + "::text)")
	}
	if f.Operation != uuid.Nil {
		where("c.operation = " + given(some(f.Operation)) + "::uuid")
	}
	if f.Tool != "" {
		where("c.tool = " + given(f.Tool) + "::text")
	}
	if f.Reason != "" {
		where("c.reason = " + given(f.Reason) + "::text")
	}
	if f.Holder != "" {
		where("c.holder <> '' AND c.holder = " + given(f.Holder) + "::text") // the first for the index's sake
	}
	if f.Free {
		where("c.holder = ''")
	}
	if f.OlderThan > 0 {
		where("c.opened_at <= statement_timestamp() - " + given(span(f.OlderThan)) + "::interval")
	}
	if len(f.States) > 0 {
		names := make([]string, len(f.States))
		for i, s := range f.States {
			names[i] = s.String()
		}
		// As states and not as texts: the server knows how many there are of each.
		where("o.state = ANY (" + given(names) + "::text[]::" + pgx.Identifier{l.schema, "state"}.Sanitize() + "[])")
	}
	sql := l.sql.cases
	if len(conditions) > 0 {
		sql += " WHERE " + strings.Join(conditions, " AND ")
	}
	return sql + " ORDER BY c.opened_at, c.id LIMIT " + given(cmp.Or(max(f.Limit, 0), 100)) + "::int", args
}

func scanCase(row pgx.CollectableRow) (e store.CaseEntry, err error) {
	c := &e.Case
	fields := []any{(*key)(&c.ID), (*key)(&c.Operation), (*key)(&c.Tenant), &c.Tool, &c.Reason, &c.Incident,
		(*instant)(&c.OpenedAt), (*instant)(&c.ClosedAt), &c.Holder, (*instant)(&c.HeldAt), &c.Proposal}
	err = row.Scan(slices.Concat(fields, operationFields(&e.Entry.Operation), intentFields(&e.Entry.Of))...)
	return e, err
}

// Audits implements [store.Ledger], in one round trip.
func (l *Ledger) Audits(ctx context.Context, operation uuid.UUID) ([]store.Audit, error) {
	sql, args := l.sql.audits, []any{some(operation)}
	if operation == uuid.Nil {
		sql, args = l.sql.auditsOfNone, nil
	}
	audits, err := query(ctx, l, func(row pgx.CollectableRow) (a store.Audit, err error) {
		err = row.Scan((*key)(&a.Operation), (*instant)(&a.At), &a.Kind, &a.Actor, &a.Detail)
		return a, err
	}, sql, args...)
	return audits, asRead(err)
}

// Declare implements [store.Ledger], in one round trip.
func (l *Ledger) Declare(ctx context.Context, tools ...store.ToolRecord) error {
	// Of two words on a tool in one call the later counts.
	last := map[string]store.ToolRecord{}
	for _, t := range tools {
		last[t.Tool] = t
	}
	var names, guidance []string
	var deciders []int32
	var schemas [][]byte
	for _, t := range last {
		names, deciders = append(names, t.Tool), append(deciders, int32(t.Deciders))
		guidance, schemas = append(guidance, t.Guidance), append(schemas, t.ResultSchema)
	}
	if len(names) == 0 {
		return nil
	}
	var b pgx.Batch
	if l.limits {
		b.Queue(l.sql.lockLimit)
	}
	b.Queue(l.sql.declare, names, deciders, guidance, schemas)
	return asWrite(l.send(ctx, &b))
}

// Declared implements [store.Ledger], in one round trip.
func (l *Ledger) Declared(ctx context.Context, tool string) (store.ToolRecord, error) {
	records, err := query(ctx, l, func(row pgx.CollectableRow) (t store.ToolRecord, err error) {
		err = row.Scan(&t.Tool, &t.Deciders, &t.Guidance, &t.ResultSchema)
		return t, err
	}, l.sql.declared, tool)
	if err != nil || len(records) == 0 {
		return store.ToolRecord{}, asRead(err)
	}
	return records[0], nil
}
