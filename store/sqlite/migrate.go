package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/settle-go/settle/store"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrations are the SQL files that make the schema, in the order of their
// numbers, for those who want to read them. [Open] runs what is missing.
func Migrations() fs.FS {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the pattern above guarantees the folder
	}
	return files
}

const versionTable = `CREATE TABLE IF NOT EXISTS settle_schema (
	version INTEGER PRIMARY KEY NOT NULL,
	run_at  INTEGER NOT NULL
) STRICT`

// migration is one numbered file.
type migration struct {
	version int64
	sql     string
}

func migrations() ([]migration, error) {
	files, err := fs.Glob(Migrations(), "*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var all []migration
	for i, name := range files {
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(i)+1 {
			return nil, fmt.Errorf("migration %q doesn't have the number %d", name, i+1)
		}
		text, err := fs.ReadFile(Migrations(), name)
		if err != nil {
			return nil, err
		}
		all = append(all, migration{version, string(text)})
	}
	return all, nil
}

// migrate brings the schema up to date. The version is a row of a table of ours
// (user_version may be a host's, whose tables can stand in the same file), read
// and written under the database's write lock: of several processes that start
// at once one migrates and the others find it done. That is why no migration
// library runs here: one that opens its own transactions can't be put under
// that lock, and has no other for SQLite.
func migrate(ctx context.Context, c *conn, now time.Time) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	if current, err := schemaIs(c, int64(len(all))); err != nil || current {
		return err
	}
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = c.script(versionTable)
	if err == nil {
		err = runMissing(ctx, c, all, now)
	}
	if err != nil {
		_, _ = c.exec("ROLLBACK") // the connection is given up after it
		return err
	}
	_, err = c.exec("COMMIT")
	return err
}

// schemaIs says whether the schema has the version wanted; a newer one is a
// [*store.SchemaError].
func schemaIs(c *conn, want int64) (bool, error) {
	var name string
	if found, err := c.first([]any{&name}, "SELECT name FROM sqlite_schema WHERE name = 'settle_schema'"); err != nil || !found {
		return false, err
	}
	have, err := schemaVersion(c)
	if err == nil && have > want {
		err = &store.SchemaError{Have: have, Want: want}
	}
	return have == want, err
}

func schemaVersion(c *conn) (version int64, err error) {
	_, err = c.first([]any{&version}, "SELECT max(version) FROM settle_schema")
	return version, err
}

func runMissing(ctx context.Context, c *conn, all []migration, now time.Time) error {
	have, err := schemaVersion(c)
	if err != nil {
		return err
	}
	if want := int64(len(all)); have > want {
		return &store.SchemaError{Have: have, Want: want}
	}
	for _, m := range all[have:] {
		if err := errors.Join(ctx.Err(), c.script(m.sql)); err != nil {
			return fmt.Errorf("migration %d: %w", m.version, err)
		}
		if _, err := c.exec("INSERT INTO settle_schema (version, run_at) VALUES (?, ?)", m.version, now.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}
