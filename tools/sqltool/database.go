package sqltool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/settle-go/settle/internal/canonical"
	"github.com/settle-go/settle/store/postgres"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/tools/internal/arguments"
)

// database is the ledger's, inside its transaction.
type database interface {
	// text is how a text is bound.
	text(v string) (any, error)
	// number is how a number is bound.
	number(v canonical.Value) (any, error)
	// boolean is how true and false are bound.
	boolean(v bool) any
	// run carries out a statement. With returns its rows are kept and counted,
	// otherwise the rows that it changed are.
	run(ctx context.Context, s *statement, args []any, returns bool) (effect, error)
	// finds says whether a query has a row.
	finds(ctx context.Context, s *statement, args []any) (bool, error)
}

// effect is what a statement did.
type effect struct {
	count int64
	rows  []row
}

// row is one of a result: names of columns and JSON, in the order of the columns.
type row struct {
	names  []string
	values []json.RawMessage
}

// MarshalJSON writes the row as an object.
func (r row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range r.names {
		if i > 0 {
			b.WriteByte(',')
		}
		encoded, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		b.Write(encoded)
		b.WriteByte(':')
		b.Write(r.values[i])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// ErrNoTransaction says that the tool doesn't run in a ledger's transaction: its
// ledger is neither of store/postgres nor of store/sqlite.
var ErrNoTransaction = errors.New("sqltool: there is no transaction of a PostgreSQL or SQLite ledger in the context: run the tool on a ledger of store/postgres or store/sqlite")

func transaction(ctx context.Context) (database, error) {
	if tx, ok := postgres.Tx(ctx); ok {
		return onPostgres{tx}, nil
	}
	if tx, ok := sqlite.Tx(ctx); ok {
		return onSQLite{tx}, nil
	}
	return nil, ErrNoTransaction
}

// bind makes a statement's parameters of the arguments. No argument is ever a
// part of the statement itself. Its error is an [*ArgumentError].
func bind(db database, s *statement, values arguments.Values) ([]any, error) {
	args := make([]any, len(s.names))
	for i, name := range s.names {
		v, ok := values.Get(name)
		var err error
		switch {
		case !ok: // absent and null are NULL
		case v.Kind() == canonical.String:
			args[i], err = db.text(v.String())
		case v.Kind() == canonical.Bool:
			args[i] = db.boolean(v.Bool())
		case v.Kind() == canonical.Number:
			args[i], err = db.number(v)
		default:
			args[i] = string(v.AppendJSON(nil))
		}
		if err != nil {
			return nil, &ArgumentError{Field: name, Reason: err.Error()}
		}
	}
	return args, nil
}

// columns checks the names of a result's columns: two of one name would be one.
func columns(names []string) error {
	seen := map[string]bool{}
	for i, name := range names {
		if name == "" || seen[name] {
			return fmt.Errorf("column %d has no name of its own: give it one with AS", i+1)
		}
		seen[name] = true
	}
	return nil
}

var errRows = fmt.Errorf("a result has more than %d rows: bound it with LIMIT", maxRows)
