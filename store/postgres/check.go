package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/settle-go/settle/store"
)

// minVersion is the oldest server that the ledger is meant for, as
// server_version_num.
const minVersion = 140000

// settings are those of the server and the role that the promises rest on.
type settings struct {
	fsync, fullPageWrites, synchronousCommit, standbyNames string
	isolation, readOnly, encoding                          string
	version                                                int
	standby                                                bool // this server is one
	backend                                                uint32
	unlogged                                               []string // tables
	async, hidden                                          int      // standbys that lag behind, that the role may not see
	pooler, prepares                                       bool
}

// Check implements [store.Ledger]. It looks at the server, at this session's
// role, at the ledger's tables and at the standbys that are connected now; the
// role sees the latter's state only if it has pg_monitor.
func (l *Ledger) Check(ctx context.Context) ([]store.Finding, error) {
	s, err := l.settings(ctx)
	if err != nil {
		return nil, asRead(err)
	}
	return s.findings(), nil
}

func (l *Ledger) settings(ctx context.Context) (s settings, _ error) {
	conn, err := l.acquire(ctx)
	if err != nil {
		return s, err
	}
	defer conn.Release()
	var b pgx.Batch
	b.Queue(l.sql.settings).QueryRow(func(row pgx.Row) error {
		return row.Scan(&s.fsync, &s.fullPageWrites, &s.synchronousCommit, &s.standbyNames, &s.isolation,
			&s.readOnly, &s.encoding, &s.version, &s.standby, &s.backend)
	})
	b.Queue(l.sql.standbys).QueryRow(func(row pgx.Row) error { return row.Scan(&s.async, &s.hidden) })
	b.Queue(l.sql.tables, pgx.Identifier{l.schema}.Sanitize()).Query(func(rows pgx.Rows) (err error) {
		s.unlogged, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err := conn.SendBatch(ctx, &b).Close(); err != nil {
		return s, err
	}
	// A pooler makes up the process id that it tells its clients.
	s.pooler = s.backend != conn.Conn().PgConn().PID()
	mode := conn.Conn().Config().DefaultQueryExecMode
	s.prepares = mode == pgx.QueryExecModeCacheStatement || mode == pgx.QueryExecModeDescribeExec
	return s, nil
}

// findings says what of the settings breaks what the protocol promises.
func (s settings) findings() []store.Finding {
	var all []store.Finding
	report := func(bad bool, setting, value, problem, advice string) {
		if bad {
			all = append(all, store.Finding{Setting: setting, Value: value, Problem: problem, Advice: advice})
		}
	}
	report(s.fsync == "off", "fsync", s.fsync,
		"a power failure can lose or damage everything that was claimed, and effects are repeated (R26)", "set fsync = on")
	report(s.fullPageWrites == "off", "full_page_writes", s.fullPageWrites,
		"a power failure can leave half-written pages of the ledger (R26)",
		"set full_page_writes = on, unless the file system never tears a page")
	report(s.synchronousCommit == "off", "synchronous_commit", s.synchronousCommit,
		"a claim counts as recorded before it is on disk: after a crash its effect is repeated (R19)",
		"set synchronous_commit = on for the ledger's role")
	report(s.synchronousCommit == "local" && s.standbyNames != "", "synchronous_commit", s.synchronousCommit,
		"the ledger doesn't wait for its synchronous standbys: one that is promoted can lack the last claims",
		"set synchronous_commit = on for the ledger's role")
	report(s.async > 0, "synchronous_standby_names", strconv.Itoa(s.async)+" asynchronous standby(s)",
		"a standby that is promoted can lack the last claims and outcomes: their effects are repeated (section 14 of the protocol)",
		"make the standbys that may be promoted synchronous, or promote only when nothing was lost")
	report(s.hidden > 0, "pg_stat_replication", strconv.Itoa(s.hidden)+" standby(s) of unknown state",
		"the role may not see whether standbys are synchronous, so this wasn't checked", "grant the role pg_monitor")
	report(len(s.unlogged) > 0, "unlogged tables", strings.Join(s.unlogged, ", "),
		"an unlogged table is empty after a crash: what was claimed is repeated (R26)", "ALTER TABLE … SET LOGGED")
	report(s.standby, "pg_is_in_recovery", "true",
		"this server is a standby: nothing can be claimed on it", "connect to the primary (target_session_attrs=read-write)")
	report(s.readOnly == "on", "default_transaction_read_only", s.readOnly,
		"nothing can be claimed in read-only transactions", "set default_transaction_read_only = off for the ledger's role")
	report(s.isolation != "read committed", "default_transaction_isolation", s.isolation,
		"a claim that comes too late fails instead of reading the row that won (R19)",
		"set default_transaction_isolation = 'read committed' for the ledger's role")
	report(s.encoding != "UTF8", "server_encoding", s.encoding,
		"names and codes outside the database's encoding can't be stored", "keep the ledger in a database with encoding UTF8")
	report(s.version < minVersion, "server_version_num", strconv.Itoa(s.version),
		"the ledger isn't tested with this version", fmt.Sprintf("use PostgreSQL %d or newer", minVersion/10000))
	report(s.pooler && s.prepares, "default_query_exec_mode", "prepared statements through a pooler",
		"a pooler in transaction mode can lose prepared statements, and with them the answers to writes",
		"set default_query_exec_mode=exec in the connection string, or use PgBouncer 1.21 or newer with max_prepared_statements")
	return all
}
