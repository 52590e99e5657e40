package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"slices"

	"github.com/google/uuid"

	"github.com/settle-go/settle/store"
)

const (
	declareTool = `INSERT INTO settle_tool (tool, deciders, guidance, result_schema) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (tool) DO UPDATE SET deciders = ?2, guidance = ?3, result_schema = ?4`
	declaredTool = `SELECT tool, deciders, guidance, result_schema FROM settle_tool WHERE tool = ?`
	auditsOfNone = `SELECT operation, at, kind, actor, detail FROM settle_audit WHERE operation IS NULL ORDER BY id`
	auditsOf     = `SELECT operation, at, kind, actor, detail FROM settle_audit WHERE operation = ? ORDER BY id`
)

// Declare implements [store.Ledger].
func (l *Ledger) Declare(ctx context.Context, tools ...store.ToolRecord) error {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].ResultSchema = bytes.Clone(tools[i].ResultSchema)
	}
	_, err := written(ctx, l, func(w *write) (struct{}, error) {
		for i := range tools {
			t := &tools[i]
			if _, err := w.exec(declareTool, t.Tool, int64(t.Deciders), text(t.Guidance), encode(&t.ResultSchema)); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	})
	return err
}

// Declared implements [store.Ledger].
func (l *Ledger) Declared(ctx context.Context, tool string) (t store.ToolRecord, err error) {
	err = l.read(ctx, func(v *view) error {
		_, err := v.first([]any{&t.Tool, &t.Deciders, &t.Guidance, &t.ResultSchema}, declaredTool, tool)
		return err
	})
	return t, err
}

// Audits implements [store.Ledger].
func (l *Ledger) Audits(ctx context.Context, operation uuid.UUID) ([]store.Audit, error) {
	var all []store.Audit
	sql, args := auditsOf, []driver.Value{operation[:]}
	if operation == uuid.Nil {
		sql, args = auditsOfNone, nil
	}
	err := l.read(ctx, func(v *view) error {
		all = nil
		return v.query(ctx, func(values []driver.Value) error {
			var a store.Audit
			err := decodeAll([]any{&a.Operation, &a.At, &a.Kind, &a.Actor, &a.Detail}, values)
			all = append(all, a)
			return err
		}, sql, args...)
	})
	return all, err
}
