package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// SQLite creates the table where it isn't there, by
//
//	_, err := db.ExecContext(ctx, inbox.SQLite)
//
// A consumer's transactions should begin immediate and have a busy timeout, so
// that two of them wait for each other instead of failing.
const SQLite = `CREATE TABLE IF NOT EXISTS settle_inbox (
	source      TEXT NOT NULL,
	event       TEXT NOT NULL,
	received_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
	PRIMARY KEY (source, event)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS settle_inbox_received ON settle_inbox (received_at);`

// Postgres creates the table where it isn't there, in the first schema of the
// search path, by
//
//	_, err := db.ExecContext(ctx, inbox.Postgres) // or pgx: pool.Exec
//
// Several processes may do so at once: IF NOT EXISTS alone would let one fail.
const Postgres = `SELECT pg_advisory_xact_lock(hashtext('settle_inbox'));
CREATE TABLE IF NOT EXISTS settle_inbox (
	source      text NOT NULL,
	event       text NOT NULL,
	received_at bigint NOT NULL DEFAULT extract(epoch FROM clock_timestamp())::bigint,
	PRIMARY KEY (source, event)
);
CREATE INDEX IF NOT EXISTS settle_inbox_received ON settle_inbox (received_at);`

// Both databases know these placeholders and this clause.
const (
	record = `INSERT INTO settle_inbox (source, event) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	// The database's clock on both sides, and no dialect's word for now.
	forget = `DELETE FROM settle_inbox WHERE received_at < (SELECT max(received_at) FROM settle_inbox) - $1`
)

const (
	// maxText is how many bytes source and id may have: an index holds them both.
	maxText = 512
	// ShortestMemory is the least that [Forget] lets an inbox remember. A sender
	// repeats an event for about a day after the first delivery.
	ShortestMemory = 48 * time.Hour
)

// Once records in tx that the event was received, and says whether it is new. Two
// transactions that have the same event wait for each other: the second one is
// told "not new" if the first commits, and "new" if it rolls back.
//
// Source says whose ids these are, such as the source of a CloudEvent; source and
// id have 1 to 512 bytes. After an error nothing is known: roll back, and leave
// the event unacknowledged, so that it comes again. A transaction at repeatable
// read or above, or a deferred one of SQLite that has read before, gets such an
// error where another one was first.
func Once(ctx context.Context, tx *sql.Tx, source, id string) (isNew bool, err error) {
	if err := check(source, id); err != nil {
		return false, err
	}
	result, err := tx.ExecContext(ctx, record, source, id)
	if err != nil {
		return false, fmt.Errorf("inbox: record that an event was received: %w", err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// Forget deletes what was received longer before the newest event than keep, and
// says how many events that were. Run it now and then, in a transaction of its own.
//
// Keep has to be longer than a sender may take to deliver an event again, or the
// event counts as new: about a day for a relay that tries by itself, and as long as
// operators leave a dead event lying ([settle.Queue.Redeliver]). A month is safe
// and costs some hundred bytes an event; less than [ShortestMemory] is refused.
//
// [settle.Queue.Redeliver]: https://pkg.go.dev/github.com/settle-go/settle#Queue.Redeliver
func Forget(ctx context.Context, tx *sql.Tx, keep time.Duration) (forgotten int64, err error) {
	if err := checkMemory(keep); err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, forget, int64(keep/time.Second))
	if err != nil {
		return 0, fmt.Errorf("inbox: forget old events: %w", err)
	}
	return result.RowsAffected()
}

// check says what is wrong with the names, without repeating them (R55).
func check(source, id string) error {
	for _, text := range []struct{ role, value string }{{"source", source}, {"id", id}} {
		if n := len(text.value); n == 0 || n > maxText {
			return fmt.Errorf("inbox: the event's %s has %d bytes and must have 1 to %d", text.role, n, maxText)
		}
	}
	return nil
}

func checkMemory(keep time.Duration) error {
	if keep < ShortestMemory {
		return fmt.Errorf("inbox: asked to remember events for %v and the least is %v: a sender repeats an event for about a day, and what is forgotten counts as new", keep, ShortestMemory)
	}
	return nil
}
