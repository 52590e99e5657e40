package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	modernc "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/settle-go/settle/store"
)

// errGone says that the path doesn't lead to the open file any more. SQLite
// itself would go on writing to a file that nobody will ever read.
var errGone = errors.New("the ledger's file was removed or replaced while it was open, so nothing is written any more: stop the program, put the file back (with its -wal) or restore it, and start again")

// errNotWritable is what SQLITE_READONLY would say, told before the first write.
var errNotWritable = errors.New(adviceReadOnly)

const adviceReadOnly = "the ledger's file or its folder can't be written; give this user write permission on both, since SQLite keeps two files beside the first"

const adviceRoom = "there is no room for the ledger, or its disk failed; look at the free space, the user's quota and the limit on the size of files (ulimit -f), and where these are wide enough at the system's log"

// errReadOnly says that the ledger was opened with [ReadOnly].
var errReadOnly = errors.New("the ledger was opened with ReadOnly; open it without to write")

// code is the primary result code of an error of SQLite, or 0.
func code(err error) int {
	var e *modernc.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// busy says that another process held a lock for too long.
func busy(err error) bool {
	c := code(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// lasting says that the connection may be what failed: another one is opened
// in its place.
func lasting(err error) bool {
	switch code(err) {
	case 0, lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_FULL, lib.SQLITE_CONSTRAINT, lib.SQLITE_TOOBIG, lib.SQLITE_MISMATCH:
		return false
	}
	return true
}

// neverCommitted says that a COMMIT which failed so has written nothing. Where
// the disk failed, the commit may be in the -wal file all the same.
func neverCommitted(err error) bool {
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_FULL, lib.SQLITE_READONLY, lib.SQLITE_CONSTRAINT:
		return true
	}
	return false
}

// noRoom says that a write failed which had to make a file larger, perhaps: SQLite
// knows a full disk when it sees one, but no quota and no limit on the size of
// files, and says of these what it says of a disk that failed.
func noRoom(err error) bool {
	var e *modernc.Error
	return errors.As(err, &e) && (e.Code() == lib.SQLITE_IOERR_WRITE || e.Code() == lib.SQLITE_IOERR_SHMSIZE)
}

// explained adds what to do to an error of SQLite.
func explained(err error) error {
	var advice string
	if noRoom(err) {
		return fmt.Errorf("%s: %w", adviceRoom, err)
	}
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		advice = "another process keeps the ledger locked; end its long transaction, or allow more with WithBusyTimeout"
	case lib.SQLITE_FULL:
		advice = "there is no room for the ledger; free space on its disk (or raise its max_page_count)"
	case lib.SQLITE_READONLY:
		advice = adviceReadOnly
	case lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		advice = "the ledger's file can't be opened; its folder must exist, and this user must be allowed to read and write both"
	case lib.SQLITE_NOTADB:
		advice = "the file is no SQLite database; give the path of a ledger, or one where there is no file yet"
	case lib.SQLITE_CORRUPT:
		advice = "the ledger's file is damaged; stop all programs that use it, keep a copy, and restore a backup"
	case lib.SQLITE_IOERR, lib.SQLITE_PROTOCOL:
		advice = "the disk below the ledger failed; look at the system's log, and keep the ledger on a local disk"
	case lib.SQLITE_CONSTRAINT:
		advice = "the database refused a row that breaks its constraints; the caller gave an id twice, an intent that isn't recorded, or an incomplete operation"
	case lib.SQLITE_TOOBIG:
		advice = "a value is larger than SQLite can store; lower the executor's size limits"
	default:
		if !otherTables(err) {
			return err
		}
		advice = "the ledger's tables aren't there or aren't this program's, though they were when it was opened; stop all programs that use the file, put it back (with its -wal) or restore it, and start again"
	}
	return fmt.Errorf("%s: %w", advice, err)
}

// otherTables says that one of the ledger's own tables changed below it. SQLite
// has no code for it: the same one says that a handler has ended a transaction.
func otherTables(err error) bool {
	if code(err) != lib.SQLITE_ERROR {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "no such table: settle_") || strings.Contains(text, "table settle_")
}

// refusal says that the ledger worked as it should and refused: the error is
// one of package store's, and the transaction may go on.
func refusal(err error) bool {
	var unwritten *store.UnwrittenError
	return !errors.As(err, &unwritten) && store.Unwritten(err)
}

// unwritten marks an error after which it is certain that nothing was written.
func unwritten(err error) error {
	var already *store.UnwrittenError
	if err == nil || refusal(err) || errors.As(err, &already) {
		return err
	}
	return &store.UnwrittenError{Err: explained(err), Again: busy(err)}
}

// unknown marks an error after which nobody knows whether the write took effect.
func unknown(err error) error {
	return fmt.Errorf("sqlite: nobody knows whether the write took effect; make the same claim again, or read the row and look for its attempt: %w", explained(err))
}

// left is the error of a caller that didn't wait for the answer.
func left(ctx context.Context) error {
	return unknown(fmt.Errorf("the call's context ended while the write was on its way: %w", ctx.Err()))
}
