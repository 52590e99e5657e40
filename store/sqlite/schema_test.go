package sqlite_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/store/sqlite"
	"github.com/settle-go/settle/store/storetest"
)

func (w *world) strings(query string, args ...any) []string {
	w.Helper()
	rows, err := w.sql().QueryContext(w.ctx, query, args...)
	w.must(err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		w.must(rows.Scan(&s))
		all = append(all, s)
	}
	w.must(rows.Err())
	return all
}

func TestR20TheDatabaseHasTheStateTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for _, m := range store.Moves() {
		want = append(want, m.String())
	}
	slices.Sort(want)
	if got := w.strings("SELECT move FROM settle_move ORDER BY move"); !slices.Equal(got, want) {
		t.Errorf("the database allows %q, want %q", got, want)
	}
}

func TestTheDatabaseRefusesWhatTheProtocolForbids(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	o := w.won(i, func(o *store.Operation) { o.Unique, o.ResourceKey = storetest.DigestOf("u"), storetest.DigestOf("r") })
	w.apply(storetest.Change(o, store.Running))
	w.apply(storetest.Completion(w.won(i), "r-1", func(c *store.Change) { c.ByAttribute = true }))
	plain := w.apply(storetest.Completion(w.won(i), "r-2"))
	other := w.won(i, func(o *store.Operation) { o.ResourceKey = storetest.DigestOf("r") })
	resource := storetest.DigestOf("r-1")
	c := w.sql()
	w.exec(c, "PRAGMA foreign_keys = ON")
	const event = "INSERT INTO settle_event (operation, seq, at, move, attempt, hash) VALUES (?, ?, 0, ?, 1, x'00')"
	for rule, write := range map[string]struct {
		statement string
		args      []any
		says      string
	}{
		"R20 a move that isn't in the state table": {event, []any{o.ID[:], 3, "running>abandoned"}, "FOREIGN KEY"},
		"R57 two events with one number":           {event, []any{o.ID[:], 2, "running>completed"}, "UNIQUE"},
		"R57 a changed claim":                      {"UPDATE settle_operation SET claimed_by = 'x' WHERE id = ?", []any{plain.ID[:]}, "never changed"},
		"R57 a changed outcome":                    {"UPDATE settle_operation SET ended_body = NULL WHERE id = ?", []any{plain.ID[:]}, "never changed"},
		"R57 a changed event":                      {"UPDATE settle_event SET actor = 'x' WHERE operation = ?", []any{o.ID[:]}, "never changed"},
		"R19 two operations in one place": {
			"UPDATE settle_operation SET slot = ? WHERE id = ?", []any{o.Slot[:], other.ID[:]}, "intent, settle_operation.slot, settle_operation.number"},
		"R14 two of a unique identity": {
			"UPDATE settle_operation SET unique_digest = ? WHERE id = ?", []any{o.Unique[:], other.ID[:]}, "unique_digest"},
		"R31 two writes with one number": {
			"UPDATE settle_operation SET resource_seq = 1 WHERE id = ?", []any{other.ID[:]}, "resource_seq"},
		"R34 a resource that settles two": {
			"UPDATE settle_operation SET resource_digest = ?, by_attribute = 1 WHERE id = ?", []any{resource[:], other.ID[:]}, "resource_digest"},
		"R34 attribute evidence without a resource": {
			"UPDATE settle_operation SET by_attribute = 1 WHERE id = ?", []any{other.ID[:]}, "CHECK"},
		"R7 an operation of no intent": {
			"UPDATE settle_operation SET intent = x'00' WHERE id = ?", []any{other.ID[:]}, "FOREIGN KEY"},
		"a number that is none": {
			"UPDATE settle_operation SET version = 'one' WHERE id = ?", []any{other.ID[:]}, "INTEGER"},
	} {
		_, err := c.ExecContext(w.ctx, write.statement, write.args...)
		if err == nil || !strings.Contains(err.Error(), write.says) {
			t.Errorf("%s: the database answered with %v, want a word on %q", rule, err, write.says)
		}
	}
}

// What an operation needs must be found by an index, however many rows there are.
func TestEveryStatementFindsItsRowsByAnIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.sql()
	for statement, index := range sqlite.Statements() {
		rows, err := c.QueryContext(w.ctx, "EXPLAIN QUERY PLAN "+statement, make([]any, strings.Count(statement, "?"))...)
		w.must(err)
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			w.must(rows.Scan(&id, &parent, &unused, &step))
			plan = append(plan, step)
		}
		w.must(rows.Err())
		w.must(rows.Close())
		text := strings.Join(plan, "; ") + " "
		tables := strings.NewReplacer("SCAN shelf;", "", "SCAN CONSTANT ROW;", "").Replace(text) // what a statement gathers itself is none
		if strings.Contains(tables, "SCAN") || !strings.Contains(text, index+" (") && !strings.Contains(text, "USING "+index) {
			t.Errorf("the plan is %q, want the index %s\n%s", text, index, statement)
		}
		if index != "settle_case_operation" && strings.HasPrefix(index, "settle_case_") && strings.Contains(text, "TEMP B-TREE") {
			t.Errorf("the plan is %q: it sorts the whole queue for its first page\n%s", text, statement)
		}
	}
}

func TestTheMigrationsCanBeRead(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(sqlite.Migrations(), "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d migrations: %v", len(files), err)
	}
	text, err := fs.ReadFile(sqlite.Migrations(), files[0])
	if err != nil || !strings.Contains(string(text), "CREATE TABLE settle_operation") {
		t.Errorf("the first migration doesn't make the ledger: %v", err)
	}
}

// Completed operations are filed by shelves, and a resource is looked for on each.
func TestR34AResourceIsFoundOnEveryShelf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.intent()
	c := w.sql()
	shelves := []int{1, 513, 70_000, 5_000_000}
	for n, seq := range shelves {
		o := w.apply(storetest.Completion(w.won(i), "r-"+strconv.Itoa(n)))
		w.exec(c, fmt.Sprintf("UPDATE settle_operation SET seq = %d WHERE id = x'%x'", seq, o.ID[:]))
	}
	byAttribute := func(c *store.Change) { c.ByAttribute = true }
	for n := range shelves {
		_, err := w.Apply(w.ctx, storetest.Completion(w.won(i), "r-"+strconv.Itoa(n), byAttribute))
		if !errors.As(err, new(*store.ResourceTakenError)) {
			t.Errorf("a resource on shelf %d of %d settled a second operation: %v", n+1, len(shelves), err)
		}
	}
	if _, err := w.Apply(w.ctx, storetest.Completion(w.won(i), "r-new", byAttribute)); err != nil {
		t.Error(err)
	}
}
