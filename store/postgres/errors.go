package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/settle-go/settle/store"
)

// advice says what to do about an error of the server, by its SQLSTATE or the
// class that it begins with.
var advice = []struct{ code, text string }{
	{"25006", "this server is read-only, perhaps a standby: connect to the primary (target_session_attrs=read-write)"},
	{"40001", "the transaction ran at another isolation level than read committed: see default_transaction_isolation"},
	{"40P01", "the server broke a deadlock: the same call may be made again at once"},
	{"55P03", "a lock wasn't free in time: the same call may be made again"},
	{"53100", "the server's disk is full: make room before effects can be claimed again"},
	{"53200", "the server is out of memory"},
	{"53300", "the server takes no more connections: lower the pools' sizes or raise max_connections"},
	{"57014", "the statement was cancelled or ran into statement_timeout"},
	{"57P", "the server is shutting down, starting or has ended the connection: the pool connects again"},
	{"42501", "the role lacks a privilege: grant it USAGE on the ledger's schema and SELECT, INSERT, UPDATE and DELETE on its tables"},
	{"3F000", "the ledger's schema isn't there: run the migrations"},
	{"42P01", "a table of the ledger isn't there: run the migrations"},
	{"42703", "the ledger's schema isn't the one of this program: run the migrations, or upgrade the program"},
	{"42704", "a type of the ledger isn't there: run the migrations"},
	{"22", "a value can't be stored in this database: it must be UTF-8 and texts must be free of NUL"},
	{"26", "a prepared statement is gone: through a pooler in transaction mode set default_query_exec_mode=exec"},
	{"42P05", "a prepared statement is another session's: through a pooler in transaction mode set default_query_exec_mode=exec"},
	{"08", "the connection to the server was lost"},
}

// databaseError is an error of the server with what to do about it.
type databaseError struct {
	err    *pgconn.PgError
	advice string
}

// Error leaves out the server's text where that may quote a value (R55).
func (e *databaseError) Error() string {
	text := e.err.Message
	if strings.HasPrefix(e.err.Code, "22") {
		text = "invalid value"
	}
	return fmt.Sprintf("store/postgres: %s (SQLSTATE %s); %s", text, e.err.Code, e.advice)
}

func (e *databaseError) Unwrap() error { return e.err }

func explain(err *pgconn.PgError) *databaseError {
	for _, a := range advice {
		if strings.HasPrefix(err.Code, a.code) {
			return &databaseError{err, a.text}
		}
	}
	return &databaseError{err, "the statement was refused"}
}

// fromRead says what an error means after a statement that only reads.
func fromRead(err error) error {
	if err == nil {
		return nil
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		err = explain(server)
	}
	return &store.UnwrittenError{Err: err}
}

// fromWrite says what an error means after a statement that writes. Every
// statement, and every batch, is a transaction of its own, so that an ERROR of
// the server has rolled it back. A FATAL one ends the session at any point, the
// moment after the commit included; so does a lost connection. Those are not
// made again here: whether it took effect is the caller's to find out.
func fromWrite(err error) error {
	if err == nil {
		return nil
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		explained := explain(server)
		if server.SeverityUnlocalized == "ERROR" && !strings.HasPrefix(server.Code, "08") {
			again := server.Code == "40001" || server.Code == "40P01" || server.Code == "55P03"
			return &store.UnwrittenError{Err: explained, Again: again}
		}
		return unanswered(explained)
	}
	var connect *pgconn.ConnectError
	if pgconn.SafeToRetry(err) || errors.As(err, &connect) {
		return &store.UnwrittenError{Err: err}
	}
	return unanswered(err)
}

func unanswered(err error) error {
	return fmt.Errorf("store/postgres: a write may stand or not; make the same claim again, or read the row: %w", err)
}

// violated says whether the server refused a write for a unique index, and which.
func violated(err error) (constraint string, ok bool) {
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "23505" {
		return server.ConstraintName, true
	}
	return "", false
}
