package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	modernc "modernc.org/sqlite"
)

// conn is one connection with its prepared statements, used by one goroutine at
// a time. It speaks to the driver itself: database/sql would add its pool's
// locks and conversions to each of the half dozen statements of an operation.
type conn struct {
	raw      driver.Conn
	prepared map[string]*statement
}

// statement is prepared once and keeps its buffers.
type statement struct {
	driver.Stmt
	args   []driver.NamedValue
	values []driver.Value
}

// maxPrepared bounds the statements of a connection. What a ledger uses is far
// less; only filters and sets of columns make more of them.
const maxPrepared = 256

// connect opens a connection and runs the pragmas that every connection needs,
// then those given. wait is SQLite's own busy timeout.
func connect(ctx context.Context, dsn string, wait time.Duration, pragmas ...string) (*conn, error) {
	connector, err := modernc.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw, prepared: map[string]*statement{}}
	basic := []string{
		fmt.Sprintf("busy_timeout = %d", wait.Milliseconds()),
		"foreign_keys = ON",
		"synchronous = FULL",
		"fullfsync = ON", // macOS: fsync alone doesn't reach the disk there
		"checkpoint_fullfsync = ON",
		"temp_store = MEMORY",
		"trusted_schema = OFF",
	}
	for _, p := range append(basic, pragmas...) {
		if err := c.script("PRAGMA " + p); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// close finalizes the statements first: SQLite keeps a connection open, with its
// locks, for as long as it has any.
func (c *conn) close() error {
	return errors.Join(c.unprepare(), c.raw.Close())
}

func (c *conn) unprepare() (err error) {
	for _, s := range c.prepared {
		err = errors.Join(err, s.Close())
	}
	clear(c.prepared)
	return err
}

// script runs statements that are needed once.
func (c *conn) script(sql string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), sql, nil)
	return err
}

// writable says why the file can't be written, if so: SQLite opens a file that
// the user may only read without a word.
func (c *conn) writable() error {
	only, err := c.raw.(interface{ IsReadOnly(string) (bool, error) }).IsReadOnly("main")
	if err == nil && only {
		err = errNotWritable
	}
	return err
}

// statement returns sql prepared, with its arguments set.
func (c *conn) statement(sql string, args []driver.Value) (*statement, error) {
	s := c.prepared[sql]
	if s == nil {
		if len(c.prepared) >= maxPrepared {
			if err := c.unprepare(); err != nil {
				return nil, err
			}
		}
		stmt, err := c.raw.Prepare(sql)
		if err != nil {
			return nil, err
		}
		s = &statement{Stmt: stmt, args: make([]driver.NamedValue, len(args))}
		c.prepared[sql] = s
	}
	if len(args) != len(s.args) {
		return nil, fmt.Errorf("a statement got %d arguments in place of %d", len(args), len(s.args))
	}
	for i, a := range args {
		s.args[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return s, nil
}

// exec runs a prepared statement and says how many rows it changed.
func (c *conn) exec(sql string, args ...driver.Value) (int64, error) {
	s, err := c.statement(sql, args)
	if err != nil {
		return 0, err
	}
	result, err := s.Stmt.(driver.StmtExecContext).ExecContext(context.Background(), s.args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query calls row with the values of each row. They are the row's own; the
// slice that holds them is used again.
func (c *conn) query(ctx context.Context, row func([]driver.Value) error, sql string, args ...driver.Value) (err error) {
	s, err := c.statement(sql, args)
	if err != nil {
		return err
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, s.args)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, rows.Close()) }()
	if s.values == nil {
		s.values = make([]driver.Value, len(rows.Columns()))
	}
	for {
		if err := rows.Next(s.values); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := row(s.values); err != nil {
			return err
		}
	}
}

// first decodes the columns of the first row into fields and says whether
// there was one.
func (c *conn) first(fields []any, sql string, args ...driver.Value) (found bool, err error) {
	err = c.query(context.Background(), func(values []driver.Value) error {
		if found {
			return nil
		}
		found = true
		return decodeAll(fields, values)
	}, sql, args...)
	return found, err
}
