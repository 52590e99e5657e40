package sqltool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/settle-go/settle/internal/canonical"
)

type onPostgres struct{ tx pgx.Tx }

func (onPostgres) text(v string) (any, error) {
	if strings.ContainsRune(v, 0) {
		return nil, errors.New("PostgreSQL has no text with the character U+0000; leave it out")
	}
	return v, nil
}

// Everything is bound as text, which the server reads as the type that it
// inferred for the parameter: a number keeps each of its digits.
func (onPostgres) number(v canonical.Value) (any, error) { return v.String(), nil }

func (onPostgres) boolean(v bool) any {
	if v {
		return "true"
	}
	return "false"
}

func (db onPostgres) run(ctx context.Context, s *statement, args []any, returns bool) (effect, error) {
	if !returns {
		tag, err := db.tx.Exec(ctx, s.postgres, args...)
		return effect{count: tag.RowsAffected()}, err
	}
	// Results come as text too, so that no type of Go stands between.
	rows, err := db.tx.Query(ctx, s.postgres, append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, args...)...)
	if err != nil {
		return effect{}, err
	}
	defer rows.Close()
	var done effect
	var names []string
	for _, f := range rows.FieldDescriptions() {
		names = append(names, f.Name)
	}
	if err := columns(names); err != nil {
		return done, err
	}
	types := pgtype.NewMap()
	for rows.Next() {
		if done.count++; done.count > maxRows {
			return done, errRows
		}
		r := row{names: names}
		for i, raw := range rows.RawValues() {
			value, err := fromPostgres(types, rows.FieldDescriptions()[i].DataTypeOID, raw)
			if err != nil {
				return done, err
			}
			r.values = append(r.values, value)
		}
		done.rows = append(done.rows, r)
	}
	return done, rows.Err()
}

func (db onPostgres) finds(ctx context.Context, s *statement, args []any) (bool, error) {
	rows, err := db.tx.Query(ctx, s.postgres, args...)
	if err != nil {
		return false, err
	}
	found := rows.Next()
	rows.Close()
	return found, rows.Err()
}

// fromPostgres writes a value in text form as JSON: numbers as numbers, JSON as it
// is, instants as RFC 3339, bytes as base64, and everything else as a text.
func fromPostgres(types *pgtype.Map, oid uint32, raw []byte) (json.RawMessage, error) {
	if raw == nil {
		return json.RawMessage("null"), nil
	}
	switch oid {
	case pgtype.BoolOID:
		return json.Marshal(string(raw) == "t")
	case pgtype.JSONOID, pgtype.JSONBOID:
		return append(json.RawMessage{}, raw...), nil
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID:
		if json.Valid(raw) { // NaN and infinities aren't
			return append(json.RawMessage{}, raw...), nil
		}
	case pgtype.TimestamptzOID:
		var at time.Time
		if err := types.Scan(oid, pgx.TextFormatCode, raw, &at); err == nil { // an infinity is no instant
			return json.Marshal(at.UTC().Format(time.RFC3339Nano))
		}
	case pgtype.TimestampOID:
		return json.Marshal(strings.Replace(string(raw), " ", "T", 1))
	case pgtype.ByteaOID:
		var content []byte
		if err := types.Scan(oid, pgx.TextFormatCode, raw, &content); err != nil {
			return nil, err
		}
		return json.Marshal(base64.StdEncoding.EncodeToString(content))
	}
	return json.Marshal(string(raw))
}

// violatesPostgres knows class 23, integrity constraint violations.
func violatesPostgres(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && strings.HasPrefix(e.Code, "23")
}
