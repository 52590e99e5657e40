// Package sqlite keeps a ledger in one SQLite file: the default ledger, with no
// server and no C compiler behind it.
//
//	ledger, err := sqlite.Open(ctx, "settle.db")
//
// Several processes of one host may open the same file. The file is created
// with mode 0600, in WAL mode; SQLite keeps two more files beside it while it
// is open (settle.db-wal and settle.db-shm), which belong to it: copy or move
// the three together, and only while no process has them open. WAL needs
// shared memory, so the file has to be on a disk of the host: a network file
// system breaks it, and [Ledger.Check] reports what it can see of that.
//
// # Writes
//
// All writes of a [Ledger] go through one goroutine with one connection. It
// takes what has gathered while the last commit was on its way to the disk,
// runs it in one BEGIN IMMEDIATE transaction under synchronous=FULL, and
// answers after COMMIT has. So one caller pays one fsync a write, and 32 callers
// share it. A request that fails doesn't spoil the others: the batch is rolled
// back and run again with a savepoint round each request.
//
// Reads have connections of their own and don't wait for the writer.
//
// # Time
//
// SQLite has no clock. The ledger's instant is the host's, kept from running
// backwards by the last one that was stored, whichever process stored it, and
// counted on from there while the host's is behind. A host clock that steps
// forward ends leases early: that is a risk of this ledger that no setting takes
// away.
package sqlite
