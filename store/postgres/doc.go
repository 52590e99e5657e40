// Package postgres keeps a ledger in PostgreSQL, on pgx.
//
//	pool, err := pgxpool.New(ctx, "postgres://…")
//	…
//	ledger, err := postgres.New(ctx, pool)
//
// The ledger lives in a schema of its own, "settle" unless [WithSchema] says
// otherwise, and shares the database with whatever else is there. It is meant
// for PostgreSQL 14 and newer, at the isolation level read committed.
//
// # Schema
//
// [New] makes the schema where it isn't there and brings it up to date, with
// any number of processes starting at once. That is what a first try and a
// small deployment want. Where the program's role may not change a schema, or a
// rollout shouldn't, New gets [WithoutMigration] and answers with
// [*store.SchemaError] until somebody has called [Migrate], or has run what
// [Migrations] returns. A schema that is newer than the program is refused
// either way: upgrade the programs first to last, the schema with the first.
//
// The role that works needs USAGE on the schema, and SELECT, INSERT, UPDATE and
// DELETE on its tables; to see in [Ledger.Check] whether standbys are
// synchronous, pg_monitor.
//
// # Round trips and commits
//
// Every call is one statement, or one pipelined batch, in a transaction of its
// own: nothing stays open between two calls. Where more claims, or more ends, of
// first executions are under way than half as many as the process has cores, or
// the pool connections, those that come then share a round trip and a commit.
//
//	call                                         round trips  commits that write
//	Intent, new or known                         1            1 or 0
//	Claim that is won                            1            1
//	Claim that is recorded already, Likely       1            0
//	Claim that is recorded already, not Likely   2            0
//	Claim under Hold, After, Unique, ResourceKey 1            1, or 0 if recorded
//	Apply                                        1            1
//	Apply that isn't made                        2            0, or 1 if it had to lock
//	Renew, Take, Audit                           1            1
//	Get, List, Events, Check                     1            0
//
// # Poolers
//
// It works through PgBouncer in transaction mode: nothing that it needs lasts
// longer than a transaction. Prepared statements, which are pgx's default, do
// last longer: either PgBouncer keeps them (1.21 or newer, with
// max_prepared_statements), or the connection string says
// default_query_exec_mode=exec. The simple protocol works as well.
//
// # Locks and time
//
// Every instant is the server's own, read by the statement that writes it.
//
// What takes locks (guarded claims, moves, starts of an attempt, renewals)
// waits for them no longer than [WithLockWait] allows; what runs into that wrote
// nothing and may be made again. A plain claim and the usual outcome take no
// lock but that of their own row, which others hold for the length of one
// statement; the caller's context bounds them, and the role's lock_timeout if it
// has one (lock_timeout=2000 in the connection string, or ALTER ROLE … SET). A
// row that stays locked holds up other calls for some 100 ms at most.
//
// # Errors
//
//	situation                                     error
//	no connection; nothing was sent               [*store.UnwrittenError]
//	refused by the server: full, read-only, …     [*store.UnwrittenError], with what to do
//	deadlock, serialization, lock not free        [*store.UnwrittenError] with Again
//	connection lost while a write was under way   any other: make the same claim again, or read the row
//	schema older or newer than the program        [*store.SchemaError]
//	another isolation level                       [*IsolationError]
package postgres
