package store

import "context"

// Transactor is a [Ledger] in whose database business rows can stand beside the
// operations, so that a claim, those rows and the outcome commit together (R53).
type Transactor interface {
	// Transact runs do in one transaction of the ledger's database. The context
	// that do is given carries the transaction for whoever writes business rows:
	// the driver's package says how to take it out.
	//
	// What do did stands if [Transaction.Commit] succeeded, and nothing of it
	// otherwise: when do returns without a commit, the transaction is rolled back.
	// The error is do's, or the database's. As with [Ledger], one for which
	// [Unwritten] holds says that nothing was written; after any other error of a
	// commit nobody knows, and the same claim, made again, finds out.
	//
	// The transaction has the ledger's locks, and on SQLite the only write lock
	// that there is, until do returns: do has to be short.
	Transact(ctx context.Context, do func(ctx context.Context, t Transaction) error) error
}

// Transaction is the ledger inside of a transaction that is open. It is for one
// goroutine, but for Abandon.
type Transaction interface {
	// Claim is [Ledger.Claim] of one operation. It waits for another transaction
	// that has claimed the same and hasn't ended, and never reads what isn't
	// committed.
	Claim(ctx context.Context, c Claim) (Claimed, error)
	// Apply is [Ledger.Apply].
	Apply(ctx context.Context, c Change) (Operation, error)
	// Commit applies the last change and commits.
	Commit(ctx context.Context, c Change) (Operation, error)
	// Abandon breaks the transaction off from another goroutine, where whoever
	// writes business rows doesn't return: nothing more is written in it.
	Abandon()
}
