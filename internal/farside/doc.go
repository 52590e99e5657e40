// Package farside plays the far sides of tools: small HTTP services on
// loopback whose business is real enough to act on (refunds, tickets, mail,
// labels, a balance) and whose faults are chosen by the test.
//
// A far side counts what truly happened. That count, [Server.Effects], is the
// only oracle that a test of a duplicate or of a lost effect may trust: what a
// client, a ledger or a model believes is what is being tested.
//
//	pay := farside.NewPayments()
//	defer pay.Close()
//	pay.Writes.Next(farside.CommitThenDrop()) // the next refund is done, its answer is lost
//
// Faults are set apart for requests that act ([Server.Writes]) and requests that
// only look ([Server.Reads]), for good or for the next requests only. A mode that
// waits does so for a time ([Delay]) or until a test lets it go on ([Gate]).
//
// The typed clients ([PaymentsClient] and its siblings) send each request at
// most once and say what is known about a failed one: [WasNotSent],
// [WasRejected], or neither, which is an unknown outcome.
//
// The package imports nothing of this module, so that every floor can test with it.
package farside
