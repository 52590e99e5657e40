package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
	sql := l.sql.cases
	and := " WHERE "
	given := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = fmt.Sprintf(condition, len(args))
		}
		sql += and + condition
		and = " AND "
	}
	if f.After != (store.CaseCursor{}) {
		args = append(args, f.After.OpenedAt, some(f.After.ID))
		sql += and + "(c.opened_at, c.id) > ($1::timestamptz, $2::uuid)"
		and = " AND "
	}
	if !f.Closed {
		given("c.closed_at IS NULL")
	}
	if f.Tenant != "" {
		given(l.sql.caseOfTenant+" $%d::text)", f.Tenant)
	}
	if f.Operation != uuid.Nil {
		given("c.operation = $%d::uuid", some(f.Operation))
	}
	if f.Tool != "" {
		given("c.tool = $%d::text", f.Tool)
	}
	if f.Reason != "" {
		given("c.reason = $%d::text", f.Reason)
	}
	if f.Holder != "" {
		given("c.holder = $%d::text", f.Holder)
	}
	if f.Free {
		given("c.holder = ''")
	}
	if f.OlderThan > 0 {
		given("c.opened_at <= statement_timestamp() - $%d::interval", span(f.OlderThan))
	}
	if len(f.States) > 0 {
		names := make([]string, len(f.States))
		for i, s := range f.States {
			names[i] = s.String()
		}
		given("o.state::text = ANY ($%d::text[])", names)
	}
	args = append(args, cmp.Or(max(f.Limit, 0), 100))
	return sql + fmt.Sprintf(" ORDER BY c.opened_at, c.id LIMIT $%d::int", len(args)), args
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
	audits, err := query(ctx, l, func(row pgx.CollectableRow) (a store.Audit, err error) {
		err = row.Scan((*key)(&a.Operation), (*instant)(&a.At), &a.Kind, &a.Actor, &a.Detail)
		return a, err
	}, l.sql.audits, some(operation))
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
