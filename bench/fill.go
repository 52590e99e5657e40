package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// filler fills a ledger quickly: with rows like those that settle wrote, made by
// the database itself, column by column, so that it doesn't have to know the
// tables. It writes what differs from copy to copy in the database's own words.
type filler struct {
	// table is a table's name as a statement has it; columns are its columns.
	table   func(name string) string
	columns func(ctx context.Context, table string) ([]string, error)
	// numbered is the column of operation that the database numbers itself, if any.
	numbered string
	// copy inserts one row of values for each n from first to last, made from the
	// rows of the table that the condition selects, which are called one.
	copy func(ctx context.Context, table, condition, values string, first, last int) error
	// finish leaves the database as it is after a while: with statistics and
	// without a backlog of writes.
	finish func(ctx context.Context) error

	key                func(id string) string   // an id
	uuid               func(hex string) string  // an id from 32 hexadecimal digits
	hex                func(n string) [2]string // a number with 12 and with 3 digits
	random16, random32 string
	at                 func(t time.Time) string // an instant
	later              func(instant, micros string) string
	span               func(d time.Duration) string // a duration

	began time.Time
	// made is how many copies there are, rounded up to whole intents.
	made int
}

// copies says which operation is copied and how often, and what else differs.
type copies struct {
	operation string
	n         int
	// change are expressions for columns of a table, over n, the number of the
	// copy, and one, the row that it is made from.
	change map[string]map[string]string
}

// copyRows bounds the copies of one transaction.
const copyRows = 50_000

// fill makes copies of an operation with its journal and its cases, a thousand
// in an intent. They are as settle would have written them a day ago: ids in the
// order of time, the digests of slots and resources random.
func (f *filler) fill(ctx context.Context, c copies) error {
	var (
		own    = f.key(c.operation)
		intent = "(SELECT intent FROM " + f.table("operation") + " WHERE id = " + own + ")"
		within = fmt.Sprintf("(n / %d)", perIntent)
	)
	for _, t := range []struct {
		name, condition string
		first, n        int
		new             map[string]string
	}{
		{"intent", "id = " + intent, f.made / perIntent, (c.n + perIntent - 1) / perIntent, map[string]string{
			"id": f.id("n"), "digest": f.random32, "task": "'task-' || n"}},
		{"contract", "intent = " + intent, f.made / perIntent, (c.n + perIntent - 1) / perIntent, map[string]string{"intent": f.id("n")}},
		{"operation", "id = " + own, f.made, c.n, map[string]string{"id": f.id("n"), "intent": f.id(within),
			"slot": f.random16, "node": f.random16,
			"resource_digest": "CASE WHEN one.resource_digest IS NOT NULL THEN " + f.random16 + " END"}},
		{"event", "operation = " + own, f.made, c.n, map[string]string{"operation": f.id("n")}},
		{"case", "operation = " + own, f.made, c.n, map[string]string{"id": f.random16, "operation": f.id("n")}},
	} {
		if t.name == "operation" && f.numbered != "" {
			t.new[f.numbered] = "NULL"
		}
		for column, expression := range c.change[t.name] {
			t.new[column] = expression
		}
		values, err := f.values(ctx, t.name, t.new)
		if err != nil {
			return err
		}
		for first, end := t.first, t.first+t.n; first < end; first += copyRows {
			if err := f.copy(ctx, t.name, t.condition, values, first, min(first+copyRows, end)-1); err != nil {
				return fmt.Errorf("copy the rows of %s: %w", t.name, err)
			}
		}
	}
	f.made += (c.n + perIntent - 1) / perIntent * perIntent
	return nil
}

// id is a UUID of version 7 that grows with n.
func (f *filler) id(n string) string {
	ago := f.began.Add(-24 * time.Hour).UnixMilli()
	high, low := f.hex(fmt.Sprintf("(%d + %s / 4096)", ago, n)), f.hex(fmt.Sprintf("(%s %% 4096)", n))
	rest := f.hex(n)
	return f.uuid(high[0] + " || '7' || " + low[1] + " || '8000' || " + rest[0])
}

// values are those of a table's columns in order, with what is new in a copy.
func (f *filler) values(ctx context.Context, table string, other map[string]string) (string, error) {
	names, err := f.columns(ctx, table)
	if err != nil {
		return "", err
	}
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = `one."` + name + `"`
		if expression, ok := other[name]; ok {
			values[i] = expression
			delete(other, name)
		}
	}
	for name := range other {
		return "", fmt.Errorf("%s has no column %q: the copies would not be as settle writes them", table, name)
	}
	return strings.Join(values, ", "), nil
}
