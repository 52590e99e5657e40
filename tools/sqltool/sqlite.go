package sqltool

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	modernc "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/settle-go/settle/internal/canonical"
)

type onSQLite struct{ tx *sql.Tx }

func (onSQLite) text(v string) (any, error) { return v, nil }

// number binds an integer of 64 bits, or a floating point number where none of
// the digits is lost. SQLite has no others.
func (onSQLite) number(v canonical.Value) (any, error) {
	text := v.String()
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !same(text, f) {
		return nil, errors.New("SQLite has no number that holds all of its digits; send it as a text")
	}
	return f, nil
}

// same says that a floating point number stands for a decimal one and no other of
// so many digits.
func same(text string, f float64) bool {
	back, err := canonical.Parse(strconv.AppendFloat(nil, f, 'g', -1, 64), canonical.Limits{})
	return err == nil && back.String() == text
}

func (onSQLite) boolean(v bool) any { return v }

func (db onSQLite) run(ctx context.Context, s *statement, args []any, returns bool) (effect, error) {
	if !returns {
		done, err := db.tx.ExecContext(ctx, s.sqlite, args...)
		if err != nil {
			return effect{}, err
		}
		n, err := done.RowsAffected()
		return effect{count: n}, err
	}
	rows, err := db.tx.QueryContext(ctx, s.sqlite, args...)
	if err != nil {
		return effect{}, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err == nil {
		err = columns(names)
	}
	if err != nil {
		return effect{}, err
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		return effect{}, err
	}
	var done effect
	for rows.Next() {
		if done.count++; done.count > maxRows {
			return done, errRows
		}
		r, err := readSQLite(rows, names, types)
		if err != nil {
			return done, err
		}
		done.rows = append(done.rows, r)
	}
	return done, rows.Err()
}

func (db onSQLite) finds(ctx context.Context, s *statement, args []any) (bool, error) {
	rows, err := db.tx.QueryContext(ctx, s.sqlite, args...)
	if err != nil {
		return false, err
	}
	found := rows.Next()
	return found, errors.Join(rows.Err(), rows.Close())
}

func readSQLite(rows *sql.Rows, names []string, types []*sql.ColumnType) (row, error) {
	r := row{names: names, values: make([]json.RawMessage, len(names))}
	found, into := make([]any, len(names)), make([]any, len(names))
	for i := range found {
		into[i] = &found[i]
	}
	if err := rows.Scan(into...); err != nil {
		return r, err
	}
	for i, v := range found {
		var err error
		if r.values[i], err = json.Marshal(fromSQLite(v, types[i].DatabaseTypeName())); err != nil {
			return r, err
		}
	}
	return r, nil
}

// fromSQLite makes a value that is written as JSON: numbers as numbers, a column
// declared BOOLEAN as true or false, instants as RFC 3339, bytes as base64.
func fromSQLite(v any, declared string) any {
	switch v := v.(type) {
	case int64:
		if strings.HasPrefix(strings.ToUpper(declared), "BOOL") {
			return v != 0
		}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return v
}

// violates says that a statement broke a constraint, on either database.
func violates(err error) bool {
	var e *modernc.Error
	return errors.As(err, &e) && e.Code()&0xff == codes.SQLITE_CONSTRAINT || violatesPostgres(err)
}
