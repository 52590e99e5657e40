// Package store says what a ledger is: the records it keeps, the one table of
// states and moves, the chain that seals its events, and the [Ledger]
// interface that a database has to satisfy. The ledgers that come with settle
// live in the folders below; storetest holds the conformance suite that each
// of them passes.
//
// The package knows nothing of tools, contracts or models. It stores what the
// executor decides and refuses what must never be stored: a move that the
// table doesn't have, a write over a row that has changed, a second claim of
// the same operation.
//
// # Time
//
// Every instant in a record is the ledger's own, read when the statement runs
// and not when its transaction began, in microseconds and UTC. Durations
// travel to the ledger, instants come back from it; a worker compares a
// ledger's instants only with each other. [Operation.Read] is the ledger's
// clock when the row was read.
package store
