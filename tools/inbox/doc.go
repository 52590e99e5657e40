// Package inbox recognises events that were received before, in the consumer's
// own transaction.
//
// An outbox delivers at least once ([settle.WithOutbox], R54): a relay whose
// acknowledgement is lost, or that dies before it has written it down, delivers
// again, with the same event id. A consumer that records the id in the transaction
// in which it acts on the event acts on it once, however often it comes:
//
//	tx, err := db.BeginTx(ctx, nil)
//	if err != nil {
//		return err // not received: it comes again
//	}
//	defer tx.Rollback()
//	isNew, err := inbox.Once(ctx, tx, event.Source, event.ID)
//	if err != nil || !isNew {
//		return err // nil: received before, so say so to the sender
//	}
//	… // what the event means to the consumer, through tx
//	return tx.Commit()
//
// This holds for what is written through that transaction, and for nothing else:
// who sends a mail on an event makes that a call through settle.
//
// The table settle_inbox stands in the consumer's database, SQLite or PostgreSQL:
// run [SQLite] or [Postgres] once, or with each start. MySQL isn't supported: it
// has neither the statement nor the placeholders.
//
// [settle.WithOutbox]: https://pkg.go.dev/github.com/settle-go/settle#WithOutbox
package inbox
